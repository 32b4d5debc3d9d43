"""Copies of a SQLite store: made while it runs, checked before one is put in the place of a store.

A backup is one file: the database, with the bodies in a table of their own.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import apsw

from recrawl._atomic import atomic_path
from recrawl.errors import InvalidInput, StoreDamaged
from recrawl.store.queries import load_migrations, load_queries
from recrawl.store.sqlite import errors as sqlite_faults
from recrawl.store.sqlite.body_files import BodyFiles
from recrawl.store.sqlite.file import FILE_NAME, FolderLock, check_file, make_folder, remove_unfinished
from recrawl.store.sqlite.session import connect


def back_up(file: Path, to: Path, bodies: BodyFiles) -> None:
    """Copy a store as it is at one moment; others write meanwhile. O(everything)."""
    try:
        with (
            atomic_path(to, 0o600, replace=False) as unfinished,
            bodies.held(),  # from before the copy: all bodies that it names are there until they are packed
        ):
            _copy_database(file, unfinished)
            with closing(connect(unfinished, 1.0)) as copy:
                copy.execute("PRAGMA journal_mode = DELETE")
                _pack_bodies(copy, bodies)
    except FileExistsError:
        raise _is_there(to) from None
    except (OSError, apsw.Error) as error:
        raise sqlite_faults.as_store_error(error, to) from error


async def restore_sqlite(backup: Path, into: Path) -> None:
    """Make a store of a backup, in a folder that holds none; the backup is checked first, and kept. O(everything)."""
    await asyncio.to_thread(_restore, backup, into)


def _restore(backup: Path, into: Path) -> None:
    file = into / FILE_NAME
    if not backup.is_file():
        raise InvalidInput(f"{backup} is not there: name a file that `recrawl backup` wrote")
    _check_backup(backup)
    make_folder(into)
    lock = FolderLock(into)
    try:
        remove_unfinished(file)
        with atomic_path(file, 0o600, replace=False) as unfinished:
            _copy_database(backup, unfinished)
            with closing(connect(unfinished, 1.0)) as copy:
                copy.execute("PRAGMA journal_mode = DELETE")
                _unpack_bodies(copy, BodyFiles(into))
    except FileExistsError:
        raise _is_there(file) from None
    except (OSError, apsw.Error) as error:
        raise sqlite_faults.as_store_error(error, file) from error
    finally:
        lock.release()


def _check_backup(backup: Path) -> None:
    try:
        with closing(connect(backup, 1.0, apsw.SQLITE_OPEN_READONLY)) as source:
            check_file(backup, source, load_migrations("sqlite"))
            found = [text for (text,) in source.execute("PRAGMA integrity_check(3)")]
    except apsw.Error as error:
        raise sqlite_faults.as_store_error(error, backup) from error
    if found != ["ok"]:
        raise StoreDamaged(f"{backup} is damaged ({'; '.join(found)}): use an older backup")


def _is_there(file: Path) -> InvalidInput:
    return InvalidInput(f"{file} is there already: name another place, or move it away")


def _copy_database(source_file: Path, to: Path) -> None:
    with closing(connect(source_file, 5.0)) as source, closing(connect(to, 1.0)) as copy:
        copy.execute("PRAGMA synchronous = OFF")  # made durable as a whole, when it is put in place
        with copy.backup("main", source, "main") as copying:
            while not copying.done:
                copying.step(-1)


def _pack_bodies(copy: apsw.Connection, bodies: BodyFiles) -> None:
    queries = load_queries("sqlite")
    copy.execute("BEGIN")
    copy.execute(queries["packed_create"])
    named = [digest for (digest,) in copy.execute(queries["bodies_named"])]
    for digest in named:
        packed = bodies.read_packed(digest)
        if packed is not None:
            copy.execute(queries["packed_add"], (digest, packed))
    copy.execute("COMMIT")


def _unpack_bodies(copy: apsw.Connection, bodies: BodyFiles) -> None:
    queries = load_queries("sqlite")
    if not copy.table_exists("main", "packed_bodies"):
        return
    for digest, packed in copy.execute(queries["packed_all"]):
        bodies.put_packed(digest, packed)
    copy.execute(queries["packed_drop"])
    copy.execute("VACUUM")
