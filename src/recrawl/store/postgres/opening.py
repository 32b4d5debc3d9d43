"""A store on a PostgreSQL server: opening it.

The address names a database (`postgresql://user:password@host:port/database`); the store is the schema `recrawl` in it.
It needs a session of its own: a pooler in between must be in session mode. Servers from version 13 on will do.
"""

from __future__ import annotations

from recrawl.errors import StoreError
from recrawl.store.contract import Store
from recrawl.store.opening import safe_name
from recrawl.store.postgres.errors import store_errors
from recrawl.store.postgres.schema import find_version, make_tables, migrate
from recrawl.store.postgres_changes import PostgresChanges
from recrawl.store.postgres_connection import SQL, Connection, Limits, connect, use_durable_commits
from recrawl.store.postgres_history import PostgresHistory
from recrawl.store.postgres_leases import PostgresLeases
from recrawl.store.postgres_pages import PostgresPages
from recrawl.store.postgres_results import PostgresResults
from recrawl.store.postgres_sources import PostgresSources
from recrawl.store.postgres_upkeep import PostgresUpkeep
from recrawl.store.queries import load_migrations

DEFAULT_LIMITS = Limits()


class PostgresStore(
    PostgresPages, PostgresLeases, PostgresResults, PostgresHistory, PostgresChanges, PostgresSources, PostgresUpkeep
):
    """All of the contract, from its parts."""


async def open_postgres(dsn: str, *, owner: bool, create: bool = True, limits: Limits = DEFAULT_LIMITS) -> Store:
    """Open a store on a PostgreSQL server.

    Args:
        dsn: its address; the database must exist.
        owner: take the lock and write; otherwise only read, and leave orders.
        create: make the tables if there are none, if we are to own them.
        limits: how long to wait.
    """
    store = PostgresStore(dsn, limits)
    with store_errors(safe_name(dsn)):
        connection = await connect(dsn, limits, "owner" if owner else "visitor")
        try:
            await _prepare(store, connection, owner=owner, create=create)
        except BaseException:
            connection.terminate()
            raise
        if not owner:
            await connection.close(timeout=limits.connect_s)
    return store


async def _prepare(store: PostgresStore, connection: Connection, *, owner: bool, create: bool) -> None:
    steps = load_migrations("postgres")
    version = await find_version(connection, store.name)
    if version == 0:
        if not create or not owner:
            raise StoreError(f"there is no store in {store.name}: begin one with `recrawl add` or `recrawl track`")
        await make_tables(connection, store.name)
    elif version < len(steps) and not owner:
        raise StoreError(f"{store.name} was written by an older recrawl: start the tracker once to bring it up to date")
    if owner:
        await use_durable_commits(connection)
        await store.become_owner(connection)
        await migrate(connection, store.name, steps[version or len(steps) :])
    store.store_id = str((await connection.fetchrow(SQL["read_ledger"]))["store_id"])
