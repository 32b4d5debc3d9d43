"""Tables of other versions: newer ones are refused, older ones brought up to date, each step whole or not at all."""

from __future__ import annotations

import asyncio

import pytest
from postgres_server import PostgresServer
from store_samples import add, new_pages, run

from recrawl.errors import StoreDamaged, StoreError, StoreNewer
from recrawl.store.postgres.backend import open_postgres
from recrawl.store.postgres.connection import Limits, connect
from recrawl.store.postgres.schema import find_version, migrate
from recrawl.store.queries import Migration, load_migrations, load_queries

KNOWN = len(load_migrations("postgres"))


def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(postgres: PostgresServer, database: str) -> None:
    async def story() -> None:
        await (await open_postgres(postgres.dsn(database), owner=True)).close()
        postgres.sql("INSERT INTO recrawl.schema_version (version) VALUES (999)", database)
        for owner in (True, False):
            with pytest.raises(StoreNewer, match=f"tables 999, this one knows {KNOWN}"):
                await open_postgres(postgres.dsn(database), owner=owner)
        assert postgres.sql("SELECT generation FROM recrawl.ledger", database) == "1"

    run(story())


def test_a_schema_of_someone_else_is_refused(postgres: PostgresServer, database: str) -> None:
    postgres.sql("CREATE SCHEMA recrawl CREATE TABLE pages (id int)", database)

    async def story() -> None:
        with pytest.raises(StoreDamaged, match="not of recrawl"):
            await open_postgres(postgres.dsn(database), owner=True)

    run(story())


def test_an_empty_schema_made_by_an_administrator_is_used(postgres: PostgresServer, database: str) -> None:
    postgres.sql("CREATE SCHEMA recrawl", database)

    async def story() -> None:
        store = await open_postgres(postgres.dsn(database), owner=True)
        assert await add(store, 1) == [1]
        await store.close()

    run(story())


def test_a_store_that_lost_its_ledger_is_damaged(postgres: PostgresServer, database: str) -> None:
    async def story() -> None:
        store = await open_postgres(postgres.dsn(database), owner=True)
        await store.close()
        postgres.sql("DELETE FROM recrawl.ledger", database)
        with pytest.raises(StoreDamaged, match="not whole"):
            await open_postgres(postgres.dsn(database), owner=True)

    run(story())


def test_two_that_make_a_store_at_once_make_one(postgres: PostgresServer, database: str) -> None:
    async def story() -> None:
        opened = await asyncio.gather(
            *(open_postgres(postgres.dsn(database), owner=True) for _ in range(4)), return_exceptions=True
        )
        stores = [store for store in opened if not isinstance(store, BaseException)]
        assert len(stores) == 1
        assert all(isinstance(error, StoreError) for error in opened if isinstance(error, BaseException))
        assert await stores[0].check() == []
        await stores[0].close()

    run(story())


def test_a_step_that_fails_never_happened_and_can_be_done_again(postgres: PostgresServer, database: str) -> None:
    table = "CREATE TABLE recrawl.later (id bigint);"

    async def story() -> None:
        store = await open_postgres(postgres.dsn(database), owner=True)
        await store.add_pages(new_pages(2))
        await store.close()
        connection = await connect(postgres.dsn(database), Limits(), "test")
        broken = Migration(KNOWN + 1, "later", table + "SELECT 1 / 0;")
        with pytest.raises(Exception, match="division by zero"):
            await migrate(connection, "test", [broken])
        assert await find_version(connection, "test") == KNOWN
        for _ in range(2):
            await migrate(connection, "test", [Migration(KNOWN + 1, "later", table)])
        assert await find_version(connection, "test", known=KNOWN + 1) == KNOWN + 1
        assert await connection.fetchval("SELECT count(*) FROM recrawl.pages") == 2
        await connection.close()

    run(story())


def test_every_query_is_one_the_server_can_prepare(postgres: PostgresServer, database: str) -> None:
    async def story() -> None:
        store = await open_postgres(postgres.dsn(database), owner=True)
        async with store.backend.writing() as writing:  # type: ignore[attr-defined]
            for name, query in load_queries("postgres").items():
                if name != "make_staging":
                    assert await writing.connection.prepare(query), name
        await store.close()

    run(story())


def test_what_is_wrong_with_the_data_is_told(postgres: PostgresServer, database: str) -> None:
    async def story() -> None:
        store = await open_postgres(postgres.dsn(database), owner=True)
        ids = await add(store, 3)
        await store.lease(ids[:1], "worker", 1.0, 2.0)
        assert await store.check() == []
        harm = {
            "UPDATE recrawl.ledger SET last_token = 0": "tokens that were never given out",
            "UPDATE recrawl.pages SET state = 'retired' WHERE id = 1": "no longer tracked",
            "UPDATE recrawl.pages SET settled_token = 9 WHERE id = 2": "tokens that cannot be",
            "UPDATE recrawl.ledger SET last_cursor = 3": "3 cursors are missing",
            "INSERT INTO recrawl.bodies VALUES ('\\x00', '\\x00')": "1 bodies are damaged",
            "DELETE FROM recrawl.pages WHERE id = 1": "pages that do not exist",
            "UPDATE recrawl.ledger SET observations = 5": "5 off",
            "INSERT INTO recrawl.sources VALUES (99, 'hub', '', 'active', '', 0, 0, 0, 0)": "1 sources are of pages",
        }
        for statement, sentence in harm.items():
            postgres.sql(statement, database)
            assert any(sentence in found for found in await store.check()), statement
        await store.close()

    run(story())
