"""Rates of pages whose every change is known."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.special import gammainc

from recrawl.errors import InvalidInput
from recrawl.learning.complete import complete_posterior, complete_rate, gamma_quantiles, log_means

COUNTS = np.array([0, 1, 2, 7, 60, 1000, 1_000_000])


def test_rate_is_the_smoothed_count() -> None:
    """Half a change in half a unit of time is added to what was seen."""
    np.testing.assert_allclose(complete_rate([0, 3, 10], [0.0, 9.5, 4.5]), [1.0, 0.35, 2.1])
    assert complete_rate(3, 9.5, fake_time=0.25) == pytest.approx(3.5 / 9.75)


@pytest.mark.parametrize("share", [1e-16, 0.001, 0.05, 0.5, 0.95, 0.999, 1 - 1e-15])
def test_quantiles_of_many_changes_are_exact(share: float) -> None:
    """From 100,000 changes on a series replaces the search; Newton's step from it, in 40 digits, goes nowhere."""
    for shape in (1e5, 1e5 + 0.5, 1e6):
        quantile = float(gamma_quantiles(np.array([shape]), share)[0])
        assert abs(_newton_step(shape, share, quantile)) < 1e-13 * quantile


def _newton_step(shape: float, share: float, x: float) -> float:
    """How far the x with P(shape, x) = share lies from this one."""
    with mpmath.workdps(40):
        density = mpmath.exp((shape - 1) * mpmath.log(x) - x - mpmath.loggamma(shape))
        term, total, n = mpmath.mpf(1), mpmath.mpf(0), 0
        while term > 1e-30:
            total, n = total + term, n + 1
            term *= mpmath.mpf(x) / (shape + n)
        return float(x * total / shape - share / density)


def test_any_number_of_changes_has_a_posterior() -> None:
    """Up to the largest whole number that a float holds; the interval narrows as the root of the changes."""
    changes = np.array([99_999, 100_000, 10**12, 2**53])
    known = complete_posterior(changes, np.ones(4))
    assert (known.low < known.median).all()
    assert (known.median < known.high).all()
    np.testing.assert_allclose(known.high / known.low - 1, 3.2897 / np.sqrt(changes), rtol=0.01)
    assert known.median[1] / known.median[0] - 1 == pytest.approx(1e-5, rel=1e-4)  # no step where the series begins


@pytest.mark.parametrize("share", [0.001, 0.05, 0.5, 0.95, 0.999])
def test_quantiles_hold_their_share(share: float) -> None:
    """The gamma distribution function at a quantile is the share, from half a change to a million."""
    quantiles = gamma_quantiles(COUNTS + 0.5, share)
    np.testing.assert_allclose(gammainc(COUNTS + 0.5, quantiles), share, rtol=1e-9)


def test_log_means_are_the_digamma_function() -> None:
    """E[ln X] of a gamma variable, to 14 digits."""
    expected = [float(mpmath.digamma(float(count) + 0.5)) for count in COUNTS]
    np.testing.assert_allclose(log_means(COUNTS + 0.5), expected, rtol=1e-14, atol=1e-14)


def test_posterior_is_ordered_and_narrows() -> None:
    """Low, median and high are in order, around the mean, and ten times the evidence narrows the interval."""
    known = complete_posterior([4, 40], [10.0, 100.0])
    assert (known.low < known.median).all()
    assert (known.median < known.mean).all()
    assert (known.mean < known.high).all()
    assert (np.exp(known.log_mean) < known.mean).all()
    width = np.log(known.high / known.low)
    assert width[1] < 0.4 * width[0]


def test_intervals_cover_as_often_as_they_say() -> None:
    """Of rates drawn from the prior, nine in ten lie in their interval."""
    random = np.random.default_rng(1)
    rates = random.gamma(0.5, 2.0, 20_000)
    known = complete_posterior(random.poisson(rates * 5.0), np.full(20_000, 5.0))
    assert np.mean((known.low <= rates) & (rates <= known.high)) == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize(
    ("changes", "watched", "options", "field", "row"),
    [
        ([1, -1], [1.0, 1.0], {}, "changes", 1),
        ([1, 1.5], [1.0, 1.0], {}, "changes", 1),
        ([math.nan], [1.0], {}, "changes", 0),
        ([1], [math.nan], {}, "watched", 0),
        ([1, 1], [1.0, -2.0], {}, "watched", 1),
        ([1, 1], [1.0, 1.0, 1.0], {}, "watched", None),
        (["x"], [1.0], {}, "changes", 0),
        (2.5, 1.0, {}, "changes", None),
        ([1, 2**53 + 2], [1.0, 1.0], {}, "changes", 1),
        ([1, None], [1.0, 1.0], {}, "changes", 1),
        ([1], "x", {}, "watched", None),
        ([1, 1], [1.0, "x"], {}, "watched", 1),
        ([1], [1.0], {"fake_time": "x"}, "fake_time", None),
        ([1], [1.0], {"fake_time": math.inf}, "fake_time", None),
        ([1], [1.0], {"level": "x"}, "level", None),
        ([1], [1.0], {"level": math.nan}, "level", None),
        ([1], [1.0], {"fake_time": 0.0}, "fake_time", None),
        ([1], [1.0], {"level": 1.0}, "level", None),
    ],
)
def test_bad_input_is_named(
    changes: object, watched: object, options: dict[str, Any], field: str, row: int | None
) -> None:
    """The field and the row at fault are in the error."""
    with pytest.raises(InvalidInput) as caught:
        complete_posterior(changes, watched, **options)
    assert (caught.value.field, caught.value.row) == (field, row)
