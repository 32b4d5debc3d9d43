"""Columns that only histories have: times and flags; and how a file of such columns is read.

A time is unix seconds, or ISO 8601 text (UTC where it names no zone), or what Parquet has as a timestamp or a date.
A flag is 0 or 1, true or false. The first cell that is neither is named by field and row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidFile, InvalidInput
from recrawl.files.cells import Cells, Names, Want, number_text, shown, text_of
from recrawl.files.formats import kind_of
from recrawl.files.numbers import first_masked, to_numbers
from recrawl.files.page_file import PageFile, open_source
from recrawl.files.source import check_file, printable
from recrawl.pages import Floats

LATEST = 1e11  # the year 5138; what is later counts milliseconds
_LONGEST_NAME = 4096
_NO_TIME = "is missing: write a time in every row"
_FLAGS = {"0": False, "1": True, "false": False, "true": True, "0.0": False, "1.0": True}


class Collector(Protocol):
    """Takes the cells of a column batch by batch."""

    wants: ClassVar[Want]

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
    source = open_source(path, kind)
    file = PageFile(path, kind, source)
    try:
        found = _check_there(source.columns, collectors, optional)
        for batch in source.batches({name: collectors[name].wants for name in found}):
            for name in found:
                collectors[name].add(batch[name])
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

    wants: ClassVar[Want] = "times"

    def __init__(self, field: str) -> None:
        self._field = field
        self._chunks: list[Floats] = []
        self._rows = 0

    def add(self, cells: Cells) -> None:
        """Take the next cells; O(cells)."""
        seconds = self._seconds(cells)
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
        assert not isinstance(cells, Names)
        try:
            seconds = to_numbers(cells, self._field, self._rows)
        except InvalidInput:
            # Not all numbers: the slower way tells dates from nonsense.
            texts = ["" if cell is None else text_of(cell).strip() for cell in cells]
            return np.array([self._read_time(text, row) for row, text in enumerate(texts)])
        if np.ma.is_masked(seconds):
            raise self._refused(_NO_TIME, first_masked(seconds))
        return np.ma.getdata(seconds)

    def _read_time(self, text: str, row: int) -> float:
        if not text:
            raise self._refused(_NO_TIME, row)
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

    def _refused(self, problem: str, row: int) -> InvalidInput:
        return InvalidInput(problem, field=self._field, row=self._rows + row)


class FlagColumn:
    """Collects flags."""

    wants: ClassVar[Want] = "flags"

    def __init__(self, field: str) -> None:
        self._field = field
        self._chunks: list[NDArray[np.bool_]] = []
        self._rows = 0

    def add(self, cells: Cells) -> None:
        """Take the next cells; O(cells)."""
        assert not isinstance(cells, Names)
        words = [_flag_word(cell) for cell in (cells.tolist() if isinstance(cells, np.ndarray) else cells)]
        try:
            flags = np.fromiter(map(_FLAGS.__getitem__, words), bool, len(words))
        except KeyError as error:
            word = str(error.args[0])
            problem = f"is {shown(word)}, but must be 0 or 1" if word else "is missing: write 0 or 1 in every row"
            raise InvalidInput(problem, field=self._field, row=self._rows + words.index(word)) from None
        self._chunks.append(flags)
        self._rows += len(words)

    def finish(self) -> NDArray[np.bool_]:
        """Hand over the whole column."""
        return np.concatenate(self._chunks) if self._chunks else np.empty(0, dtype=bool)


def _flag_word(cell: Any) -> str:
    if cell is None:
        return ""
    return number_text(cell) if isinstance(cell, float) else text_of(cell).strip().lower()


def _time_problem(seconds: float) -> str:
    if seconds > LATEST and seconds != np.inf:
        return f"is {seconds:g}, which is no time in unix seconds: divide milliseconds by 1000"
    return f"is {seconds!r}, but must be unix seconds, 0 or more"
