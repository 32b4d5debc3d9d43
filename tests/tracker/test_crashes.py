"""The tracker is killed at each crash point, started again, and must lose nothing and count nothing twice.

`RECRAWL_SOAK=20` runs each point with as many seeds instead of two. A seed is how often the point is passed before.
All runs are started at once and share the cores; each test looks at one of them.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from pathlib import Path
from typing import cast

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
from postgres_ground import KINDS, new_place, shared_server
from tracker_process import MIN_GAP_S, SLOW, SLOW_GAP_S, TrackerProcess

from recrawl.errors import StoreError
from recrawl.store.contract import Store
from recrawl.store.crash_points import CRASH_POINTS
from recrawl.store.opening import open_store
from recrawl.tracker.commands import Add
from recrawl.tracker.newcomers import Wanted
from recrawl.tracker.orders import carry_out

SEEDS = int(os.environ.get("RECRAWL_SOAK", "2"))
AT_ONCE = 4
PATIENCE_S = 30.0
PAGES = [(host, f"/{number}") for host in ("a", "b", "c") for number in range(4)]

Case = tuple[str, int, str]
_TEST = "test_a_crash_loses_nothing_and_counts_nothing_twice"


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

    async def run(self) -> None:
        """The whole story; raises what is wrong."""
        async with LedgerSite() as site:
            tracker = TrackerProcess(self.folder, self.place.where, site.port)
            try:
                await self._story(site, tracker)
            except (AssertionError, TimeoutError) as error:
                error.add_note(f"the tracker said:\n{tracker.said}")
                raise
            finally:
                await tracker.kill()
                self.place.clear()

    async def _story(self, site: LedgerSite, tracker: TrackerProcess) -> None:
        await self._add(tracker, [site.url(host, path) for host, path in (*PAGES, (SLOW, "/0"))])
        await tracker.start(f"{self.point}:{passes(self.point, self.seed)}")
        adding = asyncio.create_task(self._add_while_it_runs(site, tracker))
        try:
            code = await tracker.ended(PATIENCE_S)
        finally:
            adding.cancel()
            await asyncio.gather(adding, return_exceptions=True)
        assert code == -signal.SIGKILL, f"it ended with {code}"
        site.frozen = True
        before = await self._read()
        delivered = {key: body["cursor"] for key, body in site.delivered}
        await tracker.start()
        told = await self._until_all_is_seen(site, before)
        assert await tracker.stop() == 0
        await self._compare(site, tracker, before, told)
        assert delivered.items() <= {key: body["cursor"] for key, body in site.delivered}.items()

    async def _add(self, tracker: TrackerProcess, urls: list[str]) -> None:
        reply = await carry_out(Add([Wanted(url) for url in urls]), tracker.settings, lambda: 0.0, patience_s=5.0)
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

    async def _until_all_is_seen(self, site: LedgerSite, before: Evidence) -> int:
        """Every page was fetched once more, and both sinks have all there is: up to which cursor."""
        visits = {page.url: page.visits for page in before.pages.values()}
        store = await open_store(self.place.where, owner=False)
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not await self._all_is_seen(store, site, visits):
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


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[Case, BaseException | None]:
    """What became of the runs that this session asks for."""
    chosen: list[Case] = [
        cast(Case, item.callspec.params["case"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == _TEST
    ]
    folder = tmp_path_factory.mktemp("crashes")
    return asyncio.run(_run_all(chosen, folder))


async def _run_all(chosen: list[Case], folder: Path) -> dict[Case, BaseException | None]:
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(number: int, case: Case) -> BaseException | None:
        async with slots:
            place = folder / str(number)
            place.mkdir()
            try:
                await CrashRun(case, place).run()
            except (AssertionError, TimeoutError, StoreError) as error:
                return error
            return None

    ends = await asyncio.gather(*(one(number, case) for number, case in enumerate(chosen)))
    return dict(zip(chosen, ends, strict=True))


@pytest.mark.parametrize(
    "case",
    [(point, seed, kind) for kind in KINDS for point in CRASH_POINTS for seed in range(SEEDS)],
    ids=lambda case: "-".join(map(str, case)),
)
def test_a_crash_loses_nothing_and_counts_nothing_twice(case: Case, request: pytest.FixtureRequest) -> None:
    if case[2] == "postgresql":
        shared_server()  # skips without a server
    ended = request.getfixturevalue("runs")[case]
    if ended is not None:
        raise ended
