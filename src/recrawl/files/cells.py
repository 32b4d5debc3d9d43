"""Columns in plain form, as every format hands them over and takes them, and the text of single values.

A batch is a dictionary of columns of one length. A column is a list of values (text in CSV, whatever JSON has in JSONL;
None is missing), a NumPy array (masked where a value is missing), or names as codes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Want = Literal["numbers", "text", "times", "flags", "anything"]
"""What a column is read as; anything if only its rows count."""


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
