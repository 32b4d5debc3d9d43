"""What compiled kernels are made from: all files of their layer, and of the layers below it.

A compiled kernel holds a copy of every function that it calls and of every constant that it reads, also from other
modules. So its code is of use as long as none of the files changes that these may come from. Contents count, not times:
a copy of the files, or a fresh clone, has the same digests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent.parent

LAYERS = {
    "values": ("values",),
    "learning": ("learning", "values"),
    "planning": ("planning", "values"),
    "scheduling": ("scheduling", "learning", "planning", "values"),
    "web": ("web",),
}
"""Packages with kernels, and the packages that each may import from. Kernels of other packages may import all."""

GROUND = (
    "jit", "_atomic.py", "errors.py", "extras.py", "log.py", "outcomes.py", "pages.py", "units.py", "version.py",
)  # fmt: skip
"""What all layers may import from besides."""


def layer_of(module: str) -> str:
    """Return the layer whose digest the kernels of a module have."""
    package, _, rest = module.partition(".")
    if package != PACKAGE.name:
        return module
    room = rest.partition(".")[0]
    return room if room in LAYERS else package


@cache
def layer_digest(layer: str, folder: Path) -> str:
    """Return a digest that changes with every file that kernels of a layer may be made from.

    Args:
        layer: a name that `layer_of` returned.
        folder: of the module, whose files count if the module is not of recrawl.
    """
    if layer in LAYERS:
        return _digest(path for name in (*GROUND, *LAYERS[layer]) for path in _files(PACKAGE / name))
    others = () if layer == PACKAGE.name else folder.glob("*.py")
    return _digest((*_files(PACKAGE), *others))


@cache
def package_digest() -> str:
    """Return a digest that changes with every file of recrawl."""
    return _digest(_files(PACKAGE))


def _files(place: Path) -> Iterable[Path]:
    return place.rglob("*.py") if place.is_dir() else (place,)


def _digest(files: Iterable[Path]) -> str:
    # The same files have the same names in every copy of the package: names below its folder, or below their own.
    lines = sorted(f"{_name(path)} {_file_digest(path)}" for path in files)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def _name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else path.name


@cache
def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
