"""A hostile server at the other end: every misbehaviour ends in its outcome, within its bounds, without an error."""

from __future__ import annotations

import asyncio
import gzip
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hostile_ground import HASTY, MIB, PATIENT, AllAllowed, fetch, guarded, settings_for

from patience import ENVIRONMENT, PATIENCE_S
from recrawl.lab.livingweb.hostile import (
    BOMBS,
    HostileWeb,
    Script,
    Visit,
    answers,
    chunked,
    drips,
    gzip_again,
    gzip_bomb,
    head,
    never_answers,
    never_ends,
    page,
    redirects,
    redirects_onward,
    sends_and_hangs_up,
    sends_and_resets,
    sends_and_stalls,
)
from recrawl.outcomes import Outcome
from recrawl.web.fetch.protocol import Channel, FetchResult
from recrawl.web.fetch.settings import FetchLimits
from recrawl.web.fetch.transport import Transport

LENGTH_100 = head(200, [("Content-Length", "100")])
CHUNKED = head(200, [("Transfer-Encoding", "chunked")])


def _gzipped(body: bytes, coding: str = "gzip", status: int = 200) -> bytes:
    return page(body, [("Content-Encoding", coding)], status)


def _length(value: str, *more: tuple[str, str]) -> bytes:
    return head(200, [("Content-Length", value), *more])


def _garbage_mid_body() -> Script:
    """A good chunk, and, once it has gone out, nonsense where the next one should begin."""

    async def script(visit: Visit) -> None:
        await visit.send(CHUNKED + chunked(b"good")[:-5])
        for _ in range(50):  # let the client read the good one first
            await asyncio.sleep(0)
        await visit.send(b"zzz\r\n")
        await visit.until_gone()

    return script


@dataclass(frozen=True)
class Case:
    script: Callable[[], Script]
    outcome: Outcome
    fault: str | None = None
    limits: FetchLimits = PATIENT


