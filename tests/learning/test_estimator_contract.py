"""What every estimator promises, whatever it learns and by whatever method."""

from __future__ import annotations

import dataclasses
import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from estimators import CASES, Case

from recrawl.bench.learning_histories import draw_histories
from recrawl.bench.memory import held_bytes
from recrawl.learning.histories import Histories, histories_from_log, read_histories
from recrawl.pages import Floats

DRAWN = draw_histories(400, 20, "irregular").histories
CONTRACT = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
RISING = pytest.mark.parametrize("case", [case for case in CASES if case.rises], ids=lambda case: case.name)

_THIRTY_YEARS = 10_957.0
_MILLION = 1_000_000
_RESET_PEAK = Path("/proc/self/clear_refs")


def _page(gaps: object, changed: object) -> Histories:
    return read_histories(np.asarray(gaps, dtype=np.float64), np.asarray(changed, dtype=np.bool_))


def _mixed_million() -> Histories:
    random = np.random.default_rng(4)
    return _page(random.exponential(1.0, _MILLION), random.random(_MILLION) < 0.4)


EXTREMES: dict[str, Callable[[Case], Histories]] = {
    "all changed": lambda _: _page(np.ones(50), np.ones(50)),
    "never changed": lambda _: _page(np.ones(50), np.zeros(50)),
    "one changed crawl": lambda _: _page([1.0], [1]),
    "one unchanged crawl": lambda _: _page([1.0], [0]),
    "no crawl": lambda _: _page([], []),
    "zero gaps": lambda _: _page([0.0, 0.0], [1, 0]),
    "a zero gap among others": lambda _: _page([0.0, 1.0, 2.0], [1, 0, 1]),
    "thirty years without a change": lambda _: _page([1.0, _THIRTY_YEARS], [1, 0]),
    "a change in thirty years": lambda _: _page([1.0, _THIRTY_YEARS], [0, 1]),
    "seconds and years": lambda _: _page([1e-5, _THIRTY_YEARS, 1e-5], [1, 0, 1]),
    "longest and shortest gaps": lambda case: _page([*case.gaps, *case.gaps], [1, 1, 0, 0]),
    "a million mixed crawls": lambda _: _mixed_million(),
    "a million changed crawls": lambda _: _page(np.ones(_MILLION), np.ones(_MILLION)),
    "a million unchanged crawls": lambda _: _page(np.ones(_MILLION), np.zeros(_MILLION)),
}


@CONTRACT
def test_the_same_stream_gives_the_same_estimates(case: Case) -> None:
    """Twice the same question has twice the same answer, bit for bit."""
    np.testing.assert_array_equal(case.estimate(DRAWN), case.estimate(DRAWN))


@CONTRACT
def test_order_of_subjects_is_irrelevant(case: Case) -> None:
    """Subjects in another order have the same estimates."""
    order = np.random.default_rng(2).permutation(len(DRAWN))
    shuffled, straight = case.estimate(DRAWN.pick(order)), case.estimate(DRAWN)[order]
    if case.alone:
        np.testing.assert_array_equal(shuffled, straight)
    else:  # sums over pages are rounded in another order
        np.testing.assert_allclose(shuffled, straight, rtol=1e-6)


@CONTRACT
def test_order_of_arrival_at_one_time_is_irrelevant(case: Case) -> None:
    """Crawls at the same time, of different pages or of one, may be logged in any order."""
    random = np.random.default_rng(3)
    time = np.repeat(np.arange(12.0), 40)
    page = np.tile(np.arange(20), 24)
    changed = random.random(len(time)) < 0.3
    rates = case.estimate(histories_from_log(page, time, changed))
    for _ in range(3):
        order = np.lexsort((random.random(len(time)), time))
        again = case.estimate(histories_from_log(page[order], time[order], changed[order]))
        np.testing.assert_array_equal(rates, again)


