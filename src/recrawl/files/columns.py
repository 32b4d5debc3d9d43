"""Columns in plain form, which every format reads and writes, and collectors that check a column batch by batch.

A batch is a dictionary of columns of one length. A column is a list of values (text in CSV, any JSON in JSONL; None is
missing), a NumPy array (masked where a value is missing), or names as codes.

A collector takes the cells of one column: numbers, names, times or flags. It names the first bad cell by field and row.
Ranges are not checked here: `recrawl.pages` does that, for files and arrays alike. A time is unix seconds, or ISO 8601
text (UTC where it names no zone), or a timestamp or date of Parquet. A flag is 0 or 1, true or false.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.pages import Floats, Hosts

Want = Literal["numbers", "text", "times", "flags", "anything"]
"""What a column is read as; anything if only its rows count."""


NUMBER_COLUMNS = (
    "importance", "change_rate", "cost", "min_rate", "max_rate", "recall", "precision", "false_signal_rate",
    "decay", "window", "profit", "new_page_rate",
)  # fmt: skip
"""Columns that hold numbers; in a file without types, such as CSV, all others are text."""

WORD_COLUMNS = ("host", "life")
"""Columns that hold names or words."""

LABEL_COLUMNS = ("url", "page", "id", "path")
"""Columns that say what to call a page, the best first."""

EMPTY_MEANS = {"min_rate": 0.0, "max_rate": math.inf}
"""An empty cell in a column of limits is no limit; in every other column of numbers it is an error."""


@dataclass(frozen=True, slots=True)
class Names:
    """Text as codes into a list of names, some of which may be unused; a code below 0 is missing."""

    codes: NDArray[np.integer[Any]]
    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.codes)


Cells: TypeAlias = Sequence[Any] | NDArray[Any] | Names
Batch: TypeAlias = dict[str, Cells]


def rows_of(batch: Batch) -> int:
    """How many rows a batch has."""
    return len(next(iter(batch.values()), ()))


def dumps(value: Any) -> str:
    """Write one value as JSON, in letters as they are; what JSON has no form for becomes text."""
    return _ENCODER.encode(value)


def text_of(value: Any) -> str:
    """A value as text: text as it is, all else as JSON, and halves of surrogate pairs replaced."""
    text = value if isinstance(value, str) else dumps(value)
    return text if is_unicode(text) else text.encode("utf-8", "replace").decode()


def is_unicode(text: str) -> bool:
    """Whether text is free of halves of surrogate pairs, which no encoding can write."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(text: str) -> str:
    """Quote a cell for a sentence, cut short if it is long."""
    return repr(text if len(text) <= 60 else text[:59] + "…")


def number_text(value: float) -> str:
    """Write a number with every digit that counts and no more.

    >>> number_text(2.0), number_text(0.1), number_text(1e22)
    ('2', '0.1', '1e+22')
    """
    return repr(value).removesuffix(".0")


def csv_texts(cells: Cells) -> list[str]:
    """Write cells as text; what is missing becomes empty."""
    return _texts(cells, _csv_text, number_text)


def json_texts(cells: Cells) -> list[str]:
    """Write cells as JSON; what is missing, NaN or infinite becomes null.

    >>> json_texts([0.1, float("inf"), None, "é"])
    ['0.1', 'null', 'null', '"é"']
    """
    return _texts(cells, _json_text, _json_number)


def _texts(cells: Cells, write: Callable[[Any], str], write_float: Callable[[float], str]) -> list[str]:
    if isinstance(cells, np.ndarray):
        # A masked array gives None where a value is missing.
        values = cells.tolist()
        if cells.dtype.kind == "f" and not np.ma.is_masked(cells):
            return list(map(write_float, values))
        return list(map(write, values))
    assert not isinstance(cells, Names)
    return list(map(write, cells))


def _csv_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, float):
        return number_text(value)
    return dumps(value) if isinstance(value, bool | list | dict) else str(value)


def _json_text(value: Any) -> str:
    if isinstance(value, float):
        return _json_number(value)
    return str(value) if isinstance(value, Decimal) else dumps(value)


def _json_number(value: float) -> str:
    return number_text(value) if value - value == 0 else "null"


def _plain(value: Any) -> str:
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, default=_plain)


