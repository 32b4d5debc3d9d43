"""What a tracker does when things go wrong: a host that asks for quiet, an outage, a page that kills, a full store."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from aiohttp.abc import AbstractResolver, ResolveResult
from small_site import Asked, Page, Site
from tracker_ground import FAST, running
from tracker_harness import TrackerHarness, logged

from patience import patience, ticks
from recrawl.errors import StoreBusy
from recrawl.store.rows import HostRow, NewPage
from recrawl.store.store import Store, open_store
from recrawl.tracker.tracker import open_tracker
from recrawl.web.fetch.protocol import Send, Step


def test_a_host_that_asks_for_quiet_gets_it_over_a_restart(tmp_path: Path) -> None:
    """All of the host, and nobody else."""

    async def story() -> None:
        async with Site() as site:
            site.answers["a/1"] = (429, {"Retry-After": "3600"}, b"")
            site.answers["a/2"] = site.answers["b/1"] = "<p>text</p>"
            async with running(site, tmp_path) as ground:
                await ground.add(["/1"])
                await ground.until_visited("/1")
                asked = len([each for each in site.log if each.host == "a"])
                await ground.add(["/2"])
                await ground.add(["/1"], host="b")
                await ground.until_visited("/1", 3, host="b")
                assert len([each for each in site.log if each.host == "a"]) == asked
            before = len([each for each in site.log if each.host == "b"])
            async with running(site, tmp_path) as ground:
                await ground.until(lambda: len([each for each in site.log if each.host == "b"]) > before + 3)
            assert len([each for each in site.log if each.host == "a"]) == asked

    asyncio.run(story())


def test_when_most_of_a_host_fails_nothing_of_it_is_removed(tmp_path: Path) -> None:
    rules = replace(FAST, removal=replace(FAST.removal, missing_times=2, missing_over_s=0.0, recheck_s=0.01))
    ill = False

    def answer(asked: Asked) -> Page:
        return 404 if ill else f"<p>page {asked.path}</p>"

    async def story() -> None:
        nonlocal ill
        async with Site() as site:
            paths = [f"/{number}" for number in range(12)]
            site.answers.update(dict.fromkeys(paths, answer))
            async with running(site, tmp_path, rules) as ground:
                await ground.add(paths)
                for path in paths:
                    await ground.until_visited(path)
                ill = True
                async with patience("the host to be called degraded"):
                    while not any(kind == "host_degraded" for kind, _ in await ground.events()):
                        await asyncio.sleep(0.02)
                removed = [path for kind, path in await ground.events() if kind == "removed"]
                assert len(removed) < len(paths) / 2  # a host whose pages fail by half is ill
            async with running(site, tmp_path, rules) as ground:  # which remembers how its pages were answered
                (state,) = [each for each in ground.hosts if each.health.degraded]
                assert sum(state.health.failed.values()) >= 4

    asyncio.run(story())


class Busy:
    """A store that cannot write hosts while it is busy."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.busy, self.refused = True, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def save_hosts(self, rows: Sequence[HostRow]) -> None:
        if self.busy:
            self.refused += len(rows)
            raise StoreBusy("is written by others")
        await self._store.save_hosts(rows)


def test_hosts_that_could_not_be_written_are_written_the_next_time(tmp_path: Path) -> None:
    """Also one that only a redirect led to, with its robots.txt: no result of a page brings its row."""

    async def story() -> None:
        async with Site() as site:
            site.answers["/robots.txt"] = (200, {}, b"User-agent: *\nDisallow: /private\n")
            site.answers["a/1"] = (302, {"Location": site.url("/2", "b")}, b"")
            site.answers["b/2"] = "<p>where it leads</p>"
            async with running(site, tmp_path) as ground:
                busy = Busy(ground.store)
                ground.tracker.store = cast(Store, busy)
                await ground.add(["/1"])
                await ground.until_visited("/1")
                await ground.tracker.note_time()
                assert busy.refused
                busy.busy = False
            store = await open_store(str(tmp_path), owner=False)
            (row,) = [each for each in await store.hosts() if each.name == "b.site.test"]
            assert row.robots is not None
            await store.close()

    asyncio.run(story())


