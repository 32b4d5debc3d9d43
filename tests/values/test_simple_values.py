"""One contract for every value without noisy signals: accuracy, limits, the way back from a price, bad input."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl import values
from recrawl.errors import InvalidInput

mp = mpmath.mp.clone()
mp.dps = 60
mpf = mp.mpf
HUGE = 1e300
TINY = 1e-300


def g(x: Any) -> Any:
    return 1 - (1 + x) * mp.exp(-x)


def h(x: Any) -> Any:
    return x - 1 + mp.exp(-x)


def expected_fresh_time(shape: Any, exposure: Any, elapsed: Any) -> Any:
    z = elapsed / exposure
    if shape == 1:
        return exposure * mp.log(1 + z)
    return exposure / (shape - 1) * (1 - (1 + z) ** (1 - shape))


def uncertain_freshness(importance: Any, shape: Any, exposure: Any, elapsed: Any) -> Any:
    fresh_time = expected_fresh_time(shape, exposure, elapsed)
    return importance * (fresh_time - elapsed * (1 + elapsed / exposure) ** -shape)


def uncertain_harmonic(importance: Any, shape: Any, exposure: Any, elapsed: Any) -> Any:
    return importance * (elapsed - expected_fresh_time(shape, exposure, elapsed))


@dataclass(frozen=True)
class Case:
    """A value, its due time and its slow twin.

    `ranges` are the logarithms between which parameters are drawn; the first parameter is the importance (or the
    gain) and the values scale with it. `clock` gives the time scale on which V bends.
    """

    value: Callable[..., Any]
    due: Callable[..., Any]
    twin: Callable[..., Any]
    ranges: dict[str, tuple[float, float]]
    clock: Callable[..., float]
    tolerance: float = 1e-12

    def draw(self, rng: np.random.Generator) -> list[float]:
        return [float(10 ** rng.uniform(*ends)) for ends in self.ranges.values()]


CASES = {
    "freshness": Case(
        values.freshness_value,
        values.freshness_due,
        lambda m, d, t: m / d * g(d * t),
        {"importance": (-9, 9), "change_rate": (-9, 9)},
        lambda _, d: 1 / d,
    ),
    "harmonic": Case(
        values.harmonic_value,
        values.harmonic_due,
        lambda m, d, t: m / d * h(d * t),
        {"importance": (-9, 9), "change_rate": (-9, 9)},
        lambda _, d: 1 / d,
    ),
    "saturating": Case(
        values.saturating_value,
        values.saturating_due,
        lambda m, k, t: m / k * g(k * t),
        {"gain": (-9, 9), "decay": (-9, 9)},
        lambda _, k: 1 / k,
    ),
    "uncertain freshness": Case(
        values.uncertain_freshness_value,
        values.uncertain_freshness_due,
        uncertain_freshness,
        {"importance": (-9, 9), "shape": (-3, 6), "exposure": (-9, 9)},
        lambda _, k, e: e / k,
        tolerance=1e-10,
    ),
    "uncertain harmonic": Case(
        values.uncertain_harmonic_value,
        values.uncertain_harmonic_due,
        uncertain_harmonic,
        {"importance": (-9, 9), "shape": (-3, 6), "exposure": (-9, 9)},
        lambda _, k, e: e / k,
        tolerance=1e-10,
    ),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
EXTREMES = [0.0, 5e-324, 1e-310, TINY, 1e-150, 1.0, 1e150, HUGE, 1.7e308]


@every_case
def test_value_agrees_with_mpmath(case: Case) -> None:
    """Elapsed times from 1e-12 to 1e6 of the page's own time scale, parameters over 18 decades."""
    rng = np.random.default_rng(7)
    for log_x in rng.uniform(-12, 6, 120):
        parameters = case.draw(rng)
        elapsed = float(10**log_x) * case.clock(*parameters)
        exact = case.twin(*map(mpf, parameters), mpf(elapsed))
        value = case.value(*parameters, elapsed)
        if exact < TINY:
            assert 0.0 <= value <= 2 * TINY
        else:
            assert abs(mpf(value) - exact) <= case.tolerance * exact


@every_case
def test_due_time_is_when_the_value_reaches_the_price(case: Case) -> None:
    """At the due time V is the price (or jumps past it); shortly before it is not above."""
    rng = np.random.default_rng(8)
    for log_x in rng.uniform(-9, 1.0, 120):
        parameters = case.draw(rng)
        price = case.value(*parameters, float(10**log_x) * case.clock(*parameters))
        due = case.due(*parameters, price)
        if price < TINY:  # such a price has no digits left
            assert due >= 0.0
        elif due < math.inf:
            assert case.value(*parameters, due) >= price * (1 - 1e-12)
            assert case.value(*parameters, due * (1 - 1e-9)) <= price * (1 + 1e-12)
        else:  # only where V has reached its bound to the last digit
            assert case.value(*parameters, math.inf) <= price * (1 + 1e-12)


