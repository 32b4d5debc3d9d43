"""CSV and TSV files: a stream of batches of text in, rows with quotes only where they are needed out.

Python's csv module reads in batches of some megabytes, so a file of any size needs little memory. All cells are
read as text: numbers are parsed afterwards, where the row of a bad one can be named. A large file is read by Arrow
as far as that is beyond doubt, if pyarrow is installed: faster, with the same answers.
"""

from __future__ import annotations

import csv
import io
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any

from recrawl.errors import InvalidFile
from recrawl.extras import is_installed
from recrawl.files.columns import NUMBER_COLUMNS, Batch, Want, csv_texts, is_unicode, rows_of, to_numbers
from recrawl.files.formats import FileKind, Format, Progress, check_names, check_text, opened

LARGE_BYTES: ContextVar[int] = ContextVar("LARGE_BYTES", default=32 << 20)
"""Files from this size on are read by Arrow where it is installed; below, loading it takes longer than it saves."""

_BATCH_ROWS = 16_384
_BATCH_LETTERS = 8 << 20
_LONGEST_ROW = 8 << 20
_HEADER_BYTES = 1 << 20
_LONGEST_NAME = 1 << 17
_FIELD_LIMIT = threading.Lock()


class CsvFile:
    """A CSV or TSV file with a header line."""

    def __init__(self, path: Path, kind: FileKind) -> None:
        self._path = path
        self._kind = kind
        self.columns = self._read_header()

    def batches(self, wanted: Mapping[str, Want], progress: Progress | None = None) -> Iterator[Batch]:
        """Stream the named columns as text; from a large file, numbers as numbers."""
        there = {name: wanted[name] for name in self.columns if name in wanted}
        read = 0
        if self._path.stat().st_size >= LARGE_BYTES.get() and is_installed("pyarrow"):
            from recrawl.files.parquet_file import Doubt, csv_batches

            try:
                for batch, done in csv_batches(self._path, self._kind, there):
                    yield batch
                    read += rows_of(batch)
                    self._report(progress, done)
            except Doubt:
                pass  # the csv module goes on, and names the row at fault if there is one
            else:
                return
        yield from self._read(list(there), progress, skip=read)

    def copies(self, goal: Format, progress: Progress | None = None) -> Iterator[Batch]:
        """Stream all columns as they are written; for another format, those that recrawl knows as numbers."""
        rows = 0
        for batch in self._read(self.columns, progress):
            if goal != "csv":
                yield {
                    name: to_numbers(cells, name, rows) if name in NUMBER_COLUMNS else cells
                    for name, cells in batch.items()
                }
            else:
                yield batch
            rows += rows_of(batch)

    def cells(self, name: str, rows: Sequence[int]) -> dict[int, Any]:
        """The text of one column in a few rows; reads no further than the last of them."""
        wanted = sorted(set(rows))
        found: dict[int, Any] = {}
        start = 0
        for batch in self._read([name], None):
            texts = batch[name]
            assert isinstance(texts, list)
            found.update((row, texts[row - start]) for row in wanted if start <= row < start + len(texts))
            start += len(texts)
            if len(found) == len(wanted):
                break
        return found

    def _read_header(self) -> tuple[str, ...]:
        with opened(self._path, self._kind) as (stream, _):
            start = stream.read(_HEADER_BYTES)
        check_text(self._path, start)
        text = io.StringIO(start.decode("utf-8-sig", errors="surrogateescape"), newline="")
        with _long_fields():
            names = next((tuple(line) for line in csv.reader(text, delimiter=self._kind.delimiter) if line), ())
        self._check_header(names)
        return names

    def _check_header(self, names: tuple[str, ...]) -> None:
        path = str(self._path)
        if not names:
            raise InvalidFile(path, "is empty: begin it with a line of column names")
        if any(len(name) > _LONGEST_NAME for name in names):
            raise InvalidFile(path, "begins with no line of column names")
        if not all(is_unicode(name) and "\0" not in name for name in names):
            raise InvalidFile(path, "begins with bytes that are not UTF-8 text: save it as CSV in UTF-8")
        check_names(self._path, names)
        if len(names) == 1 and self._kind.delimiter == ",":
            for sign, word in ((";", "semicolons"), ("\t", "tabs")):
                if sign in names[0]:
                    raise InvalidFile(path, f"has {word} between its columns: save it with commas")

    def _read(self, names: Sequence[str], progress: Progress | None, skip: int = 0) -> Iterator[Batch]:
        """Stream columns by the csv module, after some rows; at least one batch."""
        places = [self.columns.index(name) for name in names]
        with opened(self._path, self._kind) as (stream, below):
            rows = _Rows(self._path, stream, self._kind.delimiter, len(self.columns))
            done = 0
            for chunk in rows.chunks():
                kept = chunk[max(skip - done, 0) :]
                if kept or not done:
                    columns = list(zip(*kept, strict=True)) or [()] * len(self.columns)
                    batch: Batch = {
                        name: self._checked(name, list(columns[place]), done + len(chunk) - len(kept))
                        for name, place in zip(names, places, strict=True)
                    }
                    yield batch
                done += len(chunk)
                self._report(progress, below.tell())
        self._report(progress, self._path.stat().st_size)

    def _checked(self, name: str, texts: list[str], first_row: int) -> list[str]:
        if not is_unicode("".join(texts)):
            row = first_row + next(index for index, text in enumerate(texts) if not is_unicode(text))
            raise InvalidFile(str(self._path), "is not UTF-8 text: save the file as UTF-8", field=name, row=row)
        return texts

    def _report(self, progress: Progress | None, done: int) -> None:
        if progress is not None:
            progress(done, self._path.stat().st_size)


