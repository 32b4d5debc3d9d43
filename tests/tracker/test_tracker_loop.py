"""The loop from lease to commit, on real HTTP over loopback and a real store."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from small_site import Asked, Page, Site
from tracker_ground import FAST, Leap, running

from recrawl.tracker.commands.commands import FetchNow, Signal
from recrawl.web.fetch.retry import BackoffRules


def test_a_page_is_discovered_once_and_its_changes_are_told(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site() as site:
            site.answers["/news"] = "<h1>One</h1><p>The first text of this page, long enough to be read.</p>"
            async with running(site, tmp_path) as ground:
                await ground.add(["/news"])
                await ground.until_visited("/news")
                site.answers["/news"] = "<h1>Two</h1><p>Another text altogether, with other words in every line.</p>"
                seen = await ground.until_visited("/news", 3)
                while not seen.changes:
                    seen = await ground.until_visited("/news", seen.visits + 1)
                assert await ground.events() == [("discovered", "/news"), ("changed", "/news")]
                assert seen.version == 2
                event = (await ground.store.changes(1))[0].event
                assert event.old_digest != event.new_digest
                assert event.last_seen_unchanged_at is not None
                assert event.last_seen_unchanged_at < event.detected_at

    asyncio.run(story())


def test_an_error_is_neither_a_change_nor_a_removal(tmp_path: Path) -> None:
    """And a page that comes back as it was is no event."""
    closed: list[Page] = [None, None]  # a client asks once more on a fresh connection
    answers: list[Page] = ["<p>steady text</p>", 500, 403, *closed, "<p>steady text</p>"]

    def next_answer(_: Asked) -> Page:
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def story() -> None:
        async with Site({"/page": next_answer}) as site, running(site, tmp_path) as ground:
            await ground.add(["/page"])
            await ground.until(lambda: len(answers) == 1)
            seen = await ground.until_visited("/page", 6)
            outcomes = [each.outcome for each in await ground.store.observations(seen.id, 100)]
            assert {"ok", "server-error", "forbidden", "network-error"} <= set(outcomes)
            assert await ground.events() == [("discovered", "/page")]
            assert seen.state == "active"

    asyncio.run(story())


def test_every_page_taken_is_accounted_for(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site() as site:
            for number in range(40):
                site.answers[f"/{number}"] = f"<p>page {number}</p>" if number % 4 else 404
            async with running(site, tmp_path) as ground:
                await ground.add([f"/{number}" for number in range(40)])
                await ground.until(lambda: len(site.log) > 200)
            accounts = ground.accounts
            assert accounts.in_flight == 0
            assert accounts.taken == sum(accounts.ended.values())
            assert not ground.in_flight

    asyncio.run(story())


def test_requests_to_one_host_keep_their_distance_over_a_restart(tmp_path: Path) -> None:
    """Pages, robots.txt and redirects alike, as the server sees it."""
    polite = replace(FAST, min_gap_s=0.15, max_in_flight=1)

    async def story() -> None:
        async with Site() as site:
            site.answers["/moved"] = (302, {"Location": "/2"}, b"")
            for number in range(4):
                site.answers[f"/{number}"] = f"<p>page {number}</p>"
            for _ in range(2):
                before = len(site.log)
                async with running(site, tmp_path, polite) as ground:
                    await ground.add(["/0", "/1", "/2", "/3", "/moved"])
                    await ground.add(["/0", "/1"], host="b")
                    await ground.until(lambda before=before: len(site.log) >= before + 12)  # type: ignore[misc]
                    for host in ("a", "b"):  # so that the gap over the restart is among those that are measured
                        await ground.until(
                            lambda before=before, host=host: host in {each.host for each in site.log[before:]}  # type: ignore[misc]
                        )
            gaps = site.gaps()
            assert set(gaps) == {"a", "b"}
            assert min(gaps["a"] + gaps["b"]) >= 0.149

    asyncio.run(story())


def test_robots_txt_is_asked_once_and_kept_over_a_restart(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site() as site:
            site.answers["/robots.txt"] = (200, {}, b"User-agent: *\nDisallow: /private\n")
            site.answers["/open"] = site.answers["/private/1"] = "<p>text</p>"
            for _ in range(2):
                async with running(site, tmp_path) as ground:
                    await ground.add(["/open", "/private/1"])
                    before = len(site.asked_for("/open"))
                    await ground.until(lambda before=before: len(site.asked_for("/open")) > before)  # type: ignore[misc]
                    await ground.until_visited("/private/1")
            assert len(site.asked_for("/robots.txt")) == 1
            assert not site.asked_for("/private/1")

    asyncio.run(story())


FRESH = (200, {"Cache-Control": "max-age=86400", "Content-Type": "text/html"}, b"<p>A text that lasts.</p>")


def test_a_page_that_its_server_calls_fresh_waits_an_hour_if_that_is_respected(tmp_path: Path) -> None:
    """Unless somebody sends a signal, or wants it now; others are crawled meanwhile."""

    async def story() -> None:
        leap, respecting = Leap(), replace(FAST, respect_max_age=True)
        async with (
            Site({"/fresh": FRESH, "/plain": "<p>A text.</p>"}) as site,
            running(site, tmp_path, respecting, clock_from=leap) as ground,
        ):

            def visits() -> int:
                return len(site.asked_for("/fresh"))

            async def turns() -> None:
                """Time in which the page would be crawled a few times: the other one is."""
                before = len(site.asked_for("/plain"))
                await ground.until(lambda: len(site.asked_for("/plain")) > before + 5)

            await ground.add(["/fresh", "/plain"])
            page = await ground.until_visited("/fresh")
            await turns()
            assert visits() == 1
            await ground.do(FetchNow([page.url]))
            await ground.until_visited("/fresh", 2)
            await turns()
            assert visits() == 2
            await ground.do(Signal([page.url], "cms"))
            await ground.until_visited("/fresh", 3)
            await turns()
            assert visits() == 3
            leap.ahead_s += 3700.0
            await ground.until_visited("/fresh", 4)
            await turns()
            assert visits() == 4

    asyncio.run(story())


@pytest.mark.parametrize("status", [500, 404])
def test_a_signal_does_not_lift_the_wait_after_a_failure(tmp_path: Path, status: int) -> None:
    """The page was fresh before it failed."""

    async def story() -> None:
        respecting = replace(FAST, respect_max_age=True, retry=BackoffRules(first_s=5000.0, longest_s=5000.0))
        leap = Leap()
        async with (
            Site({"/fresh": FRESH, "/plain": "<p>A text.</p>"}) as site,
            running(site, tmp_path, respecting, clock_from=leap) as ground,
        ):
            await ground.add(["/fresh", "/plain"])
            page = await ground.until_visited("/fresh")
            site.answers["/fresh"] = status
            leap.ahead_s += 3700.0
            await ground.until_visited("/fresh", 2)
            await ground.do(Signal([page.url], "cms"))
            before = len(site.asked_for("/plain"))
            await ground.until(lambda: len(site.asked_for("/plain")) > before + 5)
            assert len(site.asked_for("/fresh")) == 2

    asyncio.run(story())


def test_max_age_of_pages_is_not_respected_by_default(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site({"/fresh": FRESH}) as site, running(site, tmp_path) as ground:
            await ground.add(["/fresh"])
            await ground.until_visited("/fresh", 5)

    asyncio.run(story())
