"""Logs of crawls, and the intervals between them.

A log has one row per crawl: page, time, whether the page had changed. Between two crawls of a page lies an interval
that either saw a change or did not; everything about rhythm and trust in signals is learned from these. What enters
is checked here, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.pages import Floats

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


class CrawlLog(NamedTuple):
    """One row per crawl: page number (0, 1, …), time, whether it saw a change since the crawl before (0 or 1).

    The rows of a page are in order of time; pages may be mixed. The first crawl of a page opens its history: its flag
    says nothing and is not used. A crawl that was recorded twice is the caller's to drop: a second row at the same
    time counts as a crawl after no time at all, which says nothing.
    """

    page: Any
    time: Any
    changed: Any


@dataclass(frozen=True, slots=True)
class Intervals:
    """Time between crawls, sorted by page and time: page i has rows `offsets[i]` to `offsets[i+1]`."""

    offsets: Integers
    start: Floats
    end: Floats
    changed: Flags

    def __len__(self) -> int:
        return len(self.start)

    def page_of_rows(self) -> Integers:
        """The page of each interval."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


class CheckedCrawls(NamedTuple):
    """A log that was checked, sorted by page and time; page i has rows `first[i]` to `first[i+1]`."""

    first: Integers
    page: Integers
    time: Floats
    changed: Flags


def intervals_of(log: CrawlLog, pages: int | None = None) -> Intervals:
    """Turn a log of crawls into the intervals between them. O(crawls · log crawls).

    Args:
        log: the crawls.
        pages: how many pages there are; by default one more than the largest page number.

    >>> intervals = intervals_of(CrawlLog([0, 1, 0, 0], [1.0, 1.5, 2.0, 4.0], [1, 0, 0, 1]))
    >>> intervals.start.tolist(), intervals.end.tolist(), intervals.changed.tolist()
    ([1.0, 2.0], [2.0, 4.0], [False, True])
    """
    return intervals_between(check_crawls(log, pages))


def intervals_between(crawls: CheckedCrawls) -> Intervals:
    """The intervals between the crawls of a checked log."""
    after_another = np.ones(len(crawls.time), dtype=np.bool_)
    after_another[crawls.first[:-1][np.diff(crawls.first) > 0]] = False
    ends = np.flatnonzero(after_another)
    lengths = np.maximum(np.diff(crawls.first) - 1, 0)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Intervals(offsets, crawls.time[ends - 1], crawls.time[ends], crawls.changed[ends])


def check_crawls(log: CrawlLog, pages: int | None = None) -> CheckedCrawls:
    """Check a log and sort it by page and time; of crawls at one time the one that saw a change comes first."""
    page = check_codes(log.page, "page", pages)
    time = check_times(log.time, "time", len(page))
    changed = _check_flags(log.changed, len(page))
    order = np.argsort(page, kind="stable")
    backwards = (np.diff(page[order]) == 0) & (np.diff(time[order]) < 0)
    if backwards.any():
        row = int(order[np.argmax(backwards) + 1])
        raise InvalidInput(
            f"is {float(time[row])!r}, earlier than the crawl before it of page {int(page[row])}: sort the log by time",
            field="time",
            row=row,
        )
    order = np.lexsort((~changed, time, page))
    count = pages if pages is not None else int(page.max(initial=-1)) + 1
    first = np.searchsorted(page[order], np.arange(count + 1))
    return CheckedCrawls(first, page[order], time[order], changed[order])


def check_codes(column: Any, field: str, size: int | None = None) -> Integers:
    """Check numbers that count something from 0, such as pages."""
    codes = np.asarray(column)
    if codes.ndim != 1 or (len(codes) and codes.dtype.kind not in "iu"):
        raise InvalidInput("must be a flat array of whole numbers, counted from 0", field=field)
    bad = codes < 0
    if size is not None:
        bad |= codes >= size
    if bad.any():
        row = int(np.argmax(bad))
        most = "" if size is None else f" to {size - 1}"
        raise InvalidInput(f"is {int(codes[row])}, but is counted from 0{most}", field=field, row=row)
    return codes.astype(np.int64)


def check_times(column: Any, field: str, rows: int) -> Floats:
    """Check times: finite numbers, one per row."""
    times = np.asarray(column)
    if times.ndim != 1 or (len(times) and times.dtype.kind not in "fiu"):
        raise InvalidInput("must be a flat array of numbers", field=field)
    check_length(len(times), rows, field)
    numbers = times.astype(np.float64)
    bad = ~np.isfinite(numbers)
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidInput(f"is {float(numbers[row])!r}, but a time must be a finite number", field=field, row=row)
    return numbers


def check_length(length: int, rows: int, field: str) -> None:
    """Check that a column has one value per row."""
    if length != rows:
        raise InvalidInput(f"has {length} values, but {rows} are needed: one per row", field=field)


def _check_flags(column: Any, rows: int) -> Flags:
    flags = np.asarray(column)
    if flags.ndim != 1 or (len(flags) and flags.dtype.kind not in "biuf"):
        raise InvalidInput("must be a flat array of 0 and 1", field="changed")
    check_length(len(flags), rows, "changed")
    bad = ~((flags == 0) | (flags == 1))
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidInput(f"is {flags[row].item()!r}, but must be 0 or 1", field="changed", row=row)
    return flags.astype(np.bool_)