class _Rows:
    """The rows below the header, in bounded memory, each with as many fields as the header."""

    def __init__(self, path: Path, stream: IO[bytes], delimiter: str, width: int) -> None:
        self._path = path
        self._delimiter = delimiter
        self._width = width
        self._text = io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")
        self._row_letters = 0
        self._letters = 0
        self._rows = 0

    def chunks(self) -> Iterator[list[list[str]]]:
        """Stream rows in lists of some megabytes; at least one list, if an empty one."""
        reader = csv.reader(self._lines(), delimiter=self._delimiter)
        headed = False
        while chunk := self._chunk(reader):
            yield chunk if headed else chunk[1:]
            headed = True
            self._rows += len(chunk)

    def _chunk(self, reader: Iterator[list[str]]) -> list[list[str]]:
        rows: list[list[str]] = []
        self._letters = 0
        try:
            with _long_fields():
                for row in reader:
                    self._row_letters = 0
                    if len(row) != self._width:
                        if not row:
                            continue
                        raise self._ragged(len(row), self._rows + len(rows) - 1)
                    rows.append(row)
                    if len(rows) == _BATCH_ROWS or self._letters >= _BATCH_LETTERS:
                        break
        except csv.Error:  # a field beyond the limit
            raise self._too_long(len(rows)) from None
        except _LongRow:
            raise self._too_long(len(rows)) from None
        return rows

    def _lines(self) -> Iterator[str]:
        """Lines for the csv module, which asks for more of them while a quote is open."""
        while line := self._text.readline(_LONGEST_ROW):
            self._row_letters += len(line)
            self._letters += len(line)
            if self._row_letters >= _LONGEST_ROW:
                raise _LongRow
            yield line

    def _too_long(self, above: int) -> InvalidFile:
        limit = _LONGEST_ROW >> 20
        row = max(self._rows + above - 1, 0)
        return InvalidFile(str(self._path), f"is longer than {limit} MB: close an open quote, or shorten it", row=row)

    def _ragged(self, fields: int, row: int) -> InvalidFile:
        count = "1 field" if fields == 1 else f"{fields} fields"
        sign = "a tab" if self._delimiter == "\t" else "a comma"
        problem = (
            f"has {count} where the header has {self._width}: mend it, and put quotes around text that holds {sign}"
        )
        return InvalidFile(str(self._path), problem, row=row)


class _LongRow(Exception):
    """A row that does not end."""


@contextmanager
def _long_fields() -> Iterator[None]:
    """Let the csv module take fields of megabytes for a while: its limit holds for the whole process."""
    with _FIELD_LIMIT:
        before = csv.field_size_limit(_LONGEST_ROW)
        try:
            yield
        finally:
            csv.field_size_limit(before)


class CsvWriter:
    """Writes CSV with quotes only where they are needed, and numbers with every digit that counts."""

    def __init__(self, stream: IO[bytes], delimiter: str = ",") -> None:
        self._stream = stream
        self._delimiter = delimiter
        self._needs_quotes = re.compile(f'["{delimiter}\r\n]')
        self._headed = False

    def write(self, batch: Batch) -> None:
        """Write the next rows, after the header if they are the first."""
        if not self._headed:
            self._write_rows([[name] for name in batch])
            self._headed = True
        if rows_of(batch):
            self._write_rows([csv_texts(cells) for cells in batch.values()])

    def close(self) -> None:
        """Nothing is left."""

    def _write_rows(self, columns: Sequence[list[str]]) -> None:
        quoted = [self._quoted(texts) for texts in columns]
        if len(quoted) == 1:
            # A row of one empty cell would be a blank line, which readers skip.
            lines = [text or '""' for text in quoted[0]]
        else:
            lines = list(map(self._delimiter.join, zip(*quoted, strict=True)))
        self._stream.write(("\n".join(lines) + "\n").encode())

    def _quoted(self, texts: list[str]) -> list[str]:
        search = self._needs_quotes.search
        if not search(" ".join(texts)):
            return texts
        return ['"' + text.replace('"', '""') + '"' if search(text) else text for text in texts]
