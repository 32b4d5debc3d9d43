"""What interest, new links and rhythm refuse: in one sentence, with field and row, and without a trace."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from recrawl.errors import InvalidInput
from recrawl.learning.histories import CrawlLog
from recrawl.learning.hit_histograms import HitHistograms, Interest
from recrawl.learning.interest import fit_interest
from recrawl.learning.new_links import NewLinks
from recrawl.learning.rhythm import Rhythm, fit_rhythm, fit_rhythms, flat_rhythm

NAN, INF = float("nan"), float("inf")
ONES = [[1.0]]
LOG = CrawlLog([0, 0], [0.0, 1.0], [0, 1])


def refused(make: Callable[[], object]) -> InvalidInput:
    """The error that a call raises, if it is one sentence of the right kind."""
    with pytest.raises(InvalidInput) as caught, np.errstate(all="raise"):
        make()
    sentence = str(caught.value)
    assert sentence.startswith(str(caught.value.field))
    assert "\n" not in sentence
    return caught.value


# Single numbers: every argument against everything that is no such number

MAKERS: dict[str, tuple[Callable[[Any], object], tuple[Any, ...]]] = {
    "bin_width": (lambda bad: fit_interest(ONES, ONES, bad), (0, -1.0)),
    "default_decay": (lambda bad: fit_interest(ONES, ONES, 1.0, default_decay=bad), (0, -1.0)),
    "default_profit": (lambda bad: fit_interest(ONES, ONES, 1.0, default_profit=bad), (0, -1.0)),
    "default_decay of Interest": (lambda bad: Interest(HitHistograms(1, 0.0), default_decay=bad), (0, -1.0)),
    "default_profit of Interest": (lambda bad: Interest(HitHistograms(1, 0.0), default_profit=bad), (0, -1.0)),
    "histograms of Interest": (Interest, (NewLinks(1),)),
    "sources of HitHistograms": (lambda bad: HitHistograms(bad, 0.0), (-1, 2.5)),
    "start": (lambda bad: HitHistograms(1, bad), ()),
    "bin_width of HitHistograms": (lambda bad: HitHistograms(1, 0.0, bin_width=bad), (0, -1.0)),
    "bins": (lambda bad: HitHistograms(1, 0.0, bins=bad), (0, -1, 2.5)),
    "now": (lambda bad: HitHistograms(1, 0.0).advance(bad), (-1.0, 1e59)),
    "sources": (NewLinks, (-1, 2.5)),
    "crawls": (lambda bad: NewLinks(1, crawls=bad), (0, -1, 2.5)),
    "smoothing": (lambda bad: NewLinks(1, smoothing=bad), (0, -1.0)),
    "day": (lambda bad: Rhythm(np.ones(24), np.ones(7), day=bad), (0, -1.0)),
    "origin": (lambda bad: Rhythm(np.ones(24), np.ones(7), origin=bad), ()),
    "day of flat_rhythm": (lambda bad: flat_rhythm(day=bad), (0, -1.0)),
    "day of fit_rhythm": (lambda bad: fit_rhythm(LOG, day=bad), (0, -1.0)),
    "origin of fit_rhythm": (lambda bad: fit_rhythm(LOG, origin=bad), ()),
    "day of fit_rhythms": (lambda bad: fit_rhythms(LOG, ["a"], day=bad), (0, -1.0)),
    "origin of fit_rhythms": (lambda bad: fit_rhythms(LOG, ["a"], origin=bad), ()),
    "end": (lambda bad: flat_rhythm().elapsed(0.0, bad), ()),
    "start of elapsed": (lambda bad: flat_rhythm().elapsed(bad, 0.0), ()),
}
NO_NUMBERS: tuple[Any, ...] = ("x", "1", None, True, {}, 1j, NAN, INF, -INF, 1e300, -1e300, 10**400)


@pytest.mark.parametrize("argument", MAKERS)
def test_what_is_no_such_number_is_refused_by_name(argument: str) -> None:
    """Text, nothing, truth values, infinity, what no clock shows, and what this argument does not allow."""
    make, more = MAKERS[argument]
    for bad in (*NO_NUMBERS, *more):
        error = refused(partial(make, bad))
        assert error.field == argument.split(maxsplit=1)[0], bad
        assert error.row is None


@pytest.mark.parametrize("half_life", [0, -1.0, NAN, "x", True, [1.0]])
def test_a_half_life_is_a_time_or_none(half_life: Any) -> None:
    """Infinite means the same as none."""
    assert refused(lambda: HitHistograms(1, 0.0, half_life=half_life)).field == "half_life"
    HitHistograms(1, 0.0, half_life=INF).advance(5.0)


# Columns: a fresh tracker, and a call with something wrong in a row


def record(sources: Any = (0, 1), times: Any = (1.0, 1.0), found: Any = (1, 1)) -> Callable[[Any], object]:
    return lambda links: links.record(sources, times, found)


def add_pages(sources: Any = (0, 1), times: Any = (0.0, 0.0)) -> Callable[[Any], object]:
    return lambda histograms: histograms.add_pages(sources, times)


def add_hits(sources: Any = (0, 1), ages: Any = (0.1, 0.1), hits: Any = (1, 1)) -> Callable[[Any], object]:
    return lambda histograms: histograms.add_hits(sources, ages, hits)


def advance(now: Any) -> Callable[[Any], object]:
    return lambda histograms: histograms.advance(now)


WRONG: list[tuple[Callable[[Any], object], str, int | None]] = [
    *((record(sources=bad), "sources", 1) for bad in ([0, 2], [0, -1], [0, "x"], [0, 0.5], [0, None], [0, 2**70])),
    *((record(times=bad), "times", 1) for bad in ([1.0, NAN], [1.0, INF], [1.0, "x"], [1.0, 1e300], [1.0, None])),
    *((record(found=bad), "found", 1) for bad in ([1, -1], [1, 2.5], [1, "x"], [1, NAN], [1, 2**31], [1, None])),
    (record(sources=[0, 0], times=[2.0, 1.0]), "times", 1),
    (record(times=[1.0]), "times", None),
    (record(found=[1]), "found", None),
    (record(found=3), "found", None),
    *((add_pages(sources=bad), "sources", 1) for bad in ([0, 2], [0, -1], [0, "x"], [0, 0.5])),
    *((add_pages(times=bad), "times", 1) for bad in ([0.0, 1.0], [0.0, NAN], [0.0, "x"], [0.0, -1e300])),
    (add_pages(times=[0.0]), "times", None),
    *((add_hits(sources=bad), "sources", 1) for bad in ([0, 2], [0, -1], [0, "x"], [0, 0.5])),
    *((add_hits(ages=bad), "ages", 1) for bad in ([0.1, -0.1], [0.1, NAN], [0.1, "x"], [0.1, 1e300])),
    *((add_hits(hits=bad), "hits", 1) for bad in ([1, -1], [1, NAN], [1, INF], [1, "x"], [1, 1e16], [1, 1e300])),
    (add_hits(hits=[[1, 1]]), "hits", None),
    *((advance(bad), "now", None) for bad in (-1.0, NAN, INF, 1e300, 1e59, "x", None)),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_a_refused_call_names_the_row_and_leaves_no_trace(number: int) -> None:
    """Whatever else the call would have done, nothing of it is done, so the caller may mend it and try again."""
    call, field, row = WRONG[number]
    links, histograms = NewLinks(2), HitHistograms(2, 0.0)
    links.record([0, 1, 0], [0.0, 0.0, 0.5], [0, 3, 4])
    histograms.add_pages([0, 1, 1], [0.0, 0.0, 0.0])
    histograms.add_hits([0], [0.1], [2])
    tracker = links if call.__qualname__.startswith("record") else histograms
    before = pickle.dumps(tracker)
    error = refused(lambda: call(tracker))
    assert (error.field, error.row) == (field, row)
    assert pickle.dumps(tracker) == before


@pytest.mark.parametrize(
    ("make", "field", "row"),
    [
        (lambda: fit_interest([["x"]], ONES, 1.0), "hits", 0),
        (lambda: fit_interest([[1.0], ["x"]], [[1.0], [1.0]], 1.0), "hits", 1),
        (lambda: fit_interest([[1.0], [NAN]], [[1.0], [1.0]], 1.0), "hits", 1),
        (lambda: fit_interest([[1.0], [-1.0]], [[1.0], [1.0]], 1.0), "hits", 1),
        (lambda: fit_interest([[1.0], [1e300]], [[1.0], [1.0]], 1.0), "hits", 1),
        (lambda: fit_interest([[1.0], [1.0]], [[1.0], ["x"]], 1.0), "watched", 1),
        (lambda: fit_interest([[1.0], [1.0]], [[1.0], [None]], 1.0), "watched", 1),
        (lambda: fit_interest([[1.0], [1.0]], [[1.0], [INF]], 1.0), "watched", 1),
        (lambda: fit_interest(ONES, [[1.0, 1.0]], 1.0), "watched", None),
        (lambda: fit_interest([1.0], [1.0], 1.0), "hits", None),
        (lambda: fit_interest([[1.0, 1.0], [1.0]], ONES, 1.0), "hits", None),
        (lambda: fit_interest(None, ONES, 1.0), "hits", None),
        (lambda: fit_interest("x", ONES, 1.0), "hits", None),
        (lambda: Rhythm(["x"] * 24, np.ones(7)), "hours", 0),  # type: ignore[arg-type] # what is tested
        (lambda: Rhythm([1.0] * 23 + [NAN], np.ones(7)), "hours", 23),  # type: ignore[arg-type] # what is tested
        (lambda: Rhythm(np.ones(24), [1.0] * 6 + [-1.0]), "days", 6),  # type: ignore[arg-type] # what is tested
        (lambda: Rhythm(np.ones(24), np.full(7, INF)), "days", 0),
        (lambda: Rhythm(np.ones(23), np.ones(7)), "hours", None),
        (lambda: Rhythm(np.ones((4, 6)), np.ones(7)), "hours", None),
        (lambda: Rhythm(np.zeros(24), np.ones(7)), "hours", 0),
        (lambda: Rhythm(None, np.ones(7)), "hours", None),  # type: ignore[arg-type] # what is tested
        (lambda: flat_rhythm().elapsed([0.0, NAN], 1.0), "start", 1),
        (lambda: flat_rhythm().elapsed([0.0, "x"], 1.0), "start", 1),
        (lambda: flat_rhythm().elapsed(0.0, [[1.0, 2.0], [1.0, INF]]), "end", 3),
        (lambda: flat_rhythm().elapsed(0.0, [[1.0, 2.0], [1.0]]), "end", None),
        (lambda: flat_rhythm().elapsed([0.0, 1.0], [1.0, 2.0, 3.0]), "end", None),
        (lambda: fit_rhythm(CrawlLog([0, 0], [2.0, 1.0], [0, 0])), "time", 1),
        (lambda: fit_rhythm(CrawlLog([0, 0], [0.0, 1e300], [0, 0])), "time", 1),
        (lambda: fit_rhythm(CrawlLog([0, 0], [0.0, "x"], [0, 0])), "time", 1),
        (lambda: fit_rhythm(CrawlLog([0, 0], [0.0, 1.0], [0, 2])), "changed", 1),
        (lambda: fit_rhythm(CrawlLog([0, "x"], [0.0, 1.0], [0, 0])), "page", 1),
        (lambda: fit_rhythms(CrawlLog([0, 2], [0.0, 1.0], [0, 0]), hosts=["a", "b"]), "page", 1),
        (lambda: fit_rhythms(LOG, 3), "hosts", None),  # type: ignore[arg-type] # what is tested
        (lambda: fit_rhythms(LOG, None), "hosts", None),  # type: ignore[arg-type] # what is tested
    ],
)
def test_tables_and_columns_name_what_is_wrong(make: Callable[[], object], field: str, row: int | None) -> None:
    """Histograms, factors of a rhythm, moments and logs of crawls."""
    error = refused(make)
    assert (error.field, error.row) == (field, row)


# What is legal, however odd


def test_the_largest_and_smallest_legal_numbers_are_taken() -> None:
    """Numbers at the ends of what is allowed give finite answers, and no overflow on the way."""
    with np.errstate(all="raise"):
        for hits, watched in ((1e60, 1e60), (1e60, 1e-60), (1e-60, 1e60), (5e-324, 5e-324), (0.0, 1e60)):
            for width in (1e-60, 1.0, 1e60):
                fit = fit_interest(np.full((1, 9), hits), np.full((1, 9), watched), width)
                assert np.isfinite(fit).all()
        links = NewLinks(1)
        links.record([0, 0], [-1e60, 1e60], [0, 2**31 - 1])
        links.record([0, 0], [1e60, 1e60], [2**31 - 1, 5])
        assert np.isfinite(links.rates()).all()
        rhythm = Rhythm(np.full(24, 1e60), np.array([1e-60] * 6 + [1e60]), day=1e-60, origin=-1e60)
        assert np.isfinite(rhythm.elapsed([-1e60, 0.0], 1e60)).all()
        far = CrawlLog(np.zeros(40, int), np.linspace(-1e60, 1e60, 40), np.arange(40) % 2)
        assert np.isfinite(fit_rhythm(far, day=1e-60, origin=1e60).hours).all()


def test_crawls_at_one_time_count_as_one_in_any_order() -> None:
    """The first crawl of a source opens its history however often it was recorded; later ones add up."""
    rates = []
    for order in ([0, 1, 2, 3, 4], [1, 0, 3, 4, 2], [1, 0, 4, 2, 3]):
        links = NewLinks(1, crawls=1)
        times, found = np.array([0.0, 0.0, 2.0, 2.0, 2.0]), np.array([7, 1, 0, 3, 2])
        links.record(np.zeros(5, int), times[order], found[order])
        rates.append(links.rates()[0])
    assert rates == [5.5 / 2.5] * 3


def test_a_rate_of_new_links_lies_between_the_unknown_and_what_was_seen() -> None:
    """The imaginary half link draws every rate towards that of an unknown source, never past it."""
    random = np.random.default_rng(1)
    found = random.integers(0, 5, 200)
    links = NewLinks(200, smoothing=0.5)
    unknown = links.rates()
    links.record(np.tile(np.arange(200), 2), np.repeat([0.0, 2.0], 200), np.concatenate([found * 0, found]))
    seen = found / 2.0
    assert ((links.rates() >= np.minimum(seen, unknown)) & (links.rates() <= np.maximum(seen, unknown))).all()


def test_hits_are_counted_one_by_one_beyond_single_precision() -> None:
    """After twenty million hits in a bin the next one still counts."""
    histograms = HitHistograms(1, 0.0, bins=4)
    histograms.add_hits([0], [0.0], [20_000_000])
    for _ in range(3):
        histograms.add_hits([0], [0.0], [1])
    assert histograms.hits()[0, 0] == 20_000_003
