"""A store in a SQLite file, in a data folder of its own: the default, for one machine and millions of pages.

    recrawl-data/           0700
        recrawl.db          0600; with its log (-wal, -shm) while it is open
        bodies/ab/….zst     0600; only if bodies are kept

One process owns it, by a lock on the folder; others read, and leave orders. The parts of the contract are in
`sqlite_pages.py`, `sqlite_leases.py`, `sqlite_history.py`, `sqlite_changes.py`, `sqlite_sources.py` and
`sqlite_upkeep.py`.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import apsw

from recrawl.errors import StoreBusy, StoreError
from recrawl.store.bodies import BodyFiles
from recrawl.store.contract import Store
from recrawl.store.sqlite.errors import as_store_error
from recrawl.store.sqlite.file import (
    FILE_NAME,
    create_file,
    make_folder,
    open_checked,
    remove_unfinished,
    this_process,
)
from recrawl.store.sqlite.session import Access, Durability, Session
from recrawl.store.sqlite.writer import SessionThread, WriterThread
from recrawl.store.sqlite_base import Engine
from recrawl.store.sqlite_changes import SqliteChanges
from recrawl.store.sqlite_history import SqliteHistory
from recrawl.store.sqlite_leases import SqliteLeases
from recrawl.store.sqlite_lock import FolderLock
from recrawl.store.sqlite_pages import SqlitePages
from recrawl.store.sqlite_sources import SqliteSources
from recrawl.store.sqlite_upkeep import SqliteUpkeep
from recrawl.store.unbroken import to_the_end


class SqliteStore(SqlitePages, SqliteLeases, SqliteHistory, SqliteChanges, SqliteSources, SqliteUpkeep):
    """The contract, kept by SQLite; made by `open_sqlite`."""

    def __init__(self, engine: Engine, store_id: str, lock: FolderLock | None) -> None:
        SqliteChanges.__init__(self, engine, store_id)
        self.name = str(engine.file)
        self.generation = engine.generation
        self._lock = lock

    async def close(self) -> None:
        """Let go of the store and its lock; calls under way are finished."""
        _done, given_up = await to_the_end(self._close())
        if given_up:
            raise asyncio.CancelledError

    async def _close(self) -> None:
        try:
            await self._engine.reader.close()
            await self._engine.writer.close()
        finally:
            if self._lock is not None:
                self._lock.release()


async def open_sqlite(
    path: Path, *, owner: bool, create: bool = True, durability: Durability = "full", busy_s: float = 5.0
) -> Store:
    """Open the store in a data folder.

    Args:
        path: the folder; the file in it has a name of its own.
        owner: to write; there is one owner at a time.
        create: make a store if there is none, if we are to own it.
        durability: whether a commit outlives the loss of power, or only that of the process.
        busy_s: how long to wait for other programs that hold the file.
    """
    access = Access(busy_s, durability)
    file = path / FILE_NAME
    taking = asyncio.to_thread(_take_place, file, access, owner=owner, create=create)
    (lock, generation, store_id), given_up = await to_the_end(taking)
    try:
        engine = await _start(file, access, generation, given_up=given_up)
    except BaseException:
        if lock is not None:
            lock.release()
        raise
    return SqliteStore(engine, store_id, lock)


def _take_place(file: Path, access: Access, *, owner: bool, create: bool) -> tuple[FolderLock | None, int, str]:
    """Lock, file, generation: in this order, so that only an owner creates or changes a file."""
    lock: FolderLock | None = None
    if owner:
        if create:
            make_folder(file.parent)
        elif not file.exists():
            raise _no_store(file)
        lock = _lock(file, access)
    try:
        if owner and create and not file.exists():
            create_file(file)
        generation, store_id, _holder = _enter(file, access, owner=owner)
    except BaseException:
        if lock is not None:
            lock.release()
        raise
    return lock, generation, store_id


def _lock(file: Path, access: Access) -> FolderLock:
    try:
        return FolderLock(file.parent)
    except StoreBusy as error:
        try:
            _generation, _store_id, holder = _enter(file, access, owner=False)
        except StoreError:  # it is just being made
            raise error from None
        raise StoreBusy(f"{file.parent} is in use by another tracker ({holder}): stop it first") from None


def _enter(file: Path, access: Access, *, owner: bool) -> tuple[int, str, str]:
    if not file.exists():
        raise _no_store(file)
    open_checked(file, access.busy_s, owner=owner)
    try:
        with closing(Session(file, access, "writer" if owner else "reader")) as session:
            if owner:
                remove_unfinished(file)
                BodyFiles(file.parent).remove_unfinished()
                session.run("ledger_take_over", (this_process(),))
            store_id, generation, holder = session.rows("ledger_identity")[0]
    except (OSError, apsw.Error) as error:
        raise as_store_error(error, file) from error
    return (generation if owner else 0), store_id, holder


async def _start(file: Path, access: Access, generation: int, *, given_up: bool) -> Engine:
    if given_up:
        raise asyncio.CancelledError

    def open_session(role: str) -> Session:
        try:
            return Session(file, access, "writer" if role == "writer" else "reader")
        except (OSError, apsw.Error) as error:
            raise as_store_error(error, file) from error

    writer = WriterThread("recrawl-writes", lambda: open_session("writer"), generation)
    reader = SessionThread("recrawl-reads", lambda: open_session("reader"))
    await writer.start()
    try:
        await reader.start()
    except BaseException:
        await writer.close()
        raise
    return Engine(file, access, writer, reader, BodyFiles(file.parent), generation)


def _no_store(file: Path) -> StoreError:
    return StoreError(f"there is no store in {file.parent}: begin one with `recrawl add` or `recrawl track`")
