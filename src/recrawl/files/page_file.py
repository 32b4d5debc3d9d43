"""A file of pages: read the columns that a plan needs, write the file again with columns added.

    open_pages → PageFile.read → recrawl.pages.read_pages → a plan → PageFile.copy_with

Nothing here holds more of a file than some megabytes and the columns asked for. Every error is an
`InvalidFile` that names the file and, where there is one, the row and the field.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from recrawl.errors import InvalidFile, InvalidInput
from recrawl.extras import need
from recrawl.files.adding import AddedColumns
from recrawl.files.cells import Want, rows_of
from recrawl.files.csv_file import CsvFile, CsvWriter
from recrawl.files.formats import LABEL_COLUMNS, FileKind, Format, kind_of
from recrawl.files.hosts import NameColumn, WordColumn
from recrawl.files.jsonl_file import JsonlFile, JsonlWriter
from recrawl.files.numbers import NumberColumn
from recrawl.files.source import Progress, Source, Writer, check_file, printable
from recrawl.files.writing import check_output, replacing
from recrawl.pages import Hosts

_NO_COLUMN = re.compile(r"there is no column '(?P<name>[^']*)'")
_LONGEST_LABEL = 200
_LISTED_COLUMNS = 12

Column = NDArray[Any] | Hosts


def open_pages(path: Path | str) -> PageFile:
    """Open a CSV, TSV, JSONL or Parquet file of pages, by its ending; reads only its beginning."""
    path = Path(path)
    kind = kind_of(path)
    check_file(path)
    return PageFile(path, kind, open_source(path, kind))


class PageFile:
    """A file of pages; make it with `open_pages`.

    Attributes:
        path: where the file is.
        format: how it is written.
        columns: names of its columns; of a JSONL file, the keys of its first thousand lines.
        rows: how many pages it holds, once it was read.
    """

    def __init__(self, path: Path, kind: FileKind, source: Source) -> None:
        self.path = path
        self.format: Format = kind.format
        self.columns = source.columns
        self.rows: int | None = None
        self._source = source

    def read(self, names: Collection[str], progress: Progress | None = None) -> dict[str, Column]:
        """Read the named columns that exist: hosts as `Hosts`, lives as text, all others as float64.

        O(rows); memory for the columns asked for and one of them again while it is put together.
        """
        wanted = [name for name in self.columns if name in names]
        collectors = {name: _collector(name) for name in wanted}
        asked: dict[str, Want] = {name: collector.wants for name, collector in collectors.items()}
        rows = 0
        try:
            for batch in self._source.batches(asked or {self.columns[0]: "anything"}, progress):
                for name, collector in collectors.items():
                    collector.add(batch[name])
                rows += rows_of(batch)
            self.rows = rows
            return {name: _finish(collectors.pop(name)) for name in wanted}
        except InvalidInput as error:
            raise self.explain(error) from None
        except RecursionError:
            raise InvalidFile(str(self.path), "holds a value that is nested too deeply: flatten it") from None

    def labels(self, rows: Sequence[int]) -> list[str]:
        """What to call these pages in a table: url, page, id or path, else the row, counted from 1."""
        name = next((name for name in LABEL_COLUMNS if name in self.columns), None)
        values = self._source.cells(name, [int(row) for row in rows]) if name is not None and len(rows) else {}
        return [_label(values.get(int(row)), int(row)) for row in rows]

    def check_output(self, out: Path | str) -> None:
        """Refuse an output that `copy_with` could not write, before any work is done for it."""
        check_output(Path(out), self.path)

    def copy_with(self, out: Path | str, extra: Mapping[str, NDArray[Any]], progress: Progress | None = None) -> None:
        """Write all columns, and the extra ones after them or in place of those with the same name.

        The format of `out` follows from its ending. Columns that recrawl does not know stay as they were.
        The file appears under its name only when it is complete. O(rows), in memory for a row group.
        """
        out = Path(out)
        kind = check_output(out, self.path)
        try:
            added = AddedColumns(extra)
            with replacing(out, kind) as stream:
                self._copy(stream, kind, added, progress)
                added.finish()
        except InvalidInput as error:
            raise self.explain(error) from None
        except RecursionError:
            raise InvalidFile(str(self.path), "holds a value that is nested too deeply: flatten it") from None

    def _copy(self, stream: IO[bytes], kind: FileKind, added: AddedColumns, progress: Progress | None) -> None:
        """Within one format cells are copied as they are; another format may need types."""
        source = self._source
        if isinstance(source, JsonlFile) and kind.format == "jsonl":
            stream.writelines(source.lines_with(added, progress))
            return
        with _writing(kind, stream) as writer:
            if kind.format == self.format == "parquet":
                from recrawl.files.parquet_file import ParquetFile, ParquetWriter

                assert isinstance(source, ParquetFile)
                assert isinstance(writer, ParquetWriter)
                for table in source.tables_with(added, progress):
                    writer.write_table(table)
                return
            for batch in source.copies(kind.format, progress):
                writer.write(added.extend(batch))

    def explain(self, error: InvalidInput) -> InvalidFile:
        """Say in terms of this file what is wrong with columns that were read from it."""
        if isinstance(error, InvalidFile):
            return error
        problem = error.problem
        if match := _NO_COLUMN.match(problem):
            # Whoever raised it saw only the columns that were read.
            problem = f"{problem.partition(' (')[0]} ({self._columns_near(match['name'])})"
        return InvalidFile(str(self.path), problem, field=error.field, row=error.row)

    def _columns_near(self, name: str) -> str:
        listed = ", ".join(printable(column, 40) for column in self.columns[:_LISTED_COLUMNS])
        more = len(self.columns) - _LISTED_COLUMNS
        text = f"columns: {listed}" + (f" and {more} more" if more > 0 else "")
        known = {column.strip().lower(): column for column in self.columns}
        near = get_close_matches(name, known, n=1)
        return f"{text}; did you mean {known[near[0]]!r}?" if near else text


def open_source(path: Path, kind: FileKind) -> Source:
    """Open a file in its format."""
    if kind.format == "parquet":
        need("pyarrow", "a Parquet file")
        from recrawl.files.parquet_file import ParquetFile

        return ParquetFile(path)
    return CsvFile(path, kind) if kind.format == "csv" else JsonlFile(path, kind)


@contextmanager
def _writing(kind: FileKind, stream: IO[bytes]) -> Iterator[Writer]:
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
    if kind.format == "parquet":
        from recrawl.files.parquet_file import ParquetWriter

        return ParquetWriter(stream)
    return CsvWriter(stream, kind.delimiter) if kind.format == "csv" else JsonlWriter(stream)


def _collector(name: str) -> NumberColumn | NameColumn:
    if name == "life":
        return WordColumn(name)
    return NameColumn(name) if name == "host" else NumberColumn(name)


def _finish(collector: NumberColumn | NameColumn) -> Column:
    return collector.words() if isinstance(collector, WordColumn) else collector.finish()


def _label(value: Any, row: int) -> str:
    text = "" if value is None else printable(str(value).strip(), _LONGEST_LABEL)
    return text or f"row {row + 1}"
