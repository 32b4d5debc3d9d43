"""What SQLite says, in the words of the store: each of its errors becomes one of ours, with a sentence and a repair."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import apsw

from recrawl.errors import InvalidInput, RecrawlError, StoreBusy, StoreDamaged, StoreError, StoreFull, StoreTaken

# Below this, an error in writing is taken for want of space: SQLite cannot always tell.
_LOW_SPACE_BYTES = 256 * 1024
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# The first version without the bug by which two connections that reset the log at once could spoil the file.
_SAFE_VERSION = (3, 51, 3)


def as_store_error(error: BaseException, file: Path, connection: apsw.Connection | None = None) -> BaseException:
    """The error to raise in place of one that came up in a call; ours and bugs are left as they are."""
    if isinstance(error, RecrawlError):
        return error
    if isinstance(error, apsw.Error):
        system = 0 if connection is None else connection.system_errno
        return _of_sqlite(error, file, system)
    if isinstance(error, OSError):
        return of_system(error, file)
    if isinstance(error, (UnicodeEncodeError, OverflowError)):
        return InvalidInput(f"a value cannot be stored: {error}; texts must be Unicode and numbers within 64 bits")
    return error


def of_system(error: OSError, file: Path) -> StoreError:
    """The same for an error of the operating system."""
    if error.errno in _NO_SPACE:
        return full(file)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StoreError(f"{file} may not be written ({error.strerror}): make its folder writable for this user")
    return StoreError(f"{file}: {error.strerror or error}")


def _of_sqlite(error: apsw.Error, file: Path, system: int) -> RecrawlError:  # noqa: PLR0911 - a table
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
        return damaged(file, str(error).removeprefix("SQLITE_"))
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return busy(file)
    if isinstance(error, apsw.FullError) or (isinstance(error, apsw.IOError) and _lacks_space(file, system)):
        return full(file)
    if isinstance(error, apsw.ReadOnlyError):
        if getattr(error, "extendedresult", 0) == apsw.SQLITE_READONLY_DBMOVED:
            return lost(file)
        return StoreError(f"{file} may not be written: make it and its folder writable for this user")
    if isinstance(error, apsw.CantOpenError):
        return StoreError(f"{file} cannot be opened: check that its folder exists and is writable for this user")
    if isinstance(error, (apsw.ConstraintError, apsw.MismatchError, apsw.TooBigError)):
        return InvalidInput(f"a value cannot be stored: {error}")
    return StoreError(f"{file}: {error}")


def busy(file: Path) -> StoreBusy:
    """For a lock that someone keeps for longer than we wait."""
    return StoreBusy(f"{file} is locked by another program: close what writes to it (`fuser {file}` shows who)")


def full(file: Path) -> StoreFull:
    """For a disk or a quota that is used up."""
    return StoreFull(f"no space is left for {file}: nothing was written; free some and it goes on by itself")


def lost(file: Path) -> StoreTaken:
    """For a file that is not the one that was opened."""
    return StoreTaken(f"{file} was moved, deleted or replaced while it was open: put it back and start again")


def damaged(file: Path, what: str) -> StoreDamaged:
    """For a file that is no store, or no longer a whole one."""
    return StoreDamaged(
        f"{file} is damaged or no store ({what}); it was left as it is: restore a backup, "
        f"or save what can be read with `sqlite3 {file} .recover`, or move it away to begin anew"
    )


def _lacks_space(file: Path, system: int) -> bool:
    if system in _NO_SPACE:
        return True
    try:
        disk = os.statvfs(file.parent)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _LOW_SPACE_BYTES


def sqlite_warning(version: str) -> str | None:
    """A sentence on a SQLite library that is too old to be trusted with several connections; None for a good one.

    >>> sqlite_warning("3.51.3") is None
    True
    >>> sqlite_warning("3.40.1")
    'SQLite 3.40.1 can damage a file that two programs write at once: use 3.51.3 or newer'
    """
    numbers = tuple(int(part) for part in version.split(".")[:3])
    if numbers >= _SAFE_VERSION:
        return None
    return f"SQLite {version} can damage a file that two programs write at once: use 3.51.3 or newer"
