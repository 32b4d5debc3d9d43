"""JSON Lines files: one object per line.

Lines are parsed one by one, so each may have its own keys and types: by msgspec, and by Python's json where that
refuses one, which knows NaN and says what is wrong. When pages are copied from JSONL to JSONL the text of a line
stays as it is and new members are written at its end.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import attrgetter
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidFile
from recrawl.files.columns import (
    NUMBER_COLUMNS,
    WORD_COLUMNS,
    AddedColumns,
    Batch,
    Cells,
    Want,
    dumps,
    json_texts,
    rows_of,
    shown,
    text_of,
)
from recrawl.files.formats import FileKind, Format, Progress, check_names, check_text, opened

_HEAD_ROWS = 1_000
_BATCH_ROWS = 16_384
_BATCH_BYTES = 16 << 20
_LONGEST_LINE = 64 << 20
_EXACT_FLOAT = 2**53
_DECODER = json.JSONDecoder()
_OBJECT = msgspec.json.Decoder()
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

    def batches(self, wanted: Mapping[str, Want], progress: Progress | None = None) -> Iterator[Batch]:
        """Stream the named columns; what a line lacks is None."""
        names = [name for name in self.columns if name in wanted]
        late = sorted({*NUMBER_COLUMNS, *WORD_COLUMNS}.difference(self.columns))
        # Text without these letters and without escapes cannot have a member of such a name.
        clues = [b"\\", *(dumps(name).encode() for name in late)]
        quick, careful = _decoder(names), _decoder([*names, *late])
        for row, lines in self._chunks(progress):
            block = b"\n".join(lines)
            clue = any(each in block for each in clues)
            columns = _members(careful if clue else quick, block, lines)
            if columns is None:
                objects = list(self._objects(row, lines))
                columns = [[found.get(name) for found in objects] for name in (*names, *late)]
            self._refuse_late(zip(late, columns[len(names) :], strict=False), row)
            yield dict(zip(names, columns, strict=False))

    def copies(self, goal: Format, progress: Progress | None = None) -> Iterator[Batch]:  # noqa: ARG002
        """Stream the columns of all lines, each of a type that holds every value; mixed types become text."""
        types = self._types()
        for row, lines in self._chunks(progress):
            objects = list(self._objects(row, lines))
            yield {name: _typed([found.get(name) for found in objects], kind) for name, kind in types.items()}

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
                [f"{dumps(name)}: {text}" for text in json_texts(values)]
                for name, values in added.take(len(lines)).items()
            ]
            members = zip(*new, strict=True) if new else repeat(())
            for index, line in enumerate(lines):
                plain = _is_braced(line) and not any(clue in line for clue in clues)
                kept = line if plain else self._line_without(line, row + index, added.names)
                old = kept[:-1].rstrip()
                yield b"%b%b%b}\n" % (old, b", " if new and old != b"{" else b"", ", ".join(next(members)).encode())

    def _line_without(self, line: bytes, row: int, names: Collection[str]) -> bytes:
        clash = not self._parse(line, row).keys().isdisjoint(names)
        return _without(line.decode(), names).encode() if clash else line

    def _refuse_late(self, columns: Iterable[tuple[str, list[Any]]], first_row: int) -> None:
        for name, cells in columns:
            if cells.count(None) < len(cells):
                row = first_row + next(index for index, cell in enumerate(cells) if cell is not None)
                problem = f"comes first after {_HEAD_ROWS} rows without it: give it in row 1 too, or in none"
                raise InvalidFile(str(self._path), problem, field=name, row=row)

    def _types(self) -> dict[str, type]:
        """Look through the file for every column and a type that holds all its values."""
        sorts: dict[str, set[str]] = {name: set() for name in self.columns}
        for row, lines in self._chunks():
            for found in self._objects(row, lines):
                for name, value in found.items():
                    sorts.setdefault(name, set()).add(_sort(value))
        check_names(self._path, list(sorts))
        return {name: _type_for(found) for name, found in sorts.items()}

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
        with opened(self._path, self._kind) as (stream, below):
            while raw := stream.readline(_LONGEST_LINE):
                if row == 0:
                    raw = self._start(raw)
                raw = raw.strip()
                if raw:
                    yield row, raw
                    row += 1
                    if progress is not None and row % _BATCH_ROWS == 0:
                        progress(below.tell(), total)
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
            found = _OBJECT.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            found = self._explain(line, row)
        if not isinstance(found, dict):
            raise InvalidFile(
                path, f'is {shown(line.decode())}, but must be an object such as {{"importance": 1}}', row=row
            )
        return found

    def _explain(self, line: bytes, row: int) -> Any:
        """Parse a line that msgspec refuses, or say what is wrong with it."""
        path = str(self._path)
        try:
            return json.loads(line.decode("utf-8"))
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


class JsonlWriter:
    """Writes one JSON object per line."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, batch: Batch) -> None:
        """Write the next rows."""
        if not rows_of(batch):
            return
        # A percent sign in a name would be taken for a place.
        form = "{" + ", ".join(f"{dumps(name).replace('%', '%%')}: %s" for name in batch) + "}\n"
        columns = [json_texts(cells) for cells in batch.values()]
        self._stream.write("".join(map(form.__mod__, zip(*columns, strict=True))).encode())

    def close(self) -> None:
        """Nothing is left."""


def _decoder(names: Sequence[str]) -> msgspec.json.Decoder[Any]:
    """A decoder that looks at members of these names only."""
    fields = [(f"f{place}", Any, msgspec.field(name=name, default=None)) for place, name in enumerate(names)]
    return msgspec.json.Decoder(msgspec.defstruct("Line", fields, gc=False))


def _members(decoder: msgspec.json.Decoder[Any], block: bytes, lines: Sequence[bytes]) -> list[list[Any]] | None:
    """The columns of a decoder; None if a line is no plain JSON object."""
    try:
        block.decode()  # text that is skipped is not looked at
        found = list(map(decoder.decode, lines))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return [list(map(attrgetter(name), found)) for name in decoder.type.__struct_fields__]


def _is_braced(line: bytes) -> bool:
    return line[:1] == b"{" and line[-1:] == b"}"


def _typed(values: list[Any], kind: type) -> Cells:
    absent = [value is None for value in values]
    if kind is str:
        return [None if value is None else text_of(value) for value in values]
    filled: NDArray[Any] = np.array([kind() if value is None else value for value in values], dtype=kind)
    return np.ma.masked_array(filled, mask=absent) if any(absent) else filled


def _sort(value: Any) -> str:
    """What sort of value this is, as far as the choice of a column's type cares."""
    if isinstance(value, bool) or not isinstance(value, int):
        return type(value).__name__
    if abs(value) <= _EXACT_FLOAT:
        return "int"
    return "long" if value in _INT64 else "huge"


def _type_for(sorts: set[str]) -> type:
    present = sorts - {"NoneType"}
    if present == {"bool"}:
        return bool
    if present and present <= {"int", "long"}:
        return int
    if present and present <= {"int", "float"}:
        return float
    return str


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