CASES: dict[str, Case] = {
    # slow: the total deadline ends it, however busy the line is
    "headers that drip": Case(
        lambda: drips(b"X-A: b\r\n", first=b"HTTP/1.1 200 OK\r\n"), "network-error", "timeout", HASTY
    ),
    "a status line that drips": Case(lambda: drips(b"O", first=b"HTTP/1.1 200 "), "network-error", "timeout", HASTY),
    "silence after the request": Case(lambda: sends_and_stalls(b""), "network-error", "timeout", HASTY),
    "silence after the headers": Case(lambda: sends_and_stalls(LENGTH_100), "network-error", "timeout", HASTY),
    "a body that drips": Case(lambda: drips(b"x", first=LENGTH_100), "network-error", "timeout", HASTY),
    "chunks that drip": Case(lambda: drips(b"1\r\nx\r\n", first=CHUNKED), "network-error", "timeout", HASTY),
    "an error page that drips": Case(
        lambda: drips(b"x", first=head(404, [("Content-Length", "100000")])), "missing", None, HASTY
    ),
    # cut short: truncated, never a page
    "a body shorter than promised": Case(lambda: sends_and_hangs_up(LENGTH_100 + b"abc"), "truncated", "closed"),
    "a chunk cut short": Case(lambda: sends_and_hangs_up(CHUNKED + b"5\r\nabc"), "truncated", "closed"),
    "no last chunk": Case(lambda: sends_and_hangs_up(CHUNKED + b"3\r\nabc\r\n"), "truncated", "closed"),
    "a reset in the body": Case(lambda: sends_and_resets(LENGTH_100 + b"abc"), "truncated", "closed"),
    "a gzip stream cut short": Case(lambda: answers(_gzipped(gzip.compress(b"a" * 999)[:-9])), "truncated", "closed"),
    "a reset before the answer": Case(lambda: sends_and_resets(b""), "network-error", "reset"),
    "a close before the answer": Case(lambda: sends_and_hangs_up(b""), "network-error", "closed"),
    "a close in the headers": Case(lambda: sends_and_hangs_up(b"HTTP/1.1 200 OK\r\nA: b"), "network-error", "closed"),
    # lengths that lie
    "a negative length": Case(
        lambda: sends_and_hangs_up(head(200, [("Content-Length", "-1")])), "network-error", "protocol"
    ),
    "a length of 5000 digits": Case(
        lambda: sends_and_hangs_up(head(200, [("Content-Length", "9" * 5000)])), "network-error", "protocol"
    ),
    **{
        f"a length of {value!r}": Case(
            lambda value=value: sends_and_hangs_up(_length(value) + b"abc"),  # type: ignore[misc]
            "network-error",
            "protocol",
        )
        for value in ("ten", "+3", "3,3", "3, 4", "0x3", "3.0", "1e1", "3 3", "\xb3")
    },
    "two lengths": Case(
        lambda: sends_and_hangs_up(head(200, [("Content-Length", "3"), ("Content-Length", "4")]) + b"abcd"),
        "network-error",
        "protocol",
    ),
    "a length and chunks": Case(
        lambda: sends_and_hangs_up(
            head(200, [("Content-Length", "3"), ("Transfer-Encoding", "chunked")]) + chunked(b"abc")
        ),
        "network-error",
        "protocol",
    ),
    "garbage in place of a chunk": Case(_garbage_mid_body, "network-error", "protocol"),
    "a chunk of a huge size": Case(
        lambda: sends_and_hangs_up(CHUNKED + b"f" * 40 + b"\r\n"), "network-error", "protocol"
    ),
    # not HTTP
    "another protocol": Case(lambda: sends_and_hangs_up(b"SSH-2.0-OpenSSH_9\r\n"), "network-error", "protocol"),
    "a bare page": Case(lambda: sends_and_hangs_up(b"<html>hello"), "network-error", "protocol"),
    "a NUL in a header": Case(
        lambda: sends_and_hangs_up(b"HTTP/1.1 200 OK\r\nA: \0b\r\nContent-Length: 0\r\n\r\n"),
        "network-error",
        "protocol",
    ),
    "a status of 999": Case(lambda: answers(page(b"", status=999)), "network-error", "protocol"),
    "an upgrade nobody asked for": Case(
        lambda: sends_and_stalls(b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"),
        "network-error",
        "protocol",
    ),
    # floods
    "200 headers": Case(lambda: answers(page(b"", [(f"H{n}", "v") for n in range(200)])), "network-error", "headers"),
    "headers without end": Case(
        lambda: never_ends(b"HTTP/1.1 200 OK\r\n", b"H: v\r\n" * 1000), "network-error", "headers"
    ),
    "a header of 10 kB": Case(lambda: answers(page(b"", [("H", "v" * 10_000)])), "network-error", "headers"),
    "a header without end": Case(
        lambda: never_ends(b"HTTP/1.1 200 OK\r\nH: ", b"v" * 65_536), "network-error", "headers"
    ),
    "a body without end": Case(lambda: never_ends(head(200), b"x" * 65_536), "too-large"),
    "chunks without end": Case(lambda: never_ends(CHUNKED, b"10000\r\n" + b"x" * 65_536 + b"\r\n"), "too-large"),
    "a huge body that says so": Case(
        lambda: never_ends(head(200, [("Content-Length", str(1 << 40))]), b"x" * 65_536), "too-large"
    ),
    # codings
    "three codings": Case(
        lambda: answers(_gzipped(gzip_again(bytes(MIB), 3), "gzip, gzip, gzip")), "network-error", "coding"
    ),
    "two codings of a bomb": Case(lambda: answers(_gzipped(gzip_again(bytes(4 * MIB), 2), "gzip, gzip")), "too-large"),
    "an unknown coding": Case(lambda: answers(_gzipped(b"x", "compress")), "network-error", "coding"),
    "garbage for gzip": Case(lambda: answers(_gzipped(b"no gzip")), "network-error", "coding"),
    "an error page that is a bomb": Case(lambda: answers(_gzipped(gzip_bomb(8), status=404)), "missing"),
    **{
        f"a {name} bomb": Case(lambda make=make, name=name: answers(_gzipped(make(16), name)), "too-large")  # type: ignore[misc]
        for name, make in BOMBS.items()
    },
    # redirects
    "a circle": Case(lambda: redirects(301, "/case"), "network-error", "redirect"),
    "a new query each time": Case(lambda: redirects_onward(302, "/case"), "network-error", "redirect"),
    "a redirect to nowhere": Case(lambda: answers(head(302, [("Content-Length", "0")])), "network-error", "redirect"),
    "a redirect to a file": Case(lambda: redirects(302, "file:///etc/passwd"), "refused", "refused"),
    "a redirect to a private address": Case(lambda: redirects(302, "http://10.0.0.1/"), "refused", "refused"),
    "a redirect to an address of 7 kB": Case(lambda: redirects(302, "/" + "a" * 7000), "refused", "refused"),
    "a redirect with a tab": Case(lambda: redirects(302, b"/a\tb"), "refused", "refused"),
    "a redirect that is not text": Case(lambda: redirects(302, b"http://\xff\xfe/"), "refused", "refused"),
}


async def _one(case: Case) -> tuple[FetchResult, HostileWeb]:
    async with HostileWeb() as web:
        web.on("/case", case.script())
        async with Transport(settings_for(web, limits=case.limits), keeper=AllAllowed()) as transport:
            result = await fetch(transport, web.url("/case"))
            again = await fetch(transport, web.url("/elsewhere"), limits=PATIENT)
    assert again.outcome == "missing"  # the transport is as good as new
    assert web.failures == []
    return result, web


@pytest.mark.parametrize("name", CASES)
def test_misbehaviour_ends_in_its_outcome_and_leaves_the_transport_whole(name: str) -> None:
    case = CASES[name]
    result, _ = guarded(_one(case))
    assert (result.outcome, result.fault) == (case.outcome, case.fault), result.reason
    assert result.body == b""
    assert result.wire_bytes <= 2 * MIB
    assert case.limits is not HASTY or result.elapsed_s < PATIENT.total_s
    assert result.reason.isprintable()


@pytest.mark.parametrize("name", ["a body that drips", "a reset in the body", "a body without end", "a gzip bomb"])
def test_the_outcome_is_the_same_on_the_loop_of_the_standard_library(name: str) -> None:
    case = CASES[name]
    result, _ = asyncio.run(_one(case))
    assert (result.outcome, result.fault) == (case.outcome, case.fault)


def test_a_handshake_that_stalls_and_a_server_that_never_speaks_end_at_the_deadline() -> None:
    async def main() -> list[FetchResult]:
        async with HostileWeb(greeting=never_answers) as web, Transport(settings_for(web, limits=HASTY)) as transport:
            secure = web.url("/").replace("http:", "https:")
            # Its robots.txt is asked first: without it, nothing else is.
            return [await fetch(transport, url, "robots") for url in (secure, web.url("/"))]

    secure, plain = guarded(main())
    assert (secure.outcome, plain.outcome) == ("network-error", "network-error")
    assert secure.fault in ("connect-timeout", "timeout")
    assert plain.fault == "timeout"


def test_a_site_whose_robots_never_come_is_not_crawled() -> None:
    async def main() -> tuple[FetchResult, HostileWeb]:
        async with HostileWeb() as web:
            web.on("/robots.txt", sends_and_stalls(b""))
            web.on("/page", answers(page(b"hello")))
            async with Transport(settings_for(web, limits=HASTY)) as transport:
                return await fetch(transport, web.url("/page")), web

    result, web = guarded(main())
    assert result.outcome == "robots-denied"
    assert web.seen("/page") == []


@pytest.mark.parametrize(
    ("script", "allowed"),
    [
        (answers(page(b"User-agent: *\nDisallow: /page")), False),
        (answers(_gzipped(gzip.compress(b"User-agent: *\nDisallow: /page"))), False),
        (answers(page(b"", status=404)), True),
        (answers(page(b"", status=403)), True),
        (answers(page(b"", status=500)), False),
        (answers(page(b"", status=429)), False),
        (sends_and_hangs_up(LENGTH_100 + b"User-agent: *"), False),
        (answers(_gzipped(b"no gzip")), False),
        (answers(_gzipped(gzip_bomb(4))), True),  # the first 500 KiB count, and hold no rule
        (redirects_onward(302, "/robots.txt"), True),  # more than five redirects: as if there were none
        (redirects(302, "http://10.0.0.1/robots.txt"), False),
        (redirects(302, "/rules.txt"), False),
    ],
)
def test_robots_over_the_wire_mean_what_rfc_9309_says(script: Script, allowed: bool) -> None:
    async def main() -> tuple[FetchResult, FetchResult, HostileWeb]:
        async with HostileWeb() as web:
            web.on("/robots.txt", script)
            web.on("/rules.txt", answers(page(b"User-agent: recrawl\nDisallow: /")))
            web.on("/page", answers(page(b"hello")))
            async with Transport(settings_for(web)) as transport:
                return await fetch(transport, web.url("/page")), await fetch(transport, web.url("/page")), web

    first, second, web = guarded(main())
    assert first.outcome == second.outcome == ("ok" if allowed else "robots-denied")
    assert len(web.seen("/page")) == (2 if allowed else 0)
    assert len(web.seen("/robots.txt")) <= 6  # asked once for both pages, redirects included


@pytest.mark.parametrize("channel", ["page", "robots", "sitemap", "feed"])
def test_a_bomb_is_cut_on_every_channel(channel: Channel) -> None:
    async def main() -> FetchResult:
        async with HostileWeb() as web:
            web.on("/bomb", answers(_gzipped(gzip_bomb(64))))
            async with Transport(settings_for(web)) as transport:
                return await fetch(transport, web.url("/bomb"), channel)

    result = guarded(main())
    if channel == "robots":
        assert len(result.body) == 500 * 1024
    else:
        assert (result.outcome, result.body) == ("too-large", b"")


def test_the_body_of_a_redirect_is_neither_waited_for_nor_decoded() -> None:
    async def main() -> FetchResult:
        async with HostileWeb() as web:
            bomb = head(302, [("Location", "/there"), ("Content-Encoding", "gzip"), ("Content-Length", "999999999")])
            web.on("/here", sends_and_stalls(bomb + gzip_bomb(4)))
            web.on("/there", answers(page(b"there")))
            async with Transport(settings_for(web)) as transport:
                return await fetch(transport, web.url("/here"))

    result = guarded(main())
    assert (result.outcome, result.body, result.wire_bytes) == ("ok", b"there", 5)


def test_an_answer_that_nobody_asked_for_is_never_taken_for_the_next() -> None:
    async def main() -> list[FetchResult]:
        async with HostileWeb() as web:
            web.on("/one", answers(page(b"one") + page(b"SMUGGLED")))
            web.on("/two", answers(page(b"two")))
            async with Transport(settings_for(web)) as transport:
                return [await fetch(transport, web.url(target)) for target in ("/one", "/two", "/one", "/two")]

    results = guarded(main())
    assert [result.body for result in results] == [b"one", b"two", b"one", b"two"]


def test_a_connection_that_was_promised_and_closed_is_opened_again() -> None:
    async def main() -> list[FetchResult]:
        async with HostileWeb() as web:
            web.on("/one", sends_and_hangs_up(page(b"one", [("Connection", "keep-alive")])))
            async with Transport(settings_for(web)) as transport:
                return [await fetch(transport, web.url("/one")) for _ in range(3)]

    assert [result.body for result in guarded(main())] == [b"one"] * 3


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        *((seconds, 86_400.0) for seconds in ("99999999999", "9" * 5000, "Fri, 31 Dec 9999 23:59:59 GMT")),
        *(("120", 120.0), ("soon", None), ("\xd9\xa3", None), ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0)),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_asks_for_peace_is_heard(status: int, value: str, wait_s: float | None) -> None:
    async def main() -> FetchResult:
        async with HostileWeb() as web:
            web.on("/busy", answers(page(b"busy", [("Retry-After", value)], status)))
            async with Transport(settings_for(web)) as transport:
                return await fetch(transport, web.url("/busy"))

    result = guarded(main())
    assert (result.outcome, result.retry_after_s, result.body) == ("rate-limited", wait_s, b"busy")