@every_case
def test_limits_of_time_and_price(case: Case) -> None:
    """Nothing is due at price 0 but at once; no page is ever worth an infinite price."""
    parameters = [2.0, 3.0, 4.0][: len(case.ranges)]
    assert case.value(*parameters, 0.0) == 0.0
    assert case.due(*parameters, 0.0) == 0.0
    assert case.due(*parameters, math.inf) == math.inf
    assert case.value(0.0, *parameters[1:], 5.0) == 0.0
    assert case.due(0.0, *parameters[1:], 1.0) == math.inf
    bound = case.value(*parameters, math.inf)
    assert bound >= case.value(*parameters, 1e9)
    if bound < math.inf:
        assert case.due(*parameters, bound * 1.001) == math.inf


@every_case
def test_no_legal_input_gives_nan_or_a_warning(case: Case) -> None:
    """Every mixture of zero, subnormal, huge and infinite arguments has a value."""
    positive = [x for x in EXTREMES if x > 0]
    axes = [positive if name in ("shape", "exposure") else EXTREMES for name in case.ranges]
    grid = np.meshgrid(*axes, [*EXTREMES, math.inf], indexing="ij")
    assert (case.value(*grid) >= 0).all()
    assert (case.due(*grid) >= 0).all()


@every_case
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_value_never_falls_with_time_or_importance(case: Case, data: st.DataObject) -> None:
    """Waiting longer or weighing more never makes a crawl worth less."""
    parameters = case.draw(np.random.default_rng(data.draw(st.integers(0, 10**6))))
    elapsed = data.draw(st.floats(1e-9, 1e6)) * case.clock(*parameters)
    factor = data.draw(st.floats(1.0, 10.0))
    value = case.value(*parameters, elapsed)
    assert case.value(*parameters, elapsed * factor) >= value * (1 - 1e-14)
    assert case.value(parameters[0] * factor, *parameters[1:], elapsed) == pytest.approx(value * factor, rel=1e-13)


@every_case
def test_numbers_give_a_float_and_arrays_broadcast(case: Case) -> None:
    """Scalars in, a float out; columns against rows give a table; the first axis is kept."""
    parameters = [2.0, 3.0, 4.0][: len(case.ranges)]
    assert type(case.value(*parameters, 1)) is float
    table = case.value(np.array([[1.0], [2.0]]), *parameters[1:], [1.0, 2.0, 3.0])
    assert table.shape == (2, 3)
    assert table.dtype == np.float64
    assert table[1, 2] == pytest.approx(case.value(2.0, *parameters[1:], 3.0), rel=1e-15)


@every_case
def test_bad_input_is_named_with_its_place(case: Case) -> None:
    """The error names the argument, the index and the value; both directions check alike."""
    names = [*case.ranges]
    parameters: list[Any] = [2.0, 3.0, 4.0][: len(names)]
    for function, last in ((case.value, "elapsed"), (case.due, "price")):
        for place, name in enumerate([*names, last]):
            for bad in (-1.0, math.nan, -math.inf):
                arguments = [*parameters, 1.0]
                arguments[place] = [1.0, 1.0, bad]
                with pytest.raises(InvalidInput, match=rf"^{name}\[2\] is {bad}: it must be") as caught:
                    function(*arguments)
                assert (caught.value.field, caught.value.row) == (name, 2)
    with pytest.raises(InvalidInput, match=rf"^{names[0]} is inf: it must be a finite number"):
        case.value(math.inf, *parameters[1:], 1.0)


def test_shapes_that_do_not_fit_are_named() -> None:
    """Arrays that cannot be broadcast, text and ragged rows are refused in one sentence."""
    with pytest.raises(InvalidInput, match=r"shapes do not fit together: importance \(2,\), change_rate \(3,\)"):
        values.freshness_value([1, 2], [1, 2, 3], 1)
    misfits: list[Any] = ["7", None, [1, "x"], [[1], [1, 2]], 1j]
    for bad in misfits:
        with pytest.raises(InvalidInput, match=r"^change_rate must be a number or an array of numbers"):
            values.freshness_value(1, bad, 1)


def test_first_bad_entry_of_a_table_is_named_by_its_indices() -> None:
    """In a table the error gives row and column."""
    with pytest.raises(InvalidInput, match=r"^elapsed\[1, 0\] is -2\.0: it must be a number, 0 or more"):
        values.freshness_value(1, 1, [[1, 2], [-2, -3]])
