"""Sessions of people at the dashboard, and the codes with which they begin. In memory: a restart ends them all.

A code is good for one sign-in within ten minutes and is printed when the service starts, so that nobody has to type a
token. Every session has its own CSRF token, which is asked for whenever something is to be changed.
"""

from __future__ import annotations

import hmac
import secrets
from collections import OrderedDict
from dataclasses import dataclass

from recrawl.service.auth.tokens import Scope, digest_of

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
