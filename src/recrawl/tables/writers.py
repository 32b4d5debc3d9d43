"""Batches of pages to bytes: one writer per format, each streaming."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as kinds

from recrawl.errors import InvalidInput
from recrawl.tables.arrow import TEXT, Cells, compute, content, join, to_text
from recrawl.tables.formats import FileKind
from recrawl.tables.json_text import dumps, json_column, nested_texts

_GROUP_ROWS = 1 << 20
_GROUP_BYTES = 128 << 20


class Writer(Protocol):
    """Takes batches of equal columns and writes them to a stream."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the next rows."""
        ...

    def close(self) -> None:
        """Write what is left; the stream stays open."""
        ...


@contextmanager
def writing(kind: FileKind, stream: IO[bytes]) -> Iterator[Writer]:
    """Open the writer for a format; what it wrote is complete if the block ends well."""
    writer = _writer(kind, stream)
    try:
        yield writer
    except BaseException:
        with suppress(Exception):  # the first error is the one to tell
            writer.close()
        raise
    writer.close()


def _writer(kind: FileKind, stream: IO[bytes]) -> Writer:
    if kind.format == "csv":
        return CsvWriter(stream, kind.delimiter)
    return ParquetWriter(stream) if kind.format == "parquet" else JsonlWriter(stream)


class CsvWriter:
    """Writes CSV with quotes only where they are needed, and numbers with every digit that counts."""

    def __init__(self, stream: IO[bytes], delimiter: str = ",") -> None:
        self._stream = stream
        self._delimiter = delimiter
        self._headed = False

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the next rows, after the header if they are the first."""
        if not self._headed:
            self._write_rows([pa.array([name], TEXT) for name in batch.schema.names])
            self._headed = True
        if batch.num_rows:
            self._write_rows(_render(_texts, batch))

    def close(self) -> None:
        """Nothing is left."""

    def _write_rows(self, columns: Sequence[Cells]) -> None:
        # A row of one empty cell would be a blank line, which readers skip.
        needs = f'["{self._delimiter}\r\n]' + ("|^$" if len(columns) == 1 else "")
        cells = [_quoted(column, needs) for column in columns]
        rows = join(*cells, between=self._delimiter)
        # The lines lie one after the other in the column's buffer: that is the file's text.
        self._stream.write(content(join(rows, "\n")))


class JsonlWriter:
    """Writes one JSON object per line."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the next rows."""
        if not batch.num_rows:
            return
        texts = _render(json_column, batch)
        members = [join(f"{dumps(name)}: ", text) for name, text in zip(batch.schema.names, texts, strict=True)]
        self._stream.write(content(join("{", join(*members, between=", "), "}\n")))

    def close(self) -> None:
        """Nothing is left."""


class ParquetWriter:
    """Writes Parquet in row groups of about a million rows."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
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


def _render(render: Callable[[Cells], Cells], batch: pa.RecordBatch) -> list[Cells]:
    """Write every column of a batch as text."""
    texts = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            texts.append(render(column))
        except (pa.ArrowException, ValueError, OverflowError):  # bytes that are no text, times out of range
            problem = f"holds values of type {column.type} that are no text: write a Parquet file instead"
            raise InvalidInput(problem, field=name) from None
    return texts


def _texts(column: Cells) -> Cells:
    """Write cells as text; what is missing becomes empty."""
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    nested = kinds.is_nested(column.type)
    texts: Cells = compute.fill_null(nested_texts(column) if nested else to_text(column), "")
    return texts


def _quoted(cells: Cells, needs: str) -> Cells:
    """Put quotes around the cells that need them."""
    marked = compute.match_substring_regex(cells, needs)
    if not compute.any(marked).as_py():
        return cells
    doubled = compute.replace_substring(cells, '"', '""')
    chosen: Cells = compute.if_else(marked, join('"', doubled, '"'), cells)
    return chosen