async def _die_with(folder: Path, urls: list[str]) -> list[str]:
    """Open a tracker, take these pages, and leave as if it had died: the leases are still there. What was said."""
    said: list[str] = []
    store = await open_store(str(folder), owner=True)
    with logged(said):
        tracker = TrackerHarness(await open_tracker(replace(FAST, store=str(folder)), store, said.append))
    await tracker.add_pages([NewPage(url, url.split("/")[2]) for url in urls])
    scheduled = [page.id for page in await store.list_pages() if tracker.is_scheduled(page.id)]
    taken = 0
    async with patience("all pages to be taken"):
        while taken < len(scheduled):
            taken += await tracker.take(10)
            await asyncio.sleep(0.01)
    await store.close()
    return said


def test_a_page_that_kills_the_crawler_three_times_is_quarantined(tmp_path: Path) -> None:
    async def story() -> None:
        said = [await _die_with(tmp_path, ["http://a.example/poison"]) for _ in range(4)][-1]
        store = await open_store(str(tmp_path), owner=True)
        (page,) = await store.list_pages()
        assert page.state == "quarantined"
        assert [change.event.kind for change in await store.changes()] == ["quarantined"]
        assert "quarantined" in said[0]
        await store.close()

    asyncio.run(story())


def test_bystanders_of_crashes_are_not_quarantined(tmp_path: Path) -> None:
    """Of several suspects none is shut away; they are fetched one by one until one is sure."""

    async def story() -> None:
        for _ in range(3):
            await _die_with(tmp_path, [f"http://h{n}.example/" for n in range(5)])
        store = await open_store(str(tmp_path), owner=True)
        await open_tracker(replace(FAST, store=str(tmp_path)), store, lambda _: None)
        pages = await store.list_pages()
        assert [page.state for page in pages] == ["active"] * 5
        waits = sorted(page.not_before or 0.0 for page in pages)
        assert all(later - sooner >= 59 for sooner, later in pairwise(waits))
        await store.close()

    asyncio.run(story())


def test_quiet_goes_to_the_host_that_asked_for_it(tmp_path: Path) -> None:
    """Where a redirect led, not where it began; and second looks and probes count too."""

    async def story() -> None:
        async with Site() as site:
            site.answers["a/r"] = (302, {"Location": site.url("/x", "b")}, b"")
            site.answers["b/x"] = (429, {"Retry-After": "3600"}, b"")
            site.answers["a/1"] = "<p>text</p>"
            async with running(site, tmp_path) as ground:
                await ground.add(["/r"])
                await ground.until_visited("/r")
                await ground.add(["/1"])
                await ground.until_visited("/1", 3)
                assert len([each for each in site.log if each.host == "b" and each.path == "/x"]) == 1
                assert ground.host("b.site.test").blocked_until > 0
                assert not ground.host("a.site.test").blocked_until

    asyncio.run(story())


def test_a_page_that_no_scheduler_takes_does_not_keep_a_tracker_from_starting(tmp_path: Path) -> None:
    async def story() -> None:
        store = await open_store(str(tmp_path), owner=True)
        await store.add_pages(
            [
                NewPage("http://a.example/1", "a.example", importance=1e-70),
                NewPage("http://a.example/2", "a.example", min_interval_s=1e300),
                NewPage("http://a.example/3", "a.example", max_interval_s=1e-60, min_interval_s=5.0),
            ]
        )
        tracker = TrackerHarness(await open_tracker(replace(FAST, store=str(tmp_path)), store, lambda _: None))
        assert len(tracker.scheduler) == 3
        await store.close()

    asyncio.run(story())


