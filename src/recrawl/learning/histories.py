"""Crawl histories of many pages, and logs of crawls.

`Histories` holds the observations of page i at `offsets[i]` to `offsets[i+1]` of flat arrays, in order of time. An
observation is one crawl: the time since the crawl before it and whether the page had changed. A `CrawlLog` has one row
per crawl: page, time, whether the page had changed. Between two crawls of a page lies an interval with or without a
change; rhythm and trust in signals are learned from these `Intervals`.

Everything that enters is checked here, once; estimators trust the types. An observation that was recorded twice is the
caller's to drop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.extras import is_installed
from recrawl.learning.inputs import (
    Flags,
    Integers,
    amount_problem,
    check_amounts,
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


@dataclass(frozen=True, slots=True)
class Histories:
    """Checked histories: gaps (time since the crawl before) and whether each crawl saw a change."""

    offsets: NDArray[np.int64]
    gaps: Floats
    changed: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def of(self, page: int) -> tuple[Floats, NDArray[np.bool_]]:
        """Gaps and changes of one page."""
        page = check_count(page, "page", most=len(self) - 1)
        rows = slice(self.offsets[page], self.offsets[page + 1])
        return self.gaps[rows], self.changed[rows]

    def pick(self, pages: NDArray[np.int64]) -> Histories:
        """Copies of the histories of these pages, in this order. O(their observations)."""
        pages = check_codes(pages, "pages", len(self))
        lengths = np.diff(self.offsets)[pages]
        offsets = _offsets_of(lengths)
        rows = np.repeat(self.offsets[pages] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Histories(offsets, self.gaps[rows], self.changed[rows])

    def page_of_rows(self) -> NDArray[np.int64]:
        """The page of each observation."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))


def read_histories(gaps: Any, changed: Any, offsets: Any = None) -> Histories:
    """Check histories and put them into flat arrays.

    Args:
        gaps: time since the crawl before, per observation: a flat array with `offsets`, a list with one array per
            page, a rectangle (pages by crawls), or an Arrow list column. 0 or more; a gap of 0 says nothing.
        changed: 0 or 1 (or booleans) of the same form.
        offsets: where each page starts in the flat arrays, and the end.

    Flat numbers without offsets are the crawls of one page, also if the array is empty. The empty list `[]` is no page
    at all, `[[]]` a page without crawls. Errors name the observation as it is counted in the flat arrays.

    >>> histories = read_histories([[1.0, 2.0], [0.5]], [[True, False], [True]])
    >>> len(histories), histories.offsets.tolist(), histories.of(1)[0].tolist()
    (2, [0, 2, 3], [0.5])
    >>> len(read_histories([], [])), len(read_histories([[]], [[]]))
    (0, 1)
    """
    flat_gaps, own_offsets = _flatten(gaps, "gaps")
    flat_changed, changed_offsets = _flatten(changed, "changed")
    checked_gaps, checked_changed = check_amounts(flat_gaps, "gaps"), check_flags(flat_changed, "changed")
    if len(checked_changed) != len(checked_gaps):
        raise InvalidInput(f"has {len(checked_changed)} values but gaps has {len(checked_gaps)}", field="changed")
    if offsets is not None:
        given = _check_offsets(offsets, len(checked_gaps))
    elif own_offsets is not None:
        given = own_offsets
    else:
        given = np.array([0] if _is_empty_list(gaps) else [0, len(checked_gaps)])
    for field, shown in (("gaps", own_offsets), ("changed", changed_offsets)):
        if shown is not None and not np.array_equal(shown, given):
            other = "offsets" if offsets is not None else "gaps"
            raise InvalidInput(f"has other numbers of crawls per page than {other}", field=field)
    return Histories(given, checked_gaps, checked_changed)


def histories_from_log(page: Any, time: Any, changed: Any, pages: int | None = None) -> Histories:
    """Build histories from a log with one row per crawl. O(crawls · log crawls).

    Args:
        page: the page crawled, counted from 0. Pages may be mixed.
        time: when it was crawled; the rows of a page are in order of time.
        changed: 0 or 1, whether it had changed since the crawl before. The first crawl of a page is what later ones
            compare with, so its flag says nothing and is not used.
        pages: how many pages there are; by default one more than the largest page number.

    Of crawls of one page at the same time, whatever their order, one counts, and it saw a change if any did.

    >>> histories = histories_from_log([0, 1, 0, 0], [1.0, 1.5, 2.0, 4.0], [1, 0, 0, 1])
    >>> histories.offsets.tolist(), histories.gaps.tolist(), histories.changed.tolist()
    ([0, 2, 2], [1.0, 2.0], [False, True])
    """
    intervals = intervals_of(CrawlLog(page, time, changed), pages)
    return Histories(intervals.offsets, intervals.end - intervals.start, intervals.changed)


def _flatten(column: Any, field: str) -> tuple[Any, NDArray[np.int64] | None]:
    """Flat values, not checked yet, and, where the form shows them, offsets."""
    if hasattr(column, "to_arrow"):  # a polars column
        column = column.to_arrow() if is_installed("pyarrow") else column.to_list()
    if hasattr(column, "combine_chunks"):  # an Arrow chunked column
        column = column.combine_chunks()
    if hasattr(column, "flatten") and hasattr(column, "value_lengths"):  # an Arrow list array
        if column.null_count:
            _refuse_missing_page(field, int(np.argmax(np.asarray(column.is_null()))))
        lengths = np.asarray(column.value_lengths(), dtype=np.int64)
        return column.flatten(), _offsets_of(lengths)
    if isinstance(column, np.ndarray) and column.ndim == 2:
        return column.ravel(), _offsets_of(np.full(column.shape[0], column.shape[1]))
    if not isinstance(column, Sequence) and getattr(column, "dtype", None) == np.object_ and np.ndim(column) == 1:
        column = list(column)  # of arrays, as pandas keeps them
    if isinstance(column, Sequence) and not isinstance(column, str) and not all(map(_is_single, column)):
        return _joined(column, field)
    return column, None


def _joined(pages: Sequence[Any], field: str) -> tuple[Any, NDArray[np.int64]]:
    """The values of lists with one list per page."""
    rows = []
    for page, values in enumerate(pages):
        if values is None:
            _refuse_missing_page(field, page)
        try:
            row = np.asarray(values)
        except ValueError:
            row = np.asarray(None)
        if row.ndim != 1:
            problem = "is a single value or a list of lists, but must be one list of crawls, as other pages have"
            raise InvalidInput(problem, field=field, row=page)
        rows.append(row)
    offsets = _offsets_of(np.array([len(row) for row in rows]))
    if all(row.dtype.kind in "biuf" for row in rows):
        return np.concatenate(rows), offsets
    return [value for values in pages for value in values], offsets


def _is_single(value: Any) -> bool:
    """Whether a value stands for itself in a flat list; None might stand for a missing page."""
    return value is None or bool(np.isscalar(value))


def _is_empty_list(column: Any) -> bool:
    return isinstance(column, (list, tuple)) and len(column) == 0


def _refuse_missing_page(field: str, page: int) -> None:
    raise InvalidInput("is missing: a page without crawls needs an empty list", field=field, row=page)


def _offsets_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _check_offsets(offsets: Any, rows: int) -> NDArray[np.int64]:
    numbers = check_codes(offsets, "offsets", rows + 1)
    if not len(numbers) or numbers[0] != 0 or numbers[-1] != rows or (np.diff(numbers) < 0).any():
        raise InvalidInput(f"must rise from 0 to the number of observations, {rows}", field="offsets")
    return numbers
