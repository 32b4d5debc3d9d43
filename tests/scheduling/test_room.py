"""Other rooms use what the scheduler offers, and nothing of its insides."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import recrawl

PACKAGE = Path(recrawl.__file__).parent
ROOM = PACKAGE / "scheduling"


def private_attributes(path: Path) -> set[str]:
    """The private attributes and methods that the classes of a module have."""
    found = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ClassDef):
            found |= {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
            found |= {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute) and is_own(each)}
    return {name for name in found if is_private(name)}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def is_own(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def private_names_used(path: Path, of_the_room: set[str]) -> Iterator[str]:
    """The private parts of the room that a module outside it names."""
    own = private_attributes(path)
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("recrawl.scheduling"):
            yield from (each.name for each in node.names if is_private(each.name))
        elif isinstance(node, ast.Attribute) and node.attr in of_the_room - own and not is_own(node):
            yield node.attr


def test_nothing_outside_the_room_names_a_private_part_of_it() -> None:
    private = set().union(*(private_attributes(path) for path in ROOM.rglob("*.py")))
    assert {"_table", "_policy", "_bucket"} <= private
    outside = [path for path in PACKAGE.rglob("*.py") if ROOM not in path.parents]
    used = {path.relative_to(PACKAGE).as_posix(): sorted(private_names_used(path, private)) for path in outside}
    assert {path: names for path, names in used.items() if names} == {}


def test_a_private_part_that_is_named_elsewhere_is_found(tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text(
        "from recrawl.scheduling.learner import _MEAN\n"
        "class Mine:\n"
        "    def look(self, scheduler):\n"
        "        self._table = scheduler._policy\n"
        "        return scheduler._table\n"
    )
    assert sorted(private_names_used(other, {"_table", "_policy"})) == [
        "_MEAN",
        "_policy",
    ]  # `_table` is its own name, too
