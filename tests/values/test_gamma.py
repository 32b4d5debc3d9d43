"""Poisson terms and tails against mpmath, over the whole range of shapes and far into the tails."""

from __future__ import annotations

import math
import random

import mpmath as mp
import pytest

from recrawl.values.gamma import inverse_lower_gamma, lower_gamma, poisson_term, rising_series


def _tail(shape: float, x: float) -> mp.mpf:
    with mp.workdps(40):
        return mp.gammainc(mp.mpf(shape), 0, mp.mpf(x), regularized=True)


def _term(n: float, x: float) -> mp.mpf:
    with mp.workdps(40):
        return mp.exp(n * mp.log(mp.mpf(x)) - x - mp.loggamma(mp.mpf(n) + 1))


def _points() -> list[tuple[float, float]]:
    random.seed(20)
    points = []
    for _ in range(250):
        shape = random.choice([float(random.randint(1, 60)), 10 ** random.uniform(-3, 4)])
        ratio = random.choice([10 ** random.uniform(-8, 0.5), 1 + 3 * random.gauss(0, 1) / math.sqrt(shape)])
        points.append((shape, abs(shape * ratio)))
    return points


def test_lower_gamma_agrees_with_mpmath_even_where_it_is_tiny() -> None:
    """Relative error at most 2e-13 wherever the result is a normal number."""
    for shape, x in _points():
        true = _tail(shape, x)
        if true > 1e-300:
            assert abs(lower_gamma(shape, x) / true - 1) < 2e-13, (shape, x)


def test_poisson_term_agrees_with_mpmath() -> None:
    """Relative error at most 3e-13, terms down to 1e-300."""
    for n, x in _points():
        true = _term(n, x)
        if true > 1e-300:
            assert abs(poisson_term(n, x) / true - 1) < 3e-13, (n, x)


@pytest.mark.parametrize("deviations", [-8, -3, -1, 0, 0.001, 1, 3])
def test_a_shape_of_a_hundred_thousand_keeps_its_digits(deviations: float) -> None:
    """The series and the fraction meet at x = shape without a seam."""
    shape = 1e5
    x = shape + deviations * math.sqrt(shape)
    assert abs(lower_gamma(shape, x) / _tail(shape, x) - 1) < 1e-13


def test_a_shape_of_a_million_follows_the_normal_law() -> None:
    """Temme's first correction to the normal law is good to 1e-9 there."""
    shape = 1e6
    with mp.workdps(30):
        for deviations in (-2, 0, 2):
            x = shape + deviations * mp.sqrt(shape)
            ratio = x / shape
            eta = mp.sign(ratio - 1) * mp.sqrt(2 * (ratio - 1 - mp.log(ratio)))
            start = 1 / (ratio - 1) - 1 / eta if deviations else mp.mpf(-1) / 3
            density = mp.exp(-shape * eta**2 / 2) / mp.sqrt(2 * mp.pi * shape)
            true = mp.erfc(-eta * mp.sqrt(shape / 2)) / 2 - density * start
            assert abs(lower_gamma(shape, float(x)) / true - 1) < 1e-8


def test_ends_of_the_range_are_exact() -> None:
    """0, infinity and e^{−x} come out as they are written."""
    assert lower_gamma(3.0, 0.0) == 0.0
    assert lower_gamma(3.0, math.inf) == 1.0
    assert lower_gamma(5.0, 1e300) == 1.0
    assert lower_gamma(1.0, 1e-200) == pytest.approx(1e-200, rel=1e-15)
    assert poisson_term(0.0, 0.0) == 1.0
    assert poisson_term(2.0, 0.0) == 0.0
    assert poisson_term(7.0, math.inf) == 0.0
    assert poisson_term(0.0, 1.5) == pytest.approx(math.exp(-1.5), rel=1e-15)
    assert rising_series(4.0, 0.0) == 1.0


def _rising(shape: mp.mpf, x: mp.mpf) -> mp.mpf:
    return x**shape * mp.exp(-x) / mp.gamma(shape + 1) * mp.hyp1f1(1, shape + 1, x)


def test_inverse_gamma_agrees_with_mpmath() -> None:
    """From tiny shares to shares close to 1, for small and for very large shapes."""
    for shape in (1.0, 2.0, 7.5, 60.0, 900.0):
        for share in (1e-300, 1e-60, 1e-9, 0.1, 0.5, 0.99, 1 - 1e-9):
            with mp.workdps(60):
                reached = _rising(mp.mpf(shape), mp.mpf(inverse_lower_gamma(shape, share)))
                assert abs(reached / mp.mpf(share) - 1) <= 3e-12
    for share in (1e-280, 0.5, 1 - 1e-12):
        assert inverse_lower_gamma(1e6, share) == pytest.approx(1e6, rel=0.05)
