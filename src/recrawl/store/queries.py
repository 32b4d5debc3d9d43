"""SQL from named files: `sql/common/` for both databases, `sql/<dialect>/` for one; numbered files are migrations.

A query file is a list of

    -- name: leases_all
    -- What it is for, in a line or more.
    SELECT …

so that every statement has a name to be found by and says why it exists. Queries of `common/` write parameters as $1,
$2, …, and tables without a schema. After the purpose, one of these lines may say what a step of many rows does:

    -- takes: page_id, token      fields of each row that are handed to the statement, after the values that lead it
    -- drops: 1                   leading values that this database does not need
    -- copy: staged (id, token)   rows are copied into this table; the statement, if there is one, then runs once
    -- skipped                    nothing is to do in this database: another statement writes the same

A list of fields goes on in lines that begin with four blanks.

A migration is a script of any number of statements; its number is the version of the tables after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple

_NAME = "-- name: "
_PARAMETER = re.compile(r"\$(?=[0-9])")
_LISTED = re.compile(r",\s*")
_COPY = re.compile(r"(\w+) \((.+)\)")


class Migration(NamedTuple):
    """One step of the tables: the version it leads to, the name of its file, and its statements."""

    version: int
    name: str
    sql: str


class Statement(NamedTuple):
    """A named query, and how rows are handed to it."""

    sql: str
    takes: Callable[[Any], tuple[Any, ...]] | None = None
    drops: int = 0
    table: str = ""
    columns: tuple[str, ...] = ()
    skipped: bool = False

    def tuples(self, rows: Iterable[Any], heads: Sequence[tuple[Any, ...]]) -> Iterable[tuple[Any, ...]]:
        """The values of each row, after those that lead it."""
        values = rows if self.takes is None else map(self.takes, rows)
        if not heads:
            return values
        return [(*head, *value) for head, value in zip(heads, values, strict=True)]


@cache
def load_queries(dialect: str) -> Mapping[str, str]:
    """The queries of a dialect (`sqlite`, `postgres`) by name, those of both included. O(their text), once.

    >>> "leases_all" in load_queries("sqlite")
    True
    """
    return MappingProxyType({name: each.sql for name, each in load_statements(dialect).items() if each.sql})


@cache
def load_statements(dialect: str) -> Mapping[str, Statement]:
    """The same with how rows are handed to them, and with names that need no statement."""
    statements: dict[str, Statement] = {}
    for file, text in _query_files(dialect):
        for name, body in _pieces(text, file):
            if name in statements:
                raise ValueError(f"{file} names {name!r} a second time")
            statements[name] = _read_statement(body)
    return MappingProxyType(statements)


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
    for name, lines in _pieces(text, file):
        yield name, _read_statement(lines).sql


def _pieces(text: str, file: str) -> Iterator[tuple[str, list[str]]]:
    """Names of a query file, each with its lines."""
    for piece in ("\n" + text).split("\n" + _NAME)[1:]:
        name, _, rest = piece.partition("\n")
        lines = [line for line in rest.splitlines() if line.strip()]
        stated = any(not line.lstrip().startswith("--") for line in lines)
        needless = any(line.startswith(("-- skipped", "-- copy:")) for line in lines)
        if not lines or not lines[0].startswith("-- ") or not (stated or needless):
            raise ValueError(f"{file}: {name.strip()!r} needs a line on what it is for, and a statement")
        yield name.strip(), lines


def _read_statement(lines: Sequence[str]) -> Statement:
    sql = "\n".join(line for line in lines if not line.lstrip().startswith("--")).rstrip().removesuffix(";")
    statement = Statement(sql)
    comments = "\n".join(line for line in lines if line.startswith("--")).replace("\n--    ", " ")
    for line in comments.splitlines():
        mark, _, value = line.removeprefix("-- ").partition(": ")
        if line == "-- skipped":
            statement = statement._replace(skipped=True)
        elif mark == "takes":
            statement = statement._replace(takes=attrgetter(*_LISTED.split(value)))
        elif mark == "drops":
            statement = statement._replace(drops=int(value))
        elif mark == "copy" and (found := _COPY.fullmatch(value)):
            statement = statement._replace(table=found[1], columns=tuple(_LISTED.split(found[2])))
    return statement


def _query_files(dialect: str) -> Iterator[tuple[str, str]]:
    """Query files of both dialects in the form of one, then its own."""
    for file, text in _sql_files("common"):
        yield f"common/{file}", _PARAMETER.sub("?", text) if dialect == "sqlite" else text
    yield from ((file, text) for file, text in _sql_files(dialect) if not file[0].isdigit())


def _sql_files(folder: str) -> list[tuple[str, str]]:
    found = files("recrawl.store").joinpath("sql", folder)
    texts = {file.name: file.read_text(encoding="utf-8") for file in found.iterdir() if file.name.endswith(".sql")}
    return sorted(texts.items())
