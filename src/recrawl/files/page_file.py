"""A file of pages: read columns, copy the file with columns added, and write the copy whole or not at all."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any, cast

from numpy.typing import NDArray

from recrawl._atomic import open_atomic
from recrawl.errors import InvalidFile, InvalidInput
from recrawl.extras import need
from recrawl.files.columns import (
    LABEL_COLUMNS,
    AddedColumns,
    Collector,
    NameColumn,
    NumberColumn,
    Want,
    WordColumn,
    rows_of,
)
from recrawl.files.csv_file import CsvFile, CsvWriter
from recrawl.files.formats import FileKind, Format, Progress, Source, Writer, check_file, kind_of, printable, reason
from recrawl.files.jsonl_file import JsonlFile, JsonlWriter
from recrawl.pages import Hosts

_NO_COLUMN = re.compile(r"there is no column '(?P<name>[^']*)'")
_LONGEST_LABEL = 200
_LONGEST_NAME = 4096
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


def check_output(out: Path, source: Path) -> FileKind:
    """Refuse an output that could not be written, before any work is done for it."""
    kind = kind_of(out)
    if kind.format == "parquet":
        need("pyarrow", "a Parquet file")
    if problem := _obstacle(out, source):
        raise InvalidFile(str(out), problem)
    return kind


@contextmanager
def replacing(out: Path, kind: FileKind) -> Iterator[IO[bytes]]:
    """Open a stream that becomes `out` when the block ends well; otherwise nothing is left of it."""
    try:
        with open_atomic(out) as file:
            if kind.gzip:
                with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6) as compressed:
                    yield cast(IO[bytes], compressed)
            else:
                yield file
    except OSError as error:
        raise InvalidFile(str(out), f"cannot be written: {reason(error)}") from None


def _obstacle(out: Path, source: Path) -> str | None:
    if "\0" in str(out):  # Python's own words for it differ between versions
        return "cannot be written: its name has a NUL character"
    try:
        folder = out.resolve().parent
        obstacles = {
            "is a folder: name a file in it": out.is_dir(),
            "is no ordinary file: choose another name": out.exists() and not out.is_file(),
            "is the input itself: choose another name for the output": out.exists() and out.samefile(source),
            f"cannot be written, because there is no folder {folder}: create it first": not folder.is_dir(),
            f"may not be written: give yourself permission to write in {folder}": not os.access(
                folder, os.W_OK | os.X_OK
            ),
        }
    except (OSError, RuntimeError) as error:  # RuntimeError: a ring of links
        return f"cannot be written: {reason(error)}"
    return next((problem for problem, found in obstacles.items() if found), None)


def read_columns(
    path: Path, collectors: Mapping[str, Collector], optional: Collection[str] = ()
) -> tuple[PageFile, set[str]]:
    """Stream the columns of a file into collectors; says which there are. O(rows), memory for a batch.

    The file is handed back to explain what is found wrong with the columns later.
    """
    kind = kind_of(path)
    check_file(path)
    source = open_source(path, kind)
    file = PageFile(path, kind, source)
    try:
        found = _check_there(source.columns, collectors, optional)
        for batch in source.batches({name: collectors[name].wants for name in found}):
            for name in found:
                collectors[name].add(batch[name])
    except InvalidInput as error:
        raise file.explain(error) from None
    except RecursionError:
        raise InvalidFile(str(path), "holds a value that is nested too deeply: flatten it") from None
    return file, found


def _check_there(columns: Collection[str], wanted: Collection[str], optional: Collection[str]) -> set[str]:
    for name in wanted:
        if name not in columns and name not in optional:
            raise InvalidInput(f"there is no column {name!r}")
    return {name for name in wanted if name in columns}


def shown_names(names: Iterable[object]) -> tuple[str, ...]:
    """Names of pages without control characters, which a terminal would obey."""
    texts = (str(name) for name in names)
    return tuple(text if text.isprintable() else printable(text, _LONGEST_NAME) for text in texts)
