"""The group `store`: small runs of each measure read what they should."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from recrawl.bench import store
from recrawl.bench.measure import CannotRun, run
from recrawl.bench.store_opening import build, first_lease
from recrawl.bench.store_server import database, postgres_server
from recrawl.store.rows import PageRow
from recrawl.store.store import open_store

SMALL = store.Sizes(pages=600, fetches=200, opened=2_000, runs=1)


@pytest.mark.parametrize("name", ["sqlite_commits", "sqlite_leases", "tracker_cpu_unchanged", "tracker_cpu_changed"])
def test_a_measure_reads_a_figure(name: str) -> None:
    measure = next(each for each in store.measures(SMALL) if each.name == name)
    found = run(measure)
    assert found.reason is None
    assert found.reading is not None
    assert found.reading.value > 0


def test_postgresql_is_measured_or_says_why_not() -> None:
    measure = next(each for each in store.measures(SMALL) if each.name == "postgresql_commits")
    found = run(measure)
    assert (found.reading is None) == (found.reason is not None)
    assert found.reason is None or "PostgreSQL" in found.reason


def test_the_server_is_gone_when_the_block_ends() -> None:
    try:
        with postgres_server() as socket:
            assert str(socket) in database(socket, "one")
    except CannotRun:
        pytest.skip("no PostgreSQL server on this machine")
    assert not socket.exists()


def test_every_page_of_the_store_that_is_opened_was_crawled_and_is_scheduled(tmp_path: Path) -> None:
    asyncio.run(build(tmp_path / "data", 300))
    rows = asyncio.run(pages_of(tmp_path / "data"))
    assert len(rows) == 300
    assert all(row.attempted_at is not None and row.attempted_at == row.fetched_at for row in rows)
    assert {(row.outcome, row.visits) for row in rows} == {("ok", 1)}
    assert len({row.attempted_at for row in rows}) == 300
    found = asyncio.run(first_lease(tmp_path / "data"))
    assert found["pages"] == 300
    assert found["cpu_s"] > 0


async def pages_of(folder: Path) -> list[PageRow]:
    opened = await open_store(str(folder), owner=False)
    try:
        return await opened.list_pages(limit=1000)
    finally:
        await opened.close()
