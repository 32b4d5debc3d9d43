"""The special functions against mpmath, over their whole range and at their joints."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl import values
from recrawl.errors import InvalidInput
from recrawl.jit import kernel
from recrawl.values import special
from recrawl.values.special import exp_of_minus, log_of_rest

mp = mpmath.mp.clone()
mp.dps = 60
mpf = mp.mpf
RNG = np.random.default_rng(20240229)
SMALLEST = 5e-324
LARGEST = 1.7976931348623157e308


def log_uniform(low: float, high: float, size: int) -> list[float]:
    return [float(x) for x in 10 ** RNG.uniform(low, high, size)]


def uniform(low: float, high: float, size: int) -> list[float]:
    return [float(x) for x in RNG.uniform(low, high, size)]


def around(*joints: float) -> list[float]:
    """The joints and their neighbours among the floats."""
    return [y for x in joints for y in (math.nextafter(x, 0.0), x, math.nextafter(x, math.inf))]


def worst_error(function: Callable[[float], float], twin: Callable[[Any], Any], points: Iterable[float]) -> float:
    """The largest relative error over the points."""
    worst = 0.0
    for x in points:
        exact = twin(mpf(x))
        worst = max(worst, float(abs(mpf(function(x)) - exact) / abs(exact)))
    return worst


def mp_g(x: Any) -> Any:
    return 1 - (1 + x) * mp.exp(-x)


def mp_h(x: Any) -> Any:
    return x - 1 + mp.exp(-x)


def mp_ein(x: Any) -> Any:
    return mp.euler + mp.log(x) + mp.e1(x)


def mp_inverse_g(c: Any) -> Any:
    return (-1 - mp.lambertw(-(1 - c) / mp.e, -1)).real


def mp_inverse_h(c: Any) -> Any:
    return (1 + c + mp.lambertw(-mp.exp(-1 - c))).real


ARGUMENTS = log_uniform(-12, 6, 250) + uniform(0, 60, 150) + around(1.0, 4.0, 45.0, 700.0)
LEVELS = log_uniform(-24, 0, 200) + uniform(0, 1, 100) + [1 - x for x in log_uniform(-15, 0, 100)]
HEIGHTS = log_uniform(-24, 6, 250) + uniform(0, 10, 100) + around(2.0, 700.0) + [1e300]


@pytest.mark.parametrize(
    ("function", "twin", "points", "tolerance"),
    [
        (special.g, mp_g, ARGUMENTS, 2e-15),
        (special.h, mp_h, ARGUMENTS, 2e-15),
        (special.ein, mp_ein, ARGUMENTS, 4e-15),
        (special.inverse_g, mp_inverse_g, LEVELS, 2e-15),
        (special.inverse_h, mp_inverse_h, HEIGHTS, 2e-15),
        (special.harmonic_number, mp.harmonic, [float(n) for n in (*range(1, 60), 10**3, 10**9, 10**15)], 1e-15),
        (exp_of_minus, lambda x: mp.exp(-x), [*uniform(0, 708, 100), *log_uniform(-20, 2, 50), 708.0], 1e-15),
        (log_of_rest, lambda c: mp.log(1 - c), LEVELS, 1e-15),
    ],
    ids=["g", "h", "ein", "inverse_g", "inverse_h", "harmonic_number", "exp_of_minus", "log_of_rest"],
)
def test_agrees_with_mpmath_to_the_last_digits(
    function: Callable[[float], float], twin: Callable[[Any], Any], points: list[float], tolerance: float
) -> None:
    """Relative error stays near rounding over the whole range, also on both sides of every joint."""
    assert worst_error(function, twin, points) <= tolerance


def test_inverse_ein_agrees_with_mpmath() -> None:
    """One exact Newton step from the answer moves it by rounding alone."""
    for c in [*log_uniform(-16, 0.6, 60), *uniform(0, 6, 100), *around(4.4), 20.0]:
        x = mpf(special.inverse_ein(c))
        step = (mp_ein(x) - mpf(c)) / (1 - mp.exp(-x))
        assert abs(step) <= 1e-14 * max(1.0, c)


def test_excess_keeps_its_digits_on_both_sides_of_zero() -> None:
    """The difference x − ln(1 + x) agrees with mpmath from near −1 to large x."""
    below = [-x for x in log_uniform(-12, -0.001, 100)] + [-1 + x for x in log_uniform(-15, -0.1, 40)]
    points = below + log_uniform(-12, 6, 100) + uniform(-0.9, 2, 100) + around(0.8) + [-0.4]
    assert worst_error(special.excess, lambda x: x - mp.log(1 + x), points) <= 2e-15


@pytest.mark.parametrize(
    ("function", "at_zero", "at_infinity"),
    [
        (special.g, 0.0, 1.0),
        (special.h, 0.0, math.inf),
        (special.ein, 0.0, math.inf),
        (special.inverse_g, 0.0, math.inf),
        (special.inverse_h, 0.0, math.inf),
        (special.inverse_ein, 0.0, math.inf),
        (special.harmonic_number, 0.0, math.inf),
        (special.excess, 0.0, math.inf),
    ],
)
def test_limits_are_exact_and_nothing_legal_is_nan(
    function: Callable[[float], float], at_zero: float, at_infinity: float
) -> None:
    """0 and infinity give the limit; the smallest and largest floats give a number."""
    assert function(0.0) == at_zero
    assert function(math.inf) == at_infinity
    for x in (SMALLEST, 1e-310, 1e-200, 1e200, 1e308, LARGEST):
        assert function(x) >= 0.0


def test_inverse_g_is_infinite_from_one_on() -> None:
    """The shape g never reaches 1, so its inverse is infinite there and finite just below."""
    assert special.inverse_g(1.0) == special.inverse_g(7.0) == math.inf
    assert special.inverse_g(math.nextafter(1.0, 0.0)) == pytest.approx(40.4, abs=0.1)


@given(st.floats(1e-12, 30.0))
@settings(max_examples=60, deadline=None)
def test_inverses_undo_the_functions(x: float) -> None:
    """f⁻¹(f(x)) = x as far as the function still tells its arguments apart."""
    assert special.inverse_h(special.h(x)) == pytest.approx(x, rel=1e-14)
    assert special.inverse_ein(special.ein(x)) == pytest.approx(x, rel=1e-13)
    # Near 1 a step of one float in g is a step of e^x/x floats in x.
    assert special.inverse_g(special.g(x)) == pytest.approx(x, rel=1e-14 + 3e-16 * math.exp(x) / x**2)


@given(st.floats(0.0, 1e6), st.floats(1e-9, 1.0))
@settings(max_examples=60, deadline=None)
def test_functions_never_fall(x: float, share: float) -> None:
    """A larger argument never gives a smaller result."""
    further = x * (1.0 + share) + 1e-300
    for function in (special.g, special.h, special.ein, special.inverse_h):
        assert function(further) >= function(x)


@kernel
def _all_inverses(levels: Any, outputs: Any) -> None:
    for i in range(levels.size):
        outputs[i] = special.inverse_g(levels[i]) + special.inverse_h(levels[i]) + special.g(levels[i])


def test_kernels_give_the_same_inside_a_reordered_loop() -> None:
    """A loop that handles several pages at once agrees with one page at a time."""
    levels = np.array([*LEVELS, 0.0, 1.0, 2.0, 1e308, math.inf, 1e-300])
    outputs = np.empty_like(levels)
    _all_inverses(levels, outputs)
    for level, output in zip(levels.tolist(), outputs.tolist(), strict=True):
        alone = special.inverse_g(level) + special.inverse_h(level) + special.g(level)
        assert output == pytest.approx(alone, rel=4e-15)


def test_product_and_quotient_survive_intermediate_overflow() -> None:
    """The order of the factors never matters, even where two of them alone leave the range of floats."""
    for factors in ((1e200, 1e200, 1e-250), (1e-200, 1e-200, 1e250), (1e300, 1e-300, 5.0), (0.0, 1e308, 1e308)):
        exact = float(mpf(factors[0]) * mpf(factors[1]) * mpf(factors[2]))
        for i, j, k in ((0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)):
            assert special.product(factors[i], factors[j], factors[k]) == pytest.approx(exact, rel=1e-15)
    for a, b, c in ((1e200, 1e200, 1e250), (1e-200, 1e-200, 1e-250), (1e200, 1e-200, 1e-100), (3.0, 4.0, 2.0)):
        exact = float(mpf(a) * mpf(b) / mpf(c))
        assert special.quotient(a, b, c) == pytest.approx(exact, rel=1e-15)
        assert special.quotient(b, a, c) == pytest.approx(exact, rel=1e-15)


@pytest.mark.parametrize(
    ("over_arrays", "scalar", "name"),
    [
        (values.shape_g, special.g, "x"),
        (values.shape_h, special.h, "x"),
        (values.inverse_shape_g, special.inverse_g, "level"),
        (values.inverse_shape_h, special.inverse_h, "level"),
    ],
)
def test_array_functions_keep_shape_and_refuse_bad_numbers(
    over_arrays: Callable[[Any], Any], scalar: Callable[[float], float], name: str
) -> None:
    """A number gives a float, an array an array of the same shape; a bad entry is named with its place."""
    assert isinstance(over_arrays(0.5), float)
    assert over_arrays(0.5) == pytest.approx(scalar(0.5), rel=1e-15)
    grid = np.linspace(0.0, 0.9, 12).reshape(3, 4)[:, ::2]
    answers = over_arrays(grid)
    assert answers.shape == (3, 2)
    np.testing.assert_allclose(answers, np.vectorize(scalar)(grid), rtol=2e-15)
    assert over_arrays([]).shape == (0,)
    with pytest.raises(InvalidInput, match=rf"^{name}\[1\] is -3\.0: it must be a number, 0 or more"):
        over_arrays([1, -3, -4])
