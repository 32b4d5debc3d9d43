"""The tables of a PostgreSQL store: found, made, brought up to date, each step in one transaction.

All of them live in the schema `recrawl` of the database that the address names: one store for each database.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from recrawl.errors import StoreDamaged, StoreError, StoreNewer
from recrawl.store.postgres.connection import LOCK, SQL, Connection
from recrawl.store.queries import Migration, load_migrations

VERSION_TABLE = """
CREATE TABLE recrawl.schema_version (
    version integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
)"""


async def find_version(connection: Connection, name: str, *, known: int | None = None) -> int:
    """The version of the tables, 0 if there are none; what cannot be used is refused. Nothing is written."""
    [found] = await connection.fetch(SQL["find_tables"])
    if found["encoding"] != "UTF8":
        raise StoreError(f"{name} keeps texts as {found['encoding']}: make a database with ENCODING 'UTF8'")
    if not found["has_version"]:
        if found["has_tables"]:
            raise StoreDamaged(f"{name} has a schema recrawl that is not of recrawl: name another database")
        return 0
    version = int(await connection.fetchval(SQL["schema_version"]))
    newest = len(load_migrations("postgres")) if known is None else known
    if version > newest:
        raise StoreNewer(
            f"{name} was written by a newer recrawl (tables {version}, this one knows {newest}): "
            "update recrawl, or name another database"
        )
    if version < 1 or await connection.fetchval(SQL["current_generation"]) is None:
        raise StoreDamaged(f"{name} holds a store that is not whole: restore a backup into an empty database")
    return version


async def make_tables(connection: Connection, name: str) -> None:
    """Make a new, empty store, whole or not at all; if another has just made one, that is it."""
    await connection.execute("BEGIN")
    try:
        await connection.execute(SQL["lock_schema"], LOCK[0])
        if await find_version(connection, name) == 0:
            await begin_tables(connection)
            for step in load_migrations("postgres"):
                await apply_step(connection, step)
            await connection.execute(SQL["make_ledger"], uuid4().hex)
        await connection.execute("COMMIT")
    except BaseException:
        await undo(connection)
        raise


async def begin_tables(connection: Connection) -> None:
    """Make the schema and the table that counts migrations; inside a transaction."""
    if not (await connection.fetch(SQL["find_tables"]))[0]["has_schema"]:
        await connection.execute("CREATE SCHEMA recrawl")
    await connection.execute(VERSION_TABLE)


async def apply_step(connection: Connection, step: Migration) -> None:
    """Apply a migration; inside a transaction."""
    await connection.execute(step.sql)
    await connection.execute(SQL["note_version"], step.version)


async def migrate(connection: Connection, name: str, steps: Sequence[Migration]) -> None:
    """Bring the tables up to date: each step in one transaction, so that after a crash inside one it never happened."""
    for step in steps:
        await connection.execute("BEGIN")
        try:
            await connection.execute(SQL["lock_schema"], LOCK[0])
            if await find_version(connection, name, known=len(steps) + step.version) < step.version:
                await apply_step(connection, step)
            await connection.execute("COMMIT")
        except BaseException:
            await undo(connection)
            raise


async def undo(connection: Connection) -> None:
    """Undo a transaction, if there is still someone to tell."""
    if not connection.is_closed():
        await connection.execute("ROLLBACK")