def test_memory_stays_within_three_caps_whatever_the_server_sends() -> None:
    """Server and client in a process of their own, limited to what they have plus three times the cap."""
    if sys.platform != "linux":  # pragma: no cover
        pytest.skip("the limit on memory is a Linux one")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_LIMITED)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        cwd=Path(__file__).parent,
        env=ENVIRONMENT,
    )
    outcomes = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert outcomes == {
        **dict.fromkeys(("/gzip", "/deflate", "/br", "/zstd", "/endless"), "too-large None"),
        "/headers": "network-error headers",
        "/line": "network-error headers",
        "/interim": "network-error protocol",
    }, done.stderr


_LIMITED = """
    import resource
    from dataclasses import replace
    from hostile_ground import PATIENT, AllAllowed, fetch, guarded, settings_for
    from recrawl.lab.livingweb.hostile import HostileWeb
    from recrawl.lab.livingweb.hostile import BOMBS
    from recrawl.lab.livingweb.hostile import answers, head, never_ends, page
    from recrawl.web.fetch.transport import Transport

    cap = 8 << 20
    patient = replace(PATIENT, most_body_bytes=cap, most_expansion=1e6)

    async def main():
        async with HostileWeb() as web:
            for name, bomb in BOMBS.items():
                web.on("/" + name, answers(page(bomb(64), [("Content-Encoding", name)])))
            web.on("/endless", never_ends(head(200), b"x" * 65_536))
            web.on("/headers", never_ends(b"HTTP/1.1 200 OK\\r\\n", b"H: v\\r\\n" * 1000))
            web.on("/line", never_ends(b"HTTP/1.1 200 OK\\r\\nH: ", b"v" * 65_536))
            web.on("/interim", never_ends(b"", b"HTTP/1.1 103 Early Hints\\r\\n\\r\\n" * 100))
            async with Transport(settings_for(web, limits=patient), keeper=AllAllowed()) as transport:
                await fetch(transport, web.url("/warm"))
                pages = int(open("/proc/self/statm").read().split()[0])
                most = pages * resource.getpagesize() + 3 * cap
                resource.setrlimit(resource.RLIMIT_AS, (most, most))
                for path in [*("/" + name for name in BOMBS), "/endless", "/headers", "/line", "/interim"]:
                    result = await fetch(transport, web.url(path))
                    print(path, result.outcome, result.fault)

    guarded(main())
"""


def test_stalled_fetches_give_their_slots_back() -> None:
    async def main() -> tuple[list[FetchResult], FetchResult]:
        async with HostileWeb() as web:
            web.on("/stall", sends_and_stalls(LENGTH_100))
            web.on("/fine", answers(page(b"fine")))
            settings = settings_for(web, limits=HASTY)
            async with Transport(settings, keeper=AllAllowed(), most_fetches=2) as transport:
                stalled = await asyncio.gather(*(fetch(transport, web.url("/stall")) for _ in range(4)))
                return stalled, await fetch(transport, web.url("/fine"), limits=PATIENT)

    stalled, fine = guarded(main())
    assert {result.fault for result in stalled} == {"timeout"}
    assert fine.outcome == "ok"
