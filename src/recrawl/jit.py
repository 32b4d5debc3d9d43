"""The one place that decides how kernels are compiled, and where the compiled code is kept.

Importing this module loads numba, which takes most of a second: modules that hold kernels are imported by the
functions that compute, never by `import recrawl` or by a command's `--help`.

Compiled code is kept on disk beside the package. numba recompiles a kernel when its own file changes, but not when a
kernel that it calls, in another file, does; so the folder's name is a fingerprint of all kernel sources.
"""

from __future__ import annotations

import hashlib
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
_FOLDERS_KEPT = 3


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


def elementwise(function: Function) -> Function:
    """Compile a scalar function into a NumPy ufunc that broadcasts over arrays."""
    return _kept_on_disk(numba.vectorize, function)


def _compiled(function: Function, **options: Any) -> Function:
    return _kept_on_disk(numba.njit, function, error_model="numpy", nogil=True, **options)


def _kept_on_disk(compiler: Any, function: Function, **options: Any) -> Function:
    """Compile with our cache folder; numba chooses the folder when it is handed the function."""
    settings: Any = numba.config
    theirs = settings.CACHE_DIR
    settings.CACHE_DIR = str(cache_folder(theirs))
    try:
        return cast(Function, compiler(cache=True, **options)(function))
    finally:
        settings.CACHE_DIR = theirs


@cache
def cache_folder(parent: str = "") -> Path:
    """The folder for compiled kernels, below the one numba was told to use, or else beside the package."""
    package = Path(__file__).parent
    folder = Path(parent) if parent else package / "__pycache__"
    folder /= f"kernels-{_fingerprint(package)}"
    with suppress(OSError):  # a package that cannot be written to: numba finds a folder of the user's
        _forget_old_folders(folder)
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _fingerprint(package: Path) -> str:
    """A digest of every source file that holds kernels."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        if b"recrawl.jit" in source or path.name == "jit.py":
            digest.update(source)
    return digest.hexdigest()[:16]


def _forget_old_folders(current: Path) -> None:
    others = [folder for folder in current.parent.glob("kernels-*") if folder != current]
    for folder in sorted(others, key=lambda each: each.stat().st_mtime)[: -_FOLDERS_KEPT or None]:
        shutil.rmtree(folder, ignore_errors=True)
