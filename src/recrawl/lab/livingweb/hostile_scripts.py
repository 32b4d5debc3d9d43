"""Scripts of misbehaviour: each a function that makes a script for `HostileWeb.on`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from recrawl.lab.livingweb.hostile import Script, Visit

Headers = Sequence[tuple[str, str]]
_REASON = "Whatever"


def head(status: int, headers: Headers = ()) -> bytes:
    r"""The head of an answer.

    >>> head(200, [("A", "b")])
    b'HTTP/1.1 200 Whatever\r\nA: b\r\n\r\n'
    """
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return f"HTTP/1.1 {status} {_REASON}\r\n{lines}\r\n".encode("latin-1")


def page(body: bytes, headers: Headers = (), status: int = 200) -> bytes:
    """A well-formed answer with its length."""
    return head(status, [*headers, ("Content-Length", str(len(body)))]) + body


def answers(*whole: bytes) -> Script:
    """Well-behaved: the first answer to the first request, and so on; the last one is repeated."""
    left = list(whole)

    async def script(visit: Visit) -> None:
        await visit.send(left.pop(0) if len(left) > 1 else left[0])

    return script


def sends_and_hangs_up(*pieces: bytes) -> Script:
    """Sends these bytes and closes, whatever was promised."""

    async def script(visit: Visit) -> None:
        for piece in pieces:
            await visit.send(piece)
        visit.hang_up()

    return script


def sends_and_resets(data: bytes) -> Script:
    """Sends these bytes and resets the connection."""

    async def script(visit: Visit) -> None:
        await visit.send(data)
        await _next_turn()
        visit.reset()

    return script


def sends_and_stalls(data: bytes) -> Script:
    """Sends these bytes and then nothing, for as long as the client stays."""

    async def script(visit: Visit) -> None:
        await visit.send(data)
        await visit.until_gone()

    return script


def drips(data: bytes, *, first: bytes = b"", every_s: float = 0.01) -> Script:
    """Sends `first`, then `data` one byte at a time, over and over: never idle, never done."""

    async def script(visit: Visit) -> None:
        await visit.send(first)
        while True:
            for byte in data:
                await visit.send(bytes((byte,)))
                await asyncio.sleep(every_s)

    return script


def never_ends(first: bytes, piece: bytes) -> Script:
    """Sends `first`, then the same piece as fast as the client takes it, for ever."""

    async def script(visit: Visit) -> None:
        await visit.send(first)
        while True:
            await visit.send(piece)
            await _next_turn()

    return script


def repeats(first: bytes, pieces: Iterable[bytes]) -> Script:
    """Sends `first`, then the pieces, then waits for the client to leave."""
    kept = tuple(pieces)

    async def script(visit: Visit) -> None:
        await visit.send(first)
        for piece in kept:
            await visit.send(piece)
        await visit.until_gone()

    return script


def redirects(status: int, location: str | bytes, headers: Headers = ()) -> Script:
    """Sends the client elsewhere; bytes stand in the header as they are."""
    where = location if isinstance(location, bytes) else location.encode("utf-8")
    rest = "".join(f"{name}: {value}\r\n" for name, value in headers).encode("latin-1")
    return answers(
        f"HTTP/1.1 {status} {_REASON}\r\nLocation: ".encode() + where + b"\r\n" + rest + b"Content-Length: 0\r\n\r\n"
    )


def redirects_onward(status: int, path: str) -> Script:
    """Sends the client to the same path with a new query each time."""
    turns = iter(range(1_000_000))

    async def script(visit: Visit) -> None:
        await visit.send(head(status, [("Location", f"{path}?turn={next(turns)}"), ("Content-Length", "0")]))

    return script


async def never_answers(visit: Visit) -> None:
    """As a greeting: takes the connection and says nothing; https never gets past its handshake."""
    await visit.until_gone()


async def _next_turn() -> None:
    await asyncio.sleep(0)
