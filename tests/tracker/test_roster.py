"""Pages may come, go and pause at any moment of a busy tracker; the counts add up and nothing breaks."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from small_site import Site
from tracker_ground import FAST, SHORT, running
from tracker_harness import serving

from patience import patience
from recrawl.store.rows import NewPage
from recrawl.store.store import open_store
from recrawl.tracker.admission import PageRequest
from recrawl.tracker.commands.commands import Add, Pause, Remove, Resume
from recrawl.tracker.usage import End

PAGES = 20
ENDS = get_args(End)


@pytest.mark.parametrize("kind", ["page", "host", "removal"])
def test_commands_in_the_midst_of_fetches_break_nothing(tmp_path: Path, kind: str) -> None:
    async def story() -> None:
        async with Site({f"/{n}": f"<p>{n}</p>" for n in range(PAGES)}) as site:
            async with running(site, tmp_path) as ground:
                urls = [site.url(f"/{n}") for n in range(PAGES)]
                add = Add([PageRequest(url) for url in urls])
                await ground.do(add)
                for _ in range(25):
                    if kind == "removal":
                        away, back = Remove(urls[: PAGES // 2]), add
                    else:
                        names = urls[: PAGES // 2] if kind == "page" else ["a.site.test"]
                        away, back = Pause(kind, names), Resume(kind, names)  # type: ignore[arg-type,assignment]
                    await ground.do(away)
                    await asyncio.sleep(0.01)
                    await ground.do(back)
                    await asyncio.sleep(0.01)
                seen = len(site.log)
                await ground.until(lambda: len(site.log) > seen + PAGES)
                accounts = ground.accounts
            assert ground.said == []
            assert accounts.taken == sum(accounts.ended.values())
            store = await open_store(str(tmp_path), owner=False)
            counted = await store.tallies()
            await store.close()
            ended = sum(count for name, count in counted.items() if name.partition(":")[0] in ENDS)
            assert counted["taken"] == accounts.taken == ended

    asyncio.run(story())


def test_a_pause_of_a_large_group_lets_others_in_between_its_batches(tmp_path: Path) -> None:
    """Whoever takes or adds pages waits for a thousand pages at most, not for the whole group."""

    async def story() -> None:
        settings = replace(FAST, store=str(tmp_path))
        async with patience(), serving(settings, timing=SHORT) as tracker:
            await tracker.add_pages([NewPage(f"https://a.example/{n}", "a.example", "many") for n in range(2500)])
            pausing = asyncio.ensure_future(tracker.do(Pause("group", ["many"])))
            lock = tracker.tracker.in_flight.lock
            while not lock.locked():
                await asyncio.sleep(0)
            async with lock:
                left = len(tracker.tracker.schedule)
            assert 0 < left < 2500
            await pausing
            assert len(tracker.tracker.schedule) == 0
            await tracker.do(Resume("group", ["many"]))
            assert len(tracker.tracker.schedule) == 2500

    asyncio.run(story())


def test_a_found_page_that_leaves_before_its_source_was_looked_at_leaves_nothing_behind(tmp_path: Path) -> None:
    async def story() -> None:
        settings = replace(FAST, store=str(tmp_path), discover=True)
        async with patience(), serving(settings, timing=SHORT) as tracker:
            page = NewPage("https://a.example/found", "a.example", objective="once", source="https://a.example/")
            ((page_id, _),) = await tracker.add_pages([page])
            assert page_id in tracker.tracker.schedule.unvalued
            await tracker.drop([page_id])
            assert not tracker.tracker.schedule.unvalued

    asyncio.run(story())
