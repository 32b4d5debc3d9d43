"""What each value without noisy signals promises beyond the common contract: limits, counts, deadlines."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest

from recrawl import values
from recrawl.errors import InvalidInput
from recrawl.values.laws import new_page_deadline_kernel, new_page_value_kernel, source_market_value_kernel

mp = mpmath.mp.clone()
mp.dps = 60
mpf = mp.mpf
source_market_value = np.vectorize(source_market_value_kernel, otypes=[float])
new_page_value = np.vectorize(new_page_value_kernel, otypes=[float])
new_page_deadline = np.vectorize(new_page_deadline_kernel, otypes=[float])


def uncertain_values(shape: Any, elapsed: Any) -> tuple[Any, Any]:
    """Freshness and harmonic value for importance and exposure 1."""
    fresh_time = mp.log(1 + elapsed) if shape == 1 else (1 - (1 + elapsed) ** (1 - shape)) / (shape - 1)
    return fresh_time - elapsed * (1 + elapsed) ** -shape, elapsed - fresh_time


def test_a_page_that_never_changes_is_worth_nothing() -> None:
    """With change rate or decay 0 the value is its limit 0 for any elapsed time, and it is never due."""
    for elapsed in (0.0, 1.0, 1e300, math.inf):
        assert values.freshness_value(5, 0, elapsed) == 0.0
        assert values.harmonic_value(5, 0, elapsed) == 0.0
        assert values.saturating_value(5, 0, elapsed) == 0.0
    assert values.freshness_due(5, 0, 1) == math.inf
    assert values.harmonic_due(5, 0, 1) == math.inf


def test_freshness_is_bounded_and_harmonic_is_not() -> None:
    """A page with μ/Δ at the price is never crawled for freshness, always for harmonic staleness."""
    assert values.freshness_value(6, 2, math.inf) == 3.0
    assert values.freshness_due(6, 2, 3) == math.inf
    assert values.harmonic_value(6, 2, math.inf) == math.inf
    assert 0 < values.harmonic_due(6, 2, 1e12) < math.inf


def test_values_near_the_edge_of_the_floats_keep_their_digits() -> None:
    """Where a product of two parameters overflows, the value of all three is still right."""
    for m, d, t in ((1e200, 1e-100, 1e90), (1e-300, 1e-250, 1e260), (1e190, 1e-150, 1e130), (1e250, 1e-5, 1e10)):
        x = mpf(d) * mpf(t)
        exact = mpf(m) / mpf(d) * (x - 1 + mp.exp(-x))
        assert abs(mpf(values.harmonic_value(m, d, t)) - exact) <= 1e-12 * exact
        assert values.harmonic_due(m, d, float(exact)) == pytest.approx(t, rel=1e-12)
    assert values.harmonic_due(1e-100, 1e200, 1e200) == pytest.approx(1e300, rel=1e-12)


def test_source_in_the_market_counts_only_pages_worth_the_price() -> None:
    """V stops growing at τ* = ln(P/price)/κ; a source whose pages are not worth the price is worth nothing."""
    profit, rate, decay, price = 5.0, 3.0, 0.2, 1.0
    deadline = math.log(5.0) / decay
    assert new_page_deadline(profit, decay, price) == pytest.approx(deadline, rel=1e-15)
    early = source_market_value(profit, rate, decay, 0.5 * deadline, price)
    assert early == values.saturating_value(profit * rate, decay, 0.5 * deadline)
    late = source_market_value(profit, rate, decay, [deadline, 99.0, math.inf], price)
    np.testing.assert_allclose(late, values.saturating_value(profit * rate, decay, deadline), rtol=1e-14)
    assert source_market_value(profit, rate, decay, 9.0, [5.0, 6.0, math.inf]).tolist() == [0, 0, 0]
    assert source_market_value(profit, rate, decay, 9.0, 0.0) == values.saturating_value(profit * rate, decay, 9.0)


def test_new_page_loses_value_until_its_deadline() -> None:
    """P e^{−κa} meets the price at the deadline, also where profit and price nearly agree."""
    for profit, decay, price in ((5.0, 0.2, 1.0), (1 + 1e-9, 3.0, 1.0), (1e300, 0.1, 1e-300), (2.0, 1e-9, 1.5)):
        deadline = new_page_deadline_kernel(profit, decay, price)
        exact = mp.log(mpf(profit) / mpf(price)) / mpf(decay)
        assert abs(mpf(deadline) - exact) <= 1e-14 * exact
        assert new_page_value(profit, decay, deadline) == pytest.approx(price, rel=1e-12)
    assert new_page_deadline([2, 2, 0], [0, 1, 1], [1, 0, 0]).tolist() == [math.inf] * 3
    assert new_page_deadline([1, 1, 0], [0, 1, 1], 2).tolist() == [0, 0, 0]
    assert new_page_value(3, [0, 1, 0], math.inf).tolist() == [3, 0, 3]


def test_uncertain_rates_tend_to_the_known_rate() -> None:
    """With much evidence the values are those of the mean rate."""
    elapsed, rate, shape = np.logspace(-6, 4, 40), 0.25, 1e12
    known = values.freshness_value(2, rate, elapsed)
    np.testing.assert_allclose(values.uncertain_freshness_value(2, shape, shape / rate, elapsed), known, rtol=1e-9)
    known = values.harmonic_value(2, rate, elapsed)
    np.testing.assert_allclose(values.uncertain_harmonic_value(2, shape, shape / rate, elapsed), known, rtol=1e-9)


def test_uncertain_values_are_smooth_where_formulas_meet() -> None:
    """Shapes at and beside 1, and elapsed times on both sides of every switch, agree with mpmath."""
    for shape in (1.0, 1 + 1e-12, 1 - 1e-9, 99.9, 100.1, 28.0, 0.01):
        for elapsed in (math.expm1(0.5) * 0.999999, math.expm1(0.5) * 1.000001, 1 / shape, 14 / shape, 15 / shape):
            by_freshness, by_staleness = uncertain_values(mpf(shape), mpf(elapsed))
            value = mpf(values.uncertain_freshness_value(1.0, shape, 1.0, elapsed))
            assert abs(value - by_freshness) <= 1e-12 * by_freshness
            value = mpf(values.uncertain_harmonic_value(1.0, shape, 1.0, elapsed))
            assert abs(value - by_staleness) <= 1e-12 * by_staleness


def test_shape_and_exposure_must_be_above_zero() -> None:
    """A Gamma distribution with parameter 0 does not exist."""
    with pytest.raises(InvalidInput, match=r"^shape is 0\.0: it must be a finite number above 0"):
        values.uncertain_freshness_value(1, 0, 1, 1)
    with pytest.raises(InvalidInput, match=r"^exposure is inf: it must be a finite number above 0"):
        values.uncertain_harmonic_due(1, 1, math.inf, 1)
