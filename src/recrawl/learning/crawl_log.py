"""Logs of crawls, and the intervals between them.

A log has one row per crawl: page, time, whether the page had changed. Between two crawls of a page lies an interval
that either saw a change or did not; everything about rhythm and trust in signals is learned from these. What enters
is checked here, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.learning.inputs import (
    Flags,
    Integers,
    amount_problem,
    check_codes,
    check_count,
    check_flags,
    check_made,
    check_times,
)
from recrawl.pages import LARGEST, SMALLEST, Floats


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
    """A log that was checked, sorted by page and time; page i has rows `first[i]` to `first[i+1]`.

    `log_row` is where each crawl stands in the log.
    """

    first: Integers
    page: Integers
    time: Floats
    changed: Flags
    log_row: Integers


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
    """The intervals between the crawls of a checked log, none absurdly long or short."""
    after_another = np.ones(len(crawls.time), dtype=np.bool_)
    after_another[crawls.first[:-1][np.diff(crawls.first) > 0]] = False
    ends = np.flatnonzero(after_another)
    lengths = np.maximum(np.diff(crawls.first) - 1, 0)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    _check_gaps(crawls, ends)
    return Intervals(offsets, crawls.time[ends - 1], crawls.time[ends], crawls.changed[ends])


def check_crawls(log: CrawlLog, pages: int | None = None) -> CheckedCrawls:
    """Check a log and sort it by page and time; of crawls at one time the one that saw a change comes first."""
    check_made(log, CrawlLog, "log", "CrawlLog(page, time, changed)")
    known = None if pages is None else check_count(pages, "pages")
    page = check_codes(log.page, "page", known)
    time = check_times(log.time, "time", len(page))
    changed = check_flags(log.changed, "changed", len(page))
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
    count = known if known is not None else int(page.max(initial=-1)) + 1
    first = np.searchsorted(page[order], np.arange(count + 1))
    return CheckedCrawls(first, page[order], time[order], changed[order], order)


def _check_gaps(crawls: CheckedCrawls, ends: Integers) -> None:
    """Refuse times that are too far apart, or too near, to compute with."""
    gaps = crawls.time[ends] - crawls.time[ends - 1]
    legal = (gaps == 0) | ((gaps >= SMALLEST) & (gaps <= LARGEST))
    if not legal.all():
        worst = int(np.argmin(legal))
        end, gap = ends[worst], float(gaps[worst])
        raise InvalidInput(
            f"is {gap!r} after the crawl before it of page {int(crawls.page[end])}, but the time between two crawls "
            f"{amount_problem(gap)}",
            field="time",
            row=int(crawls.log_row[end]),
        )
