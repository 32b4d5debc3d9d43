"""Answers made of scraps of HTTP, cut and altered at random: each ends in an outcome, and the next fetch is as good."""

from __future__ import annotations

import asyncio
import gc
import logging
import random

import pytest
from hostile_ground import PATIENT, AllAllowed, address, fetch, guarded, settings_for

from recrawl.lab.livingweb.hostile import HostileWeb, Visit, answers, brotli_bomb, gzip_bomb, page
from recrawl.outcomes import OUTCOMES
from recrawl.web.conditional import NO_VALIDATORS, Validators
from recrawl.web.fetch.protocol import Channel, FetchJob, FetchResult
from recrawl.web.fetch.settings import FetchLimits
from recrawl.web.fetch.transport import Transport

FIRST = [b"HTTP/1.1 %d X\r\n" % status for status in (200, 200, 200, 301, 302, 304, 204, 206, 404, 429, 503, 103, 101)]
FIRST += [b"HTTP/1.0 200 OK\r\n", b"HTTP/2 200\r\n", b"ICY 200 OK\r\n", b"HTTP/1.1 000 X\r\n"]
HEADERS = [
    b"Content-Length: 5", b"Content-Length: 0", b"Content-Length: +5", b"Content-Length: 5, 5", b"Content-Length:",
    b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: chunked, identity",
    b"Transfer-Encoding: \x0bchunked", b"Transfer-Encoding: xchunked", b"Location: /b", b"Location: //", b"Location: ?",
    b"Location: http://[", b"Location: \xff", b"Location: http://a.hostile.test:99999/", b"Location: ",
    b"Location: http://xn--a/", b"Location: http://" + b"a" * 300 + b".com/", b"Location: /%zz%", b"Location: /a\x01",
    b"Content-Encoding: gzip", b"Content-Encoding: br", b"Content-Encoding: zstd, deflate", b"Content-Encoding: \x80",
    b"ETag: \x80\xff", b'ETag: "a"', b"Last-Modified: \xf0\x9f", b"Retry-After: -99999999999999999999",
    b"Retry-After: \xd9\xa3", b"Cache-Control: max-age=" + b"9" * 30, b"Expires: Fri, 31 Dec 9999 23:59:59 GMT",
    b"Date: x", b"Age: 1e999", b"X-Robots-Tag: recrawl: noindex", b"X-Robots-Tag: \xff:", b"Connection: close",
    b"Connection: keep-alive", b"Connection: upgrade\r\nUpgrade: websocket", b"Set-Cookie: \xff\x80=;;;", b"Trailer: X",
    b"Content-Type: text/html; charset=\x80", b"cf-mitigated: challenge", b"X: \x1b[31m\xe2\x80\xae", b"a b: c", b": x",
]  # fmt: skip
BODIES = [
    b"", b"hello", b"5\r\nhello\r\n", b"0\r\n\r\n", b"0\r\nX: y\r\n\r\n", b"ffffffffffffffff\r\n", b"-1\r\n", b"\0",
    b"\r", b'5;a="\r\n"\r\nhello\r\n', b"\n", b"\r\n\r\n", b"x" * 9000,
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
    gzip_bomb(2), brotli_bomb(2),
]  # fmt: skip
CHANNELS: list[Channel] = ["page", "robots", "sitemap", "feed"]
FETCHES = 400


def _scraps(rng: random.Random) -> list[bytes]:
    scraps = [rng.choice(FIRST)] + [line + b"\r\n" for line in rng.sample(HEADERS, rng.randint(0, 4))]
    scraps += [b"\r\n"] * (rng.random() < 0.95) + [rng.choice(BODIES) for _ in range(rng.randint(0, 3))]
    if rng.random() < 0.1:
        scraps.insert(0, b"HTTP/1.1 100 Continue\r\n\r\n")
    if rng.random() < 0.2:
        broken = bytearray(rng.choice(scraps) or b"x")
        broken[rng.randrange(len(broken))] = rng.randrange(256)
        scraps[rng.randrange(len(scraps))] = bytes(broken)
    return scraps


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_answer_raises_keeps_a_slot_or_is_logged(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    rng = random.Random(seed)

    async def script(visit: Visit) -> None:
        for scrap in _scraps(rng):
            await visit.send(scrap)
            if rng.random() < 0.2:
                await asyncio.sleep(0)
        end = rng.random()
        if end < 0.9:
            visit.hang_up()
        elif end < 0.98:
            visit.reset()

    async def main() -> tuple[list[FetchResult], FetchResult, int]:
        async with HostileWeb() as web:
            web.on("/a", script)
            web.on("/b", script)
            web.on("/fine", answers(page(b"fine")))
            limits = FetchLimits(total_s=0.5, connect_s=0.5, most_body_bytes=1 << 20)
            async with Transport(settings_for(web, limits=limits), keeper=AllAllowed(), most_fetches=8) as transport:
                jobs = [
                    FetchJob(
                        address(web.url("/a", f"h{rng.randrange(20)}.hostile.test")),
                        rng.choice([NO_VALIDATORS, Validators(b'"a"', b"x")]),
                        rng.choice(CHANNELS),
                    )
                    for _ in range(FETCHES)
                ]
                results = await asyncio.gather(*(transport.fetch(job) for job in jobs))
                fine = await fetch(transport, web.url("/fine"), limits=FetchLimits())
            assert web.failures == []
            return results, fine, len(asyncio.all_tasks())

    with caplog.at_level(logging.WARNING):
        results, fine, tasks = guarded(main())
        gc.collect()
    assert fine.body == b"fine"
    assert tasks <= 10  # this one, and visits that are just ending
    assert caplog.records == []
    assert len({result.outcome for result in results}) >= 6
    for result in results:
        assert result.outcome in OUTCOMES
        assert result.reason.isprintable()
        assert result.fault != "unknown", result.reason
        assert result.elapsed_s < PATIENT.total_s


def test_reasons_and_titles_are_inert_whatever_an_answer_holds() -> None:
    """Escape codes, line breaks and marks that turn the reading direction never reach a terminal or a log."""
    hostile = ["\x1b[2J", "\u202egnp.exe", "\x9b31m", "a\x85b", "\u2028"]

    async def main() -> list[FetchResult]:
        async with HostileWeb() as web:
            for number, text in enumerate(hostile):
                location = f"http://{text}.example/".encode()
                web.on(
                    f"/{number}", answers(b"HTTP/1.1 302 X\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n")
                )
                web.on(f"/c{number}", answers(page(b"x", [("Content-Encoding", text.encode().decode("latin-1"))])))
            async with Transport(settings_for(web), keeper=AllAllowed()) as transport:
                paths = [f"/{kind}{number}" for number in range(len(hostile)) for kind in ("", "c")]
                return [await fetch(transport, web.url(path)) for path in paths]

    results = guarded(main())
    assert {result.outcome for result in results} <= {"refused", "network-error"}
    for result in results:
        assert result.reason.isprintable()
        assert result.reason.isascii()
