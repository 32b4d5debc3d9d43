"""Cells to numbers: a column of numbers, or of text that spells numbers, to float64.

The first cell that is no number is named by field and row. Ranges are not checked here: `recrawl.pages` does
that, for files and arrays alike.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.files.cells import Cells, Names, Want, shown, text_of
from recrawl.files.formats import EMPTY_MEANS
from recrawl.pages import Floats

_NUMBER = re.compile(r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?|nan)", re.IGNORECASE | re.ASCII)
_MISSING = "is missing: write a number in every row"
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?")
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")
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
