"""The check of a whole store finds the same faults in both databases."""

from __future__ import annotations

from contextlib import closing

import apsw
import asyncpg
import pytest
from store_samples import NOW, PostgresMaker, SqliteMaker, StoreMaker, add, fetch, opened, run

from recrawl.store.rows import SinkRow, SourceRow

HARM = {
    "UPDATE ledger SET last_token = 0": "2 pages have a token that was never given out",
    "INSERT INTO leases VALUES (99, 1, 'w', 0, 0)": "1 leases are of pages that do not exist",
    "INSERT INTO leases VALUES (1, 9, 'w', 0, 0)": "1 leases have tokens that were never given out",
    "INSERT INTO leases VALUES (2, 1, 'w', 0, 0)": "1 leases have a result already",
    "UPDATE pages SET settled_token = 9 WHERE id = 1": "1 pages have tokens that cannot be",
    "DELETE FROM changes WHERE cursor = 1": "1 cursors are missing from the change log",
    "UPDATE changes SET page_id = 99": "2 events are of pages that are unknown",
    "UPDATE observations SET page_id = 99 WHERE page_id = 2": "1 observations are of pages that are unknown",
    "UPDATE ledger SET observations = 7": "their count is 5 off",
    "UPDATE versions SET page_id = 99 WHERE page_id = 2": "1 versions are of pages that are unknown",
    "UPDATE versions SET version = 9 WHERE page_id = 1": "1 versions are newer than their pages say",
    "UPDATE row_counts SET rows = 9 WHERE name = 'page retired'": "the counts of pages and hosts are 9 off",
    "UPDATE sources SET page_id = 99": "1 sources are of pages that are unknown",
    "UPDATE sinks SET cursor = 9": "1 sinks have taken more than there is",
}


async def execute(maker: StoreMaker, statement: str) -> None:
    """Run a statement beside the store."""
    if isinstance(maker, SqliteMaker):
        with closing(apsw.Connection(str(maker.folder / "recrawl.db"))) as connection:
            connection.execute(statement)
        return
    assert isinstance(maker, PostgresMaker)
    other = await asyncpg.connect(maker.where, server_settings={"search_path": "recrawl"})
    await other.execute(statement)
    await other.close()


@pytest.mark.parametrize("statement", HARM)
def test_a_fault_is_found_in_either_database(store_maker: StoreMaker, statement: str) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            for page_id in await add(store, 2):
                await fetch(store, page_id, at=NOW)
            await store.add_sources([SourceRow(1, "feed")])
            await store.edit_pages([])
            await store.save_sink(SinkRow("file", 1))
            assert await store.check() == []
            if "retired" in statement and isinstance(store_maker, PostgresMaker):
                await execute(store_maker, "INSERT INTO row_counts VALUES ('page retired', 0)")
            await execute(store_maker, statement)
            assert any(HARM[statement] in found for found in await store.check()), await store.check()

    run(story())


def test_a_text_that_cannot_be_held_comes_back_the_same_from_both_databases(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            [(_, lease)] = await store.lease(await add(store, 1), "a\0b\ud800", NOW, NOW + 60)
            assert [row.worker for row in await store.leases()] == [lease.worker] == ["a\ufffdb\ufffd"]

    run(story())
