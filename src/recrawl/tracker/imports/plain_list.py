"""Plain lists: one address a line. Empty lines and those that begin with `#` are passed over. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from recrawl.tracker.imports.items import LONGEST_LINE, MOST_ROWS, Found, Hints, Item, Unusable, text_lines
from recrawl.tracker.newcomers import Wanted


def read_list(stream: IO[bytes], _hints: Hints) -> Iterator[Item]:
    r"""The addresses of a list, streamed; rows are its lines.

    >>> import io
    >>> [item.row for item in read_list(io.BytesIO(b"# mine\nhttps://example.com/\n"), Hints())]
    [2]
    """
    for row, line in text_lines(stream):
        if row > MOST_ROWS:
            yield Unusable(row, f"the file has more than {MOST_ROWS} lines; the rest is not read")
            return
        if line is None:
            yield Unusable(row, f"is longer than {LONGEST_LINE} characters")
            continue
        address = line.strip()
        if address and not address.startswith("#"):
            yield Found(row, Wanted(address, source="import"))
