"""Many at once on PostgreSQL: a page is leased to one, and who follows the change log misses nothing."""

from __future__ import annotations

import asyncio

from postgres_server import PostgresServer
from store_samples import NOW, add, changed_result, lease_all, run

from patience import patience
from recrawl.store.postgres.backend import open_postgres
from recrawl.store.rows import LeaseRow, NewChange, PageRow
from recrawl.store.store import Store


def test_sixteen_that_lease_at_once_never_get_the_same_page_whatever_the_plan(
    postgres: PostgresServer, database: str
) -> None:
    """With nested loops forced, a query that chooses while it writes would lease more than it was asked for."""
    for method in ("enable_hashjoin", "enable_mergejoin", "enable_material"):
        postgres.sql(f'ALTER DATABASE "{database}" SET {method} = off')

    async def story() -> None:
        store = await open_postgres(postgres.dsn(database), owner=True)
        ids = await add(store, 200)

        async def worker(number: int) -> list[tuple[PageRow, LeaseRow]]:
            found = []
            for start in range(0, 200, 20):
                # Each asks for the same pages, in another order.
                wanted = ids[start : start + 20][number % 3 :: 2] + ids[start : start + 20][::-1]
                leased = await store.lease(wanted, f"worker {number}", NOW, NOW + 60)
                assert {page.id for page, _ in leased} <= set(wanted)
                found += leased
            return found

        leased = [pair for pairs in await asyncio.gather(*map(worker, range(16))) for pair in pairs]
        assert sorted(page.id for page, _ in leased) == sorted(ids)
        assert sorted(lease.token for _, lease in leased) == list(range(1, 201))
        assert sorted(await store.leases(), key=lambda row: row.token) == sorted(
            (lease for _, lease in leased), key=lambda row: row.token
        )
        assert await store.complete([changed_result(page, lease) for page, lease in leased]) == ["applied"] * 200
        assert await store.check() == []
        await store.close()

    run(story())


def test_results_submitted_by_many_at_once_are_applied_once(postgres: PostgresServer, database: str) -> None:
    async def story() -> None:
        store = await open_postgres(postgres.dsn(database), owner=True)
        results = [changed_result(page, lease) for page, lease in await lease_all(store, await add(store, 40))]
        answers = await asyncio.gather(*(store.complete(results[start::4], {"n": 10}) for start in [0, 1, 2, 3] * 4))
        flat = [answer for given in answers for answer in given]
        assert (flat.count("applied"), flat.count("duplicate")) == (40, 120)
        assert await store.tallies() == {"n": 40}
        assert await store.last_cursor() == 40
        await store.close()

    run(story())


def test_readers_of_the_change_log_see_no_gap_while_it_is_written(postgres: PostgresServer, database: str) -> None:
    async def story() -> None:
        owner = await open_postgres(postgres.dsn(database), owner=True)
        readers = [await open_postgres(postgres.dsn(database), owner=False) for _ in range(2)]
        written = asyncio.Event()

        async def write(number: int) -> None:
            for _ in range(15):
                await owner.append_changes([NewChange("host_degraded", NOW, f"host {number}")] * (number + 1))

        async def write_all() -> None:
            await asyncio.gather(*map(write, range(4)))
            written.set()

        async def follow(store: Store) -> int:
            cursor = 0
            while True:
                last_round = written.is_set()
                found = [change.cursor for change in await store.changes(cursor, limit=7)]
                assert found == list(range(cursor + 1, cursor + 1 + len(found)))
                cursor += len(found)
                if last_round and not found:
                    return cursor

        *seen, _ = await asyncio.gather(*map(follow, [owner, *readers]), write_all())
        assert seen == [15 * (1 + 2 + 3 + 4)] * 3
        for store in (owner, *readers):
            await store.close()

    run(story())


def test_a_reader_is_not_held_up_by_a_write_under_way(postgres: PostgresServer, database: str) -> None:
    """The owner's transaction holds the ledger; reading needs no lock."""

    async def story() -> None:
        store = await open_postgres(postgres.dsn(database), owner=True)
        await add(store, 3)
        async with store.backend.writing(), patience():  # type: ignore[attr-defined]
            assert sum((await store.counts()).pages.values()) == 3
            assert len(await store.load_schedule()) == 3
        await store.close()

    run(story())
