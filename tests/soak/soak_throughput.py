"""A tracker at full load keeps its speed: fetches in the last tenth of the time are 90 % of those in the first tenth.

Run by `make soak`; RECRAWL_SOAK_SECONDS says how long, five minutes by default.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from ledger_site import LedgerSite
from postgres_ground import new_place
from tracker_process import TrackerProcess

from recrawl.tracker.admission import PageRequest
from recrawl.tracker.commands.commands import Add, carry_out

SECONDS = float(os.environ.get("RECRAWL_SOAK_SECONDS", "300"))
PAGES = int(os.environ.get("RECRAWL_SOAK_PAGES", "10000"))
HOSTS = 200
WARM_UP = 200
BUDGET = 5_000.0
"""More than one process can fetch: it goes as fast as it can."""


def test_the_last_tenth_is_as_fast_as_the_first(tmp_path: Path) -> None:
    async def story() -> None:
        place = new_place("sqlite", tmp_path)
        async with LedgerSite(fetches_a_change=10) as site:
            tracker = TrackerProcess(tmp_path, place.where, site.port, budget=BUDGET, concurrency=64)
            urls = [site.url(f"h{number % HOSTS}", f"/{number}") for number in range(PAGES)]
            await carry_out(Add([PageRequest(url) for url in urls]), tracker.settings, time.time)
            await tracker.start()
            try:
                while len(site.log) < HOSTS + WARM_UP:
                    await asyncio.sleep(0.1)
                counts = []
                for _ in range(10):
                    before = len(site.log)
                    await asyncio.sleep(SECONDS / 10)
                    counts.append(len(site.log) - before)
                assert await tracker.stop() == 0
            finally:
                await tracker.kill()
            print(f"fetches in each tenth of {SECONDS:g} s: {counts}")  # noqa: T201 - the finding
            assert counts[-1] >= 0.9 * counts[0], counts

    asyncio.run(story())
