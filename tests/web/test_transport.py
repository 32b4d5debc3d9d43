"""The edge: what goes over the wire, slots, turns, and a clean end."""

from __future__ import annotations

import asyncio
import gc
import logging
from pathlib import Path

import pytest
from hostile_ground import HASTY, AllAllowed, address, fetch, guarded, settings_for

from recrawl._event_loop import run
from recrawl.errors import RecrawlError
from recrawl.lab.livingweb.hostile import (
    HostileWeb,
    ScriptedNames,
    Visit,
    answers,
    head,
    page,
    redirects,
    sends_and_stalls,
)
from recrawl.web.conditional import Validators
from recrawl.web.fetch.faults import fault_of
from recrawl.web.fetch.protocol import FetchJob, FetchResult, Slot, WaitForSlot
from recrawl.web.fetch.settings import FetchSettings, user_agent
from recrawl.web.fetch.transport import Transport

AGENT = user_agent("https://example.org/bot")


@pytest.mark.parametrize("target", ["/%7euser/a%2Fb?x=%2F&y=%C3%BC&z=+%20", "/?a=b;c&&d", "/a//b/;p=1?q?r", "/:80?@"])
def test_an_address_is_sent_byte_for_byte(target: str) -> None:
    async def main() -> HostileWeb:
        async with HostileWeb() as web, Transport(settings_for(web), keeper=AllAllowed()) as transport:
            await fetch(transport, web.url(target))
            return web

    assert [visitor.target for visitor in guarded(main()).log] == [target]


def test_the_request_holds_what_the_flow_asked_for_and_nothing_else() -> None:
    async def main() -> tuple[HostileWeb, FetchResult]:
        async with HostileWeb() as web:
            web.on("/page", answers(head(304)))
            async with Transport(settings_for(web), keeper=AllAllowed()) as transport:
                job = FetchJob(address(web.url("/page")), Validators(b'W/"\xc3\xbc"', b"odd date"))
                return web, await transport.fetch(job)

    web, result = guarded(main())
    assert result.outcome == "not-modified"
    visitor = web.log[0]
    assert set(visitor.headers) <= {
        "host", "user-agent", "accept", "accept-encoding", "if-none-match", "if-modified-since", "connection",
    }  # fmt: skip
    assert visitor.headers["user-agent"] == AGENT.header
    assert visitor.headers["host"].startswith("a.hostile.test:")
    assert b'If-None-Match: W/"\xc3\xbc"\r\n' in visitor.raw
    assert visitor.peer[0] == "127.0.0.1"


def test_cookies_are_not_kept() -> None:
    async def main() -> HostileWeb:
        async with HostileWeb() as web:
            web.on("/page", answers(page(b"x", [("Set-Cookie", "id=1; Path=/")])))
            web.on("/away", redirects(302, "/page", [("Set-Cookie", "id=2")]))
            async with Transport(settings_for(web), keeper=AllAllowed()) as transport:
                for target in ("/page", "/page", "/away"):
                    await fetch(transport, web.url(target))
            return web

    assert all("cookie" not in visitor.headers for visitor in guarded(main()).log)


def test_proxies_and_passwords_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("default login me password s3cret\n")

    async def main() -> tuple[HostileWeb, HostileWeb, FetchResult]:
        async with HostileWeb() as web, HostileWeb() as proxy:
            for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
                monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
            monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
            web.on("/page", answers(page(b"x")))
            async with Transport(settings_for(web, proxy), keeper=AllAllowed()) as transport:
                return web, proxy, await fetch(transport, web.url("/page"))

    web, proxy, result = guarded(main())
    assert (result.outcome, proxy.connections) == ("ok", 0)
    assert "authorization" not in web.log[0].headers


def test_a_utf8_location_is_read_as_browsers_do() -> None:
    async def main() -> HostileWeb:
        async with HostileWeb() as web:
            web.on("/a", redirects(302, "/\u00fc"))
            async with Transport(settings_for(web), keeper=AllAllowed()) as transport:
                await fetch(transport, web.url("/a"))
            return web

    assert [visitor.target for visitor in guarded(main()).log] == ["/a", "/%C3%BC"]


def test_no_more_fetches_run_at_once_than_there_are_slots() -> None:
    busy = {"now": 0, "most": 0}

    async def script(visit: Visit) -> None:
        busy["now"] += 1
        busy["most"] = max(busy["most"], busy["now"])
        for _ in range(20):
            await asyncio.sleep(0)
        busy["now"] -= 1
        await visit.send(page(b"x"))

    async def main() -> list[FetchResult]:
        async with HostileWeb() as web:
            web.on("/", script)
            async with Transport(settings_for(web), keeper=AllAllowed(), most_fetches=3) as transport:
                return await asyncio.gather(*(fetch(transport, web.url("/")) for _ in range(20)))

    assert {result.outcome for result in guarded(main())} == {"ok"}
    assert 2 <= busy["most"] <= 3


