"""Floods within the framing of HTTP: each is broken off after little work, in little memory, with its outcome."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from flood_client import CAP
from hostile_ground import PATIENT, AllAllowed, fetch, guarded, settings_for

from patience import ENVIRONMENT
from recrawl.lab.livingweb.hostile import (
    HostileWeb,
    Script,
    answers,
    chunked,
    head,
    never_ends,
    page,
    repeats,
    sends_and_hangs_up,
)
from recrawl.web.fetch.connection import MOST_CRUMBS, MOST_FRAMING_BYTES, CountedConnection, FramingFlood
from recrawl.web.fetch.protocol import FetchResult
from recrawl.web.fetch.transport import Transport

CHUNKED = head(200, [("Transfer-Encoding", "chunked")])
OK = b"HTTP/1.1 200 OK\r\n"
MOST_CPU_UNITS = 150  # of `patience.cpu_unit_s`; each takes a tenth of that, and without the bound, thousands

# What comes after the head has been handed on is a fault of framing, even if it is a line that is too long.
TRAILERS = "headers or protocol"

FLOODS: dict[str, tuple[Script, str]] = {
    "one-million-tiny-chunks": (repeats(CHUNKED, [b"1\r\nx\r\n" * 10_000] * 100 + [b"0\r\n\r\n"]), "protocol"),
    "tiny-chunks-without-end": (never_ends(CHUNKED, b"1\r\nx\r\n" * 10_000), "protocol"),
    "a-chunk-extension-without-end": (never_ends(CHUNKED + b"1;", b"e" * 65_536), "protocol"),
    "chunk-extensions": (never_ends(CHUNKED, (b"1;" + b"e" * 200 + b"\r\nx\r\n") * 1000), "protocol"),
    "zeros-before-a-chunk-size": (never_ends(CHUNKED, b"0" * 65_536), "protocol"),
    "trailers": (never_ends(CHUNKED + b"0\r\n", b"A: b\r\n" * 10_000), TRAILERS),
    "a-trailer-without-end": (never_ends(CHUNKED + b"0\r\nA: ", b"b" * 65_536), TRAILERS),
    "interim-answers": (never_ends(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 2000), "protocol"),
    "interim-answers-100": (never_ends(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2000), "protocol"),
    "blank-lines": (never_ends(b"", b"\r\n" * 30_000), "protocol"),
    "100-thousand-headers": (sends_and_hangs_up(OK + b"".join(b"H%d: v\r\n" % n for n in range(100_000))), "headers"),
    "a-header-of-1-MB": (sends_and_hangs_up(OK + b"H: " + b"v" * 1_000_000), "headers"),
    "a-header-name-without-end": (never_ends(OK, b"a" * 65_536), "headers"),
    "blanks-before-a-value": (never_ends(OK + b"A:", b" " * 65_536), "protocol"),
    "folded-lines": (never_ends(OK + b"A: b\r\n", b" c\r\n" * 10_000), "headers"),
    "a-status-line-without-end": (never_ends(b"HTTP/1.1 200 ", b"a" * 65_536), "headers"),
}


async def _flooded() -> dict[str, tuple[str, str | None, float, int]]:
    async with HostileWeb() as web:
        for name, (script, _) in FLOODS.items():
            web.on(f"/{name}", script)
        client = await asyncio.create_subprocess_exec(
            sys.executable,
            "flood_client.py",
            str(web.port),
            *(f"/{name}" for name in FLOODS),
            cwd=Path(__file__).parent,
            env=ENVIRONMENT,
            stdout=asyncio.subprocess.PIPE,
        )
        said, _ = await client.communicate()
    return {
        path[1:]: (outcome, fault, units, grown)
        for path, outcome, fault, units, grown in map(json.loads, said.splitlines())
    }


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on memory is a Linux one")
def test_every_flood_is_broken_off_after_little_work_and_in_little_memory() -> None:
    """The client is a process of its own, so that the work of the server does not count."""
    came = asyncio.run(_flooded())
    assert came.keys() == FLOODS.keys()
    for name, (outcome, fault, _, _) in came.items():
        assert outcome == "network-error", name
        assert str(fault) in FLOODS[name][1].split(" or "), name
    assert {name: units for name, (_, _, units, _) in came.items() if units > MOST_CPU_UNITS} == {}
    assert {name: grown for name, (_, _, _, grown) in came.items() if grown > CAP} == {}


def test_a_page_in_small_chunks_and_one_with_a_long_head_still_come_whole() -> None:
    body = bytes(range(256)) * 256

    async def main() -> list[FetchResult]:
        async with HostileWeb() as web:
            lines = [body[start : start + 40] for start in range(0, len(body), 40)]
            long_head = [(f"H{number}", "v" * 4000) for number in range(100)]
            web.on("/lines", answers(CHUNKED + chunked(*lines)))
            web.on("/letters", answers(CHUNKED + chunked(*(bytes((byte,)) for byte in body))))
            web.on("/head", answers(page(body, long_head)))
            web.on("/early", answers(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 100 + page(body)))
            async with Transport(settings_for(web, limits=PATIENT), keeper=AllAllowed()) as transport:
                # Twice: what an earlier answer brought over the same connection does not count.
                return [await fetch(transport, web.url(path)) for path in ("/lines", "/letters", "/head", "/early") * 2]

    assert [result.body == body for result in guarded(main())] == [True] * 8


class _Line(asyncio.Transport):
    """A connection that goes nowhere."""

    aborted = False

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def _fed(*, first: bytes, piece: bytes, times: int) -> tuple[bool, type[BaseException] | None]:
    """Whether a connection was broken off by what came over it, and the error that its body then has."""
    protocol = CountedConnection(asyncio.get_running_loop())
    line = _Line()
    protocol.connection_made(line)
    protocol.set_response_params(read_until_eof=True, auto_decompress=False, read_bufsize=1 << 30)
    protocol.data_received(first)
    _, body = await protocol.read()
    for _ in range(times):
        protocol.data_received(piece)
    error = body.exception()
    return line.aborted, None if error is None else type(error)


def test_a_body_that_comes_byte_by_byte_is_broken_off_and_one_in_small_packets_is_not() -> None:
    def fed(piece: bytes, times: int) -> tuple[bool, type[BaseException] | None]:
        return asyncio.run(_fed(first=head(200), piece=piece, times=times))

    assert fed(b"x", MOST_CRUMBS // 2) == (False, None)
    assert fed(b"x", 2 * MOST_CRUMBS) == (True, FramingFlood)
    assert fed(b"x" * 100, 2 * MOST_CRUMBS) == (False, None)
    assert fed(b"x" * 65_536, 2 * MOST_FRAMING_BYTES // 65_536) == (False, None)
