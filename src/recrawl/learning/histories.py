"""Crawl histories of many pages: ragged rows in flat arrays.

An observation is one crawl: the time since the crawl before it and whether the page had changed. `Histories` holds
the observations of page i at `offsets[i]` to `offsets[i+1]`, in order of time. Everything that enters is checked
here, once; estimators trust the type. An observation that was recorded twice is the caller's to drop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.learning.crawl_log import CrawlLog, intervals_of
from recrawl.pages import LARGEST, SMALLEST, Floats


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
        rows = slice(self.offsets[page], self.offsets[page + 1])
        return self.gaps[rows], self.changed[rows]

    def pick(self, pages: NDArray[np.int64]) -> Histories:
        """Copies of the histories of these pages, in this order. O(their observations)."""
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

    >>> histories = read_histories([[1.0, 2.0], [0.5]], [[True, False], [True]])
    >>> len(histories), histories.offsets.tolist(), histories.of(1)[0].tolist()
    (2, [0, 2, 3], [0.5])
    """
    flat_gaps, own_offsets = _flatten(gaps, "gaps")
    flat_changed, changed_offsets = _flatten(changed, "changed")
    for field, flat in (("gaps", flat_gaps), ("changed", flat_changed)):
        if flat.ndim != 1:
            raise InvalidInput("must be flat, a rectangle or a list with one array per page", field=field)
    if offsets is None:
        if own_offsets is None:
            own_offsets = np.array([0, len(flat_gaps)])
        if changed_offsets is not None and not np.array_equal(own_offsets, changed_offsets):
            raise InvalidInput("has other numbers of crawls per page than gaps", field="changed")
    else:
        own_offsets = _check_offsets(offsets, len(flat_gaps))
    if len(flat_changed) != len(flat_gaps):
        raise InvalidInput(f"has {len(flat_changed)} values but gaps has {len(flat_gaps)}", field="changed")
    return Histories(own_offsets, _check_gaps(flat_gaps), _check_flags(flat_changed))


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
    return Histories(intervals.offsets, _check_gaps(intervals.end - intervals.start), intervals.changed)


def _flatten(column: Any, field: str) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
    """Flat values and, where the form shows them, offsets."""
    if hasattr(column, "combine_chunks"):  # an Arrow chunked column
        column = column.combine_chunks()
    if hasattr(column, "flatten") and hasattr(column, "value_lengths"):  # an Arrow list array
        if column.null_count:
            raise InvalidInput("is missing: a page without crawls needs an empty list", field=field)
        lengths = np.asarray(column.value_lengths(), dtype=np.int64)
        return np.asarray(column.flatten()), _offsets_of(lengths)
    if isinstance(column, np.ndarray) and column.ndim == 2:
        return column.ravel(), _offsets_of(np.full(column.shape[0], column.shape[1]))
    if isinstance(column, Sequence) and len(column) and not np.isscalar(column[0]):
        rows = [np.asarray(row) for row in column]
        return np.concatenate(rows), _offsets_of(np.array([len(row) for row in rows]))
    return np.asarray(column), None


def _offsets_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _check_offsets(offsets: Any, rows: int) -> NDArray[np.int64]:
    array = np.asarray(offsets)
    fine = array.ndim == 1 and len(array) > 0 and array.dtype.kind in "iu"
    if not fine or array[0] != 0 or array[-1] != rows or (array[1:] < array[:-1]).any():
        raise InvalidInput(f"must rise from 0 to the number of observations, {rows}", field="offsets")
    return array.astype(np.int64)


def _check_gaps(gaps: NDArray[Any]) -> Floats:
    if gaps.dtype.kind not in "fiu" and len(gaps):
        raise InvalidInput("must be numbers", field="gaps")
    numbers = np.ascontiguousarray(gaps, dtype=np.float64)
    bad = ~((numbers >= SMALLEST) & (numbers <= LARGEST)) & (numbers != 0)
    if bad.any():
        row = int(np.argmax(bad))
        gap = float(numbers[row])
        problem = f"must be at most {LARGEST:g}; use a larger unit" if gap > LARGEST else "must be a number, 0 or more"
        if 0 < gap < SMALLEST:
            problem = f"must be 0 or at least {SMALLEST:g}"
        raise InvalidInput(f"is {gap!r}, but the time since the crawl before {problem}", field="gaps", row=row)
    return numbers


def _check_flags(changed: NDArray[Any]) -> NDArray[np.bool_]:
    if changed.dtype == np.bool_:
        return np.ascontiguousarray(changed)
    numbers = np.asarray(changed)
    bad = ~((numbers == 0) | (numbers == 1))
    if len(numbers) and np.any(bad):
        row = int(np.argmax(bad))
        raise InvalidInput(f"is {numbers[row].item()!r}, but must be 0 or 1", field="changed", row=row)
    return numbers.astype(np.bool_)
