"""Logs of crawls and signals become audits, whatever their order; what cannot be used is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from recrawl.errors import InvalidInput
from recrawl.learning.histories import CrawlLog, intervals_of
from recrawl.learning.signal_history import SignalLog, read_signal_histories, signal_histories_from_log

CRAWLS = CrawlLog([0, 1, 0, 0, 1], [0.0, 1.0, 2.0, 5.0, 6.0], [0, 0, 1, 0, 1])


def test_logs_become_audits() -> None:
    """Signals are counted in the interval they fall in; one at the time of a crawl belongs to what that crawl ends."""
    signals = SignalLog([0, 0, 1, 0, 0], [1.0, 2.0, 3.0, 2.5, 9.0], ["feed", "feed", "ping", "ping", "feed"])
    histories = signal_histories_from_log(CRAWLS, signals, ["feed", "ping"])
    assert histories.offsets.tolist() == [0, 2, 3]
    assert histories.gaps.tolist() == [2.0, 3.0, 5.0]
    assert histories.changed.tolist() == [True, False, True]
    assert histories.counts.tolist() == [[2, 0], [0, 1], [0, 1]]


def test_signals_soon_after_a_crawl_are_dropped_by_the_delay_rule() -> None:
    """They may tell of what the crawl has seen; the time in which nothing counts is no time of listening."""
    signals = SignalLog([0, 0], [2.5, 3.5], ["feed", "feed"])
    histories = signal_histories_from_log(CRAWLS, signals, ["feed"], delay=1.0)
    assert histories.counts.tolist() == [[0], [1], [0]]
    assert histories.listening().tolist() == [1.0, 2.0, 4.0]


def test_the_order_of_rows_at_one_time_and_of_signals_does_not_matter() -> None:
    """Two crawls at once, and signals in any order, give the same audits."""
    signals = SignalLog(np.array([0, 1, 0]), np.array([1.5, 3.0, 4.0]), np.array(["feed", "feed", "feed"]))
    first = signal_histories_from_log(CrawlLog([0, 0, 0, 1, 1], [0, 3, 3, 1, 4], [0, 1, 0, 0, 0]), signals, ["feed"])
    back = SignalLog(*(np.asarray(column)[::-1] for column in signals))
    second = signal_histories_from_log(CrawlLog([0, 1, 0, 1, 0], [0, 1, 3, 4, 3], [0, 0, 0, 0, 1]), back, ["feed"])
    for name in ("offsets", "gaps", "changed", "counts"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


@pytest.mark.parametrize(
    "kind",
    [
        pa.array(["feed", "ping", "feed"]),
        pa.array(["feed", "ping", "feed"]).dictionary_encode(),
        pa.chunked_array([["feed"], ["ping", "feed"]]),
        np.array(["feed", "ping", "feed"]),
        ("feed", "ping", "feed"),
    ],
    ids=["arrow", "arrow dictionary", "arrow chunks", "array", "tuple"],
)
def test_kinds_may_stand_in_any_column(kind: Any) -> None:
    """Arrow columns, also with a dictionary, name kinds as lists do, in the log and in the list of kinds."""
    signals = SignalLog(pa.array([0, 0, 1]), pa.array([1.0, 1.5, 3.0]), kind)
    histories = signal_histories_from_log(CRAWLS, signals, cast("Any", pa.array(["feed", "ping"])))
    assert histories.kinds == ("feed", "ping")
    assert histories.counts.tolist() == [[1, 1], [0, 0], [1, 0]]


def test_many_signals_are_counted_as_by_hand() -> None:
    """The merge of two sorted logs agrees with a plain loop."""
    random = np.random.default_rng(4)
    page, time = random.integers(0, 5, 200), np.sort(random.integers(0, 60, 200)).astype(float)
    heard_page, heard_time = random.integers(0, 5, 300), random.integers(20, 80, 300).astype(float)
    intervals = intervals_of(CrawlLog(page, time, np.zeros(200, int)))
    log = SignalLog(heard_page, heard_time, np.zeros(300, int))
    histories = signal_histories_from_log(CrawlLog(page, time, np.zeros(200, int)), log, [0], delay=2.0)
    for row, owner in enumerate(intervals.page_of_rows()):
        start, end = intervals.start[row], intervals.end[row]
        inside = (heard_page == owner) & (heard_time > start + 2.0) & (heard_time <= end)
        assert histories.counts[row, 0] == inside.sum()


@pytest.mark.parametrize(
    ("make", "field", "row"),
    [
        (lambda: intervals_of(CrawlLog([0, 0], [1.0, np.nan], [0, 0])), "time", 1),
        (lambda: intervals_of(CrawlLog([0, 1, 0], [3.0, 1.0, 2.0], [0, 0, 0])), "time", 2),
        (lambda: intervals_of(CrawlLog([0, 0], [1.0, 2.0], [0, 2])), "changed", 1),
        (lambda: intervals_of(CrawlLog([0, -1], [1.0, 2.0], [0, 1])), "page", 1),
        (lambda: intervals_of(CrawlLog([0, 3], [1.0, 2.0], [0, 1]), pages=3), "page", 1),
        (lambda: signal_histories_from_log(CRAWLS, SignalLog([0, 1], [1, 0.5], ["a"] * 2), ["a"]), "signal_time", 1),
        (lambda: signal_histories_from_log(CRAWLS, SignalLog([0, 1], [1, np.inf], ["a"] * 2), ["a"]), "signal_time", 1),
        (lambda: signal_histories_from_log(CRAWLS, SignalLog([2], [1.0], ["a"]), ["a"]), "signal_page", 0),
        (lambda: signal_histories_from_log(CRAWLS, SignalLog([0], [1.0], ["b"]), ["a"]), "signal_kind", 0),
        (lambda: signal_histories_from_log(CRAWLS, SignalLog([], [], []), ["a", "a"]), "kinds", 1),
        (lambda: signal_histories_from_log(CRAWLS, SignalLog([], [], []), "abc"), "kinds", None),
        (lambda: signal_histories_from_log(CRAWLS, SignalLog([], [], []), [{}]), "kinds", 0),  # type: ignore[list-item]
        (lambda: signal_histories_from_log(CRAWLS, SignalLog([], [], []), ["a"], delay="x"), "delay", None),  # type: ignore[arg-type]
        (lambda: signal_histories_from_log(CRAWLS, SignalLog([], [], []), ["a"], pages=-1), "pages", None),
        (lambda: signal_histories_from_log(CRAWLS, SignalLog([], [], []), ["a"], pages="x"), "pages", None),  # type: ignore[arg-type]
        (lambda: signal_histories_from_log(CRAWLS, SignalLog([0], [1.0], [["a"]]), ["a"]), "signal_kind", 0),
        (lambda: signal_histories_from_log(CRAWLS, SignalLog([0, 0], [1, 1], ["a", None]), ["a"]), "signal_kind", 1),
        (lambda: signal_histories_from_log(CRAWLS, SignalLog([0], [1.0], "a"), ["a"]), "signal_kind", None),
        (lambda: signal_histories_from_log(CRAWLS, SignalLog([0], [1.0], 5), ["a"]), "signal_kind", None),
        (lambda: signal_histories_from_log(CRAWLS, SignalLog([0], ["x"], ["a"]), ["a"]), "signal_time", 0),
        (lambda: signal_histories_from_log(CRAWLS, SignalLog([0], [1e300], ["a"]), ["a"]), "signal_time", 0),
        (lambda: signal_histories_from_log(CRAWLS, SignalLog([2**63], [1.0], ["a"]), ["a"]), "signal_page", 0),
        (lambda: signal_histories_from_log(CRAWLS, [], ["a"]), "signals", None),  # type: ignore[arg-type]
        (lambda: signal_histories_from_log([], SignalLog([], [], []), ["a"]), "log", None),  # type: ignore[arg-type]
        (lambda: read_signal_histories([1.0], [0], [["x"]], ["a"]), "counts", 0),
        (lambda: read_signal_histories([1.0, 1.0], [0, 0], [[1], [2**31]], ["a"]), "counts", 1),
        (lambda: signal_histories_from_log(CRAWLS, SignalLog([], [], []), ["a"], delay=-1.0), "delay", None),
        (lambda: read_signal_histories([1.0, -2.0], [0, 1], [[0], [1]], ["a"]), "gaps", 1),
        (lambda: read_signal_histories([1.0, 2.0], [0, 1], [[0], [0.5]], ["a"]), "counts", 1),
        (lambda: read_signal_histories([1.0, 2.0], [0, 1], [[0], [-1]], ["a"]), "counts", 1),
        (lambda: read_signal_histories([1.0, 2.0], [0, 1], [[0, 1]], ["a"]), "counts", None),
    ],
)
def test_bad_input_is_refused_with_the_row_named(make: Callable[[], object], field: str, row: int | None) -> None:
    """The error says which column and which row are at fault."""
    with pytest.raises(InvalidInput) as caught:
        make()
    assert (caught.value.field, caught.value.row) == (field, row)
