"""Groups say for themselves whether noise is learned on their pages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

from small_site import Asked, Page, Site
from tracker_ground import FAST, running

from recrawl.tracker.admission import PageRequest
from recrawl.tracker.commands.commands import Add
from recrawl.tracker.settings.settings import GroupRule

COUNTING = replace(FAST, groups=(GroupRule("exact", ("*/exact",), learn_noise=False),))


def counter() -> Callable[[Asked], Page]:
    """A page whose every answer has the next number."""
    numbers = count(1)
    return lambda _: f"<h1>Requests</h1><p>So far there were {next(numbers)} of them, and more will come.</p>"


def test_a_group_may_count_every_difference_without_a_second_fetch(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            Site({"/exact": counter(), "/noisy": counter()}) as site,
            running(site, tmp_path, COUNTING) as ground,
        ):
            await ground.do(Add([PageRequest(site.url(path)) for path in ("/exact", "/noisy")]))
            exact = await ground.until_visited("/exact", 8)
            noisy = await ground.until_visited("/noisy", 8)
            assert exact.changes == exact.visits - 1
            assert noisy.changes < noisy.visits / 2

    asyncio.run(run())
