"""The classical estimators solve their equations, whatever the gaps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from recrawl.bench.learning_histories import draw_histories
from recrawl.bench.learning_rates import error_of_log
from recrawl.errors import InvalidInput
from recrawl.learning.histories import read_histories
from recrawl.learning.rates import moments, smoothed_mle
from recrawl.pages import Floats

GAPS = st.floats(1e-5, 1e5)
CRAWLS = st.lists(st.tuples(GAPS, st.booleans()), min_size=1, max_size=12)


def _of_one_page(estimator: Callable[..., Floats], gaps: list[float] | Floats, changed: Any, **options: float) -> float:
    return float(estimator(read_histories([gaps], [changed]), **options)[0])


def _slow_mle(gaps: Floats, changed: NDArray[np.bool_]) -> float:
    """The smoothed estimate by bisection with 30 digits."""
    with mpmath.workdps(30):
        seen = [mpmath.mpf(gap) for gap in gaps[changed]] + [mpmath.mpf("0.5")]
        missed = mpmath.fsum(gaps[~changed]) + mpmath.mpf("0.5")
        low, high = mpmath.mpf("1e-6"), mpmath.mpf("1e6")
        for _ in range(90):
            rate = mpmath.sqrt(low * high)
            surplus = mpmath.fsum(gap / mpmath.expm1(gap * rate) for gap in seen) - missed
            low, high = (rate, high) if surplus > 0 else (low, rate)
        return float(low)


@given(CRAWLS, st.sampled_from([0.01, 0.5, 20.0]))
@settings(max_examples=60, deadline=None)
def test_smoothed_mle_solves_its_equation(crawls: list[tuple[float, bool]], fake_gap: float) -> None:
    """The rate is the root found with many digits, for gaps over ten decades."""
    changed = [gap for gap, flag in crawls if flag] + [fake_gap]
    unchanged = sum(gap for gap, flag in crawls if not flag) + fake_gap
    rate = _of_one_page(smoothed_mle, *map(list, zip(*crawls, strict=True)), fake_gap=fake_gap)

    def surplus(rate: float) -> float:
        return sum(gap / math.expm1(min(gap * rate, 700)) for gap in changed) - unchanged

    assert surplus(rate * (1 - 1e-9)) >= 0 >= surplus(rate * (1 + 1e-9))


@given(CRAWLS)
@settings(max_examples=60, deadline=None)
def test_moments_expect_what_was_seen(crawls: list[tuple[float, bool]]) -> None:
    """At the rate, as many changed crawls are expected as there were, or half a crawl less than all."""
    gaps, changed = map(list, zip(*crawls, strict=True))
    rate = _of_one_page(moments, gaps, changed)
    expected = min(sum(changed), len(gaps) - 0.5)

    def seen(rate: float) -> float:
        return -sum(math.expm1(-rate * gap) for gap in gaps)

    assert seen(rate * (1 - 1e-9)) * (1 - 1e-12) <= expected <= seen(rate * (1 + 1e-9)) * (1 + 1e-12)


def test_equal_gaps_have_closed_forms() -> None:
    """On regular crawls moments are −ln(1 − x/n)/gap."""
    changed = np.tri(20, 20, dtype=np.bool_)[:19]  # page i changed i + 1 times
    histories = read_histories(np.full(changed.shape, 0.25), changed)
    x = np.arange(1, 20)
    np.testing.assert_allclose(moments(histories), -np.log(1 - x / 20) / 0.25, rtol=1e-12)


def test_smoothed_mle_of_mixed_pages_equals_that_of_each_alone() -> None:
    """A batch of irregular, regular and empty pages is the pages one by one, and a slow solver agrees."""
    random = np.random.default_rng(0)
    gaps = [random.exponential(1.0, 30), np.ones(10), np.zeros(0), np.full(5, 3.0), random.exponential(9.0, 3)]
    changed = [random.random(len(page)) < 0.4 for page in gaps]
    together = smoothed_mle(read_histories(gaps, changed))
    for page in range(len(gaps)):
        assert together[page] == _of_one_page(smoothed_mle, gaps[page], changed[page])
        assert together[page] == pytest.approx(_slow_mle(gaps[page], changed[page]), rel=1e-12)


def test_a_page_without_crawls_has_the_rate_of_the_imaginary_ones() -> None:
    """One changed and one unchanged crawl of half a day: ln 2 over half a day."""
    assert _of_one_page(smoothed_mle, [], []) == pytest.approx(2 * math.log(2), rel=1e-12)


def test_rates_are_clipped_only_on_request() -> None:
    """The limits of the published code are options, one by one."""
    histories = read_histories([[100.0] * 50, [0.01] * 50], [[0] * 50, [1] * 50])
    slow, quick = smoothed_mle(histories)
    assert slow < 0.0005
    assert quick > 7
    np.testing.assert_array_equal(smoothed_mle(histories, lowest=0.0005, highest=7.0), [0.0005, 7.0])
    np.testing.assert_array_equal(smoothed_mle(histories, highest=7.0), [slow, 7.0])


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"fake_gap": 0.0}, "fake_gap"),
        ({"fake_gap": math.nan}, "fake_gap"),
        ({"lowest": -1.0}, "lowest"),
        ({"lowest": 2.0, "highest": 1.0}, "lowest"),
        ({"highest": math.inf}, "highest"),
        ({"fake_gap": "x"}, "fake_gap"),
        ({"fake_gap": "0.5"}, "fake_gap"),
        ({"fake_gap": None}, "fake_gap"),
        ({"fake_gap": [0.5]}, "fake_gap"),
        ({"fake_gap": 1e300}, "fake_gap"),
        ({"lowest": "x"}, "lowest"),
        ({"highest": True}, "highest"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], field: str) -> None:
    """An option that cannot be used is refused by name."""
    with pytest.raises(InvalidInput) as caught:
        smoothed_mle(read_histories([[1.0]], [[1]]), **options)
    assert caught.value.field == field


@pytest.mark.parametrize("estimator", [smoothed_mle, moments])
def test_what_is_no_histories_is_refused(estimator: Callable[[object], object]) -> None:
    """Lists are to be read by `read_histories` first, and the error says so."""
    with pytest.raises(InvalidInput, match="histories is a list, but must be Histories, as read_histories gives"):
        estimator([[1.0]])


@pytest.mark.parametrize(("crawls", "error"), [(14, 2.0), (98, 0.95)])
def test_smoothed_mle_is_as_inaccurate_as_published(crawls: int, error: float) -> None:
    """On rates over four decades its error is about 2.0 after 14 daily crawls and 0.95 after 98."""
    drawn = draw_histories(20_000, crawls)
    rates = smoothed_mle(drawn.histories, lowest=0.0005, highest=7.0)
    assert error_of_log(np.log(rates), drawn) == pytest.approx(error, rel=0.04)


@pytest.mark.parametrize("estimator", [smoothed_mle, moments])
def test_estimators_find_the_rate_of_many_crawls(estimator: object) -> None:
    """With 20,000 irregular crawls the rate is right to 4 %."""
    random = np.random.default_rng(6)
    gaps = random.exponential(1.0, (3, 20_000))
    rates = np.array([0.2, 1.0, 2.0])
    histories = read_histories(gaps, random.random(gaps.shape) < -np.expm1(-rates[:, None] * gaps))
    assert callable(estimator)
    np.testing.assert_allclose(estimator(histories), rates, rtol=0.04)
