"""The database file: made whole or not at all, checked before it is used, brought up to date in one transaction.

The data folder is locked, not the file: no file of its own is needed, and the system releases the lock when the process
ends. The database file must never be opened apart from SQLite: closing it would drop the locks that SQLite holds on it
for this process.
"""

from __future__ import annotations

import fcntl
import os
import platform
import uuid
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import apsw

from recrawl._atomic import atomic_path, remove_leftovers
from recrawl.errors import StoreBusy, StoreDamaged, StoreError, StoreNewer
from recrawl.store.queries import Migration, load_migrations, load_queries
from recrawl.store.sqlite import errors as sqlite_faults
from recrawl.store.sqlite.session import connect

FILE_NAME = "recrawl.db"
APPLICATION_ID = 0x72637277  # "rcrw"


def make_folder(folder: Path) -> None:
    """The data folder, for this user alone; one that exists is left as it is."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise sqlite_faults.of_system(error, folder) from error


def create_file(file: Path) -> None:
    """Create an empty store. A crash leaves nothing that could be taken for a store."""
    try:
        remove_unfinished(file)
        with atomic_path(file, 0o600) as unfinished, closing(connect(unfinished, 1.0)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
            migrate(connection, load_migrations("sqlite"))
            connection.execute(load_queries("sqlite")["ledger_create"], (uuid.uuid4().hex,))
    except (OSError, apsw.Error) as error:
        remove_unfinished(file)
        raise sqlite_faults.as_store_error(error, file) from error


def remove_unfinished(file: Path) -> None:
    """Remove what a crash in `create_file` or a restore left, also under the name that older versions used."""
    remove_leftovers(file)
    for suffix in ("", "-journal", "-wal", "-shm"):
        file.with_name(f"{file.name}.unfinished{suffix}").unlink(missing_ok=True)


def check_file(file: Path, connection: apsw.Connection, steps: Sequence[Migration]) -> int:
    """The version of the tables of a file that may be used; else a sentence on why not. Nothing is written."""
    size = file.stat().st_size
    if size == 0:
        raise sqlite_faults.damaged(file, "it is empty")
    try:
        application = connection.pragma("application_id")
        version = connection.pragma("user_version")
        if application == APPLICATION_ID and 1 <= version <= len(steps):
            for _generation in connection.execute(load_queries("sqlite")["current_generation"]):
                pass  # the tables can be read
    except apsw.Error as error:
        raise sqlite_faults.as_store_error(error, file, connection) from error
    if application != APPLICATION_ID or version < 1:
        raise StoreDamaged(f"{file} is a SQLite file, but not of recrawl: name another folder")
    if version > len(steps):
        raise StoreNewer(
            f"{file} was written by a newer recrawl (tables {version}, this one knows {len(steps)}): "
            "update recrawl, or name another folder"
        )
    return int(version)


def open_checked(file: Path, busy_s: float, *, owner: bool, steps: Sequence[Migration] | None = None) -> None:
    """Check a file that exists, and bring its tables up to date if it is to be ours."""
    known = load_migrations("sqlite") if steps is None else steps
    try:
        with closing(connect(file, busy_s)) as connection:
            # A damaged file is left as it is, also when it is closed.
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            version = check_file(file, connection, known)
            if version == len(known):
                return
            if not owner:
                raise StoreError(
                    f"{file} was written by an older recrawl: start the tracker once to bring it up to date"
                )
            migrate(connection, known[version:])
    except (OSError, apsw.Error) as error:
        raise sqlite_faults.as_store_error(error, file) from error


def migrate(connection: apsw.Connection, steps: Sequence[Migration]) -> None:
    """Apply migrations, each with its number in one transaction: after a crash inside one, it never happened."""
    for step in steps:
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute(step.sql)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {step.version}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def this_process() -> str:
    """How this process is named in the store: for people who look for the owner."""
    return f"process {os.getpid()} on {platform.node()}"


class FolderLock:
    """A lock on a folder, held until `release` or the end of the process."""

    def __init__(self, folder: Path) -> None:
        try:
            self._descriptor: int | None = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise sqlite_faults.of_system(error, folder) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.release()
            if isinstance(error, BlockingIOError):
                raise StoreBusy(
                    f"{folder} is in use by another tracker: stop it first (`fuser -v {folder}` shows who it is)"
                ) from None
            raise sqlite_faults.of_system(error, folder) from error

    def release(self) -> None:
        """Release the folder."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
