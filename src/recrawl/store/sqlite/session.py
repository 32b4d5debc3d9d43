"""One connection to the database, which runs named queries and steps of operations. A session belongs to one thread."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import apsw
import xxhash

from recrawl.store.queries import load_queries, load_statements
from recrawl.store.sqlite import errors as sqlite_faults
from recrawl.store.steps import Count, Each, Many, Names, Rows, Step, Steps, Take, Value

Row = tuple[Any, ...]

_HALF = re.compile("[\ud800-\udfff]")

# Room for all named queries, so that none is ever prepared twice.
_STATEMENTS = 200
_NAMES_KEPT = 200_000
# So many pages of the log before it is copied into the file: rarer means fewer copies of pages that are written often.
_LOG_PAGES = 4000
_LOG_BYTES_KEPT = 64 * 1024 * 1024
_CACHE_KIB = {"writer": 64 * 1024, "reader": 32 * 1024}


_TAKEN = {
    "token": "take_tokens",
    "observation": "take_observations",
    "cursor": "take_cursors",
    "page": "take_page_ids",
}
_COUNTED = ("token", "observation")
"""Counters that a statement raises; the others are read from the rows that have the numbers."""


class Session:
    """A connection, its queries by name, and the numbers of names."""

    def __init__(self, file: Path, busy_s: float, role: Literal["writer", "reader"]) -> None:
        self.file = file
        self.connection = connect(file, busy_s)
        self._identity = _identity(file)
        self._queries = load_queries("sqlite")
        self._statements = load_statements("sqlite")
        self._names: dict[str, int] = {}
        self._cleans = False
        try:
            self._set_up(role)
        except BaseException:
            self.connection.close()
            raise

    def _set_up(self, role: Literal["writer", "reader"]) -> None:
        run = self.connection.execute
        run(f"PRAGMA cache_size = -{_CACHE_KIB[role]}")
        run("PRAGMA temp_store = MEMORY")
        if role == "reader":
            run("PRAGMA query_only = ON")
            return
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")  # what was acknowledged outlives the loss of power
        run(f"PRAGMA journal_size_limit = {_LOG_BYTES_KEPT}")
        run(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")

    def rows(self, query: str, bindings: Sequence[Any] = ()) -> list[Row]:
        """All rows of a query."""
        return list(self.connection.execute(self._queries[query], _clean(bindings) if self._cleans else bindings))

    def one(self, query: str, bindings: Sequence[Any] = ()) -> Row | None:
        """The first row of a query, if there is one."""
        found = self.rows(query, bindings)
        return found[0] if found else None

    def value(self, query: str, bindings: Sequence[Any] = ()) -> Any:
        """The first field of the first row, None if there is none."""
        row = self.one(query, bindings)
        return None if row is None else row[0]

    def rows_each(self, query: str, bindings: Iterable[Sequence[Any]]) -> list[Row]:
        """The rows of a query for each of the bindings, one after the other."""
        rows = map(_clean, bindings) if self._cleans else bindings
        return list(self.connection.executemany(self._queries[query], rows))

    def drive(self, steps: Steps[Value]) -> Value:
        """Run an operation: do its steps, one after the other, and send it the answers."""
        answer: Any = None
        try:
            while True:
                answer = self.take(steps.send(answer))
        except StopIteration as ended:
            value: Value = ended.value
            return value

    def take(self, step: Step) -> Any:
        """Do a step; its answer."""
        match step:
            case Rows(query, values):
                return [] if self._statements[query].skipped else self.rows(query, _bound(values))
            case Each(query, keys):
                return self.rows_each(query, keys)
            case Many(query, rows, heads):
                self._run_many(query, rows, heads)
            case Count(query, values):
                self.rows(query, _bound(values))
                return self.connection.changes()
            case Take(counter, count):
                return self.value(_TAKEN[counter], (count,) if counter in _COUNTED else ())
            case Names(hosts, others):
                return {name: self.name_id(name) for names in (hosts, others) for name in names}
        return None

    def _run_many(self, query: str, rows: Iterable[Any], heads: Sequence[Row]) -> None:
        statement = self._statements[query]
        if not statement.skipped:
            bindings = statement.tuples(rows, heads)
            self.connection.executemany(statement.sql, map(_clean, bindings) if self._cleans else bindings)

    def cursor(self, query: str) -> apsw.Cursor:
        """The rows of a query, one by one."""
        return self.connection.execute(self._queries[query])

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Queries within see one moment."""
        self.connection.execute("BEGIN")
        try:
            yield
        finally:
            self.connection.execute("COMMIT")

    @contextmanager
    def cleaned_texts(self) -> Iterator[None]:
        """Within, characters that are half of one are replaced in all texts that are written."""
        self._cleans = True
        try:
            yield
        finally:
            self._cleans = False

    def name_id(self, name: str) -> int:
        """The number of a name, given to it now if it has none."""
        known = self._names.get(name)
        if known is not None:
            return known
        number = self.value("name_find", (name,))
        if number is None:
            number = self.value("name_add", (name,))
        if len(self._names) >= _NAMES_KEPT:
            self._names.clear()
        self._names[name] = number
        return int(number)

    def forget_names(self) -> None:
        """After a rollback, numbers given in it may be given to others."""
        self._names.clear()

    def check_place(self) -> None:
        """Raise `StoreLost` if the file is no longer the one that was opened. One call to the system."""
        if _identity(self.file) != self._identity:
            raise sqlite_faults.lost(self.file)

    def close(self) -> None:
        """Let go of the connection."""
        self.connection.close()


def connect(file: Path, busy_s: float, flags: int = apsw.SQLITE_OPEN_READWRITE) -> apsw.Connection:
    """A connection to a file that exists; it is not created."""
    connection = apsw.Connection(str(file), flags=flags, statementcachesize=_STATEMENTS)
    # Plans do not depend on the values bound: else a query is prepared anew for each, at ten times the cost.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.set_busy_timeout(round(busy_s * 1000))
    return connection


def url_hash(url: str) -> int:
    """The number by which an address is found, of 64 bits with a sign.

    >>> url_hash("https://example.org/")
    -8202114674208552119
    """
    number: int = xxhash.xxh3_64_intdigest(url.encode("utf-8", "surrogatepass"))
    return number - (1 << 64) if number >> 63 else number


def _bound(values: Sequence[Any]) -> Sequence[Any]:
    """Values of parameters; a list is JSON, which `json_each` takes apart."""
    if any(type(value) is list for value in values):
        return [json.dumps(value) if type(value) is list else value for value in values]
    return values


def _clean(bindings: Sequence[Any]) -> list[Any]:
    return [_HALF.sub("\ufffd", value) if isinstance(value, str) else value for value in bindings]


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(file)  # noqa: PTH116 - called with every transaction, and twice as fast
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
