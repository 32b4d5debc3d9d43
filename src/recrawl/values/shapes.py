"""The two shapes most values share: V = (gain/decay)·shape(decay·elapsed).

The shape is g (bounded) or h (unbounded). Freshness has gain μ and decay Δ, captured changes have gain μΔ, a
content source has gain Pλ: one queue can hold them all as three numbers. The kernels take finite gain and
decay ≥ 0 and never overflow on the way: as decay → 0 the value tends to gain·decay·elapsed²/2, so to 0. The
array functions at the end are the bare shapes and their inverses, checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from recrawl.jit import exact, kernel
from recrawl.values.arrays import SPAN, Floats, Values, evaluate
from recrawl.values.special import ein, g, h, inverse_ein, inverse_g, inverse_h, product, quotient

_LARGEST = 1.7976931348623157e308


@exact
def amount(x: float) -> bool:
    """Whether x is a finite number ≥ 0."""
    return 0.0 <= x <= _LARGEST


@exact
def count(x: float) -> bool:
    """Whether x is a whole number ≥ 0."""
    return amount(x) and x == np.floor(x)


@exact
def finite_product(a: float, b: float) -> float:
    """The product of finite numbers ≥ 0, at most the largest float, so that no ∞·0 follows."""
    return min(a * b, _LARGEST)


@exact
def finite_sum(a: float, b: float) -> float:
    """The sum of finite numbers ≥ 0, at most the largest float."""
    return min(a + b, _LARGEST)


@exact
def bounded_value(gain: float, decay: float, elapsed: float) -> float:
    """The value (gain/decay)·g(decay·elapsed): rises to gain/decay. NaN for illegal arguments. O(1)."""
    if not (amount(gain) and amount(decay) and elapsed >= 0.0):
        return math.nan
    if gain == 0.0 or decay == 0.0:
        return 0.0
    x = decay * elapsed
    if x < 1.0:
        return product(gain, elapsed, g(x) / x) if x > 1e-150 else product(gain, elapsed, 0.5 * x)
    return gain * g(x) / decay


@exact
def bounded_due(gain: float, decay: float, price: float) -> float:
    """The elapsed time at which `bounded_value` reaches the price, infinity if it never does. O(1)."""
    if not (amount(gain) and amount(decay) and price >= 0.0):
        return math.nan
    if price == 0.0:
        return 0.0
    if gain == 0.0 or decay == 0.0 or price == math.inf:
        return math.inf
    level = quotient(price, decay, gain)
    if level < 1e-280:  # the level itself may have lost its digits
        return math.sqrt(2.0) * math.sqrt(price) / (math.sqrt(gain) * math.sqrt(decay))
    return inverse_g(level) / decay


@exact
def unbounded_value(gain: float, decay: float, elapsed: float) -> float:
    """The value (gain/decay)·h(decay·elapsed): rises like gain·elapsed. NaN for illegal arguments. O(1)."""
    if not (amount(gain) and amount(decay) and elapsed >= 0.0):
        return math.nan
    if gain == 0.0 or decay == 0.0:
        return 0.0
    x = decay * elapsed
    if x < 1e17:
        return product(gain, elapsed, h(x) / x) if x > 1e-150 else product(gain, elapsed, 0.5 * x)
    return gain * elapsed


@exact
def unbounded_due(gain: float, decay: float, price: float) -> float:
    """The elapsed time at which `unbounded_value` reaches the price. O(1)."""
    if not (amount(gain) and amount(decay) and price >= 0.0):
        return math.nan
    if price == 0.0:
        return 0.0
    if gain == 0.0 or decay == 0.0 or price == math.inf:
        return math.inf
    level = quotient(price, decay, gain)
    if level < 1e-280:
        return math.sqrt(2.0) * math.sqrt(price) / (math.sqrt(gain) * math.sqrt(decay))
    return inverse_h(level) / decay if level < 1e17 else price / gain


@kernel
def _fill_g(inputs: Floats, outputs: Floats) -> None:
    for i in range(inputs.size):
        outputs[i] = g(inputs[i])


@kernel
def _fill_h(inputs: Floats, outputs: Floats) -> None:
    for i in range(inputs.size):
        outputs[i] = h(inputs[i])


@kernel
def _fill_inverse_g(inputs: Floats, outputs: Floats) -> None:
    for i in range(inputs.size):
        outputs[i] = inverse_g(inputs[i])


@kernel
def _fill_inverse_h(inputs: Floats, outputs: Floats) -> None:
    for i in range(inputs.size):
        outputs[i] = inverse_h(inputs[i])


@kernel
def _fill_ein(inputs: Floats, outputs: Floats) -> None:
    for i in range(inputs.size):
        outputs[i] = ein(inputs[i])


@kernel
def _fill_inverse_ein(inputs: Floats, outputs: Floats) -> None:
    for i in range(inputs.size):
        outputs[i] = inverse_ein(inputs[i])


def _evaluate(fill: Callable[[Floats, Floats], None], name: str, inputs: ArrayLike) -> Values:
    """Through a plain loop, which handles several elements at once where a ufunc takes them one by one."""

    def function(column: Floats) -> Floats:
        flat = np.ascontiguousarray(column).reshape(-1)
        outputs = np.empty_like(flat)
        fill(flat, outputs)
        return outputs.reshape(column.shape)

    return evaluate(function, {name: SPAN}, inputs)


def shape_g(x: ArrayLike) -> Values:
    """The bounded shape g(x) = 1 − (1 + x)e^{−x}. O(elements)."""
    return _evaluate(_fill_g, "x", x)


def shape_h(x: ArrayLike) -> Values:
    """The unbounded shape h(x) = x − 1 + e^{−x}. O(elements)."""
    return _evaluate(_fill_h, "x", x)


def inverse_shape_g(level: ArrayLike) -> Values:
    """The x with g(x) = level; infinity from level 1 on. O(elements)."""
    return _evaluate(_fill_inverse_g, "level", level)


def inverse_shape_h(level: ArrayLike) -> Values:
    """The x with h(x) = level. O(elements)."""
    return _evaluate(_fill_inverse_h, "level", level)


def entire_exponential_integral(x: ArrayLike) -> Values:
    """Ein(x) = ∫₀ˣ (1 − e^{−t})/t dt: the expected harmonic number of a Poisson(x) count. O(elements)."""
    return _evaluate(_fill_ein, "x", x)


def inverse_entire_exponential_integral(level: ArrayLike) -> Values:
    """The x with Ein(x) = level. O(elements)."""
    return _evaluate(_fill_inverse_ein, "level", level)
