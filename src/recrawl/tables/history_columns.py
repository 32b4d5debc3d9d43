"""Columns that only histories have: times and flags; and how a file of such columns is read.

A time is unix seconds, or ISO 8601 text (UTC where it names no zone), or what Parquet has as a timestamp or a date.
A flag is 0 or 1, true or false. The first cell that is neither is named by field and row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds
from numpy.typing import NDArray

from recrawl.errors import InvalidFile, InvalidInput
from recrawl.pages import Floats
from recrawl.tables.arrow import TEXT, Cells, compute, first_true, to_text
from recrawl.tables.csv_file import CsvFile
from recrawl.tables.formats import kind_of
from recrawl.tables.jsonl_file import JsonlFile
from recrawl.tables.numbers import is_text, shown, to_numbers
from recrawl.tables.page_file import PageFile
from recrawl.tables.parquet_file import ParquetFile
from recrawl.tables.source import Source, check_file, printable

LATEST = 1e11  # the year 5138; what is later counts milliseconds
_LONGEST_NAME = 4096
_FLAGS = {"0": False, "1": True, "false": False, "true": True, "0.0": False, "1.0": True}


class Collector(Protocol):
    """Takes the cells of a column batch by batch."""

    def add(self, cells: Cells) -> None:
        """Take the next cells."""
        ...


def read_columns(
    path: Path, collectors: Mapping[str, Collector], optional: Collection[str] = ()
) -> tuple[PageFile, set[str]]:
    """Stream the columns of a file into collectors; says which there are. O(rows), memory for a batch.

    The file is handed back to explain what is found wrong with the columns later.
    """
    kind = kind_of(path)
    check_file(path)
    source: Source
    if kind.format == "parquet":
        source = ParquetFile(path)
    else:
        source = CsvFile(path, kind) if kind.format == "csv" else JsonlFile(path, kind)
    file = PageFile(path, kind, source)
    try:
        found = _check_there(source.columns, collectors, optional)
        for batch in source.batches(found):
            for name in found:
                collectors[name].add(batch.column(name))
    except InvalidInput as error:
        raise file.explain(error) from None
    except RecursionError:
        raise InvalidFile(str(path), "holds a value that is nested too deeply: flatten it") from None
    return file, found


def _check_there(columns: Collection[str], wanted: Collection[str], optional: Collection[str]) -> set[str]:
    for name in wanted:
        if name not in columns and name not in optional:
            raise InvalidInput(f"there is no column {name!r}")
    return {name for name in wanted if name in columns}


def shown_names(names: Iterable[object]) -> tuple[str, ...]:
    """Names of pages without control characters, which a terminal would obey."""
    texts = (str(name) for name in names)
    return tuple(text if text.isprintable() else printable(text, _LONGEST_NAME) for text in texts)


class TimeColumn:
    """Collects times as unix seconds."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._chunks: list[Floats] = []
        self._rows = 0

    def add(self, cells: Cells) -> None:
        """Take the next cells; O(cells)."""
        seconds = self._seconds(_plain(cells))
        wrong = ~((seconds >= 0) & (seconds <= LATEST))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise self._refused(_time_problem(float(seconds[row])), row)
        self._chunks.append(seconds)
        self._rows += len(cells)

    def finish(self) -> Floats:
        """Hand over the whole column."""
        return np.concatenate(self._chunks) if self._chunks else np.empty(0)

    def _seconds(self, cells: Cells) -> Floats:
        kind = cells.type
        if is_text(kind):
            return self._parse(cells)
        if kinds.is_timestamp(kind) or kinds.is_date(kind):
            zone = kind.tz if kinds.is_timestamp(kind) else None
            stamps = cells.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
            self._check_present(stamps)
            return stamps.to_numpy(zero_copy_only=False) / 1e6
        if kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind) or kinds.is_null(kind):
            return self._numbers(cells)
        raise InvalidInput(f"holds values of type {kind}, but must hold times", field=self._field)

    def _numbers(self, cells: Cells) -> Floats:
        numbers = to_numbers(cells, self._field, self._rows)
        self._check_present(numbers)
        seconds: Floats = numbers.to_numpy(zero_copy_only=False)
        return seconds

    def _parse(self, cells: Cells) -> Floats:
        try:
            return self._numbers(cells)
        except InvalidInput:
            pass  # not all numbers: the slower way tells dates from nonsense
        try:
            texts = to_text(cells).to_pylist()
        except pa.ArrowInvalid:
            raise InvalidInput("holds bytes that are not UTF-8 text", field=self._field) from None
        seconds = np.empty(len(texts))
        for row, text in enumerate(texts):
            seconds[row] = self._read_time((text or "").strip(), row)
        return seconds

    def _read_time(self, text: str, row: int) -> float:
        if not text:
            raise self._refused("is missing: write a time in every row", row)
        try:
            return float(text)
        except ValueError:
            pass
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            problem = f"is {shown(text)}, but must be unix seconds or ISO 8601 such as 2024-05-01T12:00:00Z"
            raise self._refused(problem, row) from None
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()

    def _check_present(self, cells: Cells) -> None:
        if cells.null_count:
            raise self._refused("is missing: write a time in every row", first_true(cells.is_null()))

    def _refused(self, problem: str, row: int) -> InvalidInput:
        return InvalidInput(problem, field=self._field, row=self._rows + row)


class FlagColumn:
    """Collects flags."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._chunks: list[NDArray[np.bool_]] = []
        self._rows = 0

    def add(self, cells: Cells) -> None:
        """Take the next cells; O(cells)."""
        cells = _plain(cells)
        if not (is_text(cells.type) or _is_number(cells.type)):
            raise InvalidInput(f"holds values of type {cells.type}, but must hold 0 or 1", field=self._field)
        try:
            texts: Cells = compute.fill_null(compute.utf8_lower(compute.utf8_trim_whitespace(to_text(cells))), "")
        except pa.ArrowInvalid:
            raise InvalidInput("holds bytes that are not UTF-8 text", field=self._field) from None
        encoded: Any = texts.cast(TEXT).dictionary_encode()
        words = encoded.dictionary.to_pylist()
        codes = encoded.indices.to_numpy()
        for code, word in enumerate(words):
            if word not in _FLAGS:
                problem = f"is {shown(word)}, but must be 0 or 1" if word else "is missing: write 0 or 1 in every row"
                raise InvalidInput(problem, field=self._field, row=self._rows + int(np.argmax(codes == code)))
        self._chunks.append(np.array([_FLAGS[word] for word in words], dtype=bool)[codes])
        self._rows += len(cells)

    def finish(self) -> NDArray[np.bool_]:
        """Hand over the whole column."""
        return np.concatenate(self._chunks) if self._chunks else np.empty(0, dtype=bool)


def _plain(cells: Cells) -> Cells:
    return cells.dictionary_decode() if isinstance(cells, pa.DictionaryArray) else cells


def _is_number(kind: pa.DataType) -> bool:
    return kinds.is_boolean(kind) or kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_null(kind)


def _time_problem(seconds: float) -> str:
    if seconds > LATEST and seconds != np.inf:
        return f"is {seconds:g}, which is no time in unix seconds: divide milliseconds by 1000"
    return f"is {seconds!r}, but must be unix seconds, 0 or more"
