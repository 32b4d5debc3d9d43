"""Each page is left alone for a least interval: the tracker's, unless its group or the page says otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from followed_site import FOLLOWING, article, feed, page_of_links
from small_site import Asked, Page, Site
from tracker_ground import FAST, Ground, running

from recrawl.store.rows import PageRow
from recrawl.store.store import open_store
from recrawl.tracker.admission import PageRequest
from recrawl.tracker.commands.commands import Add, Command, FetchNow, Reply, Signal
from recrawl.tracker.commands.status import note_of, status_lines, status_of, to_fact
from recrawl.tracker.process import run_tracker, stop_after
from recrawl.tracker.settings.settings import GroupRule, Settings
from recrawl.tracker.tracker import INTERVAL_NOTICE

POLITE = replace(FAST, min_interval_s=3600.0)
PAGES: dict[str, Page | Callable[[Asked], Page]] = {path: article(path) for path in ("/calm", "/busy", "/other")}


async def tell(ground: Ground, command: Command) -> Reply:
    """Do a command on the tracker."""
    return await ground.do(command)


async def add(ground: Ground, path: str, least_s: float | None = None, longest_s: float | None = None) -> Reply:
    """Track a page of which an interval may be said."""
    return await tell(
        ground, Add([PageRequest(ground.site.url(path), min_interval_s=least_s, max_interval_s=longest_s)])
    )


def on_ground(folder: Path, story: Callable[[Ground], Awaitable[None]], settings: Settings = POLITE) -> Site:
    """Run a story on a tracker."""

    async def run() -> Site:
        async with Site(dict(PAGES)) as site:
            async with running(site, folder, settings) as ground:
                await story(ground)
            return site

    return asyncio.run(run())


def test_by_default_a_page_is_left_alone_for_a_minute() -> None:
    assert Settings().min_interval_s == 60.0


def test_neither_the_schedule_nor_a_signal_fetches_a_page_within_its_interval(tmp_path: Path) -> None:
    async def story(ground: Ground) -> None:
        await add(ground, "/calm")
        await add(ground, "/busy", 0.0)
        await ground.until_visited("/calm")
        assert (await tell(ground, Signal([ground.site.url("/calm")], "cms"))).done["heard"] == 1
        await ground.until_visited("/busy", 30)
        assert len(ground.site.asked_for("/calm")) == 1

    on_ground(tmp_path, story)


def test_the_interval_holds_over_a_restart(tmp_path: Path) -> None:
    async def run() -> None:
        async with Site(dict(PAGES)) as site:
            for life in (1, 2):
                async with running(site, tmp_path, POLITE) as ground:
                    await add(ground, "/calm")
                    await add(ground, "/busy", 0.0)
                    await ground.until_visited("/calm")
                    await ground.until_visited("/busy", 20 * life)
            assert len(site.asked_for("/calm")) == 1

    asyncio.run(run())


def test_a_wish_is_fetched_within_the_interval(tmp_path: Path) -> None:
    async def story(ground: Ground) -> None:
        await add(ground, "/calm")
        await ground.until_visited("/calm")
        await tell(ground, FetchNow([ground.site.url("/calm")]))
        await ground.until_visited("/calm", 2)

    on_ground(tmp_path, story)


def test_a_failure_is_retried_within_the_interval(tmp_path: Path) -> None:
    answers = iter([500, 503, 500])

    async def story(ground: Ground) -> None:
        ground.site.answers["/flaky"] = lambda _: next(answers, article("flaky"))
        await add(ground, "/flaky")
        row = await ground.until_visited("/flaky", 4)
        assert row.outcome == "ok"

    on_ground(tmp_path, story)


def test_a_second_look_is_made_within_the_interval(tmp_path: Path) -> None:
    """A page whose first copy is looked at again for what is noise in it is fetched twice in one visit."""

    async def story(ground: Ground) -> None:
        await add(ground, "/calm")
        await ground.until_visited("/calm")
        turns = iter(range(1000))
        ground.site.answers["/calm"] = lambda _: article(f"turn {next(turns)} of something else entirely")
        await tell(ground, FetchNow([ground.site.url("/calm")]))
        await ground.until(lambda: len(ground.site.asked_for("/calm")) == 3)

    on_ground(tmp_path, story)


def test_a_group_a_page_and_a_longest_interval_say_otherwise(tmp_path: Path) -> None:
    """A page that has to come every second at most cannot be left alone for an hour."""

    async def story(ground: Ground) -> None:
        await add(ground, "/other")
        await add(ground, "/busy", 0.0)
        await add(ground, "/calm", longest_s=1.0)
        await ground.until_visited("/other", 3)
        await ground.until_visited("/busy", 3)
        await ground.until_visited("/calm", 2)

    group = GroupRule("quick", ("*/other",), min_interval_s=0.0)
    on_ground(tmp_path, story, replace(POLITE, groups=(group,)))


def test_an_interval_said_of_a_tracked_page_holds_from_then_on(tmp_path: Path) -> None:
    async def story(ground: Ground) -> None:
        url = ground.site.url("/calm")
        await add(ground, "/calm")
        await ground.until_visited("/calm")
        dry = await tell(ground, Add([PageRequest(url, min_interval_s=0.0)], dry_run=True))
        assert (dry.done["known"], dry.done["changed"]) == (1, 1)
        assert (await row_of(ground, url)).min_interval_s is None
        assert (await add(ground, "/calm", 0.0)).done["changed"] == 1
        assert (await row_of(ground, url)).min_interval_s == 0.0
        await ground.until_visited("/calm", 5)
        assert "changed" not in (await add(ground, "/calm", 0.0)).done
        assert "changed" not in (await add(ground, "/calm")).done
        await add(ground, "/other", longest_s=60.0)
        refused = await add(ground, "/other", 90.0)
        assert "above the max-interval of the page, 60 s" in refused.rejected[0].reason

    on_ground(tmp_path, story)


async def row_of(ground: Ground, url: str) -> PageRow:
    found = await ground.store.find_pages([url])
    return (await ground.store.read_pages([found[url]]))[0]


def test_sources_keep_to_the_interval_of_discovery(tmp_path: Path) -> None:
    """What is polled for new pages is not a page to keep fresh."""

    async def story(ground: Ground) -> None:
        named = '<link rel="alternate" type="application/rss+xml" href="/news.rss">'
        ground.site.answers["/"] = page_of_links("/calm", head=named)
        ground.site.answers["/news.rss"] = feed(ground.site, "/other")
        await add(ground, "/")
        await ground.until(lambda: len(ground.site.asked_for("/news.rss")) >= 3)

    on_ground(tmp_path, story, replace(FOLLOWING, min_interval_s=3600.0))


def test_users_of_an_older_store_are_told_once_how_to_lift_the_interval(tmp_path: Path) -> None:
    async def lives(*settings: Settings) -> list[list[str]]:
        said = []
        async with Site() as site:
            for each in settings:
                async with running(site, tmp_path, each) as ground:
                    said.append([sentence for sentence in ground.said if "--min-interval 0" in sentence])
        return said

    async def story() -> None:
        store = await open_store(str(tmp_path), owner=True)
        await store.save_facts({INTERVAL_NOTICE: "due"})
        await store.close()
        first, second = await lives(POLITE, POLITE)
        assert "recrawl track --min-interval 0" in first[0]
        assert "recrawl add URL --min-interval 0" in first[0]
        assert second == []

    asyncio.run(story())


def test_budget_that_cannot_be_used_is_said_when_it_starts_and_in_the_status(tmp_path: Path) -> None:
    said: list[str] = []

    async def story() -> None:
        async with Site(dict(PAGES)) as site:
            settings = replace(
                FAST, store=str(tmp_path), egress=site.egress, budget_per_day=2 * 86_400.0, min_interval_s=60.0
            )
            await run_tracker(settings, said.append, [stop_after(0.01)], wanted=[site.url("/calm")])
            async with running(site, tmp_path, settings) as ground:
                now = ground.now()
                await ground.store.save_facts(to_fact(note_of(ground.tracker, now)))
                status = await status_of(ground.store, now)
                assert status["tracker"]["budget_usable"] == pytest.approx(1 / 120)
                assert f"budget   {LINE}" in status_lines(status)
                await add(ground, "/busy", 0.0)
                assert note_of(ground.tracker, now).usable == 1.0

    asyncio.run(story())
    assert LINE in said


LINE = "each page at most every minute: 0.83 % of the budget can be used"
