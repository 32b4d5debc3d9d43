"""Cells to numbers: any Arrow column of numbers, or of text that spells numbers, to float64.

The first cell that is no number is named by field and row. Ranges are not checked here: `recrawl.pages` does
that, for files and arrays alike.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from recrawl.errors import InvalidInput
from recrawl.pages import Floats
from recrawl.tables.arrow import TEXT, Cells, compute, first_true, to_text
from recrawl.tables.formats import EMPTY_MEANS

_NUMBER = r"(?i)^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$|^[+-]?inf(inity)?$|^[+-]?nan$"
_MISSING = "is missing: write a number in every row"
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?")
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")
_PERCENT = re.compile(r"([+-]?[0-9]+(?:\.[0-9]*)?)\s*%")


class NumberColumn:
    """Collects a column of numbers batch by batch."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._chunks: list[Floats] = []
        self._rows = 0

    def add(self, cells: Cells) -> None:
        """Take the next cells; O(cells)."""
        numbers = to_numbers(cells, self._field, self._rows)
        if numbers.null_count:
            numbers = self._fill(numbers)
        self._chunks.append(numbers.to_numpy(zero_copy_only=False))
        self._rows += len(cells)

    def finish(self) -> Floats:
        """Hand over the whole column and forget its pieces."""
        chunks, self._chunks = self._chunks, []
        return np.concatenate(chunks) if chunks else np.empty(0)

    def _fill(self, numbers: Cells) -> Cells:
        if self._field not in EMPTY_MEANS:
            row = self._rows + first_true(numbers.is_null())
            raise InvalidInput(_MISSING, field=self._field, row=row)
        filled: Cells = compute.fill_null(numbers, EMPTY_MEANS[self._field])
        return filled


def to_numbers(cells: Cells, field: str, first_row: int) -> Cells:
    """Turn cells into float64, keeping what is missing or blank as null.

    Args:
        cells: integers, decimals, floats, or text that spells them, dictionary-encoded or not.
        field: the column's name, for the error.
        first_row: how many rows came before these cells, for the error.
    """
    if isinstance(cells, pa.DictionaryArray):
        cells = cells.dictionary_decode()
    kind = cells.type
    if is_text(kind):
        return _parse(cells, field, first_row)
    if kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind) or kinds.is_null(kind):
        # Unsafe only in that integers above 2^53 are rounded, which is what a float64 is.
        return cells.cast(pa.float64(), safe=False)
    raise InvalidInput(f"holds values of type {kind}, but must hold numbers", field=field)


def is_text(kind: pa.DataType) -> bool:
    """Whether a column holds text, or bytes that may be text (older Parquet writers mark text as bytes)."""
    return (
        kinds.is_string(kind)
        or kinds.is_large_string(kind)
        or kinds.is_string_view(kind)
        or kinds.is_binary(kind)
        or kinds.is_large_binary(kind)
    )


def shown(text: str) -> str:
    """Quote a cell for a sentence, cut short if it is long."""
    return repr(text if len(text) <= 60 else text[:59] + "…")


def _parse(cells: Cells, field: str, first_row: int) -> Cells:
    try:
        return cells.cast(pa.float64())
    except pa.ArrowInvalid:
        pass  # spaces, blank cells, or no number: the slower way tells which
    try:
        text = compute.utf8_trim_whitespace(to_text(cells))
    except pa.ArrowInvalid:
        raise InvalidInput("holds bytes that are not UTF-8 text, but must hold numbers", field=field) from None
    text = compute.if_else(compute.equal(text, ""), pa.scalar(None, TEXT), text)
    wrong = compute.invert(compute.fill_null(compute.match_substring_regex(text, _NUMBER), True))
    if compute.any(wrong).as_py():
        if field not in EMPTY_MEANS:  # the first bad cell may be a blank one
            wrong = compute.or_(wrong, text.is_null())
        index = first_true(wrong)
        raise InvalidInput(_problem(text[index].as_py()), field=field, row=first_row + index)
    numbers: Cells = text.cast(pa.float64())
    return numbers


def _problem(text: str | None) -> str:
    if text is None:
        return _MISSING
    return f"is {shown(text)}, but must be a number: {_repair(text)}"


def _repair(text: str) -> str:
    if _THOUSANDS.fullmatch(text):
        return "leave out the comma between thousands, or write a decimal comma as a point"
    if _DECIMAL_COMMA.fullmatch(text):
        return f"write {text.replace(',', '.')} with a point"
    if match := _PERCENT.fullmatch(text):
        return f"write {float(match[1]) / 100:.12g} instead of a percentage"
    return "write it with digits, such as 12 or 0.25"
