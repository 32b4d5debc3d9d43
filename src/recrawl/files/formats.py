"""Which format a file has, by the ending of its name; what a format offers; and checks before any format."""

from __future__ import annotations

import gzip
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, Protocol, cast

from recrawl.errors import InvalidFile
from recrawl.files.columns import Batch, Want, is_unicode, shown

Format = Literal["csv", "jsonl", "parquet"]


@dataclass(frozen=True, slots=True)
class FileKind:
    """How a file is written."""

    format: Format
    gzip: bool = False
    delimiter: str = ","


_KINDS = {
    ".csv": FileKind("csv"),
    ".csv.gz": FileKind("csv", gzip=True),
    ".tsv": FileKind("csv", delimiter="\t"),
    ".tsv.gz": FileKind("csv", gzip=True, delimiter="\t"),
    ".jsonl": FileKind("jsonl"),
    ".jsonl.gz": FileKind("jsonl", gzip=True),
    ".ndjson": FileKind("jsonl"),
    ".ndjson.gz": FileKind("jsonl", gzip=True),
    ".parquet": FileKind("parquet"),
    ".pq": FileKind("parquet"),
}


def kind_of(path: Path) -> FileKind:
    """Tell the format from the ending of the file's name.

    >>> kind_of(Path("pages.CSV.gz"))
    FileKind(format='csv', gzip=True, delimiter=',')
    """
    name = path.name.lower()
    for ending, kind in _KINDS.items():
        if name.endswith(ending):
            return kind
    raise InvalidFile(
        str(path),
        "the ending says no format that recrawl knows: "
        "use .csv, .tsv, .jsonl or .ndjson (each also with .gz), .parquet or .pq",
    )


Progress = Callable[[int, int | None], None]
"""Called with how much is done and how much there is, in rows or bytes; None if that is unknown."""


class Source(Protocol):
    """A file of pages that can be streamed any number of times."""

    columns: tuple[str, ...]

    def batches(self, wanted: Mapping[str, Want], progress: Progress | None = None) -> Iterator[Batch]:
        """Stream the named columns that there are; at least one batch, if an empty one."""
        ...

    def copies(self, goal: Format, progress: Progress | None = None) -> Iterator[Batch]:
        """Stream all columns, to be written in a format; each has the same kind of cells in every batch.

        A list holds text, or whatever the format of the goal has a form for; an array holds values of its type.
        """
        ...

    def cells(self, name: str, rows: Sequence[int]) -> dict[int, Any]:
        """The values of one column in a few rows."""
        ...


class Writer(Protocol):
    """Takes batches of equal columns and writes them to a stream."""

    def write(self, batch: Batch) -> None:
        """Write the next rows."""
        ...

    def close(self) -> None:
        """Write what is left; the stream stays open."""
        ...


_SIGNATURES = (
    (b"\xff\xfe", "is UTF-16 text: save it as UTF-8"),
    (b"\xfe\xff", "is UTF-16 text: save it as UTF-8"),
    (b"\x1f\x8b", "is compressed with gzip: add .gz to its name"),
    (b"PAR1", "is a Parquet file: give its name the ending .parquet"),
    (b"PK\x03\x04", "is a spreadsheet or a zip archive: save it as CSV in UTF-8"),
)


def check_file(path: Path) -> None:
    """Refuse what is not a file that can be opened and read more than once."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            path.open("rb").close()
    except FileNotFoundError:
        raise InvalidFile(str(path), "does not exist: check the name and the folder") from None
    except PermissionError:
        raise InvalidFile(str(path), "may not be read: give yourself permission to read it") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InvalidFile(str(path), f"cannot be opened: {reason(error)}") from None
    if stat.S_ISDIR(mode):
        raise InvalidFile(str(path), "is a folder, but must be one file")
    if not stat.S_ISREG(mode):
        raise InvalidFile(str(path), "is no ordinary file: save the pages to a file first")


def check_text(path: Path, start: bytes) -> None:
    """Refuse a file whose first bytes show that it is not UTF-8 text."""
    for signature, problem in _SIGNATURES:
        if start.startswith(signature):
            raise InvalidFile(str(path), problem)
    if b"\0" in start[:4]:
        raise InvalidFile(str(path), "is UTF-16 text or no text at all: save it as UTF-8")


def check_names(path: Path, names: Sequence[str]) -> None:
    """Refuse names that are not Unicode text, and two columns of one name: which would be meant?"""
    seen: set[str] = set()
    for name in names:
        if not is_unicode(name):
            raise InvalidFile(str(path), f"has a column name that is not UTF-8 text, {shown(name)}: rename it")
        if name in seen:
            raise InvalidFile(str(path), f"has two columns named {shown(name)}: rename or remove one")
        seen.add(name)


@contextmanager
def opened(path: Path, kind: FileKind) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open a file: the stream of its text, and the file below, which knows how far it was read."""
    try:
        with path.open("rb") as below:
            yield (cast(IO[bytes], gzip.GzipFile(fileobj=below)) if kind.gzip else below), below
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(path, error) from None


def damaged(path: Path, error: Exception | str) -> InvalidFile:
    """The sentence for a file that cannot be read to its end."""
    return InvalidFile(str(path), f"cannot be read, so it may be cut off or damaged: {reason(error)}")


def reason(error: Exception | str) -> str:
    """The first line of a foreign error, without a full stop."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    lines = text.strip().splitlines()
    return printable(lines[0] if lines else type(error).__name__, 200).rstrip(". ")


def printable(text: str, longest: int) -> str:
    """Text on one line, cut if it is long, without control characters, which a terminal would obey."""
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
