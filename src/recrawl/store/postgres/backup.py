"""Copies of a PostgreSQL store: one file with all tables as they were at one moment.

The file is a zip archive: `<table>.copy` for each table, as the server's COPY writes it, and `manifest.json` with the
version of the tables and, for each, its columns, rows, bytes and SHA-256. It is written under another name first: what
has its name is whole. What is not exactly such a file is refused, and nothing is written.
"""

from __future__ import annotations

import asyncio
import json
import os
import zipfile
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from recrawl._atomic import open_atomic
from recrawl.errors import InvalidInput, StoreDamaged, StoreError, StoreNewer
from recrawl.store.postgres.address import safe_name
from recrawl.store.postgres.connection import SQL, Connection, Limits, connect
from recrawl.store.postgres.errors import store_errors
from recrawl.store.postgres.schema import apply_step, begin_tables, find_version, undo
from recrawl.store.queries import load_migrations

FORMAT = "recrawl backup of PostgreSQL"
_MANIFEST = "manifest.json"
_MANIFEST_BYTES = 1 << 20
_PIECE_BYTES = 1 << 20
_TABLES = (
    "ledger", "host_names", "pages", "leases", "pauses", "observations", "changes", "versions", "bodies", "signals",
    "hosts", "tallies", "facts", "sinks", "dead_letters", "orders", "sources",
)  # fmt: skip
_SINCE = {"sources": 2}
"""The version of the tables that brought a table, if it was not the first: older backups do not have it."""
_COUNTED = {"host_names": "no", "pages": "id", "observations": "number", "dead_letters": "number", "orders": "id"}
"""Tables that number their rows, and the column; a number is never given twice, also after a restore."""


@dataclass
class _Table:
    """A table in an archive."""

    columns: list[str]
    rows: int
    bytes: int
    sha256: str
    last_number: int


async def write_backup(connection: Connection, path: Path, timeout_s: float) -> None:
    """Write all tables as the transaction of the connection sees them. O(everything)."""
    try:
        with open_atomic(path, 0o600, replace=False) as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
                tables = {table: await _write_table(connection, archive, table, timeout_s) for table in _TABLES}
                version = await connection.fetchval(SQL["schema_version"])
                manifest = {"format": FORMAT, "tables_version": version,
                            "tables": {name: vars(table) for name, table in tables.items()}}  # fmt: skip
                archive.writestr(_MANIFEST, json.dumps(manifest, indent=1))
            file.flush()
            await asyncio.to_thread(os.fsync, file.fileno())  # here, so that the event loop does not wait for the disk
    except FileExistsError:
        raise InvalidInput(f"is {path}, where something is already: choose another name", field="backup") from None
    except OSError as error:
        if isinstance(error, TimeoutError | ConnectionError):
            raise
        raise StoreError(f"{path} cannot be written ({error.strerror}): name a place with room for it") from error


async def restore_postgres(backup: Path, dsn: str, *, limits: Limits | None = None) -> None:
    """Restore a backup into a database that holds no store, whole or not at all. O(everything)."""
    limits = Limits() if limits is None else limits
    name = safe_name(dsn)
    try:
        with zipfile.ZipFile(backup) as archive:
            version, tables = _read_manifest(archive, backup)
            with store_errors(name):
                connection = await connect(dsn, limits, "restore")
                try:
                    await _fill(connection, archive, (version, tables), name)
                finally:
                    connection.terminate()
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise _damaged(backup, str(error)) from error
    except FileNotFoundError as error:
        raise InvalidInput(f"is {backup}, which does not exist", field="backup") from error


