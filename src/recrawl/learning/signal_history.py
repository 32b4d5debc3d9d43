"""Crawl histories with the signals heard between crawls.

Each crawl audits the signals since the crawl before it: so long a time, so many signals of each kind, a change or
none. `SignalHistories` holds these audits for many pages in flat arrays; it is built from logs or from arrays, and
everything is checked on the way in.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.learning.histories import CheckedCrawls, CrawlLog, check_crawls, intervals_between, read_histories
from recrawl.learning.inputs import (
    Flags,
    Integers,
    check_codes,
    check_length,
    check_made,
    check_positive,
    check_table,
    check_times,
    shown,
)
from recrawl.pages import Floats

_MOST_SIGNALS = 2**31 - 1


class SignalLog(NamedTuple):
    """One row per signal, in any order: page number, time heard, kind.

    A signal that was recorded twice is the caller's to drop.
    """

    page: Any
    time: Any
    kind: Any


@dataclass(frozen=True, slots=True)
class SignalHistories:
    """Checked audits: page i has rows `offsets[i]` to `offsets[i+1]`.

    `gaps` is the time since the crawl before, `changed` what the crawl saw, `counts[row, k]` the signals of kind k
    heard in between. Signals within `delay` after a crawl were not counted.
    """

    offsets: Integers
    gaps: Floats
    changed: Flags
    counts: NDArray[np.int32]
    kinds: tuple[Hashable, ...]
    delay: float = 0.0

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def page_of_rows(self) -> Integers:
        """The page of each audit."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def listening(self) -> Floats:
        """The time in which a signal would have been counted, per audit."""
        return self.gaps if self.delay == 0 else np.maximum(self.gaps - self.delay, 0.0)

    def telling(self) -> Flags:
        """Audits that say something: after no time and no signal a change cannot be explained."""
        telling: Flags = (self.gaps > 0) | self.counts.any(axis=1)
        return telling


def read_signal_histories(
    gaps: Any, changed: Any, counts: Any, kinds: Sequence[Hashable], offsets: Any = None
) -> SignalHistories:
    """Check audits that are in arrays already.

    Args:
        gaps: time since the crawl before, as for `read_histories`: flat with `offsets`, or one array per page.
        changed: 0 or 1, of the same form.
        counts: signals heard, one row per audit (pages one after the other) and one column per kind.
        kinds: names of the kinds of signal.
        offsets: where each page starts in the flat arrays, and the end.

    >>> audits = read_signal_histories([[1.0, 2.0]], [[0, 1]], [[0], [3]], kinds=["sitemap"])
    >>> len(audits), audits.counts.tolist()
    (1, [[0], [3]])
    """
    crawls = read_histories(gaps, changed, offsets)
    names = check_kinds(kinds)
    return SignalHistories(
        crawls.offsets, crawls.gaps, crawls.changed, _check_counts(counts, len(crawls.gaps), len(names)), names
    )


def signal_histories_from_log(
    crawls: CrawlLog,
    signals: SignalLog,
    kinds: Sequence[Hashable],
    delay: float = 0.0,
    pages: int | None = None,
) -> SignalHistories:
    """Turn logs of crawls and signals into audits. O(rows · log rows).

    A signal at the time of a crawl belongs to the interval that this crawl ends. Signals after the last crawl of a
    page wait for the next one and are left out. A signal before the first crawl of its page says nothing about any
    copy and is an error.

    Args:
        crawls: the crawls; the rows of a page in order of time.
        signals: the signals, in any order.
        kinds: the kinds of signal, as they stand in `signals.kind`; they become the columns of `counts`.
        delay: signals that come later than the change by up to this long; one that is heard within this time after a
            crawl may tell of a change that the crawl has seen already, so it is dropped (NCIS, Busa-Fekete et al.
            2025).
        pages: how many pages there are; by default one more than the largest page number of the crawls.

    >>> crawls = CrawlLog(page=[0, 0, 0], time=[0.0, 2.0, 3.0], changed=[0, 1, 0])
    >>> signals = SignalLog(page=[0, 0], time=[0.5, 2.0], kind=["feed", "feed"])
    >>> signal_histories_from_log(crawls, signals, kinds=["feed"]).counts.tolist()
    [[2], [0]]
    """
    checked = check_crawls(crawls, pages)
    names = check_kinds(kinds)
    delay = check_positive(delay, "delay", may_be_zero=True)
    check_made(signals, SignalLog, "signals", "SignalLog(page, time, kind)")
    page = check_codes(signals.page, "signal_page", len(checked.first) - 1)
    time = check_times(signals.time, "signal_time", len(page))
    kind = _check_signal_kinds(signals.kind, names, len(page))
    following = _crawl_after(checked, page, time)
    _refuse_early(checked, page, time, following)
    closed = (following > checked.first[page]) & (following < checked.first[page + 1])
    counted = closed.copy()
    counted[closed] = time[closed] - checked.time[following[closed] - 1] > delay
    intervals = intervals_between(checked)
    # Each page before this one has one interval fewer than it has crawls, and so has this page up to the crawl.
    has_crawls = np.diff(checked.first) > 0
    row = following[counted] - np.cumsum(has_crawls)[page[counted]]
    cells = np.bincount(row * len(names) + kind[counted], minlength=len(intervals) * len(names))
    return SignalHistories(
        intervals.offsets,
        intervals.end - intervals.start,
        intervals.changed,
        cells.reshape(len(intervals), len(names)).astype(np.int32),
        names,
        delay,
    )