def test_a_keeper_can_defer_a_hop_to_a_host_whose_turn_has_not_come() -> None:
    class Paced(AllAllowed):
        async def turn(self, need: WaitForSlot) -> Slot:
            return Slot(need.address.host != "b.hostile.test", "b rests")

    async def main() -> tuple[FetchResult, HostileWeb]:
        async with HostileWeb() as web:
            web.on("/a", redirects(302, web.url("/b", "b.hostile.test")))
            async with Transport(settings_for(web), keeper=Paced()) as transport:
                return await fetch(transport, web.url("/a")), web

    result, web = guarded(main())
    assert (result.outcome, result.reason, result.requests) == ("deferred", "b rests", 1)
    assert web.seen("/b") == []


def test_robots_are_fetched_once_for_all_who_wait_for_them() -> None:
    async def main() -> HostileWeb:
        async with HostileWeb() as web:
            web.on("/p", answers(page(b"x")))
            async with Transport(settings_for(web)) as transport:
                await asyncio.gather(*(fetch(transport, web.url("/p")) for _ in range(5)))
                await fetch(transport, web.url("/p"))
            return web

    web = guarded(main())
    assert (len(web.seen("/robots.txt")), len(web.seen("/p"))) == (1, 6)


@pytest.mark.parametrize(
    ("control", "again_after_s"), [("max-age=600", 600.0), ("max-age=1", 300.0), ("no-store", 300.0), ("", 86_400.0)]
)
def test_robots_are_kept_as_long_as_they_may_be(control: str, again_after_s: float) -> None:
    async def main() -> list[int]:
        async with HostileWeb() as web:
            wall = 1_700_000_000.0
            web.on("/robots.txt", answers(page(b"", [("Cache-Control", control)])))
            counts = []
            async with Transport(settings_for(web), wall=lambda: wall) as transport:
                for later_s in (0.0, again_after_s - 1.0, 2.0):
                    wall += later_s
                    await fetch(transport, web.url("/p"))
                    counts.append(len(web.seen("/robots.txt")))
            return counts

    assert guarded(main()) == [1, 1, 2]


@pytest.mark.parametrize("path", ["/robots.txt", "/page"])
def test_a_fetch_that_is_cancelled_lets_go_of_its_connection(path: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> int:
        async with HostileWeb() as web:
            asked, left = asyncio.Event(), asyncio.Event()

            async def script(visit: Visit) -> None:
                asked.set()
                await visit.until_gone()
                left.set()

            web.on(path, script)
            names = ScriptedNames()
            async with Transport(settings_for(web), resolver=names) as transport:
                task = asyncio.create_task(fetch(transport, web.url("/page")))
                await asked.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                if path == "/page":
                    await left.wait()
            await left.wait()
            assert names.closed
            return len(asyncio.all_tasks())

    with caplog.at_level(logging.WARNING):
        remaining = guarded(main())
        gc.collect()
    assert remaining <= 3  # this one, its guard, and the visit that is just ending
    assert caplog.records == []


def test_a_kept_connection_that_the_server_resets_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> FetchResult:
        async with HostileWeb() as web:

            async def script(visit: Visit) -> None:
                await visit.send(page(b"x"))
                for _ in range(20):
                    await asyncio.sleep(0)
                visit.reset()

            web.on("/p", script)
            async with Transport(settings_for(web), keeper=AllAllowed()) as transport:
                await fetch(transport, web.url("/p"))
                for _ in range(100):
                    await asyncio.sleep(0)
                return await fetch(transport, web.url("/p"))

    with caplog.at_level(logging.WARNING):
        assert guarded(main()).body == b"x"
        gc.collect()
    assert caplog.records == []


def test_a_transport_that_is_not_open_says_so() -> None:
    async def main() -> None:
        await Transport(FetchSettings(AGENT)).fetch(FetchJob(address("http://example.com/")))

    with pytest.raises(RecrawlError, match="async with"):
        run(main())


def test_an_error_that_nobody_foresaw_is_a_fault_with_its_name_and_safe_to_print() -> None:
    fault = fault_of(KeyError("a\r\n\x1b[31mb"))
    assert fault.kind == "unknown"
    assert fault.detail.startswith("KeyError: ")
    assert fault.detail.isprintable()


def test_stalled_pages_do_not_outlive_the_transport() -> None:
    async def main() -> int:
        async with HostileWeb() as web:
            web.on("/s", sends_and_stalls(b""))
            async with Transport(settings_for(web, limits=HASTY), keeper=AllAllowed()) as transport:
                await fetch(transport, web.url("/s"))
        return len(asyncio.all_tasks())

    assert guarded(main()) <= 2
