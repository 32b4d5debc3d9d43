"""Which format a file has, by the ending of its name, and which columns recrawl knows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from recrawl.errors import InvalidFile

Format = Literal["csv", "jsonl", "parquet"]

NUMBER_COLUMNS = (
    "importance", "change_rate", "cost", "min_rate", "max_rate", "recall", "precision", "false_signal_rate",
    "decay", "window", "profit", "new_page_rate",
)  # fmt: skip
"""Columns that hold numbers; in a file without types, such as CSV, all others are text."""

WORD_COLUMNS = ("host", "life")
"""Columns that hold names or words."""

LABEL_COLUMNS = ("url", "page", "id", "path")
"""Columns that say what to call a page, the best first."""

EMPTY_MEANS = {"min_rate": 0.0, "max_rate": math.inf}
"""An empty cell in a column of limits is no limit; in every other column of numbers it is an error."""


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
