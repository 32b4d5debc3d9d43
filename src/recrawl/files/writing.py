"""Check an output before any work is done for it, and write it whole or not at all."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from recrawl._atomic import open_atomic
from recrawl.errors import InvalidFile
from recrawl.extras import need
from recrawl.files.formats import FileKind, kind_of
from recrawl.files.source import reason


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
