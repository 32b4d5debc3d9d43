"""A PostgreSQL server that dies, hangs or forgets us: nothing is lost or counts twice, and nothing waits for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import pytest
from postgres_relay import relay_to
from postgres_server import PostgresServer
from store_samples import NOW, add, changed_result, lease_all, new_pages, run

from patience import patience
from recrawl.errors import StoreBusy, StoreLost
from recrawl.store.postgres.backend import open_postgres
from recrawl.store.postgres.connection import Limits
from recrawl.store.rows import Answer, Result
from recrawl.store.store import Store

Value = TypeVar("Value")
SHORT = Limits(connect_s=1.0, statement_s=0.5, lock_s=0.3, long_s=0.5, owner_s=1.0, idle_s=1.0)


async def again_until_known(call: Callable[[], Coroutine[Any, Any, Value]]) -> Value:
    """What a tracker does: submit again while the outcome is not known."""
    while True:
        try:
            return await call()
        except StoreLost:
            await asyncio.sleep(0.01)


async def leased_results(store: Store, count: int) -> list[Result]:
    leased = await lease_all(store, await add(store, count))
    return [changed_result(page, lease) for page, lease in leased]


def batches(results: Sequence[Result], size: int) -> list[Sequence[Result]]:
    return [results[start : start + size] for start in range(0, len(results), size)]


async def holds_once(store: Store, count: int) -> None:
    """Every result was written, and no more than once."""
    counts = await store.counts()
    assert (counts.observations, counts.last_cursor, counts.leases) == (count, count, 0)
    assert await store.tallies() == {"fetched": count}
    assert await store.check() == []


def test_a_server_killed_in_a_loop_of_commits_has_every_result_once(postgres: PostgresServer, database: str) -> None:
    async def story() -> None:
        store = await open_postgres(postgres.dsn(database), owner=True)
        results = await leased_results(store, 300)
        answers: list[Answer] = []
        half_way = asyncio.Event()

        async def commit_all() -> None:
            for batch in batches(results, 5):
                tally = {"fetched": len(batch)}
                answers.extend(await again_until_known(lambda batch=batch, tally=tally: store.complete(batch, tally)))  # type: ignore[misc]
                if len(answers) >= 50:
                    half_way.set()

        async def crash() -> None:
            await half_way.wait()
            await asyncio.to_thread(postgres.stop, "immediate")
            await asyncio.to_thread(postgres.start)

        await asyncio.gather(commit_all(), crash())
        assert set(answers) <= {"applied", "duplicate"}
        await holds_once(store, 300)
        await store.close()

    run(story())


def test_a_commit_whose_answer_is_lost_is_a_duplicate_when_submitted_again(
    postgres: PostgresServer, database: str
) -> None:
    async def story() -> None:
        async with relay_to(postgres) as relay:
            store = await open_postgres(relay.dsn(database), owner=True)
            results = await leased_results(store, 10)
            relay.lose_next_answer = True
            with pytest.raises(StoreLost, match="not known"):
                await store.complete(results, {"fetched": 10})
            assert relay.lost == 1
            assert await again_until_known(lambda: store.complete(results, {"fetched": 10})) == ["duplicate"] * 10
            await holds_once(store, 10)
            await store.close()

    run(story())


def test_a_server_that_hangs_costs_a_bounded_time_and_then_goes_on(postgres: PostgresServer, database: str) -> None:
    """More than once: the session that replaces a hung one may hang too."""

    async def story() -> None:
        store = await open_postgres(postgres.dsn(database), owner=True, limits=SHORT)
        results = await leased_results(store, 20)
        for batch in batches(results, 10):
            assert await store.last_cursor() == results.index(batch[0])
            frozen = await asyncio.to_thread(postgres.freeze, database)
            try:
                async with patience():
                    await all_lost(store, batch)
                    with pytest.raises(StoreLost):
                        await open_postgres(postgres.dsn(database), owner=False, limits=SHORT)
            finally:
                postgres.thaw(frozen)
            answers = await again_until_known(lambda batch=batch: store.complete(batch, {"fetched": 10}))  # type: ignore[misc]
            assert set(answers) <= {"applied", "duplicate"}
        await holds_once(store, 20)
        await store.close()

    run(story())


async def all_lost(store: Store, batch: Sequence[Result]) -> None:
    for call in (store.complete(batch, {"fetched": len(batch)}), store.last_cursor(), store.load_schedule()):
        with pytest.raises(StoreLost):
            await call


def test_closing_a_store_on_a_hung_server_ends(postgres: PostgresServer, database: str) -> None:
    async def story() -> None:
        store = await open_postgres(postgres.dsn(database), owner=True, limits=SHORT)
        await store.counts()
        frozen = await asyncio.to_thread(postgres.freeze, database)
        try:
            async with patience():
                await store.close()
        finally:
            postgres.thaw(frozen)

    run(story())


def test_an_owner_whose_session_was_ended_takes_its_place_again(postgres: PostgresServer, database: str) -> None:
    async def story() -> None:
        store = await open_postgres(postgres.dsn(database), owner=True)
        _end_sessions(postgres, database)
        assert await again_until_known(lambda: store.add_pages(new_pages(1))) == [(1, True)]
        assert store.generation == 1
        with pytest.raises(StoreBusy):
            await open_postgres(postgres.dsn(database), owner=True)
        await store.close()

    run(story())


def test_an_owner_that_was_replaced_is_fenced_off_for_good(postgres: PostgresServer, database: str) -> None:
    async def story() -> None:
        first = await open_postgres(postgres.dsn(database), owner=True)
        results = await leased_results(first, 2)
        _end_sessions(postgres, database)
        second = await open_postgres(postgres.dsn(database), owner=True)
        assert second.generation == 2
        for _ in range(2):
            with pytest.raises(StoreLost):
                await first.complete(results)
        assert await second.complete(results, {"fetched": 2}) == ["applied"] * 2
        await second.close()
        with pytest.raises(StoreLost, match="another owner"):
            await first.add_pages(new_pages(3))
        assert (await first.counts()).observations == 2
        await first.close()

    run(story())


def test_a_session_that_is_not_of_this_generation_cannot_write(postgres: PostgresServer, database: str) -> None:
    async def story() -> None:
        store = await open_postgres(postgres.dsn(database), owner=True)
        postgres.sql("UPDATE recrawl.ledger SET generation = generation + 1", database)
        with pytest.raises(StoreLost, match="another owner"):
            await store.add_pages(new_pages(1))
        assert sum((await store.counts()).pages.values()) == 0
        await store.close()

    run(story())


def test_a_second_owner_is_told_who_is_in_the_way(postgres: PostgresServer, database: str) -> None:
    async def story() -> None:
        first = await open_postgres(postgres.dsn(database), owner=True)
        with pytest.raises(StoreBusy, match=r"another tracker \(recrawl owner 1, process \d+ of the server\)"):
            await open_postgres(postgres.dsn(database), owner=True)
        await first.close()
        second = await open_postgres(postgres.dsn(database), owner=True)
        assert second.generation == 2
        await second.close()

    run(story())


def test_a_call_given_up_half_way_leaves_the_owner_its_place(postgres: PostgresServer, database: str) -> None:
    async def story() -> None:
        store = await open_postgres(postgres.dsn(database), owner=True)
        for _ in range(20):
            call = asyncio.create_task(store.raise_tallies({"given up": 1}))
            await asyncio.sleep(0)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        assert await again_until_known(lambda: store.add_pages(new_pages(1, added_at=NOW))) == [(1, True)]
        assert await store.check() == []
        await store.close()

    run(story())


def _end_sessions(postgres: PostgresServer, database: str) -> None:
    """As an administrator or a broken line would; returns when they are gone."""
    postgres.sql(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
        f"WHERE datname = '{database}' AND pid <> pg_backend_pid()"
    )
