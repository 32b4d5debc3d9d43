"""Write a file whole or not at all: under a temporary name beside its place, synced, then renamed.

A reader never sees half a file, and neither an exception nor a crash damages the file that was there before. A crash
can leave the temporary file: `remove_leftovers` deletes it.
"""

from __future__ import annotations

import errno
import glob
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_SUFFIX = ".unfinished"
_NAME_CHARACTERS = 40  # of the final name in the temporary one: at most 160 bytes of the 255 that file systems allow


@contextmanager
def open_atomic(path: Path, mode: int = 0o666, *, replace: bool = True) -> Iterator[IO[bytes]]:
    """Yield a stream for writing and reading whose content becomes the file `path` if the block ends without an error.

    Args:
        path: a symbolic link stays, and the file that it points to is replaced.
        mode: permissions of the file, less the process's umask, also if a file with others is replaced.
        replace: whether an existing file is replaced.

    Raises:
        FileExistsError: something has the name, and `replace` is False.
    """
    with (
        _replacing(path, mode, replace) as (_temporary, descriptor),
        os.fdopen(descriptor, "w+b", closefd=False) as stream,
    ):
        yield stream


@contextmanager
def atomic_path(path: Path, mode: int = 0o666, *, replace: bool = True) -> Iterator[Path]:
    """Yield the path of an empty file beside `path`, for a library that opens files itself; else as `open_atomic`."""
    with _replacing(path, mode, replace) as (temporary, _descriptor):
        yield temporary


@contextmanager
def _replacing(path: Path, mode: int, replace: bool) -> Iterator[tuple[Path, int]]:
    goal = Path(os.path.realpath(path)) if path.is_symlink() and replace else path
    _check_free(goal, replace)
    temporary = goal.with_name(f".{goal.name[:_NAME_CHARACTERS]}.{secrets.token_hex(6)}{_SUFFIX}")
    descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, mode)
    try:
        try:
            yield temporary, descriptor
            os.fsync(descriptor)  # before the rename: a name must never point to content that is not on the disk
        finally:
            os.close(descriptor)
        _check_free(goal, replace)
        temporary.replace(goal)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(goal.parent)


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files of `path` that a crash left. Call only while nobody writes `path`."""
    name = glob.escape(path.name[:_NAME_CHARACTERS])
    for leftover in path.parent.glob(f".{name}.*{_SUFFIX}*"):  # SQLite adds -journal, -wal, -shm
        leftover.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the file system can and the folder may be opened."""
    with suppress(PermissionError):  # a folder in which we may write, but not list
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno != errno.EINVAL:  # file systems that cannot sync folders
                raise
        finally:
            os.close(descriptor)


def _check_free(goal: Path, replace: bool) -> None:
    if not replace and os.path.lexists(goal):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(goal))
