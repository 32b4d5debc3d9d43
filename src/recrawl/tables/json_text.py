"""Columns as JSON text, a whole column at a time."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from recrawl.tables.arrow import TEXT, Cells, compute, join, to_text

_MUST_BE_ESCAPED = r'["\\\x00-\x1f]'


def json_column(column: Cells) -> Cells:
    """Write each value of a column as JSON; what is missing, NaN or infinite becomes null.

    >>> json_column(pa.array([0.1, float("inf"), None])).to_pylist()
    ['0.1', 'null', 'null']
    """
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    texts: Cells = compute.fill_null(_texts(column), "null")
    return texts


def _texts(column: Cells) -> Cells:
    kind = column.type
    if kinds.is_floating(kind):
        finite = compute.is_finite(column.cast(pa.float64()))
        texts: Cells = compute.if_else(finite, column.cast(TEXT), pa.scalar(None, TEXT))
        return texts
    if kinds.is_integer(kind) or kinds.is_boolean(kind) or kinds.is_decimal(kind) or kinds.is_null(kind):
        return column.cast(TEXT)
    if kinds.is_nested(kind):
        return nested_texts(column)
    cells = to_text(column)
    if compute.any(compute.match_substring_regex(cells, _MUST_BE_ESCAPED)).as_py():
        return nested_texts(cells)
    return join('"', cells, '"')


def nested_texts(column: Cells) -> Cells:
    """Write each value as JSON by way of Python, which knows lists and objects."""
    return pa.array([None if value is None else dumps(value) for value in column.to_pylist()], TEXT)


def dumps(value: Any) -> str:
    """Write one value as JSON, in letters as they are; what JSON has no form for becomes text."""
    return _ENCODER.encode(value)


def _plain(value: Any) -> str:
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, default=_plain)
