"""Bodies as files under their digests: `bodies/ab/abcdef….zst`, compressed, written whole or not at all.

A body is written under a temporary name, made durable, and then renamed. On reading it is compared with its digest.
A body belongs to the version that names it; since it is written before that version is, bodies that were put lately
are not taken for forgotten ones.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from recrawl._atomic import open_atomic
from recrawl.store.bodies import check_digest, pack_body, unpack_body
from recrawl.store.crash_points import crash_point
from recrawl.store.sqlite.errors import damaged, of_system

FOLDER_NAME = "bodies"
_SUFFIX = ".zst"
_UNFINISHED = ".unfinished"


class BodyFiles:
    """The files of one store; may be used from several threads.

    Args:
        data_folder: of the store; the folder for bodies is made with the first of them.
    """

    def __init__(self, data_folder: Path) -> None:
        self.folder = data_folder / FOLDER_NAME
        self._lock = threading.Lock()
        self._awaited: set[bytes] = set()  # put, and not yet named by a version
        self._named_in_sweep: set[bytes] | None = None

    def put(self, digest: bytes, body: bytes) -> None:
        """Keep a body; durable when it returns. Twice is once."""
        check_digest(digest, body)
        with self._lock:
            self._awaited.add(digest)
        file = self._file(digest)
        if file.exists() and self.read(digest) is not None:  # a damaged one is replaced
            return
        try:
            self._write(file, pack_body(body))
        except OSError as error:
            raise of_system(error, file) from error

    def read(self, digest: bytes) -> bytes | None:
        """A body, if it is kept and whole."""
        found = self._read(digest)
        return None if found is None else found[1]

    def _read(self, digest: bytes) -> tuple[bytes, bytes] | None:
        """A body as it lies in its file, and unpacked; None if it is not there or not whole."""
        try:
            kept = self._file(digest).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise of_system(error, self._file(digest)) from error
        body = unpack_body(digest, kept)
        return None if body is None else (kept, body)

    def has(self, digest: bytes) -> bool:
        """Whether a body is kept; it is not looked at."""
        return self._file(digest).exists()

    def read_packed(self, digest: bytes) -> bytes | None:
        """A body as it lies in its file, if it is kept and whole."""
        found = self._read(digest)
        return None if found is None else found[0]

    def put_packed(self, digest: bytes, packed: bytes) -> None:
        """Keep a body as `read_packed` gave it."""
        body = unpack_body(digest, packed)
        if body is None:
            raise damaged(self._file(digest), "its body in the backup is not whole")
        self.put(digest, body)

    def named(self, digests: Iterable[bytes]) -> None:
        """A version names these bodies from now on: they are kept for its sake."""
        with self._lock:
            if self._named_in_sweep is not None:
                self._named_in_sweep.update(digests)
            else:
                self._awaited.difference_update(digests)

    def sweep(self, is_named: Callable[[bytes], bool]) -> int:
        """Delete bodies that no version names and nobody has put lately; how many. O(bodies).

        While somebody holds all bodies, nothing is deleted: the next sweep does it.
        """
        with self._lock:
            self._named_in_sweep = set()
        deleted = 0
        try:
            for file, digest in self.files():
                if is_named(digest):
                    continue
                with self._lock:
                    if digest not in self._awaited:
                        if not self._delete(file):
                            break
                        deleted += 1
        finally:
            with self._lock:
                self._awaited -= self._named_in_sweep
                self._named_in_sweep = None
        return deleted

    @contextmanager
    def held(self) -> Iterator[None]:
        """Within, no sweep of any process deletes a body: those that a database names stay beside it."""
        if not self.folder.exists():  # no body was ever put
            yield
            return
        with self._opened_folder() as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            yield

    def _delete(self, file: Path) -> bool:
        """Delete a file, unless somebody holds the bodies; whether it was."""
        with self._opened_folder() as descriptor:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            file.unlink(missing_ok=True)
        return True

    @contextmanager
    def _opened_folder(self) -> Iterator[int]:
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def remove_unfinished(self) -> None:
        """Remove what a crash left under temporary names."""
        for file in self.folder.glob(f"*/*{_UNFINISHED}"):
            file.unlink(missing_ok=True)

    def files(self) -> Iterator[tuple[Path, bytes]]:
        """All bodies that are kept, with their digests."""
        for file in self.folder.glob(f"*/*{_SUFFIX}"):
            yield file, bytes.fromhex(file.name.removesuffix(_SUFFIX))

    def _file(self, digest: bytes) -> Path:
        name = digest.hex()
        return self.folder / name[:2] / f"{name}{_SUFFIX}"

    def _write(self, file: Path, packed: bytes) -> None:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        file.parent.mkdir(mode=0o700, exist_ok=True)
        with open_atomic(file, 0o600) as stream:
            stream.write(packed)
            stream.flush()
            crash_point("blob-tmp")
        crash_point("blob-renamed")
