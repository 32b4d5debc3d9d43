"""The one place that decides how kernels are compiled, and where the compiled code is kept.

Importing this module loads numba, which takes most of a second: modules that hold kernels are imported by the
functions that compute, never by `import recrawl` or by a command's `--help`.

Compiled code is kept on disk beside the package. numba recompiles a kernel when its own file changes, but not when a
kernel that it calls, in another file, does; so each module keeps its kernels in a folder whose name is a digest of
the module and of everything in recrawl that it imports.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])

# Sums may be reordered, so that they vectorise; NaN and infinity keep their meaning.
_REORDERED = {"reassoc", "nsz", "contract", "arcp"}
_FOLDERS_KEPT = 2  # of earlier versions of a module, for whoever goes back and forth
_ROOT = Path(__file__).parent.parent
_IMPORT = re.compile(r"^from (recrawl[\w.]*) import ([^(\n]+|\([^)]*\))", re.MULTILINE)


def kernel(function: Function) -> Function:
    """Compile a loop over arrays: sums may be reordered, the result is cached on disk."""
    return _compiled(function, fastmath=_REORDERED)


def exact(function: Function) -> Function:
    """Compile scalar mathematics exactly as written: nothing is reordered, so series stay accurate."""
    return _compiled(function)


def inlined(function: Function) -> Function:
    """Compile scalar mathematics as written and copy it into every loop that calls it, so that the loop vectorises.

    A product and a sum may become one instruction: that halves the work and rounds once instead of twice.
    """
    return _compiled(function, fastmath={"contract"}, forceinline=True)


def borrowing(function: Function) -> Function:
    """Compile a small step over arrays that the caller holds on to: references to them are not counted.

    Counting is what most of the time goes into where steps hand a dozen arrays to each other. Such a step must not
    make arrays, and is called from kernels only.
    """
    return _compiled(function, fastmath={"contract"}, _nrt=False)


def elementwise(function: Function) -> Function:
    """Compile a scalar function into a NumPy ufunc that broadcasts over arrays."""
    return _kept_on_disk(numba.vectorize, function)


def _compiled(function: Function, **options: Any) -> Function:
    # What a step calls would else be compiled as the step is, without room for arrays of its own.
    options = {"_nrt": True, **options}
    return _kept_on_disk(numba.njit, function, error_model="numpy", nogil=True, **options)


def _kept_on_disk(compiler: Any, function: Function, **options: Any) -> Function:
    """Compile with our cache folder; numba chooses the folder when it is handed the function."""
    settings: Any = numba.config
    theirs = settings.CACHE_DIR
    settings.CACHE_DIR = str(cache_folder(function.__module__, theirs))
    try:
        return cast(Function, compiler(cache=True, **options)(function))
    finally:
        settings.CACHE_DIR = theirs


@cache
def cache_folder(module: str, parent: str = "") -> Path:
    """The folder for a module's compiled kernels, below the one numba was told to use or else beside the package."""
    folder = Path(parent) if parent else _ROOT / "recrawl" / "__pycache__"
    folder /= f"{module}-{_digest(module)}"
    with suppress(OSError):  # a package that cannot be written to: numba finds a folder of the user's
        folder.mkdir(parents=True, exist_ok=True)
        _forget_old_folders(folder, module)
    return folder


def versions_on_disk(function: Callable[..., Any]) -> int:
    """For how many kinds of arguments a kernel was compiled before, here or in another process."""
    settings: Any = numba.config
    folder = cache_folder(function.__module__, settings.CACHE_DIR)
    return sum(1 for _ in folder.rglob(f"*.{function.__name__}-*.nbc"))


def _digest(module: str) -> str:
    digest = hashlib.sha256()
    for path in sorted(_sources(module)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _sources(module: str) -> set[Path]:
    """The file of a module and those of all recrawl modules that it imports, directly or not."""
    found: set[Path] = set()
    waiting = [module]
    while waiting:
        path = _ROOT.joinpath(*waiting.pop().split(".")).with_suffix(".py")
        if path in found or not path.is_file():  # a kernel outside the package answers for itself
            continue
        found.add(path)
        for package, names in _IMPORT.findall(path.read_text(encoding="utf-8")):
            waiting += [package, *(f"{package}.{name}" for name in re.findall(r"\w+", names))]
    return found


def _forget_old_folders(current: Path, module: str) -> None:
    others = [folder for folder in current.parent.glob(f"{module}-*") if folder != current]
    for folder in sorted(others, key=lambda each: each.stat().st_mtime)[:-_FOLDERS_KEPT]:
        shutil.rmtree(folder, ignore_errors=True)
