"""Addresses that lead nowhere, and servers that refuse: one sentence each, and never the password."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Iterator

import asyncpg
import pytest
from postgres_server import LOCKED, USER, PostgresServer
from store_samples import new_pages, run

from patience import patience
from recrawl.errors import InvalidInput, RecrawlError, StoreBusy, StoreDamaged, StoreError, StoreFull, StoreLost
from recrawl.store.postgres.address import safe_name
from recrawl.store.postgres.backend import open_postgres
from recrawl.store.postgres.connection import Limits
from recrawl.store.postgres.errors import in_our_words

SECRET = "hunter2"


@pytest.fixture
def locked_role(postgres: PostgresServer) -> Iterator[str]:
    """A role with a password and few rights."""
    postgres.sql(f"CREATE ROLE {LOCKED} LOGIN PASSWORD 'the right one' CONNECTION LIMIT 1")
    yield LOCKED
    postgres.sql(f"DROP ROLE {LOCKED}")


def refusal(dsn: str, kind: type[RecrawlError]) -> str:
    """What opening says; the secret is neither in it nor in what a traceback would show."""

    async def attempt() -> None:
        await open_postgres(dsn, owner=True, limits=Limits(connect_s=5.0))

    with pytest.raises(kind) as caught:
        run(attempt())
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert SECRET not in shown
    assert type(caught.value) is kind
    return str(caught.value)


def test_a_server_that_is_not_there() -> None:
    assert "check that the server runs" in refusal(f"postgresql://u:{SECRET}@/x?host=/nowhere", StoreLost)
    assert "Cannot reach postgresql://u@127.0.0.1:1/x" in refusal(f"postgresql://u:{SECRET}@127.0.0.1:1/x", StoreLost)


def test_a_database_that_is_not_there(postgres: PostgresServer) -> None:
    assert "createdb" in refusal(f"postgresql://{USER}:{SECRET}@/nothing?host={postgres.folder}", StoreError)


def test_a_wrong_password(postgres: PostgresServer, database: str, locked_role: str) -> None:
    dsn = f"postgresql://{locked_role}:{SECRET}@/{database}?host={postgres.folder}"
    assert "refuses the password" in refusal(dsn, StoreError)


def test_a_user_without_rights(postgres: PostgresServer, database: str, locked_role: str) -> None:
    dsn = f"postgresql://{locked_role}:the%20right%20one@/{database}?host={postgres.folder}"
    assert "GRANT" in refusal(dsn, StoreError)


def test_too_many_connections(postgres: PostgresServer, database: str, locked_role: str) -> None:
    dsn = f"postgresql://{locked_role}:the%20right%20one@/{database}?host={postgres.folder}"

    async def story() -> None:
        connection = await asyncpg.connect(dsn)
        with pytest.raises(StoreBusy, match="too many connections"):
            await open_postgres(dsn, owner=False)
        await connection.close()

    run(story())


def test_a_server_that_may_only_be_read(postgres: PostgresServer, database: str) -> None:
    postgres.sql(f'ALTER DATABASE "{database}" SET default_transaction_read_only = on')
    assert "read-only" in refusal(postgres.dsn(database), StoreError)


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://u:{SECRET}@host:port/x",
        f"postgresql://u:a#{SECRET}@host/x",
        f"postgresql://{SECRET}:a?b@host/x",
        f"postgresql://u:a@{SECRET}/b@host/x?port=y",
        f"postgresql://[{SECRET}/x",
    ],
)
def test_an_address_that_cannot_be_read(dsn: str) -> None:
    assert "postgresql://user:password@host:port/database" in refusal(dsn, InvalidInput)


def test_a_lock_that_another_holds(postgres: PostgresServer, database: str) -> None:
    async def story() -> None:
        store = await open_postgres(postgres.dsn(database), owner=True, limits=Limits(lock_s=0.1))
        other = await asyncpg.connect(postgres.dsn(database))
        await other.execute("BEGIN; SELECT * FROM recrawl.ledger FOR UPDATE")
        with pytest.raises(StoreBusy, match="nothing was written"):
            await store.add_pages(new_pages(1))
        await other.execute("ROLLBACK")
        assert await store.add_pages(new_pages(1)) == [(1, True)]
        await other.close()
        await store.close()

    run(story())


def test_a_database_of_another_encoding(postgres: PostgresServer) -> None:
    postgres.sql("CREATE DATABASE bytes TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'")
    try:
        assert "ENCODING 'UTF8'" in refusal(postgres.dsn("bytes"), StoreError)
    finally:
        postgres.drop("bytes")


def test_without_a_store_only_an_owner_makes_one(postgres: PostgresServer, database: str) -> None:
    async def story() -> None:
        for owner, create in ((True, False), (False, True)):
            with pytest.raises(StoreError, match="there is no store"):
                await open_postgres(postgres.dsn(database), owner=owner, create=create)

    run(story())
    assert postgres.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'recrawl'", database) == "0"


def test_commits_are_durable_where_the_server_would_not_have_them_so(postgres: PostgresServer, database: str) -> None:
    postgres.sql(f'ALTER DATABASE "{database}" SET synchronous_commit = off')

    async def story() -> None:
        store = await open_postgres(postgres.dsn(database), owner=True)
        async with store.backend.writing() as writing:  # type: ignore[attr-defined]
            assert await writing.connection.fetchval("SHOW synchronous_commit") == "on"
        await store.close()

    run(story())


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (asyncpg.DiskFullError("could not extend file"), StoreFull, "no space left"),
        (asyncpg.TooManyConnectionsError("sorry"), StoreBusy, "max_connections"),
        (asyncpg.AdminShutdownError("terminating"), StoreLost, "submit it again"),
        (asyncpg.CannotConnectNowError("starting up"), StoreLost, "submit it again"),
        (asyncpg.DataCorruptedError("bad page"), StoreDamaged, "restore a backup"),
        (asyncpg.UndefinedTableError("no table"), StoreDamaged, "restore a backup"),
        (asyncpg.QueryCanceledError("timeout"), StoreBusy, "nothing was written"),
        (asyncpg.DivisionByZeroError("1/0"), InvalidInput, "cannot be stored"),
        (asyncpg.FeatureNotSupportedError("no\nsuch"), StoreError, "no such (0A000)"),
        (asyncpg.ConnectionDoesNotExistError("gone"), StoreLost, "submit it again"),
        (asyncpg.InterfaceError("closed"), StoreLost, "submit it again"),
        (TimeoutError(), StoreLost, "in time"),
        (ConnectionResetError(104, "Connection reset by peer"), StoreLost, "Connection reset by peer"),
    ],
)
def test_errors_of_the_server_in_our_words(error: Exception, kind: type[RecrawlError], says: str) -> None:
    ours = in_our_words(error, "postgresql://host/name")
    assert type(ours) is kind
    assert says in str(ours)
    assert "\n" not in str(ours)


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://ann:{SECRET}@host/name",
        f"postgres://ann:{SECRET}@host:5433/name?sslmode=require",
        f"postgresql://host/name?user=ann&password={SECRET}",
        f"postgresql://ann:p@ss{SECRET}@host/name",
        f"postgresql://ann:p/{SECRET}@host/name",
        f"postgresql://ann:p?{SECRET}@host/name",
        f"postgresql://ann:p#{SECRET}@host/name",
        f"postgresql://[{SECRET}",
        f"{SECRET}",
    ],
)
def test_a_printed_address_has_no_password(dsn: str) -> None:
    name = safe_name(dsn)
    assert name.startswith("postgresql://")
    assert SECRET not in name


def test_nothing_is_left_open_by_a_refusal(postgres: PostgresServer, database: str) -> None:
    async def story() -> None:
        owner = await open_postgres(postgres.dsn(database), owner=True)
        for _ in range(3):
            with pytest.raises(StoreBusy):
                await open_postgres(postgres.dsn(database), owner=True)
        async with patience():
            while len(await asyncio.to_thread(postgres.backends, database)) > 1:
                continue
        await owner.close()

    run(story())
