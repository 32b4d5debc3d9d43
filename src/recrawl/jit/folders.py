"""Where compiled kernels are kept, and what of them is complete.

Needs no numba: a start asks here whether an earlier one has compiled everything before it decides to import numba.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows: there, processes that compile at once may do some work twice
    fcntl = None  # type: ignore[assignment]

_FOLDERS_KEPT = 2  # of earlier versions of a module, for developers who go back and forth
_PACKAGE = Path(__file__).parent.parent
_IMPORT = re.compile(r"^from (recrawl[\w.]*) import ([^(\n]+|\([^)]*\))", re.MULTILINE)
_COMPLETE = "complete-"


@cache
def module_folder(module: str) -> Path:
    """The folder for a module's compiled kernels."""
    folder = _root() / f"{module}-{_digest(module)}"
    with suppress(OSError):  # nothing can be kept: each process compiles for itself
        folder.mkdir(parents=True, exist_ok=True)
        _forget_old_folders(folder, module)
    return folder


def complete_parts() -> set[str]:
    """The parts of the warm-up that were compiled to their end, by this recrawl, Python, numba and processor."""
    start = _note("")
    with suppress(OSError):
        return {name[len(start) :] for name in os.listdir(_root()) if name.startswith(start)}  # noqa: PTH208 - names
    return set()


def note_complete(part: str) -> None:
    """Note that a part of the warm-up was compiled to its end."""
    folder = _root()
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _note(part)).touch()


def compile_lock() -> AbstractContextManager[None]:
    """Wait until no other process compiles beside another, and be the only one that does."""
    return locked(_root() / "compiling")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock between processes; none where nothing can be written."""
    with ExitStack() as held:
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            file = held.enter_context(path.open("w"))
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)  # given back when the file is closed
        yield


def _note(part: str) -> str:
    return f"{_COMPLETE}{_machine_digest()}-{part}"


def _root() -> Path:
    """The folder that all kernels are in: numba's if it was told one, else the package's, else one of the user's.

    A package that cannot be written to may have been compiled when it was installed.
    """
    told = os.environ.get("NUMBA_CACHE_DIR")
    return Path(told) if told else _default_root()


@cache
def _default_root() -> Path:
    beside = _PACKAGE / "__pycache__"
    with suppress(OSError):
        beside.mkdir(exist_ok=True)
    if os.access(beside, os.W_OK) or any(beside.glob(f"{_note('')}*")):
        return beside
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "recrawl"


@cache
def _machine_digest() -> str:
    """Changes with whatever makes numba compile again: sources, versions, processor."""
    digest = hashlib.sha256(repr((sys.version, _numba_version(), _processor())).encode())
    for path in sorted(_PACKAGE.rglob("*.py")):
        stamp = path.stat()
        digest.update(f"{path.relative_to(_PACKAGE)} {stamp.st_mtime_ns} {stamp.st_size}\n".encode())
    return digest.hexdigest()[:16]


def _numba_version() -> str:
    try:
        return version("numba")
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    """What numba's machine code depends on, as far as it can be read without numba."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0].splitlines()
        return "\n".join(line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part")))
    return f"{platform.machine()} {platform.processor()}"


@cache
def _digest(module: str) -> str:
    digest = hashlib.sha256()
    for path in sorted(_sources(module)):
        digest.update(_content(path).encode())
    return digest.hexdigest()[:16]


def _sources(module: str) -> set[Path]:
    """The file of a module and those of all recrawl modules that it imports, directly or not."""
    found: set[Path] = set()
    waiting = [_path(module)]
    while waiting:
        path = waiting.pop()
        if path not in found and path.is_file():  # a kernel outside the package answers for itself
            found.add(path)
            waiting += _imported(path)
    return found


@cache
def _imported(path: Path) -> tuple[Path, ...]:
    found = []
    for package, names in _IMPORT.findall(_content(path)):
        found += [_path(package), *(_path(f"{package}.{name}") for name in re.findall(r"\w+", names))]
    return tuple(found)


@cache
def _content(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _path(module: str) -> Path:
    return _PACKAGE.parent.joinpath(*module.split(".")).with_suffix(".py")


def _forget_old_folders(current: Path, module: str) -> None:
    others = [folder for folder in current.parent.glob(f"{module}-*") if folder != current]
    for folder in sorted(others, key=lambda each: each.stat().st_mtime)[:-_FOLDERS_KEPT]:
        shutil.rmtree(folder, ignore_errors=True)
