"""CSV with a line of column names: `url`, and perhaps importance, group and bounds. Pure.

Rows are counted from 1 below the names. A row that cannot be read is left out and named; only names that cannot be
understood end the file.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import IO, Any

from recrawl.errors import InvalidInput
from recrawl.tracker.admission import LARGEST_IMPORTANCE, PageRequest
from recrawl.tracker.importers.rows import MOST_ROWS, BadRow, GoodRow, Hints, Item, printable, text_lines
from recrawl.tracker.settings.settings import Reader, number, seconds, text

_YEARS_100_S = 100 * 366 * 86_400.0
COLUMNS: dict[str, tuple[str, Reader]] = {
    "url": ("url", text),
    "importance": ("importance", number(0, LARGEST_IMPORTANCE)),
    "group": ("group", text),
    "min_interval": ("min_interval_s", seconds(0, _YEARS_100_S)),
    "max_interval": ("max_interval_s", seconds(1, _YEARS_100_S)),
}
"""By name: the field of `PageRequest` that a column fills, and its reader. Columns of other names are passed over."""


def read_csv(stream: IO[bytes], _hints: Hints) -> Iterator[Item]:
    """The pages of a CSV file, streamed."""
    lines = _Lines(stream)
    header = next(lines, "")
    delimiter = "\t" if "\t" in header and "," not in header else ","
    names = _names(header, delimiter)
    if isinstance(names, str):
        yield BadRow(0, names)
        return
    reader = csv.reader(lines, delimiter=delimiter)
    row = 0
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:  # the reader goes on with the line after it
            row += 1
            yield BadRow(row, f"cannot be read: {printable(str(error))}")
            continue
        if not cells:
            continue
        row += 1
        if row > MOST_ROWS:
            yield BadRow(row, f"the file has more than {MOST_ROWS} rows; the rest is not read")
            return
        yield _item(row, names, cells)


class _Lines(Iterator[str]):
    """The lines of a stream; one that is too long becomes one with a field that no reader takes."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._lines = text_lines(stream)

    def __next__(self) -> str:
        _, line = next(self._lines)
        return "." * (csv.field_size_limit() + 1) if line is None else line


def _names(header: str, delimiter: str) -> list[str] | str:
    """The names of the columns, or what is wrong with them."""
    if "\0" in header:
        return "is UTF-16 text without a mark, or no text at all: save it as UTF-8"
    try:
        names = [name.strip().lower() for name in next(csv.reader([header], delimiter=delimiter), [])]
    except csv.Error:
        names = []
    return _problem(names, header) or names


def _problem(names: list[str], header: str) -> str | None:
    if not any(names):
        return f"begins with no line of column names: begin it with {','.join(COLUMNS)} or some of them, url at least"
    twice = [name for name in COLUMNS if names.count(name) > 1]
    if twice:
        return f"has two columns named {twice[0]}: rename or remove one"
    if "url" not in names:
        if ";" in header and "url" in header.lower():
            return "has semicolons between its columns: save it with commas"
        return f"has no column url, only {printable(', '.join(names))}: begin it with a line of column names"
    for name in names:
        near = get_close_matches(name, COLUMNS, n=1, cutoff=0.8)
        if name not in COLUMNS and near:
            return f"has a column {printable(name)}: did you mean {near[0]}?"
    return None


def _item(row: int, names: Sequence[str], cells: Sequence[str]) -> Item:
    if len(cells) != len(names):
        return BadRow(row, f"has {len(cells)} fields where the names are {len(names)}: put quotes around commas")
    given: dict[str, Any] = {}
    for name, cell in zip(names, cells, strict=True):
        value = cell.strip()
        if name in COLUMNS and value:
            field, read = COLUMNS[name]
            try:
                given[field] = read(value, name)
            except InvalidInput as error:
                return BadRow(row, printable(str(error)))
    if "url" not in given:
        return BadRow(row, "has no url")
    return GoodRow(row, PageRequest(source="import", **given))
