"""Who may do what: tokens, sessions and rate limits of one running service. Nothing is open by default.

A token is needed from the first start, on loopback too, since other users of the machine and every web page that is
open in a browser on it can reach loopback. A link that signs in once is printed at the start.

Sessions and codes are in memory: a restart ends them. A code is valid for one sign-in within ten minutes. Each session
has a CSRF token, which every change needs. A rate limit is a bucket of tokens for each client, of bounded number.
"""

from __future__ import annotations

import asyncio
import hmac
import math
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from recrawl.errors import InvalidInput
from recrawl.service.auth.tokens import (
    MOST_TOKENS,
    SCOPES,
    Scope,
    TokenRecord,
    allowed,
    digest_of,
    from_facts,
    keeping,
    matching,
    new_token,
    revoked,
)
from recrawl.service.listening import Listening
from recrawl.store.store import Store
from recrawl.tracker.commands.commands import token_fact

MOST_CLIENTS = 10_000


@dataclass(frozen=True, slots=True)
class Quota:
    """So many at once, and so many a second from then on."""

    burst: float
    per_s: float


class Buckets:
    """One bucket for each client; those not heard of for longest are forgotten, which fills them.

    Args:
        quota: of each.
    """

    def __init__(self, quota: Quota) -> None:
        self._quota = quota
        self._held: OrderedDict[str, tuple[float, float]] = OrderedDict()  # left, at

    def wait_s(self, client: str, now: float, cost: float = 1.0) -> float:
        """Take from a client's bucket; 0, or the seconds after which it would go and nothing is taken. O(1)."""
        quota = self._quota
        left, at = self._held.pop(client, (quota.burst, now))
        left = min(left + max(now - at, 0.0) * quota.per_s, quota.burst)
        enough = left >= cost
        self._held[client] = (left - cost if enough else left, now)
        if len(self._held) > MOST_CLIENTS:
            self._held.popitem(last=False)
        return 0.0 if enough else (cost - left) / quota.per_s


def retry_after(wait_s: float) -> str:
    """Whole seconds for the header.

    >>> retry_after(0.2)
    '1'
    """
    return str(max(1, math.ceil(wait_s)))


CODE_S = 600.0
SESSION_S = 7 * 86_400.0
MOST = 1000


@dataclass(frozen=True, slots=True)
class Session:
    """Someone who signed in.

    Args:
        csrf: what forms and scripts send with whatever changes something.
        scopes: what may be done.
        token_id: of the token that began it, None for a code.
        until: Unix seconds.
    """

    csrf: str
    scopes: frozenset[Scope]
    token_id: str | None
    until: float


class Sessions:
    """All of them, by the digest of their secret."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._codes: OrderedDict[str, float] = OrderedDict()

    def new_code(self, now: float) -> str:
        """A code for one sign-in."""
        code = f"once_{secrets.token_urlsafe(24)}"
        self._codes[digest_of(code)] = now + CODE_S
        _bound(self._codes)
        return code

    def use_code(self, code: str, now: float) -> bool:
        """Whether a code is good; it is no longer."""
        return now <= self._codes.pop(digest_of(code), -1.0)

    def begin(self, scopes: frozenset[Scope], token_id: str | None, now: float) -> tuple[str, Session]:
        """A session, and the secret of its cookie."""
        secret = secrets.token_urlsafe(32)
        session = Session(secrets.token_urlsafe(24), scopes, token_id, now + SESSION_S)
        self._sessions[digest_of(secret)] = session
        _bound(self._sessions)
        return secret, session

    def find(self, secret: str, now: float) -> Session | None:
        """The session of a cookie, if there is one."""
        session = self._sessions.get(digest_of(secret))
        return session if session is not None and now <= session.until else None

    def end(self, secret: str) -> None:
        """End a session."""
        self._sessions.pop(digest_of(secret), None)


def same(given: str, wanted: str) -> bool:
    """Whether two secrets are equal, in a time that does not tell where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode("utf-8", "surrogatepass"))


def _bound(held: OrderedDict[str, Session] | OrderedDict[str, float]) -> None:
    while len(held) > MOST:
        held.popitem(last=False)


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
