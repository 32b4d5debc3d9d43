r"""Hits from a file: an access log, or a table in CSV with the columns `url`, `time` and perhaps `hits`.

    for hit in read_hits(stream, rules, counts): ...

The first line tells which it is. In a table times are Unix seconds or milliseconds, ISO 8601, or as in logs; `hits` is
how many, 1 where it is missing; a row is one line. What cannot be used is counted, as in `access_log.py`.

    >>> import io
    >>> counts = LogCounts()
    >>> table = io.BytesIO(b"url,time,hits\nhttps://a.example/x,2024-05-01,3\nhttps://a.example/,yesterday,1\n")
    >>> list(read_hits(table, LogRules(now=2e9), counts)), dict(counts.refused)
    ([Hit(url='https://a.example/x', at=1714521600.0, hits=3.0)], {'time': 1})
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import IO, NamedTuple

from recrawl.tracker.signals.access_log import Hit, LogCounts, LogRules, Targets, read_access_log, read_time
from recrawl.tracker.signals.log_lines import line_blocks
from recrawl.web.dates import believable, http_date

MOST_HITS = 1e12
"""In one row; more is no count of readers."""

_URL_NAMES = ("url", "address", "page", "path")
_TIME_NAMES = ("time", "timestamp", "at", "date")
_HITS_NAMES = ("hits", "count", "views", "requests")
_MARK = b"\xef\xbb\xbf"


def read_hits(stream: IO[bytes], rules: LogRules, counts: LogCounts) -> Iterator[Hit]:
    """The hits in a file, plain or gzipped, streamed. O(bytes), memory bounded, raises nothing for any bytes.

    Args:
        stream: of the file; what goes wrong in reading it is raised as it is.
        rules: how to read lines.
        counts: what became of them; complete when the last hit has been given.
    """
    blocks = line_blocks(stream, counts.report)
    first = next((lines for block in blocks if (lines := _from_first_filled(block))), None)
    if first is None:
        return
    first[0] = first[0].removeprefix(_MARK)
    columns = _columns(first[0])
    if columns is None:
        yield from read_access_log(chain([first], blocks), rules, counts)
    else:
        yield from _read_table(chain([first[1:]], blocks), columns, rules, counts)


def _from_first_filled(lines: list[bytes]) -> list[bytes]:
    """The lines of a block without the empty ones that it begins with."""
    start = next((place for place, line in enumerate(lines) if line and not line.isspace()), len(lines))
    return lines[start:]


class _Columns(NamedTuple):
    """Where the columns of a table are; hits may be missing."""

    delimiter: str
    url: int
    time: int
    hits: int | None
    width: int


def _columns(header: bytes) -> _Columns | None:
    """The columns that a line names, None if it names none, as in a log."""
    text = header.decode("utf-8", "replace")
    delimiter = max(",;\t", key=text.count)
    names = [name.strip().lower() for name in _cells(text, delimiter) or ()]
    url, time = _place(names, _URL_NAMES), _place(names, _TIME_NAMES)
    if url is None or time is None:
        return None
    return _Columns(delimiter, url, time, _place(names, _HITS_NAMES), len(names))


def _place(names: Sequence[str], wanted: Sequence[str]) -> int | None:
    return next((names.index(name) for name in wanted if name in names), None)


def _read_table(blocks: Iterable[list[bytes]], columns: _Columns, rules: LogRules, counts: LogCounts) -> Iterator[Hit]:
    targets = Targets(rules)
    for lines in blocks:
        found = counts.hits
        for line in lines:
            if not line or line.isspace():
                continue
            counts.lines += 1
            hit = _row(line, columns, targets, rules.now, counts)
            if hit is not None:
                counts.hits += hit.hits
                yield hit
        if counts.hits > found:
            counts.report.useful()
    counts.refused.update({"too-long": counts.report.too_long} if counts.report.too_long else {})
    counts.lines += counts.report.too_long


def _row(line: bytes, columns: _Columns, targets: Targets, now: float, counts: LogCounts) -> Hit | None:
    cells = _cells(line.decode("utf-8", "surrogateescape"), columns.delimiter)
    if cells is None or len(cells) != columns.width:
        counts.refused["malformed"] += 1
        return None
    written = cells[columns.time]
    at = read_time(written)
    at = believable(http_date(written, now) if at is None else at, now)
    if at is None:
        counts.refused["time"] += 1
        return None
    hits = 1.0 if columns.hits is None else _number(cells[columns.hits])
    if hits is None:
        counts.refused["hits"] += 1
        return None
    target = cells[columns.url].strip().encode("utf-8", "surrogateescape")
    url = targets.url(target, None, counts)
    return None if url is None else Hit(url, at, hits)


def _cells(line: str, delimiter: str) -> list[str] | None:
    if '"' not in line:
        return line.split(delimiter)
    try:
        return next(csv.reader((line,), delimiter=delimiter), None)
    except csv.Error:
        return None


def _number(text: str) -> float | None:
    """A count from 0 to `MOST_HITS`; one where nothing is said."""
    text = text.strip()
    if not text:
        return 1.0
    try:
        number = float(text) if len(text) <= 32 and text.isascii() and "_" not in text else math.nan
    except ValueError:
        return None
    return number if 0.0 <= number <= MOST_HITS else None
