"""A tracker as a process: signals, a store that is away, full, damaged or taken; on real HTTP over loopback."""

from __future__ import annotations

import asyncio
import resource
import signal
import sqlite3
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from crash_evidence import Evidence, check_consistent, check_ledger, cut_short, read_evidence
from ledger_site import LedgerSite
from postgres_ground import KINDS, Place, new_place
from tracker_process import SLOW, TrackerProcess

from patience import until
from recrawl.store.store import open_store
from recrawl.tracker.admission import PageRequest
from recrawl.tracker.commands.commands import Add, carry_out

STOPPING = "stopping: fetches under way"


@asynccontextmanager
async def tracked(
    place: Place, folder: Path, drain_s: float = 2.0, slow_gap_s: float = 2.5
) -> AsyncIterator[tuple[LedgerSite, TrackerProcess]]:
    """A tracker that runs on twelve pages, and one of a slow host."""
    async with LedgerSite() as site:
        tracker = TrackerProcess(folder, place.where, site.port, drain_s=drain_s, slow_gap_s=slow_gap_s)
        urls = [site.url(host, f"/{number}") for host in "abc" for number in range(4)] + [site.url(SLOW, "/0")]
        await carry_out(Add([PageRequest(url) for url in urls]), tracker.settings, lambda: 0.0)
        await tracker.start()
        try:
            yield site, tracker
        except (AssertionError, TimeoutError) as error:
            error.add_note(f"the tracker said:\n{tracker.said}")
            raise
        finally:
            await tracker.kill()
            place.clear()


async def evidence(place: Place) -> Evidence:
    """What is in the store, which is whole."""
    store = await open_store(place.where, owner=True)
    try:
        assert await store.check() == []
        found = await read_evidence(store)
    finally:
        await store.close()
    check_consistent(found)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_signal_drains_and_nothing_more_is_leased(tmp_path: Path, kind: str) -> None:
    """The slow host holds the drain up for its two seconds, in which a hundred pages would else be fetched."""

    async def story() -> None:
        place = new_place(kind, tmp_path)
        async with tracked(place, tmp_path, slow_gap_s=30.0) as (site, tracker):
            await until(lambda: len(site.log) > 30)
            asked = len(site.log)
            assert await tracker.stop() == 0
            assert len(site.log) <= asked + 16
            assert STOPPING in tracker.said
            found = await evidence(place)
            assert found.in_flight == frozenset()
            check_ledger(site, cut_short(site), found)

    asyncio.run(story())


def test_the_second_signal_ends_it_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    async def story() -> None:
        place = new_place("sqlite", tmp_path)
        async with tracked(place, tmp_path, drain_s=600.0, slow_gap_s=29.0) as (site, tracker):
            await until(lambda: len(site.log) > 30)
            tracker.send(signal.SIGTERM)
            await until(lambda: STOPPING in tracker.said)
            assert await tracker.stop() == 1
            await evidence(place)

    asyncio.run(story())


def test_a_signal_while_the_database_is_away_ends_it_within_its_grace(tmp_path: Path) -> None:
    async def story() -> None:
        place = new_place("postgresql", tmp_path)
        assert place.server is not None
        async with tracked(place, tmp_path) as (site, tracker):
            await until(lambda: len(site.log) > 30)
            place.server.stop("immediate")
            try:
                await until(lambda: "cannot write" in tracker.said)
                code = await tracker.stop()
            finally:
                place.server.start()
            assert code in (0, 2)
            check_ledger(site, Counter(dict.fromkeys(site.asked, 2)), await evidence(place))

    asyncio.run(story())


def test_a_server_that_comes_back_gets_every_result_once(tmp_path: Path) -> None:
    async def story() -> None:
        place = new_place("postgresql", tmp_path)
        assert place.server is not None
        async with tracked(place, tmp_path) as (site, tracker):
            await until(lambda: len(site.log) > 30)
            place.server.stop("immediate")
            place.server.start()
            pages = [site.url(host, f"/{number}") for host in "abc" for number in range(4)]
            before = Counter(site.asked)
            await until(lambda: all(site.asked[url] > before[url] + 1 for url in pages))
            assert await tracker.stop() == 0
            found = await evidence(place)
            assert found.in_flight == frozenset()
            check_ledger(site, cut_short(site), found)

    asyncio.run(story())


@pytest.mark.skipif(sys.platform != "linux", reason="the bound of another process is set on Linux only")
def test_a_full_disk_holds_results_up_and_they_are_written_when_there_is_space(tmp_path: Path) -> None:
    async def story() -> None:
        place = new_place("sqlite", tmp_path)
        async with tracked(place, tmp_path) as (site, tracker):
            await until(lambda: len(site.log) > 30)
            assert tracker.process is not None
            soft, hard = resource.prlimit(tracker.process.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(tracker.process.pid, resource.RLIMIT_FSIZE, (20_000, hard))
            await until(lambda: "cannot write" in tracker.said)
            resource.prlimit(tracker.process.pid, resource.RLIMIT_FSIZE, (soft, hard))
            asked = len(site.log)
            await until(lambda: "writes again" in tracker.said and len(site.log) > asked + 30)
            assert await tracker.stop() == 0
            check_ledger(site, cut_short(site), await evidence(place))

    asyncio.run(story())


@pytest.mark.parametrize("damage", ["newer", "corrupt"])
def test_a_store_that_cannot_be_used_is_a_sentence_and_left_as_it_is(tmp_path: Path, damage: str) -> None:
    async def story() -> None:
        place = new_place("sqlite", tmp_path)
        store = await open_store(place.where, owner=True)
        await store.close()
        file = Path(place.where) / "recrawl.db"
        if damage == "newer":
            with closing(sqlite3.connect(file)) as connection:
                connection.execute("PRAGMA user_version = 999")
        else:
            file.write_bytes(b"no database " * 1000)
        before = file.read_bytes()
        tracker = TrackerProcess(tmp_path, place.where, 1)
        await tracker.start()
        assert await tracker.ended() == 2
        (said,) = tracker.said.splitlines()
        assert said.startswith("recrawl: ")
        assert ("newer recrawl" if damage == "newer" else "recrawl.db") in said
        assert file.read_bytes() == before

    asyncio.run(story())


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_tracker_on_one_store_is_refused(tmp_path: Path, kind: str) -> None:
    async def story() -> None:
        place = new_place(kind, tmp_path)
        async with tracked(place, tmp_path) as (site, first):
            await until(lambda: len(site.log) > 5)
            (tmp_path / "second").mkdir()
            second = TrackerProcess(tmp_path / "second", place.where, site.port)
            await second.start()
            assert await second.ended() == 2
            assert second.said.startswith("recrawl: ")
            assert await first.stop() == 0

    asyncio.run(story())
