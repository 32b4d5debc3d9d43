"""Who may do what: tokens, sessions and quotas of one running service. Nothing is open by default.

The defaults, and why: a token is needed from the first start, on loopback too, since other users of the machine and
every web page open in a browser on it can reach loopback. Whoever starts the service gets a link that signs in once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from recrawl.errors import InvalidInput
from recrawl.service.auth.quota import Buckets, Quota
from recrawl.service.auth.sessions import Session, Sessions
from recrawl.service.auth.tokens import (
    MOST_TOKENS,
    SCOPES,
    Scope,
    TokenRecord,
    allowed,
    from_facts,
    keeping,
    matching,
    new_token,
    revoked,
)
from recrawl.service.listening import Listening
from recrawl.store.contract import Store
from recrawl.tracker.commands.commands import token_fact

COOKIE = "recrawl_session"
_REREAD_S = 2.0


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: `name` is a token's id or a session, and keeps quotas and idempotency keys apart."""

    name: str
    scopes: frozenset[Scope]
    session: Session | None = None


class Quotas(NamedTuple):
    """Requests of a known client, of strangers, and wrong tokens."""

    known: Quota = Quota(2000, 1000)
    stranger: Quota = Quota(50, 10)
    failures: Quota = Quota(10, 0.2)


@dataclass(slots=True)
class Access:
    """The access of one service.

    Args:
        store: where tokens are kept.
        listening: where it listens.
        now: Unix seconds.
        quotas: how often clients may ask.
    """

    store: Store
    listening: Listening
    now: Callable[[], float]
    quotas: Quotas = field(default_factory=Quotas)
    sessions: Sessions = field(default_factory=Sessions)
    known: Buckets = field(init=False)
    strangers: Buckets = field(init=False)
    failures: Buckets = field(init=False)
    _records: dict[str, TokenRecord] = field(default_factory=dict)
    _read_at: float = float("-inf")
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.known = Buckets(self.quotas.known)
        self.strangers = Buckets(self.quotas.stranger)
        self.failures = Buckets(self.quotas.failures)

    async def records(self) -> dict[str, TokenRecord]:
        """All tokens, as the store has them; read anew every two seconds, since other processes revoke them too."""
        if self._is_old():
            async with self._lock:  # else an older reading could undo what was written meanwhile
                if self._is_old():
                    self._records = from_facts(await self.store.facts())
                    self._read_at = self.now()
        return self._records

    def _is_old(self) -> bool:
        return not 0.0 <= self.now() - self._read_at <= _REREAD_S

    async def first_token(self) -> str | None:
        """A token that may do everything, if there was never one; to be shown now, and never again."""
        if await self.records():
            return None
        token, _ = await self.make(["admin"], "first")
        return token

    async def make(self, scopes: Iterable[str], name: str) -> tuple[str, TokenRecord]:
        """A new token, to be shown once."""
        records = await self.records()
        if len(records) >= MOST_TOKENS:
            raise InvalidInput(f"there are {MOST_TOKENS} tokens already, revoked ones among them", field="name")
        token, record = new_token(scopes, name, self.now())
        await self._keep(record)
        return token, record

    async def revoke(self, number: str) -> TokenRecord | None:
        """End a token, and the sessions that it began; None if there is no such token."""
        records = await self.records()
        record = records.get(number)
        if record is None or record.revoked_at is not None:
            return record
        ended = revoked(record, self.now())
        await self._keep(ended)
        return ended

    async def _keep(self, record: TokenRecord) -> None:
        kept = keeping(record)
        async with self._lock:
            await self.store.save_facts(token_fact(kept.id, kept.record))
            self._records[record.id] = record

    async def by_token(self, token: str) -> Caller | None:
        """Who a bearer token stands for."""
        record = matching(token, await self.records())
        return None if record is None else Caller(record.id, allowed(record.scopes))

    async def by_cookie(self, secret: str) -> Caller | None:
        """Who a session stands for; a session ends with the token that began it."""
        session = self.sessions.find(secret, self.now())
        if session is None:
            return None
        if session.token_id is not None:
            record = (await self.records()).get(session.token_id)
            if record is None or record.revoked_at is not None:
                return None
        return Caller(f"session-{session.csrf[:8]}", session.scopes, session)

    async def sign_in(self, secret: str) -> tuple[str, Session] | None:
        """Begin a session with a code or a token; the secret of its cookie, None if it opens nothing."""
        now = self.now()
        if self.sessions.use_code(secret, now):
            return self.sessions.begin(frozenset(SCOPES), None, now)
        record = matching(secret, await self.records())
        return None if record is None else self.sessions.begin(allowed(record.scopes), record.id, now)
