"""Groups whose changes are to be captured: their rates are learned, told to the scheduler, and kept."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from small_site import Asked, Site
from tracker_ground import FAST, StepClock, running

from recrawl.store.store import open_store
from recrawl.tracker.commands.doctor import replay
from recrawl.tracker.settings.settings import GroupRule, Life


@pytest.mark.parametrize("life", ["append", "overwrite", "window"])
def test_the_rate_of_a_captured_page_is_learned_and_outlives_a_restart(tmp_path: Path, life: Life) -> None:
    numbers = count()

    def ever_new(_: Asked) -> str:
        first = 40 * next(numbers)
        return f"<p>{' '.join(f'word{n * 7919 % 10_007}' for n in range(first, first + 40))}</p>"

    async def story() -> None:
        async with Site({"/new": ever_new, "/still": "<p>as ever, and ever</p>", "/plain": "<p>plain</p>"}) as site:
            log = GroupRule("log", (f"{site.url('')}/*w",), objective="captures", urgency_s=0.1, life=life)
            log = replace(log, learn_noise=False)  # what differs at every look would be noise
            other = GroupRule("other", (f"{site.url('')}/still",), objective="captures", urgency_s=0.1)
            settings = replace(FAST, groups=(replace(log, window_s=0.05), other))
            clock = StepClock()
            async with running(site, tmp_path, settings, clock_from=clock) as ground, clock.advancing(ground):
                await ground.add(["/new", "/still", "/plain"])
                new = await ground.until_visited("/new", 12)
                still = await ground.until_visited("/still", 12)
                assert (new.group, new.objective, still.group) == ("log", "captures", "other")
                book = ground.captures
                rates = [book._told[book._place(page.id)] for page in (new, still)]
            assert rates[0] > 3 * rates[1]
            store = await open_store(str(tmp_path), owner=True)
            found = await replay(store, FAST.budget_per_day / 3, lambda *_: None)
            assert found.differ == 0
            assert found.agree == 3
            kept = {page.id: page.belief for page in await store.list_pages()}
            await store.close()
            async with running(site, tmp_path, settings) as ground:
                book = ground.captures
                again = [book._told[book._place(page.id)] for page in (new, still)]
                assert again[0] > 3 * again[1]
                assert all(kept.values())
                await ground.until_visited("/new", new.visits + 3)

    asyncio.run(story())