@CONTRACT
def test_inputs_are_not_changed(case: Case) -> None:
    """Arrays of the caller stay as they were."""
    copies = [DRAWN.offsets.copy(), DRAWN.gaps.copy(), DRAWN.changed.copy()]
    case.estimate(DRAWN)
    case.kept(DRAWN)
    for array, copy in zip((DRAWN.offsets, DRAWN.gaps, DRAWN.changed), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@CONTRACT
@pytest.mark.parametrize("extreme", EXTREMES)
def test_estimates_are_finite(case: Case, extreme: str) -> None:
    """Whatever was seen, an estimate is a finite number, 0 or more, and nothing overflows on the way."""
    with np.errstate(all="raise"):
        rates = case.estimate(EXTREMES[extreme](case))
    assert rates.shape == (1,)
    assert 0 <= rates[0] < np.inf


@CONTRACT
def test_no_subjects_have_no_estimates(case: Case) -> None:
    """Empty in, empty out."""
    none = Histories(np.zeros(1, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.bool_))
    assert case.estimate(none).shape == (0,)


@RISING
@pytest.mark.parametrize("crawls", [1, 7, 60, 500])
def test_more_yeses_never_lower_an_estimate(case: Case, crawls: int) -> None:
    """Of subjects observed equally often, those with more yeses have higher estimates."""
    changed = np.tri(crawls + 1, crawls, -1, dtype=np.bool_)  # page i changed i times
    rates = case.estimate(read_histories(np.ones(changed.shape), changed))
    assert (np.diff(rates) >= 0).all()
    assert rates[-1] > rates[0]


@RISING
@pytest.mark.parametrize("changes", [0, 1, 20])
def test_more_noes_never_raise_an_estimate(case: Case, changes: int) -> None:
    """Of subjects with equally many yeses, those observed longer without one have lower estimates."""
    pages = [np.arange(changes + extra) < changes for extra in range(1, 200)]
    rates = case.estimate(read_histories([np.ones(len(page)) for page in pages], pages))
    assert (np.diff(rates) <= 0).all()


@CONTRACT
def test_what_is_kept_survives_pickling(case: Case) -> None:
    """What an estimator gives can be sent to another process."""
    kept = case.kept(DRAWN)
    _assert_same(pickle.loads(pickle.dumps(kept)), kept)


@CONTRACT
def test_what_is_kept_does_not_grow_with_what_was_seen(case: Case) -> None:
    """A thousand observations of a subject leave no more behind than ten: not even a finer grid takes twice as much."""
    few, many = (len(pickle.dumps(case.kept(_page(np.ones(rows), np.arange(rows) % 3 == 0)))) for rows in (10, 1000))
    assert many < 2 * few


@CONTRACT
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_memory_does_not_grow_by_a_grid_per_page(case: Case) -> None:
    """Each subject of many takes a bounded number of bytes; a grid of rates for each page would take 400."""
    changed = np.random.default_rng(5).random((case.subjects, 2)) < 0.3
    gaps = np.random.default_rng(6).exponential(1.0, changed.shape)
    stream = read_histories(gaps, changed)
    case.estimate(DRAWN)  # compiles
    _RESET_PEAK.write_text("5")
    before = held_bytes("VmRSS")
    assert len(case.estimate(stream)) == case.subjects
    assert held_bytes("VmHWM") - before < case.bytes_per_subject * case.subjects


def _assert_same(one: object, other: object) -> None:
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, _array(other))
    elif isinstance(one, tuple):
        assert isinstance(other, tuple)
        for mine, theirs in zip(one, other, strict=True):
            _assert_same(mine, theirs)
    elif dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            _assert_same(getattr(one, field.name), getattr(other, field.name))
    elif hasattr(one, "__dict__"):
        for name, value in vars(one).items():
            _assert_same(value, vars(other)[name])
    else:
        assert one == other


def _array(value: object) -> Floats:
    assert isinstance(value, np.ndarray)
    return value
