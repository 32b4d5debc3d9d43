"""What the tests of files share: writing a small file, and the one sentence that a bad one gets."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from recrawl.errors import InvalidFile
from recrawl.files.page_file import PageFile, open_pages
from recrawl.pages import Hosts

NAMES = ("importance", "change_rate", "max_rate", "host", "life")


def write(folder: Path, name: str, content: str | bytes) -> Path:
    """Write a file byte by byte as given."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path: Path, names: Collection[str] = NAMES) -> dict[str, list[Any]]:
    """Open a file and read columns as plain lists; a host by its name."""
    columns = open_pages(path).read(names)
    return {
        name: [column.names[code] for code in column.codes] if isinstance(column, Hosts) else column.tolist()
        for name, column in columns.items()
    }


def refusal(path: Path, names: Collection[str] = NAMES) -> InvalidFile:
    """The error that a bad file ends in; its sentence is one line and begins with the file."""
    with pytest.raises(InvalidFile) as caught:
        open_pages(path).read(names)
    sentence = str(caught.value)
    assert sentence.startswith(str(path))
    assert "\n" not in sentence
    assert caught.value.path == str(path)
    return caught.value


def told(error: InvalidFile) -> str:
    """The sentence without the folder of the file."""
    return str(error).removeprefix(str(Path(error.path).parent)).lstrip("/")


def rows_of(file: PageFile) -> int:
    """How many rows were read."""
    assert file.rows is not None
    return file.rows
