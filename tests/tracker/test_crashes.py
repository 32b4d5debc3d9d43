"""The tracker is killed at each crash point, started again, and must lose nothing and count nothing twice.

A seed says how often the point is passed before. Each point has one: the first pass on SQLite, a later one on
PostgreSQL. `RECRAWL_SOAK=20` runs each point with twenty seeds on both.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from pathlib import Path

import pytest
from crash_evidence import (
    Evidence,
    check_consistent,
    check_ledger,
    check_nothing_lost,
    check_sinks,
    cut_short,
    read_evidence,
)
from ledger_site import LedgerSite
from postgres_ground import KINDS, new_place
from tracker_process import MIN_GAP_S, SLOW, SLOW_GAP_S, TrackerProcess

from patience import patience
from recrawl.errors import StoreError
from recrawl.store.crash_points import CRASH_POINTS
from recrawl.store.store import Store, open_store
from recrawl.tracker.admission import PageRequest
from recrawl.tracker.commands.commands import Add, carry_out

SEEDS = int(os.environ.get("RECRAWL_SOAK", "1"))
PAGES = [(host, f"/{number}") for host in ("a", "b", "c") for number in range(4)]

Case = tuple[str, int, str]
"""Point, seed and kind of store."""


def passes(point: str, seed: int) -> int:
    """How often the point is passed until the tracker dies."""
    most = 3 if point == "webhook-acked" else 8
    return 1 if seed == 0 else random.Random(f"{point} {seed}").randint(2, most)


class CrashRun:
    """One tracker that dies and lives again."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.point, self.seed, kind = case
        self.folder = folder
        self.place = new_place(kind, folder)
        self.acknowledged: list[str] = []
        self.phase = "before it starts"

    async def run(self) -> None:
        """The whole story; raises what is wrong."""
        async with LedgerSite() as site:
            tracker = TrackerProcess(self.folder, self.place.where, site.port, drain_s=0.5)
            try:
                await self._story(site, tracker)
            except (AssertionError, TimeoutError, StoreError) as error:
                error.add_note(f"in the phase: {self.phase}; the site saw {len(site.log)} requests")
                error.add_note(f"the tracker said: {tracker.said or 'nothing'}")
                raise
            finally:
                await tracker.kill()
                self.place.clear()

    async def _story(self, site: LedgerSite, tracker: TrackerProcess) -> None:
        await self._add(tracker, [site.url(host, path) for host, path in (*PAGES, (SLOW, "/0"))])
        crash = f"{self.point}:{passes(self.point, self.seed)}"
        self.phase = f"first life, until it dies at {crash}"
        await tracker.start(crash)
        adding = asyncio.create_task(self._add_while_it_runs(site, tracker))
        try:
            code = await tracker.ended()
        finally:
            adding.cancel()
            await asyncio.gather(adding, return_exceptions=True)
        assert code == -signal.SIGKILL, f"it ended with {code}"
        site.frozen = True
        before = await self._read()
        delivered = {key: body["cursor"] for key, body in site.delivered}
        self.phase = "second life, until every page is fetched once more and both sinks have all events"
        await tracker.start()
        told = await self._until_all_is_seen(site, tracker, before)
        self.phase = "second life, until it is drained"
        assert await tracker.stop() == 0
        self.phase = "comparing what is in the store with what the site saw"
        await self._compare(site, tracker, before, told)
        assert delivered.items() <= {key: body["cursor"] for key, body in site.delivered}.items()

    async def _add(self, tracker: TrackerProcess, urls: list[str]) -> None:
        reply = await carry_out(Add([PageRequest(url) for url in urls]), tracker.settings, lambda: 0.0, patience_s=5.0)
        assert reply.done["added"] + reply.done["known"] == len(urls)
        self.acknowledged += urls

    async def _add_while_it_runs(self, site: LedgerSite, tracker: TrackerProcess) -> None:
        """Pages that are answered for by the running tracker; what is not answered is not acknowledged."""
        while not site.log:
            await asyncio.sleep(0.02)
        for number in range(3):
            await self._add(tracker, [site.url("late", f"/{number}")])

    async def _read(self) -> Evidence:
        store = await open_store(self.place.where, owner=False)
        try:
            return await read_evidence(store)
        finally:
            await store.close()

    async def _until_all_is_seen(self, site: LedgerSite, tracker: TrackerProcess, before: Evidence) -> int:
        """Every page was fetched once more, and both sinks have all there is: up to which cursor."""
        visits = {page.url: page.visits for page in before.pages.values()}
        store = await open_store(self.place.where, owner=False)
        try:
            async with patience("the second life to do all its work"):
                while not await self._all_is_seen(store, site, visits):
                    assert tracker.is_running, "it ended by itself"
                    await asyncio.sleep(0.1)
            return min([(await store.sink(name)).cursor for name in ("hook", "lines")])
        finally:
            await store.close()

    async def _all_is_seen(self, store: Store, site: LedgerSite, visits: dict[str, int]) -> bool:
        slow = site.url(SLOW, "/0")
        for page in await store.list_pages(0, 1000):
            if page.url != slow and page.visits <= visits.get(page.url, 0):
                return False
        last = await store.last_cursor()
        return all([(await store.sink(name)).cursor == last for name in ("hook", "lines")])

    async def _compare(self, site: LedgerSite, tracker: TrackerProcess, before: Evidence, told: int) -> None:
        store = await open_store(self.place.where, owner=True)
        try:
            assert await store.check() == []
            assert await store.leases() == []
            after = await read_evidence(store)
        finally:
            await store.close()
        check_consistent(before)
        check_consistent(after)
        check_nothing_lost(before, after, self.acknowledged)
        check_ledger(site, Counter(before.in_flight) + cut_short(site), after)
        check_sinks(site, tracker.lines, after, told)
        for host in ("a", "b", "c"):
            assert site.smallest_gap_s(host) >= MIN_GAP_S
        assert site.smallest_gap_s(SLOW) >= SLOW_GAP_S


def cases() -> list[Case]:
    """Every point with its seeds on every kind of store."""
    seeds = {kind: range(SEEDS) if SEEDS > 1 else [place] for place, kind in enumerate(KINDS)}
    return [(point, seed, kind) for kind in KINDS for point in CRASH_POINTS for seed in seeds[kind]]


@pytest.mark.parametrize("case", cases(), ids=lambda case: "-".join(map(str, case)))
def test_a_crash_loses_nothing_and_counts_nothing_twice(case: Case, tmp_path: Path) -> None:
    asyncio.run(CrashRun(case, tmp_path).run())
