"""The price at which the budget is spent exactly: one root of a falling function of the logarithm of the price."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

# Prices beyond these are not looked for. Only absurd mixtures of legal numbers need them.
LOWEST = math.log(1e-150)
HIGHEST = math.log(1e200)

_TIED = 1e-13  # width of the bracket, in ln price, below which a jump lies inside it
_MOST_STEPS = 200


class Found(NamedTuple):
    """Where the sum crosses the target, in ln price.

    `low` and `high` are equal where the sum meets the target. Where it jumps across, they lie on either side of
    the jump: pages that tie at this price are crawled at one rate or the other.
    """

    low: float
    high: float


def find_price(
    evaluate: Callable[[float], tuple[float, float]], target: float, start: float, close: float = 1e-12
) -> Found:
    """Find where a falling function of ln price meets a positive target.

    `evaluate` returns the value and its derivative by ln price (NaN if unknown: then the last two values give it).
    Newton's method on the logarithms of both, since spending is nearly a power of the price; it is kept inside a
    bracket and replaced by bisection where it does not make good progress.
    """
    low, high = -math.inf, math.inf
    x, stride, last_error = min(max(start, LOWEST), HIGHEST), 1.0, math.inf
    last_x, last_value = math.nan, math.nan
    for _ in range(_MOST_STEPS):
        value, bend = evaluate(x)
        if abs(value - target) <= close * target:
            return Found(x, x)
        if value > target:
            low = x
        else:
            high = x
        if high - low <= _TIED * max(1.0, abs(x)) or low >= HIGHEST or high <= LOWEST:
            break
        if math.isnan(bend):
            bend = _secant(x, value, last_x, last_value)
        last_x, last_value = x, value
        error = abs(math.log(value / target)) if value > 0 else math.inf
        guess = _newton(x, value, bend, target) if error < 0.5 * last_error or math.isinf(last_error) else math.nan
        if low < guess < high:
            # Where the price has no digits left to tell two rates apart, step across and share between them.
            nudge = 0.5 * _TIED * max(1.0, abs(x))
            guess = guess if abs(guess - x) > 0.2 * nudge else x + math.copysign(nudge, guess - x)
            last_error = error
        else:
            guess, last_error = _between(low, high, stride), math.inf
            stride *= 8
        x = min(max(guess, LOWEST), HIGHEST)
    if math.isinf(low) or math.isinf(high):
        return Found(x, x)
    return Found(low, high)


def _secant(x: float, value: float, last_x: float, last_value: float) -> float:
    if not (value > 0 and last_value > 0) or x == last_x:
        return math.nan
    return value * math.log(value / last_value) / (x - last_x)


def _newton(x: float, value: float, bend: float, target: float) -> float:
    if not (value > 0 and bend < 0 and math.isfinite(value) and math.isfinite(bend)):
        return math.nan
    return x - math.log(value / target) * value / bend


def _between(low: float, high: float, stride: float) -> float:
    if math.isinf(low):
        return high - stride
    if math.isinf(high):
        return low + stride
    return low + (high - low) / 2
