"""Who owns a data folder: a lock on the folder itself, which the system lets go of when its process ends.

No file of its own is needed, and none is left behind. The database file must never be opened apart from SQLite:
closing it would drop the locks that SQLite holds on it for this process.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from recrawl.errors import StoreBusy
from recrawl.store.sqlite.errors import of_system


class FolderLock:
    """A lock on a folder, held until `release` or the end of the process."""

    def __init__(self, folder: Path) -> None:
        try:
            self._descriptor: int | None = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise of_system(error, folder) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.release()
            if isinstance(error, BlockingIOError):
                raise StoreBusy(
                    f"{folder} is in use by another tracker: stop it first (`fuser -v {folder}` shows who it is)"
                ) from None
            raise of_system(error, folder) from error

    def release(self) -> None:
        """Let go of the folder."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
