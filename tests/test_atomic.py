"""Files are written whole or not at all: through errors, kills, links and full disks."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from recrawl._atomic import atomic_path, open_atomic, remove_leftovers, sync_folder

_DIE_IN_THE_BLOCK = """
import os, pathlib, signal, sys
from recrawl._atomic import open_atomic
with open_atomic(pathlib.Path(sys.argv[1])) as stream:
    stream.write(b"half")
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""

_WRITE_BEYOND_THE_LIMIT = """
import pathlib, resource, signal, sys
from recrawl._atomic import open_atomic
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    with open_atomic(pathlib.Path(sys.argv[1])) as stream:
        stream.write(bytes(2000))
except OSError as error:
    print(error.errno)
"""


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    """Set the umask of the process until the test ends."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_appears_whole_when_the_block_ends(tmp_path: Path) -> None:
    """Before that only the old content can be read."""
    path = tmp_path / "out.txt"
    path.write_bytes(b"old")
    with open_atomic(path) as stream:
        stream.write(b"new")
        stream.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == {"out.txt"}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: type[BaseException]) -> None:
    """Also one that is no `Exception`."""
    path = tmp_path / "out.txt"
    path.write_bytes(b"old")
    with pytest.raises(error), open_atomic(path) as stream:  # noqa: PT012 - the block is what fails
        stream.write(b"half")
        raise error
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == {"out.txt"}


def test_a_killed_process_leaves_the_old_file(tmp_path: Path) -> None:
    """Its temporary file stays until leftovers are removed; those of other files are not touched."""
    path = tmp_path / "out[1].txt"
    path.write_bytes(b"old")
    other = tmp_path / ".other.txt.1.unfinished"
    other.touch()
    done = subprocess.run([sys.executable, "-c", _DIE_IN_THE_BLOCK, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    assert len(names(tmp_path)) == 3
    remove_leftovers(path)
    assert names(tmp_path) == {path.name, other.name}


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    """As on a full disk: the error comes when buffers are flushed at the end of the block."""
    path = tmp_path / "out.txt"
    path.write_bytes(b"old")
    done = subprocess.run(
        [sys.executable, "-c", _WRITE_BEYOND_THE_LIMIT, str(path)], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) == errno.EFBIG
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == {"out.txt"}


@pytest.mark.parametrize(("mode", "mask", "expected"), [(0o666, 0o027, 0o640), (0o600, 0, 0o600), (0o666, 0, 0o666)])
def test_permissions_follow_the_mode_and_the_umask(
    tmp_path: Path, umask: Callable[[int], int], mode: int, mask: int, expected: int
) -> None:
    """From the first moment, and also if the file that is replaced had others."""
    path = tmp_path / "out.txt"
    path.touch()
    path.chmod(0o604)
    umask(mask)
    with atomic_path(path, mode) as temporary:
        assert permissions(temporary) == expected
    assert permissions(path) == expected


def test_a_folder_in_which_we_may_write_but_not_list_is_enough(tmp_path: Path) -> None:
    """Syncing such a folder is skipped."""
    folder = tmp_path / "drop"
    folder.mkdir()
    folder.chmod(0o300)
    try:
        with open_atomic(folder / "out.txt") as stream:
            stream.write(b"new")
    finally:
        folder.chmod(0o700)
    assert (folder / "out.txt").read_bytes() == b"new"


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    """The temporary file is beside the file: a rename cannot cross file systems. A dangling link gets its file."""
    (tmp_path / "far").mkdir()
    file, link = tmp_path / "far" / "file.txt", tmp_path / "link.txt"
    link.symlink_to(file)
    for content in (b"first", b"second"):
        with atomic_path(link) as temporary:
            assert temporary.parent == file.parent
            temporary.write_bytes(content)
        assert link.is_symlink()
        assert file.read_bytes() == content
    assert names(file.parent) == {"file.txt"}


@pytest.mark.parametrize("dangling", [True, False])
def test_an_existing_name_is_refused_if_it_may_not_be_replaced(tmp_path: Path, dangling: bool) -> None:
    """A link that points nowhere has a name too."""
    path = tmp_path / "out.txt"
    if dangling:
        path.symlink_to(tmp_path / "nowhere")
    else:
        path.touch()
    with pytest.raises(FileExistsError), open_atomic(path, replace=False):
        raise AssertionError("the block must not run")
    assert names(tmp_path) == {"out.txt"}


def test_a_file_made_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    """If it may not be."""
    path = tmp_path / "out.txt"
    with pytest.raises(FileExistsError), open_atomic(path, replace=False):
        path.write_bytes(b"of another process")
    assert path.read_bytes() == b"of another process"
    assert names(tmp_path) == {"out.txt"}


def test_content_is_synced_before_the_rename_and_the_folder_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a power failure could leave a name without its content, or no name."""
    path = tmp_path / "out.txt"
    seen: list[tuple[bool, int, bool]] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        found = os.fstat(descriptor)
        seen.append((stat.S_ISDIR(found.st_mode), found.st_size, path.exists()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with open_atomic(path) as stream:
        stream.write(b"12345")
    [(file_is_folder, size, there_before), (folder_is_folder, _size, there_after)] = seen
    assert (file_is_folder, size, there_before) == (False, 5, False)
    assert (folder_is_folder, there_after) == (True, True)


def test_a_failed_sync_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The content may not be on the disk then."""
    path = tmp_path / "out.txt"
    path.write_bytes(b"old")

    def fsync(_descriptor: int) -> None:
        raise OSError(errno.EIO, "I/O error")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="I/O error"), open_atomic(path) as stream:
        stream.write(b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == {"out.txt"}


@pytest.mark.parametrize(("number", "raises"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_only_file_systems_that_cannot_sync_folders_are_excused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, raises: bool
) -> None:
    """A real error of the disk is raised."""

    def fsync(_descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fsync)
    if raises:
        with pytest.raises(OSError, match=os.strerror(number)):
            sync_folder(tmp_path)
    else:
        sync_folder(tmp_path)


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    """Although the temporary name is longer than short ones."""
    path = tmp_path / ("ü" * 127)
    with open_atomic(path) as stream:
        stream.write(b"new")
    assert path.read_bytes() == b"new"
