"""Parquet files, in and out; a copy from Parquet to Parquet keeps the types that the file has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as kinds

from recrawl.errors import InvalidFile
from recrawl.files.adding import AddedColumns
from recrawl.files.arrow import open_file, plain_cells, written_cells
from recrawl.files.cells import Batch, Want
from recrawl.files.formats import Format
from recrawl.files.source import Progress, check_names, damaged, reason

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
