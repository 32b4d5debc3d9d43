"""A store in a SQLite file, in a data folder of its own: the default, for one machine and millions of pages.

    recrawl-data/           0700
        recrawl.db          0600; with its log (-wal, -shm) while it is open
        bodies/ab/….zst     0600; only if bodies are kept

One process owns it, by a lock on the folder; others read, and leave orders.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from pathlib import Path

import apsw

from recrawl.errors import StoreBusy, StoreError
from recrawl.store.columns import ScheduleColumns
from recrawl.store.sqlite.backup import back_up
from recrawl.store.sqlite.body_files import BodyFiles
from recrawl.store.sqlite.errors import as_store_error
from recrawl.store.sqlite.file import (
    FILE_NAME,
    FolderLock,
    create_file,
    make_folder,
    open_checked,
    remove_unfinished,
    this_process,
)
from recrawl.store.sqlite.schedule import read_schedule
from recrawl.store.sqlite.session import Session, url_hash
from recrawl.store.sqlite.writer import SessionThread, WriterThread
from recrawl.store.steps import CrashPoints, Start, Value, uncancellable
from recrawl.store.store import Store

# The log is copied into the file long before this, unless someone reads for very long.
_LONG_LOG_BYTES = 256 * 1024 * 1024


class SqliteBackend:
    """An open SQLite store: a thread that writes, one that reads, and bodies beside the database.

    Args:
        file: the database.
        busy_s: how long to wait for other programs that hold the file.
        identity: generation of the owner (0 for a visitor), and id of the store.
        lock: of the folder, if this process owns it.
    """

    def __init__(self, file: Path, busy_s: float, identity: tuple[int, str], lock: FolderLock | None) -> None:
        self.name = str(file)
        self.file = file
        self.generation, self.store_id = identity
        self.bodies = BodyFiles(file.parent)
        self.writer = WriterThread("recrawl-writes", lambda: self._session("writer"), self.generation)
        self.reader = SessionThread("recrawl-reads", lambda: self._session("reader"))
        self._busy_s = busy_s
        self._lock = lock

    async def start(self, *, given_up: bool) -> None:
        """Start both threads; release the lock if one does not start, or the caller has given up."""
        try:
            if given_up:
                raise asyncio.CancelledError  # noqa: TRY301 - the lock is released in one place
            await self.writer.start()
            try:
                await self.reader.start()
            except BaseException:
                await self.writer.close()
                raise
        except BaseException:
            self._release()
            raise

    async def read(self, start: Start[Value], *, snapshot: bool = False) -> Value:
        """Run an operation on the last committed state; never waits for a write."""

        def work(session: Session) -> Value:
            if not snapshot:
                return session.drive(start())
            with session.snapshot():
                return session.drive(start())

        return await self.reader.do(work)

    async def write(self, start: Start[Value], points: CrashPoints | None = None, *, visitor: bool = False) -> Value:
        """Run an operation in a transaction, perhaps a shared one; durable when it returns."""
        if not visitor:
            self._require_owner()
        return await self.writer.do(lambda session: session.drive(start()), points)

    def address_keys(self, urls: Iterable[str]) -> list[int]:
        """What addresses are found by, in the order given."""
        return list(map(url_hash, urls))

    async def load_schedule(self) -> ScheduleColumns:
        """All tracked pages as columns."""
        return await self.reader.do(read_schedule)

    async def put_body(self, digest: bytes, body: bytes) -> None:
        """Keep a body as a file."""
        self._require_owner()
        await asyncio.to_thread(self.bodies.put, digest, body)

    async def read_body(self, digest: bytes) -> bytes | None:
        """A body, if it is kept and whole."""
        return await asyncio.to_thread(self.bodies.read, digest)

    def bodies_decided(self, digests: Collection[bytes]) -> None:
        """Results that name these bodies were applied or refused."""
        if digests:
            self.bodies.named(digests)

    async def sweep_bodies(self) -> None:
        """Delete bodies that no version names and that were not put lately."""
        loop = asyncio.get_running_loop()

        def is_named(digest: bytes) -> bool:
            asked = self.reader.do(lambda session: session.value("body_named", (digest,)) is not None)
            return asyncio.run_coroutine_threadsafe(asked, loop).result()

        await asyncio.to_thread(self.bodies.sweep, is_named)

    async def check(self, start: Start[list[str]]) -> list[str]:
        """Sentences on what is wrong with the file, the tables, the bodies and the log; in a session of its own."""
        return await asyncio.to_thread(self._check, start)

    def _check(self, start: Start[list[str]]) -> list[str]:
        try:
            with self.bodies.held(), closing(self._session("reader")) as session, session.snapshot():
                damage = [text for (text,) in session.rows("check_integrity") if text != "ok"]
                return damage or [*session.drive(start()), *self._look_at_bodies(session), *long_log(self.file)]
        except (OSError, apsw.Error) as error:
            raise as_store_error(error, self.file) from error

    def _look_at_bodies(self, session: Session) -> Iterator[str]:
        named = [digest for (digest,) in session.rows("bodies_named")]
        kept = [digest for digest in named if self.bodies.has(digest)]
        if len(kept) < len(named):
            lost = len(named) - len(kept)
            yield f"{lost} bodies are missing in {self.bodies.folder}: their texts are still there"
        damaged = sum(self.bodies.read(digest) is None for digest in kept)
        if damaged:
            yield f"{damaged} bodies are damaged"

    async def backup(self, path: Path) -> None:
        """Write a consistent copy, bodies included."""
        await asyncio.to_thread(back_up, self.file, path, self.bodies)

    async def close(self) -> None:
        """Finish calls under way, then release the file and the lock."""
        _done, given_up = await uncancellable(self._close())
        if given_up:
            raise asyncio.CancelledError

    async def _close(self) -> None:
        try:
            await self.reader.close()
            await self.writer.close()
        finally:
            self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()

    def _session(self, role: str) -> Session:
        try:
            return Session(self.file, self._busy_s, "writer" if role == "writer" else "reader")
        except (OSError, apsw.Error) as error:
            raise as_store_error(error, self.file) from error

    def _require_owner(self) -> None:
        if not self.generation:
            raise StoreBusy(
                f"{self.file} was opened to be read: only its owner writes; post an order, or open it as owner"
            )


async def open_sqlite(path: Path, *, owner: bool, create: bool = True, busy_s: float = 5.0) -> Store:
    """Open the store in a data folder.

    Args:
        path: the folder; the file in it has a name of its own.
        owner: to write; there is one owner at a time.
        create: make a store if there is none, if we are to own it.
        busy_s: how long to wait for other programs that hold the file.
    """
    file = path / FILE_NAME
    taking = asyncio.to_thread(_take_place, file, busy_s, owner=owner, create=create)
    (lock, generation, store_id), given_up = await uncancellable(taking)
    backend = SqliteBackend(file, busy_s, (generation, store_id), lock)
    await backend.start(given_up=given_up)
    return Store(backend)


def log_bytes(file: Path) -> int:
    """The size of the log that is not yet copied into the file."""
    log = file.with_name(file.name + "-wal")
    return log.stat().st_size if log.exists() else 0


def long_log(file: Path, limit_bytes: int = _LONG_LOG_BYTES) -> list[str]:
    """A sentence on a log that has grown too long."""
    size = log_bytes(file)
    if size <= limit_bytes:
        return []
    return [
        f"the log of {file} has grown to {size / 1e6:,.0f} MB: someone reads for long, such as an open `sqlite3` shell"
    ]


def _take_place(file: Path, busy_s: float, *, owner: bool, create: bool) -> tuple[FolderLock | None, int, str]:
    """Lock, file, generation: in this order, so that only an owner creates or changes a file."""
    lock: FolderLock | None = None
    if owner:
        if create:
            make_folder(file.parent)
        elif not file.exists():
            raise _no_store(file)
        lock = _take_lock(file, busy_s)
    try:
        if owner and create and not file.exists():
            create_file(file)
        generation, store_id, _holder = _enter(file, busy_s, owner=owner)
    except BaseException:
        if lock is not None:
            lock.release()
        raise
    return lock, generation, store_id


def _take_lock(file: Path, busy_s: float) -> FolderLock:
    try:
        return FolderLock(file.parent)
    except StoreBusy as error:
        try:
            _generation, _store_id, holder = _enter(file, busy_s, owner=False)
        except StoreError:  # it is just being made
            raise error from None
        raise StoreBusy(f"{file.parent} is in use by another tracker ({holder}): stop it first") from None


def _enter(file: Path, busy_s: float, *, owner: bool) -> tuple[int, str, str]:
    if not file.exists():
        raise _no_store(file)
    open_checked(file, busy_s, owner=owner)
    try:
        with closing(Session(file, busy_s, "writer" if owner else "reader")) as session:
            if owner:
                remove_unfinished(file)
                BodyFiles(file.parent).remove_unfinished()
                session.rows("ledger_take_over", (this_process(),))
            store_id, generation, holder = session.rows("ledger_identity")[0]
    except (OSError, apsw.Error) as error:
        raise as_store_error(error, file) from error
    return (generation if owner else 0), store_id, holder


def _no_store(file: Path) -> StoreError:
    return StoreError(f"there is no store in {file.parent}: begin one with `recrawl add` or `recrawl track`")