_NUMBER = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?|nan)", re.IGNORECASE | re.ASCII)
_MISSING = "is missing: write a number in every row"
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?")
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")
_LONGEST_WORD = 24
_PERCENT = re.compile(r"([+-]?[0-9]+(?:\.[0-9]*)?)\s*%")


class NumberColumn:
    """Collects a column of numbers batch by batch."""

    wants: ClassVar[Want] = "numbers"

    def __init__(self, field: str) -> None:
        self._field = field
        self._chunks: list[Floats] = []
        self._rows = 0

    def add(self, cells: Cells) -> None:
        """Take the next cells; O(cells)."""
        numbers = to_numbers(cells, self._field, self._rows)
        if np.ma.is_masked(numbers):
            numbers = self._fill(numbers)
        self._chunks.append(np.ma.getdata(numbers))
        self._rows += len(cells)

    def finish(self) -> Floats:
        """Hand over the whole column and forget its pieces."""
        chunks, self._chunks = self._chunks, []
        return np.concatenate(chunks) if chunks else np.empty(0)

    def _fill(self, numbers: Floats) -> Floats:
        if self._field not in EMPTY_MEANS:
            raise InvalidInput(_MISSING, field=self._field, row=self._rows + first_masked(numbers))
        filled: Floats = np.ma.filled(numbers, EMPTY_MEANS[self._field])
        return filled


def first_masked(values: Floats) -> int:
    """The index of the first value that is missing."""
    return int(np.argmax(np.ma.getmaskarray(values)))


def to_numbers(cells: Cells, field: str, first_row: int) -> Floats:
    """Turn cells into float64, masked where one is missing or blank.

    Args:
        cells: numbers, or text that spells them.
        field: the column's name, for the error.
        first_row: how many rows came before these cells, for the error.
    """
    assert not isinstance(cells, Names)
    if isinstance(cells, np.ndarray):
        return cells
    kinds = set(map(type, cells))
    try:
        if kinds <= {int, float}:
            return np.fromiter(map(float, cells), np.float64, len(cells))
        # Python's float takes more for a number than we do: underscores, and digits of other scripts.
        if kinds == {str} and (joined := "".join(cells)).isascii() and "_" not in joined:
            return np.fromiter(map(float, cells), np.float64, len(cells))
    except (ValueError, OverflowError):
        pass  # blank cells, or no number: the slower way tells which
    return _one_by_one(cells, field, first_row)


def _one_by_one(cells: Sequence[Any], field: str, first_row: int) -> Floats:
    numbers = np.zeros(len(cells))
    blank = np.zeros(len(cells), dtype=bool)
    for index, cell in enumerate(cells):
        if isinstance(cell, int | float) and not isinstance(cell, bool):
            numbers[index] = _rounded(cell)
            continue
        text = "" if cell is None else text_of(cell).strip()
        if not text:
            blank[index] = True
        elif _NUMBER.fullmatch(text):
            numbers[index] = float(text)
        else:
            problem = f"is {shown(text)}, but must be a number: {_repair(text)}"
            if blank.any() and field not in EMPTY_MEANS:  # the first bad cell is a blank one
                problem, index = _MISSING, int(np.argmax(blank))  # noqa: PLW2901
            raise InvalidInput(problem, field=field, row=first_row + index)
    return np.ma.masked_array(numbers, mask=blank) if blank.any() else numbers


