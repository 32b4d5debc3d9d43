"""CSV and TSV files as a stream of batches of text.

Arrow parses in blocks of some megabytes, so a file of any size needs little memory. All cells are read as
text: numbers are parsed afterwards, where the row of a bad one can be named.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from recrawl.errors import InvalidFile
from recrawl.tables.formats import NUMBER_COLUMNS, FileKind
from recrawl.tables.numbers import to_numbers
from recrawl.tables.source import Progress, check_names, check_text, damaged, is_unicode, open_stream, pick

_BLOCK_BYTES = 8 << 20
_HEADER_BYTES = 1 << 20
_RAGGED = re.compile(r"CSV parse error: Row #(?P<row>\d+): Expected (?P<expected>\d+) columns, got (?P<actual>\d+)")
_BAD_CELL = re.compile(r"In CSV column #(?P<column>\d+): Row #(?P<row>\d+)")


class CsvFile:
    """A CSV or TSV file with a header line."""

    def __init__(self, path: Path, kind: FileKind) -> None:
        self._path = path
        self._kind = kind
        self.columns, self._has_rows = self._read_header()

    def batches(
        self, names: Collection[str] | None = None, progress: Progress | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Stream the named columns, or all, as text."""
        wanted = [name for name in self.columns if names is None or name in names]
        if not self._has_rows:
            yield pa.record_batch({name: pa.array([], pa.string()) for name in wanted})
            return
        total = self._path.stat().st_size
        rows = 0
        try:
            stream, below = open_stream(self._path, self._kind)
            reader = arrow_csv.open_csv(
                stream,
                # Row numbers in errors need one thread.
                arrow_csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
                arrow_csv.ParseOptions(delimiter=self._kind.delimiter, newlines_in_values=True),
                arrow_csv.ConvertOptions(column_types=dict.fromkeys(wanted, pa.string()), include_columns=wanted),
            )
            for batch in reader:
                yield batch
                rows += batch.num_rows
                if progress is not None:
                    progress(below.tell(), total)
        except pa.ArrowException as error:
            raise self._explain(str(error), rows) from None
        except OSError as error:
            raise damaged(self._path, error) from None

    def typed_batches(self, progress: Progress | None = None) -> Iterator[pa.RecordBatch]:
        """Stream all columns, those that recrawl knows as numbers, the others as text."""
        rows = 0
        for batch in self.batches(progress=progress):
            columns = {
                name: to_numbers(batch.column(name), name, rows) if name in NUMBER_COLUMNS else batch.column(name)
                for name in self.columns
            }
            yield pa.record_batch(columns)
            rows += batch.num_rows

    def cells(self, name: str, rows: Sequence[int]) -> dict[int, Any]:
        """The text of one column in a few rows; reads no further than the last of them."""
        return pick(self.batches([name]), rows)

    def _read_header(self) -> tuple[tuple[str, ...], bool]:
        """Read the column names, and whether anything follows them."""
        try:
            start = open_stream(self._path, self._kind)[0].read(_HEADER_BYTES)
        except OSError as error:
            raise damaged(self._path, error) from None
        check_text(self._path, start)
        text = io.StringIO(start.decode("utf-8-sig", errors="surrogateescape"), newline="")
        lines = csv.reader(text, delimiter=self._kind.delimiter)
        try:
            names = next((tuple(line) for line in lines if line), ())
        except csv.Error:
            raise InvalidFile(str(self._path), "begins with no line of column names") from None
        self._check_header(names)
        return names, len(start) == _HEADER_BYTES or _any_left(lines)

    def _check_header(self, names: tuple[str, ...]) -> None:
        path = str(self._path)
        if not names:
            raise InvalidFile(path, "is empty: begin it with a line of column names")
        if not all(is_unicode(name) and "\0" not in name for name in names):
            raise InvalidFile(path, "begins with bytes that are not UTF-8 text: save it as CSV in UTF-8")
        check_names(self._path, names)
        if len(names) == 1 and self._kind.delimiter == ",":
            for sign, word in ((";", "semicolons"), ("\t", "tabs")):
                if sign in names[0]:
                    raise InvalidFile(path, f"has {word} between its columns: save it with commas")

    def _explain(self, error: str, rows: int) -> InvalidFile:
        """Turn Arrow's error into a sentence; Arrow counts rows from 1 and the header as one of them."""
        path = str(self._path)
        if match := _RAGGED.match(error):
            problem = (
                f"has {_count(int(match['actual']))} where the header has {match['expected']}: "
                f"mend it, and put quotes around text that holds {self._delimiter_word()}"
            )
            return InvalidFile(path, problem, row=int(match["row"]) - 2)
        if match := _BAD_CELL.match(error):
            field = self.columns[int(match["column"])]
            problem = "is not UTF-8 text: save the file as UTF-8"
            return InvalidFile(path, problem, field=field, row=int(match["row"]) - 2)
        if error.startswith("straddling"):
            limit = _BLOCK_BYTES >> 20
            return InvalidFile(path, f"is longer than {limit} MB: close an open quote, or shorten it", row=rows)
        return damaged(self._path, error)

    def _delimiter_word(self) -> str:
        return "a tab" if self._kind.delimiter == "\t" else "a comma"


def _count(fields: int) -> str:
    return "1 field" if fields == 1 else f"{fields} fields"


def _any_left(lines: Iterator[list[str]]) -> bool:
    try:
        return any(lines)
    except csv.Error:  # a field beyond the csv module's limit, which Arrow does not share
        return True
