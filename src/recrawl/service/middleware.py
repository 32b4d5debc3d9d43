"""Around every route: the outer wall, memory for bodies, and answers that are given again.

- The wall is before the router. `Host` must be a name of this service: a page on another site whose name was bent to
  this machine (rebinding) gets 421. Compressed bodies are rejected (decompression bombs). Every answer has a content
  security policy that allows nothing but this service's own files, `nosniff`, and no CORS header.
- Bodies over 1 MiB share one memory budget: each has a cap of its own, but a thousand connections may send together.
- A POST with an `Idempotency-Key` is done once and answered alike after that. The last thousand answers of a day are
  kept in memory, for each token its own. After a restart a key is new and its request is done again, which changes
  nothing: all commands of the tracker may be repeated. A key with another body is refused, and one whose first request
  still runs has to wait.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import msgspec
from litestar import Response
from litestar.types import ASGIApp, HTTPReceiveMessage, Message, Receive, Scope, Send

from recrawl.service.auth.access import Caller
from recrawl.service.errors import ApiError, Asked
from recrawl.service.listening import Listening
from recrawl.web.fetch.settings import FREE_BYTES, MemoryBudget

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),  # with `no-referrer` browsers would send `Origin: null` with our own forms
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
"""Set unless the route itself says otherwise."""
MOST_URL_BYTES = 8192
MOST_HELD_BYTES = 128 << 20
WITH_BODY = ("POST", "PATCH", "PUT")
MOST_ANSWERS = 1000
MOST_ANSWER_BYTES = 64 * 1024
KEPT_S = 86_400.0
UNANSWERED_S = 300.0
LONGEST_KEY = 200
_ANSWERED = "recrawl_idempotency"
Key = tuple[str, str, str]


def shielded(app: ASGIApp, listening: Listening) -> ASGIApp:
    """An application behind the wall."""
    names = listening.allowed_names
    room = MemoryBudget(MOST_HELD_BYTES)

    async def guarded(scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        if scope["type"] != "http":  # no sockets here
            return
        wrong = _wrong(scope, names)
        with_headers = _sender(send)
        if wrong is not None:
            await _refuse(with_headers, *wrong)
            return
        if scope["method"] not in WITH_BODY:
            await app(scope, receive, with_headers)
            return
        body = HeldBody(receive, room)
        try:
            await app(scope, body.receive, with_headers)
        finally:
            body.free()

    return guarded


def _wrong(scope: Any, names: frozenset[str]) -> tuple[int, str, str] | None:
    """Status, code and sentence if a request is refused at once."""
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    if len(hosts) != 1 or host_name(hosts[0].decode("latin-1")) not in names:
        return 421, "wrong-host", "this service does not go by that name: see `names` under [service] of the settings"
    if len(scope.get("raw_path", b"")) + len(scope["query_string"]) > MOST_URL_BYTES:
        return 414, "too-large", f"the address is longer than {MOST_URL_BYTES} bytes"
    for name, value in scope["headers"]:
        if name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            return 415, "unsupported-media-type", "compressed bodies are not read: send it as it is"
    return None


def host_name(host: str) -> str:
    """The name in a `Host` header, without its port.

    >>> host_name("[::1]:80"), host_name("LOCALHOST:8472")
    ('[::1]', 'localhost')
    """
    if host.startswith("["):
        return host[: host.find("]") + 1].lower()
    return host.partition(":")[0].lower()


def _sender(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            there = {name.lower() for name, _ in headers}
            message["headers"] = headers + [each for each in HEADERS if each[0] not in there]
        await send(message)

    return sending


async def _refuse(send: Send, status: int, code: str, message: str) -> None:
    body = msgspec.json.encode({"error": {"code": code, "message": message, "field": None, "row": None}})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    start: Any = {"type": "http.response.start", "status": status, "headers": headers}
    await send(start)
    end: Any = {"type": "http.response.body", "body": body, "more_body": False}
    await send(end)


class HeldBody:
    """The body of one request, counted as it comes.

    Args:
        receive: gives the next part of it.
        room: that it shares with others.
    """

    __slots__ = ("_came", "_receive", "_room", "_taken")

    def __init__(self, receive: Receive, room: MemoryBudget) -> None:
        self._receive = receive
        self._room = room
        self._came = self._taken = 0

    async def receive(self) -> HTTPReceiveMessage:
        """The next part, if there is room for it."""
        message: HTTPReceiveMessage = await self._receive()  # type: ignore[assignment]  # there are no sockets here
        self._came += len(message.get("body", b""))  # type: ignore[arg-type]
        wanted = self._came - FREE_BYTES - self._taken
        if wanted > 0:
            if not self._room.acquire(wanted):
                raise ApiError(503, "too many long bodies come at once: wait a little", headers={"Retry-After": "1"})
            self._taken += wanted
        return message

    def free(self) -> None:
        """The request is answered."""
        self._room.release(self._taken)
        self._taken = 0


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
        raise ApiError(422, f"must be 1 to {LONGEST_KEY} printable characters", "Idempotency-Key")
    memory: Remembered = request.app.state["answers"]
    key, now = (caller.name, request.scope["path"], given), time.monotonic()
    digest = hashlib.sha256(await request.body()).digest()
    entry = memory.find(key, now)
    if entry is None:
        request.scope["state"][_ANSWERED] = (memory, key, memory.begin(key, digest, now))
        return None
    if entry.digest != digest:
        raise ApiError(422, "the key was used with another body", "Idempotency-Key")
    if not entry.whole:
        raise ApiError(
            409, "the request with this key is still under way", "Idempotency-Key", headers={"Retry-After": "1"}
        )
    again = {"Idempotency-Replayed": "true"}
    return Response(entry.body, status_code=entry.status, media_type=entry.kind, headers=again)


async def remember(message: Message, scope: Scope) -> None:
    """Note an answer as it goes out; what went wrong here, or is too long, is not kept and may be tried again."""
    kept = scope.get("state", {}).get(_ANSWERED)
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
        if len(entry.body) > MOST_ANSWER_BYTES or (entry.whole and (entry.status >= 500 or entry.status == 429)):
            memory.entries.pop(key, None)
            scope["state"].pop(_ANSWERED, None)
