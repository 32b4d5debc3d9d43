"""JSON Lines files: one object per line.

Lines are parsed one by one, so each may have its own keys and types. When pages are copied from JSONL to
JSONL the text of a line stays as it is and new members are written at its end.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Collection, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.types as kinds

from recrawl.errors import InvalidFile
from recrawl.tables.adding import AddedColumns
from recrawl.tables.arrow import Cells, join
from recrawl.tables.formats import NUMBER_COLUMNS, WORD_COLUMNS, FileKind
from recrawl.tables.json_blocks import is_braced, parse_block
from recrawl.tables.json_text import dumps, json_column
from recrawl.tables.numbers import shown
from recrawl.tables.source import Progress, check_names, check_text, damaged, is_unicode

_HEAD_ROWS = 1_000
_BATCH_ROWS = 16_384
_BATCH_BYTES = 16 << 20
_LONGEST_LINE = 64 << 20
_EXACT_FLOAT = 2**53
_DECODER = json.JSONDecoder()
_INT64 = range(-(2**63), 2**63)


class JsonlFile:
    """A file of one JSON object per line; the first thousand lines say which columns there are."""

    def __init__(self, path: Path, kind: FileKind) -> None:
        self._path = path
        self._kind = kind
        _, first = next(self._chunks(most_rows=_HEAD_ROWS), (0, []))
        if not first:
            raise InvalidFile(str(path), "is empty: write one JSON object per line")
        self.columns = tuple(dict.fromkeys(name for members in self._objects(0, first) for name in members))
        check_names(path, self.columns)
        if not self.columns:
            raise InvalidFile(str(path), 'is {}: name the columns, such as {"importance": 1}', row=0)

    def batches(
        self, names: Collection[str] | None = None, progress: Progress | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Stream the named columns, or all; what a line lacks is null; types may differ between batches."""
        wanted = [name for name in self.columns if names is None or name in names]
        late = {*NUMBER_COLUMNS, *WORD_COLUMNS}.difference(self.columns)
        tidy = True
        for row, lines in self._chunks(progress):
            batch = parse_block(lines, wanted, late) if tidy else None
            if batch is None:
                tidy = False  # a file that has one odd block has more of them
                objects = list(self._objects(row, lines))
                self._refuse_late(objects, late, row)
                batch = pa.record_batch({name: _column([found.get(name) for found in objects]) for name in wanted})
            yield batch

    def typed_batches(self, progress: Progress | None = None) -> Iterator[pa.RecordBatch]:
        """Stream the columns of all lines, each of a type that holds every value; mixed types become text."""
        schema = self._schema()
        for row, lines in self._chunks(progress):
            objects = list(self._objects(row, lines))
            columns = [_typed([found.get(field.name) for found in objects], field.type) for field in schema]
            yield pa.record_batch(columns, schema=schema)

    def cells(self, name: str, rows: Sequence[int]) -> dict[int, Any]:
        """The values of one column in a few rows; reads no further than the last of them."""
        wanted = set(rows)
        last = max(wanted)
        found: dict[int, Any] = {}
        for row, line in self._lines():
            if row in wanted:
                found[row] = self._parse(line, row).get(name)
            if row == last:
                break
        return found

    def lines_with(self, added: AddedColumns, progress: Progress | None = None) -> Iterator[bytes]:
        """Stream the lines with members added at their ends; members of the same names give way."""
        # A line without these letters and without escapes cannot have a member of such a name.
        clues = [b"\\", *(dumps(name).encode() for name in added.names)]
        for row, lines in self._chunks(progress):
            new: list[list[Any]] = [
                join(f"{dumps(name)}: ", json_column(pa.array(values))).to_pylist()
                for name, values in added.take(len(lines)).items()
            ]
            members = zip(*new, strict=True) if new else repeat(())
            for index, line in enumerate(lines):
                plain = is_braced(line) and not any(clue in line for clue in clues)
                kept = line if plain else self._line_without(line, row + index, added.names)
                old = kept[:-1].rstrip()
                yield b"%b%b%b}\n" % (old, b", " if new and old != b"{" else b"", ", ".join(next(members)).encode())

    def _line_without(self, line: bytes, row: int, names: Collection[str]) -> bytes:
        clash = not self._parse(line, row).keys().isdisjoint(names)
        return _without(line.decode(), names).encode() if clash else line

    def _refuse_late(self, objects: Sequence[dict[str, Any]], late: set[str], row: int) -> None:
        if late.isdisjoint(set().union(*objects)):
            return
        for index, found in enumerate(objects):
            for name in sorted(late & found.keys()):
                if found[name] is not None:
                    problem = f"comes first after {_HEAD_ROWS} rows without it: give it in row 1 too, or in none"
                    raise InvalidFile(str(self._path), problem, field=name, row=row + index)

    def _schema(self) -> pa.Schema:
        """Look through the file for every column and a type that holds all its values."""
        sorts: dict[str, set[str]] = {name: set() for name in self.columns}
        for row, lines in self._chunks():
            for found in self._objects(row, lines):
                for name, value in found.items():
                    sorts.setdefault(name, set()).add(_sort(value))
        check_names(self._path, list(sorts))
        return pa.schema([(name, _type_for(found)) for name, found in sorts.items()])

    def _objects(self, row: int, lines: Sequence[bytes]) -> Iterator[dict[str, Any]]:
        for index, line in enumerate(lines):
            yield self._parse(line, row + index)

    def _chunks(
        self, progress: Progress | None = None, most_rows: int = _BATCH_ROWS
    ) -> Iterator[tuple[int, list[bytes]]]:
        """Stream the lines in lists that stay small even if lines are long, with the row of the first."""
        chunk: list[bytes] = []
        first = size = 0
        for row, line in self._lines(progress):
            chunk.append(line)
            size += len(line)
            if len(chunk) == most_rows or size >= _BATCH_BYTES:
                yield first, chunk
                first, chunk, size = row + 1, [], 0
        if chunk:
            yield first, chunk

    def _lines(self, progress: Progress | None = None) -> Iterator[tuple[int, bytes]]:
        """Stream the lines that are not blank, with their rows."""
        total = self._path.stat().st_size
        row = 0
        try:
            with self._path.open("rb") as below:
                stream = cast(IO[bytes], gzip.GzipFile(fileobj=below)) if self._kind.gzip else below
                while raw := stream.readline(_LONGEST_LINE):
                    if row == 0:
                        raw = self._start(raw)
                    raw = raw.strip()
                    if raw:
                        yield row, raw
                        row += 1
                        if progress is not None and row % _BATCH_ROWS == 0:
                            progress(below.tell(), total)
        except (OSError, EOFError, zlib.error) as error:
            raise damaged(self._path, error) from None
        if progress is not None:
            progress(total, total)

    def _start(self, raw: bytes) -> bytes:
        check_text(self._path, raw)
        return raw.removeprefix(b"\xef\xbb\xbf")

    def _parse(self, line: bytes, row: int) -> dict[str, Any]:
        path = str(self._path)
        if len(line) >= _LONGEST_LINE - 2:
            raise InvalidFile(path, f"is longer than {_LONGEST_LINE >> 20} MB: write one object per line", row=row)
        try:
            found = json.loads(line.decode("utf-8"))
        except UnicodeDecodeError:
            raise InvalidFile(path, "is not UTF-8 text: save the file as UTF-8", row=row) from None
        except json.JSONDecodeError as error:
            raise InvalidFile(
                path,
                f"is not JSON ({error.msg} at character {error.pos + 1}): write one object per line",
                row=row,
            ) from None
        except ValueError:  # Python refuses to parse integers of thousands of digits
            raise InvalidFile(path, "holds a number of too many digits: write it as text", row=row) from None
        except RecursionError:
            raise InvalidFile(path, "is nested too deeply: flatten it", row=row) from None
        if not isinstance(found, dict):
            raise InvalidFile(
                path, f'is {shown(line.decode())}, but must be an object such as {{"importance": 1}}', row=row
            )
        return found


