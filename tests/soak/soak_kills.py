"""Kills the tracker again and again at random moments, and compares what is left; run by `make soak`.

Ten thousand pages on twenty hosts, a `kill -9` after 0 to 500 ms of work, for two minutes by default; then the tracker
may run to its end, and everything must agree: the store, the ledger of the server, and both sinks.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest
from crash_evidence import Evidence, check_consistent, check_ledger, check_nothing_lost, check_sinks, read_evidence
from ledger_site import LedgerSite
from postgres_ground import KINDS, new_place
from tracker_process import MIN_GAP_S, TrackerProcess

from recrawl.store.opening import open_store
from recrawl.tracker.commands import Add
from recrawl.tracker.newcomers import Wanted
from recrawl.tracker.orders import carry_out

SECONDS = float(os.environ.get("RECRAWL_SOAK_SECONDS", "120"))
PAGES = int(os.environ.get("RECRAWL_SOAK_PAGES", "10000"))
HOSTS = 20
LONGEST_S = 0.5


async def _read(where: str) -> Evidence:
    store = await open_store(where, owner=False)
    try:
        return await read_evidence(store)
    finally:
        await store.close()


@pytest.mark.parametrize("kind", KINDS)
def test_random_kills_lose_nothing_and_count_nothing_twice(tmp_path: Path, kind: str) -> None:
    chance = random.Random(SECONDS)

    async def story() -> None:
        place = new_place(kind, tmp_path)
        async with LedgerSite(fetches_a_change=3) as site:
            tracker = TrackerProcess(tmp_path, place.where, site.port, budget=400.0)
            urls = [site.url(f"h{number % HOSTS}", f"/{number}") for number in range(PAGES)]
            await carry_out(Add([Wanted(url) for url in urls]), tracker.settings, time.time)
            in_flight: Counter[str] = Counter()
            kills, before, ends_at = 0, await _read(place.where), time.monotonic() + SECONDS
            while time.monotonic() < ends_at:
                asked = len(site.log)
                await tracker.start()
                async with asyncio.timeout(60):
                    while len(site.log) == asked:  # it works
                        await asyncio.sleep(0.005)
                await asyncio.sleep(chance.uniform(0.0, LONGEST_S))
                await tracker.kill()
                kills += 1
                after = await _read(place.where)
                check_nothing_lost(before, after, urls)
                in_flight.update(after.in_flight)
                before = after
            site.frozen = True
            await tracker.start()
            async with asyncio.timeout(60):
                while len(site.log) < 500:
                    await asyncio.sleep(0.1)
            assert await tracker.stop() == 0
            store = await open_store(place.where, owner=True)
            assert await store.check() == []
            after = await read_evidence(store)
            await store.close()
            assert after.in_flight == frozenset()
            check_consistent(after)
            check_nothing_lost(before, after, urls)
            check_ledger(site, in_flight, after)
            check_sinks(site, tracker.lines, after, 0)
            assert min(site.smallest_gap_s(f"h{number}") for number in range(HOSTS)) >= MIN_GAP_S
            assert kills >= 3
        place.clear()

    asyncio.run(story())
