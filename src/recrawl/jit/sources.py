"""What the kernels of a module are made from: its file, and those of all modules that it imports.

A compiled kernel holds a copy of every function that it calls and of every constant that it reads, also from other
modules. So its code is of use as long as none of these files changes. Contents count, not times: a copy of the files,
or a fresh clone, has the same digests.

One digest for each module, and not one for each room, because a developer changes modules one at a time: most changes
touch no kernel, and then nothing is compiled again.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parent.parent
_PACKAGE_FILE = "__init__.py"


class _Source(NamedTuple):
    """A module and its file; the file of a package is its `__init__.py`."""

    module: str
    path: Path

    @property
    def is_package(self) -> bool:
        return self.path.name == _PACKAGE_FILE

    @property
    def package(self) -> str:
        """What relative imports start from."""
        return self.module if self.is_package else self.module.rpartition(".")[0]


@cache
def module_digest(module: str, file: Path) -> str:
    """Changes with the file of a module and of every module that it imports, directly or not.

    Modules of recrawl and of the module's own package count, whichever statement imports them and wherever it stands.
    A module that is imported by a name made at run time is not seen.

    Raises:
        OSError: the module has no file.
    """
    found: set[_Source] = set()
    waiting = [_Source(module, file)]
    while waiting:
        source = waiting.pop()
        if source not in found:
            found.add(source)
            waiting += _imported(source)
    return _together(f"{each.module} {each.path.name} {_file_digest(each.path)}" for each in found)


@cache
def package_digest() -> str:
    """Changes with every file of recrawl."""
    files = PACKAGE.rglob("*.py")
    return _together(f"{each.relative_to(PACKAGE).as_posix()} {_file_digest(each)}" for each in files)


def _together(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]


@cache
def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def _imported(source: _Source) -> tuple[_Source, ...]:
    homes = {source.module.partition(".")[0]: _home(source), PACKAGE.name: PACKAGE.parent}
    found: set[_Source] = set()
    for name in _names(source):
        home = homes.get(name.partition(".")[0])
        if home is not None:
            found.update(_files(name, home))
    return tuple(found)


def _home(source: _Source) -> Path:
    """The folder that the module's outermost package, or the module itself, is in."""
    return source.path.parents[source.module.count(".") + source.is_package]


@cache
def _files(name: str, home: Path) -> tuple[_Source, ...]:
    """The module that a name is of, if any: others are of things in modules. A star is all modules of a package."""
    if name.endswith(".*"):
        package = name.removesuffix(".*")
        inside = home.joinpath(*package.split(".")).glob("*.py")
        return tuple(_Source(f"{package}.{path.stem}", path) for path in inside if path.name != _PACKAGE_FILE)
    place = home.joinpath(*name.split("."))
    for path in (place / _PACKAGE_FILE, place.with_suffix(".py")):
        if path.is_file():
            return (_Source(name, path),)
    return ()


def _names(source: _Source) -> set[str]:
    """The names of modules that a module may import, and of things in them."""
    names: set[str] = set()
    for statement in _imports(ast.parse(source.path.read_bytes())):
        if isinstance(statement, ast.Import):
            for each in statement.names:  # `import a.b` reaches what `a` and `a.b` hold
                parts = each.name.split(".")
                names.update(".".join(parts[:n]) for n in range(1, len(parts) + 1))
        else:
            above = source.package.split(".")
            start = above[: len(above) + 1 - statement.level] if statement.level else []
            module = ".".join([*start, *([statement.module] if statement.module else [])])
            # A star brings the modules that `__all__` of a package names.
            names.update((module, *(f"{module}.{each.name}" for each in statement.names)))
    return names


def _imports(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """All statements that import: also those in functions, classes and branches."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        else:  # statements stand in the blocks of statements: expressions need not be searched
            for block in ("body", "orelse", "finalbody", "handlers", "cases"):
                waiting += getattr(node, block, ())
