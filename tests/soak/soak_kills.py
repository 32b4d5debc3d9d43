"""Kills the tracker and its workers again and again at random moments, and compares what is left; run by `make soak`.

Ten thousand pages on forty hosts. The tracker fetches, and so do four outside workers, processes of their own that
lease pages and hand in what came over HTTP. For two minutes by default the tracker gets a `kill -9` after 0 to 500 ms
of work, and so does one of the workers, now and then. Then all may run to their end, and everything must agree: the
store, the ledger of the server, which knows who asked under which lease, the journals of the workers, and both sinks.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import time
from collections import Counter
from pathlib import Path

import pytest
from crash_evidence import (
    Evidence,
    check_borrowed,
    check_consistent,
    check_ledger,
    check_nothing_lost,
    check_sinks,
    read_evidence,
)
from ledger_site import LedgerSite
from outside_workers import Workers, check_promises, fetch_token
from postgres_ground import KINDS, Place, new_place
from tracker_process import MIN_GAP_S, TrackerProcess

from patience import patience
from recrawl.store.store import open_store
from recrawl.tracker.admission import PageRequest
from recrawl.tracker.commands.commands import Add, carry_out

SECONDS = float(os.environ.get("RECRAWL_SOAK_SECONDS", "120"))
PAGES = int(os.environ.get("RECRAWL_SOAK_PAGES", "10000"))
HOSTS = 40
WORKERS = ("w0", "w1", "w2", "w3")
LEASE_S, TURN_S, TOTAL_S = 10.0, 3.0, 5.0
LONGEST_S = 0.5


class Run:
    """One tracker and its workers, which die and live again."""

    def __init__(self, place: Place, folder: Path, site: LedgerSite) -> None:
        self.place, self.site = place, site
        self.port = _free_port()
        self.tracker = TrackerProcess(
            folder,
            place.where,
            site.port,
            budget=400.0,
            listen=f"127.0.0.1:{self.port}",
            lease_s=LEASE_S,
            turn_s=TURN_S,
            total_s=TOTAL_S,
        )
        self.folder = folder
        self.urls = [site.url(f"h{number % HOSTS}", f"/{number}") for number in range(PAGES)]
        self.in_flight: Counter[str] = Counter()
        self.kills = self.worker_kills = 0
        self.chance = random.Random(SECONDS)

    async def story(self) -> None:
        """Add, kill, and compare."""
        await carry_out(Add([PageRequest(url) for url in self.urls]), self.tracker.settings, time.time)
        secret = await fetch_token(self.place.where)
        folder = self.folder / "workers"
        folder.mkdir()
        workers = Workers(folder, self.port, secret, self.site.port, LEASE_S)
        try:
            for name in WORKERS:
                await workers.start(name)
            before = await self._kill_again_and_again(workers)
            await self._end(workers, before)
        except (AssertionError, TimeoutError) as error:
            error.add_note(f"the tracker said:\n{self.tracker.said[-4000:]}\nthe workers said:\n{workers.said[-4000:]}")
            raise
        finally:
            await workers.end()
            await self.tracker.kill()

    async def _kill_again_and_again(self, workers: Workers) -> Evidence:
        before, ends_at = await self._read(), time.monotonic() + SECONDS
        while time.monotonic() < ends_at or self.kills < 3 or not self.worker_kills:
            await self.tracker.start()
            await self._until_it_works(patient=self.chance.random() < 0.75)
            await asyncio.sleep(self.chance.uniform(0.0, LONGEST_S))
            if self.chance.random() < 0.5:
                name = self.chance.choice(WORKERS)
                await workers.kill(name)
                await workers.start(name)
                self.worker_kills += 1
                await asyncio.sleep(self.chance.uniform(0.0, LONGEST_S))
            await self.tracker.kill()
            self.kills += 1
            promises, now = workers.promises(), time.time()
            after = await self._read()
            check_nothing_lost(before, after, self.urls)
            check_promises(promises, after, now)
            self.in_flight.update(after.in_flight)
            before = after
        return before

    async def _until_it_works(self, *, patient: bool) -> None:
        """Until the tracker asks for something; if we are patient, until a worker does so under a new lease."""
        asked, newest = len(self.site.log), max((each.token for each in self.site.borrowed), default=0)
        async with patience():
            while len(self.site.log) == asked:
                await asyncio.sleep(0.005)
            while patient and max((each.token for each in self.site.borrowed[-20:]), default=0) <= newest:
                await asyncio.sleep(0.005)

    async def _end(self, workers: Workers, before: Evidence) -> None:
        self.site.frozen = True
        await self.tracker.start()
        lent = len(self.site.borrowed)
        async with patience():
            while len(self.site.log) < 500 or len(self.site.borrowed) < lent + 50:
                await asyncio.sleep(0.1)
        await workers.stop()
        await self._until_all_leases_have_ended()
        assert await self.tracker.stop() == 0
        store = await open_store(self.place.where, owner=True)
        assert await store.check() == []
        after = await read_evidence(store)
        await store.close()
        assert (after.in_flight, after.lent) == (frozenset(), {})
        promises = workers.promises()
        check_consistent(after)
        check_nothing_lost(before, after, self.urls)
        check_promises(promises, after, time.time())
        check_ledger(self.site, self.in_flight, after)
        check_borrowed(self.site, after)
        check_sinks(self.site, self.tracker.lines, after, 0)
        assert min(self.site.smallest_gap_s(f"h{number}") for number in range(HOSTS)) >= MIN_GAP_S
        print(  # noqa: T201 - the finding
            f"{self.kills} kills of the tracker, {self.worker_kills} of workers; {len(after.seen)} results, "
            f"{len(promises.applied())} of them acknowledged to workers; {len(after.log)} events"
        )
        assert len(promises.applied()) >= 50

    async def _until_all_leases_have_ended(self) -> None:
        """Those of workers that were killed run out."""
        store = await open_store(self.place.where, owner=False)
        try:
            async with patience():
                while any(each.worker.startswith("outside:") for each in await store.leases()):
                    await asyncio.sleep(0.2)
        finally:
            await store.close()

    async def _read(self) -> Evidence:
        store = await open_store(self.place.where, owner=False)
        try:
            return await read_evidence(store)
        finally:
            await store.close()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.parametrize("kind", KINDS)
def test_random_kills_lose_nothing_and_count_nothing_twice(tmp_path: Path, kind: str) -> None:
    async def story() -> None:
        place = new_place(kind, tmp_path)
        async with LedgerSite(fetches_a_change=3) as site:
            await Run(place, tmp_path, site).story()
        place.clear()

    asyncio.run(story())