def _column(values: list[Any]) -> Cells:
    """Make an Arrow column of plain values; what Arrow has no plain type for becomes JSON text."""
    try:
        column = pa.array(values)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return _text_column(values)
    return _text_column(values) if kinds.is_nested(column.type) else column


def _typed(values: list[Any], kind: pa.DataType) -> Cells:
    return _text_column(values) if kinds.is_string(kind) else pa.array(values, kind)


def _text_column(values: list[Any]) -> Cells:
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else dumps(value)
    return text if is_unicode(text) else text.encode("utf-8", "replace").decode()


def _sort(value: Any) -> str:
    """What sort of value this is, as far as the choice of a column's type cares."""
    if isinstance(value, bool) or not isinstance(value, int):
        return type(value).__name__
    if abs(value) <= _EXACT_FLOAT:
        return "int"
    return "long" if value in _INT64 else "huge"


def _type_for(sorts: set[str]) -> pa.DataType:
    present = sorts - {"NoneType"}
    if present == {"bool"}:
        return pa.bool_()
    if present and present <= {"int", "long"}:
        return pa.int64()
    if present and present <= {"int", "float"}:
        return pa.float64()
    return pa.string()


def _without(text: str, names: Collection[str]) -> str:
    """A JSON object as it is written, but for some of its members."""
    kept = []
    position = _skip(text, 1)
    while text[position] != "}":
        start = position
        name, position = _DECODER.raw_decode(text, position)
        position = _skip(text, _skip(text, position) + 1)  # over the colon
        position = _DECODER.raw_decode(text, position)[1]
        if name not in names:
            kept.append(text[start:position])
        position = _skip(text, position)
        if text[position] == ",":
            position = _skip(text, position + 1)
    return "{" + ", ".join(kept) + "}"


def _skip(text: str, position: int) -> int:
    """Where the white space that may begin here ends."""
    while text[position] in " \t\n\r":
        position += 1
    return position
