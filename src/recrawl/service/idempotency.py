"""Answers that are given again: a POST with the same `Idempotency-Key` is done once, and answered alike after that.

Kept in memory, the last thousand of a day, for each token its own; after a restart a key is new again, and what it
asks for is done again, which changes nothing: all commands of the tracker may be repeated. A key that comes with
another body is refused, one whose first request is still under way is told to wait.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from litestar import Response
from litestar.types import Message, Scope

from recrawl.service.auth.access import Caller
from recrawl.service.errors import Asked, Refusal

MOST_ANSWERS = 1000
MOST_BYTES = 64 * 1024
KEPT_S = 86_400.0
UNANSWERED_S = 300.0
LONGEST_KEY = 200
_STATE = "recrawl_idempotency"
Key = tuple[str, str, str]


@dataclass(slots=True)
class Entry:
    """A request with a key: its body's digest, and its answer when there is one."""

    digest: bytes
    at: float
    status: int = 0
    kind: str = ""
    body: bytes = b""
    whole: bool = False


@dataclass(slots=True)
class Remembered:
    """Answers by token, path and key; the oldest are forgotten first."""

    entries: OrderedDict[Key, Entry] = field(default_factory=OrderedDict)

    def find(self, key: Key, now: float) -> Entry | None:
        """The entry of a key, unless it is too old, or was given up without an answer."""
        entry = self.entries.get(key)
        return entry if entry is not None and now - entry.at < (KEPT_S if entry.whole else UNANSWERED_S) else None

    def begin(self, key: Key, digest: bytes, now: float) -> Entry:
        """A key that is new."""
        self.entries.pop(key, None)
        entry = self.entries[key] = Entry(digest, now)
        while len(self.entries) > MOST_ANSWERS:
            self.entries.popitem(last=False)
        return entry


async def answered_before(request: Asked) -> Response[Any] | None:
    """The answer to a request whose key is known; None if it is to be done."""
    given = request.headers.get("idempotency-key")
    caller = request.scope.get("auth")
    if given is None or request.method != "POST" or not isinstance(caller, Caller):
        return None
    if not 0 < len(given) <= LONGEST_KEY or not given.isprintable():
        raise Refusal(422, f"must be 1 to {LONGEST_KEY} printable characters", "Idempotency-Key")
    memory: Remembered = request.app.state["answers"]
    key, now = (caller.name, request.scope["path"], given), time.monotonic()
    digest = hashlib.sha256(await request.body()).digest()
    entry = memory.find(key, now)
    if entry is None:
        request.scope["state"][_STATE] = (memory, key, memory.begin(key, digest, now))
        return None
    if entry.digest != digest:
        raise Refusal(422, "the key was used with another body", "Idempotency-Key")
    if not entry.whole:
        raise Refusal(
            409, "the request with this key is still under way", "Idempotency-Key", headers={"Retry-After": "1"}
        )
    again = {"Idempotency-Replayed": "true"}
    return Response(entry.body, status_code=entry.status, media_type=entry.kind, headers=again)


async def remember(message: Message, scope: Scope) -> None:
    """Note an answer as it goes out; what went wrong here, or is too long, is not kept and may be tried again."""
    kept = scope.get("state", {}).get(_STATE)
    if kept is None:
        return
    memory, key, entry = kept
    if message["type"] == "http.response.start":
        entry.status = message["status"]
        kinds = [value for name, value in message["headers"] if name.lower() == b"content-type"]
        entry.kind = kinds[0].decode("latin-1") if kinds else "application/json"
    elif message["type"] == "http.response.body":
        entry.body += message.get("body", b"")
        entry.whole = not message.get("more_body", False)
        if len(entry.body) > MOST_BYTES or (entry.whole and (entry.status >= 500 or entry.status == 429)):
            memory.entries.pop(key, None)
            scope["state"].pop(_STATE, None)
