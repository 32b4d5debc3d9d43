"""The loop from lease to commit, on real HTTP over loopback and a real store."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from small_site import Asked, Page, Site
from tracker_ground import FAST, running


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
                tracker = ground.tracker
            accounts = tracker.desk.accounts
            assert accounts.in_flight == 0
            assert accounts.taken == sum(accounts.ended.values())
            assert not tracker.flights

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
