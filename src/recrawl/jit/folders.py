"""Where compiled kernels are kept, and what of them is complete.

Needs no numba: a start asks here whether an earlier one has compiled everything before it decides to import numba.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from recrawl.jit.sources import PACKAGE, layer_digest, layer_of, package_digest

try:
    import fcntl
except ImportError:  # not on Windows: there, processes that compile at once may do some work twice
    fcntl = None  # type: ignore[assignment]

_FOLDERS_KEPT = 2  # of earlier versions of a layer, for developers who go back and forth
_NOTES_KEPT = 8  # of a part: for other processors that share the folder, and earlier versions
_COMPLETE = "complete-"
# What compilers make use of, among the flags of a processor: the others change with the operating system.
_INSTRUCTIONS = (
    "abm", "adx", "aes", "amx", "avx", "bmi", "f16c", "fma", "movbe", "pclmul", "pni", "popcnt", "rtm", "sha", "sse",
    "ssse", "vaes", "vpclmul",
)  # fmt: skip
_used: set[str] = set()  # names of the folders that this process has asked for


@cache
def module_folder(module: str, file: Path) -> Path:
    """Return the folder for a module's compiled kernels, in that of its layer, whose name has a digest.

    Raises:
        OSError: the module has no file.
    """
    layer = layer_of(module)
    layers = _root() / f"{layer}-{layer_digest(layer, file.parent)}"
    _used.add(layers.name)
    with suppress(OSError):  # nothing can be kept: each process compiles for itself
        (layers / module).mkdir(parents=True, exist_ok=True)
        _forget_old_folders(layers, layer)
    return layers / module


def complete_parts() -> set[str]:
    """The parts of the warm-up that were compiled to their end, by this recrawl, Python, numba and processor."""
    root, start = _root(), _note("")
    with suppress(OSError):
        names = set(os.listdir(root))  # noqa: PTH208 - names
        notes = (name for name in names if name.startswith(start))
        return {name[len(start) :] for name in notes if _holds(root / name, names)}
    return set()


def note_complete(part: str) -> None:
    """Note that a part of the warm-up was compiled to its end, and in which folders the code is."""
    root = _root()
    with suppress(OSError):
        root.mkdir(parents=True, exist_ok=True)
        note, written = root / _note(part), root / f"noted-{os.getpid()}"
        written.write_text("\n".join(sorted(_used)), encoding="utf-8")
        written.replace(note)
        for old in _all_but_newest(root.glob(f"{_COMPLETE}*-{part}"), note, _NOTES_KEPT):
            old.unlink(missing_ok=True)


def _holds(note: Path, names: set[str]) -> bool:
    """Whether all folders that a note speaks of are among these names."""
    with suppress(OSError):
        return names.issuperset(note.read_text(encoding="utf-8").splitlines())
    return False


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
    beside = PACKAGE / "__pycache__"
    with suppress(OSError):
        beside.mkdir(exist_ok=True)
    if os.access(beside, os.W_OK) or any(beside.glob(f"{_note('')}*")):
        return beside
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "recrawl"


@cache
def _machine_digest() -> str:
    """Changes with whatever makes numba compile again: sources, versions, processor."""
    processor = "" if is_portable(os.environ) else processor_of(_cpuinfo())
    told = (os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES"))
    key = (package_digest(), sys.version_info[:3], _numba_version(), platform.machine(), processor, told)
    return hashlib.sha256(repr(key).encode()).hexdigest()[:16]


def _numba_version() -> str:
    try:
        return version("numba")
    except PackageNotFoundError:
        return ""


def is_portable(environment: Mapping[str, str]) -> bool:
    """Whether numba was told a processor to compile for, so that the one that it runs on does not matter."""
    name, features = environment.get("NUMBA_CPU_NAME", ""), environment.get("NUMBA_CPU_FEATURES")
    return name.lower() == "generic" or bool(name and features is not None)


def _cpuinfo() -> str:
    with suppress(OSError):
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    return platform.processor()


def processor_of(cpuinfo: str) -> str:
    """What numba's machine code depends on, as far as it can be read without numba: family, model and instructions."""
    kept = []
    for line in cpuinfo.partition("\n\n")[0].splitlines():
        name, _, value = (each.strip() for each in line.partition(":"))
        if name == "flags":
            kept.append(" ".join(sorted(flag for flag in value.split() if flag.startswith(_INSTRUCTIONS))))
        elif name in ("vendor_id", "cpu family", "model", "Features", "CPU implementer", "CPU part"):
            kept.append(value)
    return "\n".join(kept) or cpuinfo


def _forget_old_folders(current: Path, layer: str) -> None:
    """Remove folders of earlier versions, and before them the notes that speak of them."""
    for folder in _all_but_newest(current.parent.glob(f"{layer}-*"), current, _FOLDERS_KEPT):
        for note in folder.parent.glob(f"{_COMPLETE}*"):
            if folder.name in note.read_text(encoding="utf-8").splitlines():
                note.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def _all_but_newest(found: Iterable[Path], current: Path, kept: int) -> list[Path]:
    others = [each for each in found if each != current]
    return sorted(others, key=lambda each: each.stat().st_mtime)[:-kept]
