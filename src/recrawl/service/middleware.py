"""The outer wall, before any route is looked up: names of hosts, encodings, and headers of every answer.

- `Host` must be a name that this service goes by: a page on another site whose name was bent to this machine
  (rebinding) gets 421 and nothing else.
- Compressed bodies are refused: none is worth the bomb that it may be. Long ones share a room (`held_bodies.py`).
- Every answer carries a content security policy that allows nothing but this service's own files, `nosniff`, and no
  CORS header at all.
"""

from __future__ import annotations

from typing import Any

import msgspec
from litestar.types import ASGIApp, Message, Receive, Send

from recrawl.service import held_bodies
from recrawl.service.listening import Listening
from recrawl.web.fetch.settings import MemoryBudget

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


def shielded(app: ASGIApp, listening: Listening) -> ASGIApp:
    """An application behind the wall."""
    names = listening.allowed_names
    room = MemoryBudget(held_bodies.MOST_HELD_BYTES)

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
        if scope["method"] not in held_bodies.WITH_BODY:
            await app(scope, receive, with_headers)
            return
        body = held_bodies.HeldBody(receive, room)
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