def _crawl_after(crawls: CheckedCrawls, page: Integers, time: Floats) -> Integers:
    """Count, for each signal, the crawls before it in order of page and time; one at its very time comes after it."""
    pages = np.concatenate([page, crawls.page])
    times = np.concatenate([time, crawls.time])
    is_crawl = np.repeat([False, True], [len(page), len(crawls.page)])
    order = np.lexsort((is_crawl, times, pages))
    before = np.empty(len(order), dtype=np.int64)
    before[order] = np.cumsum(is_crawl[order])
    return before[: len(page)]


def _refuse_early(crawls: CheckedCrawls, page: Integers, time: Floats, following: Integers) -> None:
    """Refuse signals before the first crawl of their page."""
    first = crawls.first[page]
    early = following == first
    seen = early & (first < crawls.first[page + 1])
    early[seen] = time[seen] < crawls.time[first[seen]]
    if early.any():
        row = int(np.argmax(early))
        raise InvalidInput(
            f"is {float(time[row])!r}, before the first crawl of page {int(page[row])}: drop signals of pages that "
            "were not crawled yet",
            field="signal_time",
            row=row,
        )


def check_kinds(kinds: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """Check the names of the kinds of signal: one or more, all different, in a list or a column.

    >>> check_kinds(["sitemap", "feed"])
    ('sitemap', 'feed')
    """
    if isinstance(kinds, (set, frozenset)):
        raise InvalidInput("is a set, but kinds have an order: it is that of the columns; use a list", field="kinds")
    names = _values(kinds, "kinds")
    if not names:
        raise InvalidInput("is empty, but must be a list of one or more names", field="kinds")
    known: set[Hashable] = set()
    for row, name in enumerate(names):
        if not _can_be_kind(name):
            raise InvalidInput(f"is {shown(name)}, but must be a name or a number", field="kinds", row=row)
        if name in known:
            raise InvalidInput(f"is {shown(name)}, which comes twice: name every kind once", field="kinds", row=row)
        known.add(name)
    return tuple(names)


def _check_signal_kinds(column: Any, names: tuple[Hashable, ...], rows: int) -> Integers:
    """Number the kinds of signals by their place in the list of names."""
    code_of = {name: code for code, name in enumerate(names)}
    values = _values(column, "signal_kind")
    check_length(len(values), rows, "signal_kind")
    try:
        codes = np.fromiter((code_of.get(value, -1) for value in values), np.int64, len(values))
    except TypeError:
        codes = np.array([code_of.get(value, -1) if _can_be_kind(value) else -1 for value in values])
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        known = ", ".join(map(str, names))
        raise InvalidInput(f"is {shown(values[row])}, but must be one of {known}", field="signal_kind", row=row)
    return codes


def _can_be_kind(name: Any) -> bool:
    """Whether a name can be looked up: it equals itself and can be hashed."""
    try:
        hash(name)
        return name is not None and bool(name == name)
    except (TypeError, ValueError):
        return False


def _values(column: Any, field: str) -> list[Any]:
    """Plain values of a list or a column of any make; those of Arrow compare unequal to what they hold."""
    method = next((name for name in ("to_pylist", "tolist", "to_list") if hasattr(column, name)), "")
    values = getattr(column, method)() if method else column
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InvalidInput(f"is {shown(column)}, but must be a list of names", field=field)
    return list(values)


def _check_counts(counts: Any, rows: int, kinds: int) -> NDArray[np.int32]:
    table = check_table(counts, "counts", (rows, kinds), largest=_MOST_SIGNALS)
    whole = (table == np.floor(table)).all(axis=1)
    if not whole.all():
        row = int(np.argmin(whole))
        raise InvalidInput(f"is {table[row].tolist()}, but must be whole numbers, 0 or more", field="counts", row=row)
    return table.astype(np.int32)
