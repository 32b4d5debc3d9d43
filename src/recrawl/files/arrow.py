"""Arrow to plain columns, and CSV read by Arrow. This module and `parquet_file.py` alone load pyarrow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv as arrow_csv
import pyarrow.types as kinds

from recrawl.errors import InvalidInput
from recrawl.files.cells import Batch, Cells, Names, Want
from recrawl.files.formats import FileKind
from recrawl.pages import Floats

Column: TypeAlias = "pa.Array[Any]"
"""One column of one batch."""

TEXT = pa.large_string()

_BLOCK_BYTES = 8 << 20

# The stubs lack overloads that mix columns and single values.
compute: Any = pyarrow.compute


class Doubt(Exception):
    """Arrow may read a file in another way than the csv module does."""


def csv_batches(path: Path, kind: FileKind, wanted: Mapping[str, Want]) -> Iterator[tuple[Batch, int]]:
    """Stream columns of a CSV file, and how many of its bytes were read.

    Raises:
        Doubt: where a block is not plain numbers and text; the batches before it are sound.
    """
    try:
        below = open_file(path)
        stream: Any = pa.CompressedInputStream(below, "gzip") if kind.gzip else below
        reader = arrow_csv.open_csv(
            stream,
            arrow_csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
            arrow_csv.ParseOptions(delimiter=kind.delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(wanted, pa.string()), include_columns=list(wanted), strings_can_be_null=False
            ),
        )
        for batch in reader:
            yield {name: _csv_cells(batch.column(name), want) for name, want in wanted.items()}, below.tell()
    except (pa.ArrowException, OSError):
        raise Doubt from None


def _csv_cells(column: Column, want: Want) -> Cells:
    if want != "numbers":
        return plain_cells(column, want, "")
    numbers = compute.if_else(compute.equal(column, ""), pa.scalar(None, pa.string()), column).cast(pa.float64())
    cells = _floats(numbers)
    if not np.isfinite(cells).all():  # Arrow takes more words for these than we do
        raise Doubt
    return cells


def plain_cells(column: Column, want: Want, field: str) -> Cells:
    """A column of any type that can be read as what is wanted.

    Args:
        column: the column, dictionary-encoded or not.
        want: what it shall be.
        field: its name, for the error.
    """
    if want == "anything":
        return range(len(column))
    if want == "text":
        return _names(column, field)
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    kind = column.type
    if _is_text(kind):
        try:
            return to_text(column).to_pylist()
        except pa.ArrowInvalid:
            problem = f"holds bytes that are not UTF-8 text, but must hold {_NEEDED[want]}"
            raise InvalidInput(problem, field=field) from None
    if kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind) or kinds.is_null(kind):
        return _floats(column)
    if want == "flags" and kinds.is_boolean(kind):
        return _floats(column.cast(pa.int8()))
    if want == "times" and (kinds.is_timestamp(kind) or kinds.is_date(kind)):
        zone = kind.tz if kinds.is_timestamp(kind) else None
        seconds: Cells = _floats(column.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())) / 1e6
        return seconds
    raise InvalidInput(f"holds values of type {kind}, but must hold {_NEEDED[want]}", field=field)


_NEEDED = {"numbers": "numbers", "times": "times", "flags": "0 or 1"}


def _floats(column: Column) -> Floats:
    # Unsafe only in that integers above 2^53 are rounded, which is what a float64 is.
    numbers = column.cast(pa.float64(), safe=False)
    if not numbers.null_count:
        plain: Floats = numbers.to_numpy(zero_copy_only=False)
        return plain
    filled: Floats = compute.fill_null(numbers, 0.0).to_numpy(zero_copy_only=False)
    return np.ma.masked_array(filled, mask=numbers.is_null().to_numpy(zero_copy_only=False))


def _names(column: Column, field: str) -> Names:
    if not isinstance(column, pa.DictionaryArray):
        column = _text(column, field).dictionary_encode()
    names = _text(column.dictionary, field).to_pylist()
    codes = column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    if None in names:
        absent = np.array([name is None for name in names])
        codes = np.where((codes >= 0) & absent[codes], -1, codes)
    return Names(codes, ["" if name is None else name for name in names])


def _text(column: Column, field: str) -> Column:
    kind = column.type
    if not (_is_text(kind) or kinds.is_integer(kind) or kinds.is_null(kind)):
        raise InvalidInput(f"holds values of type {kind}, but must hold text", field=field)
    try:
        return to_text(column)
    except pa.ArrowInvalid:
        raise InvalidInput("holds bytes that are not UTF-8 text", field=field) from None


def written_cells(column: Column, field: str) -> Cells:
    """A column as values that a format of text has a form for."""
    try:
        return _written(column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column)
    except (pa.ArrowException, ValueError, OverflowError):  # bytes that are no text, times out of range
        problem = f"holds values of type {column.type} that are no text: write a Parquet file instead"
        raise InvalidInput(problem, field=field) from None


def _written(column: Column) -> Cells:
    kind = column.type
    if kinds.is_floating(kind) and not kinds.is_float64(kind):
        column = column.cast(TEXT).cast(pa.float64())  # with no more digits than it has
    elif not (
        kinds.is_floating(kind)
        or kinds.is_integer(kind)
        or kinds.is_boolean(kind)
        or kinds.is_decimal(kind)
        or kinds.is_nested(kind)
    ):
        column = to_text(column)
    return column.to_pylist()


def open_file(path: Path) -> pa.NativeFile:
    """Open a file for Arrow by its bytes, as a name need not be UTF-8."""
    return pa.OSFile(cast(str, os.fsencode(path)), "rb")


def to_text(column: Column) -> Column:
    """Cells as text; raises ArrowInvalid for bytes that are not UTF-8, which Parquet does not keep out of text."""
    text = column.cast(TEXT)
    text.validate(full=True)
    return text


def _is_text(kind: pa.DataType) -> bool:
    """Whether a column holds text, or bytes that may be text (older Parquet writers mark text as bytes)."""
    return (
        kinds.is_string(kind)
        or kinds.is_large_string(kind)
        or kinds.is_string_view(kind)
        or kinds.is_binary(kind)
        or kinds.is_large_binary(kind)
    )
