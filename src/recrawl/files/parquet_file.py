"""Parquet files, in and out, and a fast path for CSV. This module alone loads pyarrow.

A copy from Parquet to Parquet keeps the types that the file has.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pyarrow.types as kinds

from recrawl.errors import InvalidFile, InvalidInput
from recrawl.files.columns import AddedColumns, Batch, Cells, Names, Want
from recrawl.files.formats import FileKind, Format, Progress, check_names, damaged, reason
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


_BATCH_BYTES = 32 << 20
_MOST_BATCH_ROWS = 1 << 17
_SAMPLED_GROUPS = 16
_GROUP_ROWS = 1 << 20
_GROUP_BYTES = 128 << 20
# Read column chunks piece by piece and none ahead: neither a huge row group nor a long file fills the memory.
_STREAMED: dict[str, Any] = {"buffer_size": 1 << 20, "pre_buffer": False}


class ParquetFile:
    """A Parquet file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            file = self._open()
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise InvalidFile(str(path), f"is no complete Parquet file, so write it again: {reason(error)}") from None
        self.columns = tuple(file.schema_arrow.names)
        if not self.columns:
            raise InvalidFile(str(path), "has no columns")
        check_names(path, self.columns)

    def batches(self, wanted: Mapping[str, Want], progress: Progress | None = None) -> Iterator[Batch]:
        """Stream the named columns."""
        for batch in self._stream(wanted, progress):
            yield {name: plain_cells(batch.column(name), wanted[name], name) for name in batch.schema.names}

    def copies(self, goal: Format, progress: Progress | None = None) -> Iterator[Batch]:  # noqa: ARG002
        """Stream all columns as values that a format of text has a form for."""
        for batch in self._stream(None, progress):
            yield {name: written_cells(batch.column(name), name) for name in batch.schema.names}

    def tables_with(self, added: AddedColumns, progress: Progress | None = None) -> Iterator[pa.RecordBatch]:
        """Stream all columns as they are, with columns added at the end or in place of those of the same names."""
        for batch in self._stream(None, progress):
            columns, schema = list(batch.columns), batch.schema
            for name, values in added.take(batch.num_rows).items():
                column = pa.array(values)
                position = schema.get_field_index(name)
                if position >= 0:
                    columns[position] = column
                    schema = schema.set(position, pa.field(name, column.type))
                else:
                    columns.append(column)
                    schema = schema.append(pa.field(name, column.type))
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _stream(self, wanted: Mapping[str, Want] | None, progress: Progress | None) -> Iterator[pa.RecordBatch]:
        """Stream the named columns, or all; of named ones, text comes dictionary-encoded."""
        names = [name for name in self.columns if wanted is None or name in wanted]
        words = [] if wanted is None else [name for name in names if wanted[name] == "text"]
        try:
            file = self._open(words)
            total = file.metadata.num_rows
            if not total:
                schema = file.schema_arrow.empty_table().select(names).schema
                yield pa.RecordBatch.from_pylist([], schema=schema)
            done = 0
            for batch in file.iter_batches(_batch_rows(file.metadata), columns=None if wanted is None else names):
                yield batch
                done += batch.num_rows
                if progress is not None:
                    progress(done, total)
        except (pa.ArrowException, OSError) as error:
            raise damaged(self._path, error) from None

    def cells(self, name: str, rows: Sequence[int]) -> dict[int, Any]:
        """The values of one column in a few rows; reads only the row groups that hold them."""
        found: dict[int, Any] = {}
        try:
            file = self._open()
            start = 0
            for group in range(file.metadata.num_row_groups):
                stop = start + file.metadata.row_group(group).num_rows
                inside = [row - start for row in rows if start <= row < stop]
                if inside:
                    batches = file.iter_batches(_batch_rows(file.metadata), row_groups=[group], columns=[name])
                    found.update((start + row, value) for row, value in _pick(batches, inside).items())
                start = stop
        except (pa.ArrowException, OSError) as error:
            raise damaged(self._path, error) from None
        return found

    def _open(self, words: Sequence[str] = ()) -> pq.ParquetFile:
        file = pq.ParquetFile(open_file(self._path), **_STREAMED)
        texts = [name for name in words if kinds.is_string(file.schema_arrow.field(name).type)]
        if not texts:
            return file
        return pq.ParquetFile(open_file(self._path), **_STREAMED, read_dictionary=texts)


def _batch_rows(metadata: pq.FileMetaData) -> int:
    """How many rows make a batch of some megabytes, judged by the largest rows of a few row groups.

    The sizes of single columns are left alone: asked for those of a damaged file, Arrow ends the process.
    """
    groups = metadata.num_row_groups
    row_bytes = 1.0
    for group in range(0, groups, max(1, groups // _SAMPLED_GROUPS)):
        facts = metadata.row_group(group)
        row_bytes = max(row_bytes, facts.total_byte_size / max(facts.num_rows, 1))
    return max(1, min(_MOST_BATCH_ROWS, int(_BATCH_BYTES / row_bytes)))


def _pick(batches: Iterable[pa.RecordBatch], rows: Sequence[int]) -> dict[int, Any]:
    """Take the first column's values in these rows, reading no further than the last of them."""
    wanted = sorted(set(rows))
    found: dict[int, Any] = {}
    start = 0
    for batch in batches:
        stop = start + batch.num_rows
        for row in wanted[len(found) :]:
            if row >= stop:
                break
            found[row] = _value(batch.column(0)[row - start])
        if len(found) == len(wanted):
            break
        start = stop
    return found


def _value(scalar: Any) -> Any:
    try:
        value = scalar.as_py()
    except UnicodeDecodeError:
        value = scalar.as_buffer().to_pybytes()
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else value


class ParquetWriter:
    """Writes Parquet in row groups of about a million rows."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []

    def write(self, batch: Batch) -> None:
        """Take the next rows; a list is text."""
        make: Any = pa.array
        columns = {name: make(cells, pa.string() if isinstance(cells, list) else None) for name, cells in batch.items()}
        self.write_table(pa.record_batch(columns))

    def write_table(self, batch: pa.RecordBatch) -> None:
        """Take the next rows; they are written when there are enough for a row group."""
        self._waiting.append(batch)
        rows = sum(waiting.num_rows for waiting in self._waiting)
        if rows >= _GROUP_ROWS or sum(waiting.nbytes for waiting in self._waiting) >= _GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        """Write the last row group and the footer."""
        self._flush()
        if self._writer is not None:
            self._writer.close()

    def _flush(self) -> None:
        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting)
        self._waiting = []
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._stream, table.schema)
        self._writer.write_table(table, row_group_size=_GROUP_ROWS)
