"""SQL from named files: `sql/<dialect>/*.sql` holds the queries, and those that begin with a number the migrations.

A query file is a list of

    -- name: leases_all
    -- What it is for, in a line or more.
    SELECT …

so that every statement has a name to be found by and says why it exists. A migration is a script of any number of
statements; its number is the version of the tables after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import NamedTuple

_NAME = "-- name: "


class Migration(NamedTuple):
    """One step of the tables: the version it leads to, the name of its file, and its statements."""

    version: int
    name: str
    sql: str


@cache
def load_queries(dialect: str) -> Mapping[str, str]:
    """The queries of a dialect (`sqlite`, `postgres`) by name. O(their text), once.

    >>> "leases_all" in load_queries("sqlite")
    True
    """
    queries: dict[str, str] = {}
    for file, text in _sql_files(dialect):
        if file[0].isdigit():
            continue
        for name, sql in split_queries(text, file):
            if name in queries:
                raise ValueError(f"{file} names {name!r} a second time")
            queries[name] = sql
    return MappingProxyType(queries)


@cache
def load_migrations(dialect: str) -> tuple[Migration, ...]:
    """The migrations of a dialect in their order, numbered 1, 2, 3 … without gaps.

    >>> [migration.version for migration in load_migrations("sqlite")][:1]
    [1]
    """
    steps = tuple(
        Migration(int(file.split("_")[0]), file, text) for file, text in _sql_files(dialect) if file[0].isdigit()
    )
    if [step.version for step in steps] != list(range(1, len(steps) + 1)):
        raise ValueError(f"migrations of {dialect} must be numbered from 1 without gaps")
    return steps


def split_queries(text: str, file: str = "") -> Iterator[tuple[str, str]]:
    r"""The statements of a query file with their names.

    >>> list(split_queries("-- name: one\n-- The number one.\nSELECT 1;\n"))
    [('one', 'SELECT 1')]
    """
    for piece in ("\n" + text).split("\n" + _NAME)[1:]:
        name, _, rest = piece.partition("\n")
        lines = rest.splitlines()
        statement = "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("--"))
        if not lines or not lines[0].startswith("-- ") or not statement:
            raise ValueError(f"{file}: {name.strip()!r} needs a line on what it is for, and a statement")
        yield name.strip(), statement.rstrip().removesuffix(";")


def _sql_files(dialect: str) -> list[tuple[str, str]]:
    folder = files("recrawl.store").joinpath("sql", dialect)
    found = [(file.name, file.read_text(encoding="utf-8")) for file in folder.iterdir() if file.name.endswith(".sql")]
    return sorted(found)