async def _write_table(connection: Connection, archive: zipfile.ZipFile, table: str, timeout_s: float) -> _Table:
    columns = [row[0] for row in await connection.fetch(SQL["columns_of_table"], table)]
    last = await connection.fetchval(SQL["last_number"], table, _COUNTED[table]) if table in _COUNTED else 0
    digest, size, piece = sha256(), 0, bytearray()
    with archive.open(f"{table}.copy", "w", force_zip64=True) as entry:

        async def collect(data: bytes) -> None:
            nonlocal size
            piece.extend(data)
            size += len(data)
            if len(piece) >= _PIECE_BYTES:
                await asyncio.to_thread(write)

        def write() -> None:
            digest.update(piece)
            entry.write(piece)
            piece.clear()

        listed = ", ".join(columns)
        done = await connection.copy_from_query(
            f"SELECT {listed} FROM recrawl.{table}", output=collect, timeout=timeout_s
        )
        write()
    return _Table(columns, int(done.rsplit(" ", 1)[-1]), size, digest.hexdigest(), int(last or 0))


def _read_manifest(archive: zipfile.ZipFile, backup: Path) -> tuple[int, dict[str, _Table]]:
    """What an archive says it holds, if it can be ours."""
    found = [entry.filename for entry in archive.infolist()]
    if _MANIFEST not in found or archive.getinfo(_MANIFEST).file_size > _MANIFEST_BYTES:
        raise _damaged(backup, "it has no manifest")
    try:
        manifest = json.loads(archive.read(_MANIFEST))
        version = int(manifest["tables_version"])
        tables = {str(name): _Table(**table) for name, table in manifest["tables"].items()}
        ours = manifest["format"] == FORMAT
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(backup, "its manifest cannot be read") from error
    if not ours:
        raise _damaged(backup, "its manifest is of another kind")
    if version > len(load_migrations("postgres")):
        raise StoreNewer(f"{backup} was written by a newer recrawl (tables {version}): update recrawl to restore it")
    expected = [table for table in _TABLES if _SINCE.get(table, 1) <= version]
    names = sorted([_MANIFEST, *(f"{table}.copy" for table in expected)])
    if sorted(found) != names or set(tables) != set(expected) or version < 1:
        raise _damaged(backup, "it holds other files than a backup does")
    if any(archive.getinfo(f"{name}.copy").file_size != table.bytes for name, table in tables.items()):
        raise _damaged(backup, "its tables are not as long as its manifest says")
    return version, tables


async def _fill(
    connection: Connection, archive: zipfile.ZipFile, content: tuple[int, dict[str, _Table]], where: str
) -> None:
    version, tables = content
    if await find_version(connection, where) != 0:
        raise StoreError(f"{where} holds a store already: restore into an empty database")
    await connection.execute("BEGIN")
    try:
        await connection.execute("SET LOCAL statement_timeout = 0")
        await begin_tables(connection)
        steps = load_migrations("postgres")
        for step in steps[:version]:
            await apply_step(connection, step)
        for name, table in tables.items():
            await _read_table(connection, archive, name, table)
        for step in steps[version:]:
            await apply_step(connection, step)
        await connection.execute(SQL["count_again"])
        await connection.execute("COMMIT")
    except BaseException:
        await undo(connection)
        raise


async def _read_table(connection: Connection, archive: zipfile.ZipFile, name: str, table: _Table) -> None:
    if table.columns != [row[0] for row in await connection.fetch(SQL["columns_of_table"], name)]:
        raise _damaged(Path(archive.filename or ""), f"its table {name} has other columns")
    digest = sha256()

    async def pieces() -> AsyncIterator[bytes]:
        with archive.open(f"{name}.copy") as entry:
            while piece := await asyncio.to_thread(entry.read, _PIECE_BYTES):
                digest.update(piece)
                yield piece

    done = await connection.copy_to_table(
        name, source=pieces(), columns=table.columns, schema_name="recrawl", timeout=None
    )
    if digest.hexdigest() != table.sha256 or int(done.rsplit(" ", 1)[-1]) != table.rows:
        raise _damaged(Path(archive.filename or ""), f"its table {name} is not what was written")
    if name in _COUNTED and table.last_number > 0:
        await connection.execute(SQL["set_last_number"], name, _COUNTED[name], table.last_number)


def _damaged(backup: Path, what: str) -> StoreDamaged:
    return StoreDamaged(f"{backup} is no whole backup of a PostgreSQL store ({what}): nothing was restored")
