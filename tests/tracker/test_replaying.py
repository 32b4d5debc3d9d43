"""What was learned comes out the same when it is learned again from the log."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count
from pathlib import Path

from small_site import Asked, Site
from tracker_ground import FAST, StepClock, running

from recrawl.store.rows import PageRow, Result
from recrawl.store.store import Store, open_store
from recrawl.tracker.commands.doctor import replay


def test_the_log_of_a_run_teaches_the_same(tmp_path: Path) -> None:
    numbers = count()

    def ever_new(_: Asked) -> str:
        return f"<p>{' '.join(f'word{n * 7919 % 1000}' for n in range(next(numbers), next(numbers) + 40))}</p>"

    async def story() -> None:
        async with Site({"/still": "<p>still here, as ever</p>", "/new": ever_new, "/broken": 500}) as site:
            clock = StepClock()
            async with running(site, tmp_path, clock_from=clock) as ground, clock.advancing(ground):
                await ground.add(["/still", "/new", "/broken"])
                await ground.until_visited("/still", 12)
                await ground.until_visited("/new", 12)
            store = await open_store(str(tmp_path), owner=True)
            reports: list[tuple[int, int | None]] = []
            found = await replay(store, FAST.budget_per_day / 3, lambda done, total: reports.append((done, total)))
            assert (found.differ, found.partial, found.differing) == (0, 0, [])
            assert found.agree == found.pages >= 2
            assert reports[-1][0] == reports[-1][1]
            page = (await store.list_pages())[0]
            await _forget_belief(store, page)
            found = await replay(store, FAST.budget_per_day / 3, lambda *_: None)
            assert found.differ + found.partial >= 1
            await store.close()

    asyncio.run(story())


async def _forget_belief(store: Store, page: PageRow) -> None:
    """Write a page as one would by mistake: another visit, without learning from it."""
    ((row, lease),) = await store.lease([page.id], "w", 2e9, 2e9 + 60)
    seen = (await store.observations(page.id, 1))[0]
    again = replace(seen, token=lease.token, at=2e9, verdict="unchanged", gap_s=9 * 86_400.0)
    assert await store.complete([Result(again, replace(row, visits=row.visits + 1))]) == ["applied"]