def test_a_small_budget_is_kept_over_restarts(tmp_path: Path) -> None:
    """Tokens that came in one life count in the next, and are never more than may be held."""

    async def story() -> None:
        slow = replace(FAST, budget_per_day=86_400.0 * 2)
        async with Site({"/1": "<p>one</p>"}) as site:
            for _ in range(8):
                async with running(site, tmp_path, slow) as ground:
                    await ground.add(["/1"])
                    await ticks(25, 0.01)
            assert len(site.log) >= 3

    asyncio.run(story())


def test_a_paused_page_is_not_fetched_until_it_is_resumed(tmp_path: Path) -> None:
    from recrawl.tracker.commands.commands import Pause, Resume

    async def story() -> None:
        async with Site() as site:
            site.answers["/1"] = site.answers["/2"] = "<p>text</p>"
            async with running(site, tmp_path) as ground:
                await ground.add(["/1", "/2"])
                await ground.until_visited("/1")
                await ground.do(Pause("page", [site.url("/1")]))
                paused_at = len(site.asked_for("/1"))
                await ground.until(lambda: len(site.asked_for("/2")) > 20)
                assert len(site.asked_for("/1")) == paused_at
                await ground.do(Resume("page", [site.url("/1")]))
                await ground.until(lambda: len(site.asked_for("/1")) > paused_at)

    asyncio.run(story())


def test_the_rate_after_an_import_is_the_budget(tmp_path: Path) -> None:
    """A thousand pages at once are no burst."""
    steady = replace(FAST, budget_per_day=86_400.0 * 50)

    async def story() -> None:
        async with Site() as site:
            site.answers.update({f"/{number}": "<p>text</p>" for number in range(1000)})
            async with running(site, tmp_path, steady) as ground:
                await ground.add([f"/{number}" for number in range(1000)])
                started = asyncio.get_running_loop().time()
                await ground.until(lambda: len(site.log) >= 100)
                elapsed = asyncio.get_running_loop().time() - started
            assert 50 * elapsed * 1.1 + 10 >= 100

    asyncio.run(story())


class BrokenNames(AbstractResolver):
    """A resolver with a mistake in it."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        raise TypeError(f"a mistake at {host}:{port}, {family}")

    async def close(self) -> None:
        pass


def test_a_mistake_of_the_program_is_said_and_not_held_against_the_site(tmp_path: Path) -> None:
    """The page is put off without an observation; other pages go on."""

    async def story() -> None:
        async with Site({"/1": "<p>text</p>"}) as site, running(site, tmp_path) as ground:
            ground.tracker.transport._resolver = BrokenNames()  # asked for names that the settings do not map
            await ground.add(["/1"])
            (broken,) = await ground.add_pages([NewPage(f"http://broken.example:{site.port}/", "broken.example")])
            await ground.until(lambda: any("broken.example" in sentence for sentence in ground.said))
            await ground.until_visited("/1", 3)
            (sentence,) = [sentence for sentence in ground.said if "broken.example" in sentence]
            assert "should not be" in sentence
            assert "TypeError" in sentence
            assert not await ground.store.observations(broken[0], 10)
            (page,) = await ground.store.read_pages([broken[0]])
            assert (page.failures, page.outcome) == (0, None)
            assert ground.host("broken.example").failures == 0

    asyncio.run(story())


def test_a_mistake_in_a_second_fetch_is_not_held_against_the_site(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site({"/1": lambda _: f"<p>text {secrets.token_hex(4)}</p>", "/2": "<p>two</p>"}) as site:

            def watch(step: Step) -> None:
                if isinstance(step, Send) and step.address.target == "/1" and len(site.asked_for("/1")) == 2:
                    raise TypeError("a mistake")

            async with running(site, tmp_path) as ground:
                ground.tracker.transport._watch = watch
                await ground.add(["/1", "/2"])
                await ground.until(lambda: any("/1" in sentence for sentence in ground.said))
                await ground.until_visited("/2", 3)
                page = await ground.until_visited("/1")
                assert [seen.outcome for seen in await ground.store.observations(page.id, 10)] == ["ok"]

    asyncio.run(story())