def _rounded(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _repair(text: str) -> str:
    if _THOUSANDS.fullmatch(text):
        return "leave out the comma between thousands, or write a decimal comma as a point"
    if _DECIMAL_COMMA.fullmatch(text):
        return f"write {text.replace(',', '.')} with a point"
    if match := _PERCENT.fullmatch(text):
        return f"write {float(match[1]) / 100:.12g} instead of a percentage"
    return "write it with digits, such as 12 or 0.25"


class NameColumn:
    """Collects a column of names batch by batch; codes count names in order of appearance."""

    wants: ClassVar[Want] = "text"

    def __init__(self, field: str) -> None:
        self._field = field
        self._codes: list[NDArray[np.int32]] = []
        self._rows = 0
        self._numbers = _numbering()

    def add(self, cells: Cells) -> None:
        """Take the next cells; O(cells)."""
        if isinstance(cells, Names):
            codes = self._translate(cells)
        else:
            assert not isinstance(cells, np.ndarray)
            names = self._text(cells)
            codes = np.fromiter(map(self._numbers.__getitem__, names), np.int32, len(names))
        blank = self._numbers.get("", -1)
        missing = (codes < 0) | (codes == blank)
        if missing.any():
            raise InvalidInput(
                f"is missing: write a {self._field} in every row, or leave the column out",
                field=self._field,
                row=self._rows + int(np.argmax(missing)),
            )
        self._codes.append(codes)
        self._rows += len(codes)

    def finish(self) -> Hosts:
        """Hand over codes and names."""
        chunks, self._codes = self._codes, []
        names, self._numbers = list(self._numbers), _numbering()
        codes = np.concatenate(chunks) if chunks else np.empty(0, dtype=np.int32)
        return Hosts(codes.astype(np.int64), names)

    def _translate(self, cells: Names) -> NDArray[np.int32]:
        """Codes of a batch to ours; names that no row uses get none."""
        used, first = np.unique(cells.codes, return_index=True)
        codes = np.full(len(cells.names) + 1, -1, dtype=np.int32)  # the last is for what is missing
        for code in used[np.argsort(first)]:
            if code >= 0:
                codes[code] = self._numbers[cells.names[code]]
        ours: NDArray[np.int32] = codes[cells.codes]
        return ours

    def _text(self, cells: Sequence[Any]) -> Sequence[str]:
        if set(map(type, cells)) <= {str}:
            return cells if is_unicode("".join(cells)) else [text_of(cell) for cell in cells]
        return [self._name(cell, row) for row, cell in enumerate(cells, self._rows)]

    def _name(self, cell: Any, row: int) -> str:
        if cell is None:
            return ""
        if isinstance(cell, str) or (isinstance(cell, int) and not isinstance(cell, bool)):
            return text_of(cell)
        raise InvalidInput(f"is {shown(dumps(cell))}, but must be text: put it in quotes", field=self._field, row=row)


class WordColumn(NameColumn):
    """Collects a column of words from a short list, as an array of text."""

    def words(self) -> NDArray[np.str_]:
        """Hand over the column; a word longer than any that is legal is cut, so that it costs no memory."""
        words = self.finish()
        names = [str(name)[:_LONGEST_WORD] for name in words.names]
        return np.array(names or [""], dtype=np.str_)[words.codes]


def _numbering() -> defaultdict[str, int]:
    """A dictionary that numbers its keys as they are first asked for."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return numbers


LATEST = 1e11  # the year 5138; what is later counts milliseconds
_NO_TIME = "is missing: write a time in every row"
_FLAGS = {"0": False, "1": True, "false": False, "true": True, "0.0": False, "1.0": True}


class Collector(Protocol):
    """Takes the cells of a column batch by batch."""

    wants: ClassVar[Want]

    def add(self, cells: Cells) -> None:
        """Take the next cells."""
        ...


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


class AddedColumns:
    """Extra columns of one length, taken from the front as the rows of the file go by."""

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        self._columns = dict(columns)
        self._taken = 0
        self._rows: int | None = None
        for name, values in self._columns.items():
            if self._rows is not None and len(values) != self._rows:
                raise InvalidInput(f"has {len(values)} values, but {self._rows} are to be added", field=name)
            self._rows = len(values)

    @property
    def names(self) -> frozenset[str]:
        """Names of the columns."""
        return frozenset(self._columns)

    def take(self, rows: int) -> dict[str, NDArray[Any]]:
        """Hand out the values of the next rows."""
        start, self._taken = self._taken, self._taken + rows
        if self._rows is not None and self._taken > self._rows:
            raise self._mismatch("more")
        return {name: values[start : self._taken] for name, values in self._columns.items()}

    def extend(self, batch: Batch) -> Batch:
        """Put the next values beside a batch, in place of columns with the same name."""
        return {**batch, **self.take(rows_of(batch))}

    def finish(self) -> None:
        """Refuse to end while values are left."""
        if self._rows is not None and self._taken < self._rows:
            raise self._mismatch("fewer")

    def _mismatch(self, word: str) -> InvalidInput:
        return InvalidInput(f"has {word} rows than the {self._rows} that were read from it: read it again")
