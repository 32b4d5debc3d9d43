"""Harmonic values with noisy signals for hot paths: a fraction of a microsecond, relative error below 1e-3.

The same quantities as `noisy_harmonic_cost` and `noisy_harmonic_cycle`, by short quadrature, fits and the table.
The cost is good to 1e-5, the value to 7e-4. A due time is one at which the value meets the price to 1e-3; where
the value hardly rises with time, that can be another time than the exact one.

Scalar kernels for pages with α > 0 and γ > 0; pure; units as in `noisy_harmonic_cycle`.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.jit import exact
from recrawl.values.noisy_harmonic_build import BLOCKS
from recrawl.values.noisy_harmonic_cycle import Shape
from recrawl.values.noisy_harmonic_table import table_ratio
from recrawl.values.special import EULER_GAMMA, ein, h, polynomial

_NODES = np.polynomial.legendre.leggauss(8)[0] * 0.5 + 0.5
_WEIGHTS = np.polynomial.legendre.leggauss(8)[1] * 0.5
_RATIOS = _WEIGHTS / _NODES
_RECIPROCALS = 1.0 / np.arange(1.0, BLOCKS + 2.0)
# x/c for Ein(x) = c ≤ 2.4, highest power first; error 1.4e-6.
_INVERSE_EIN = (
    -0.00020850694125375754, 0.0013033124196237136, -0.0005423040996810869, 0.0063046960344092795,
    0.01870444901664594, 0.06944384742748579, 0.2500125857075063, 0.999999550492792,
)  # fmt: skip
_CLOSE = 1e-5
# What next to nothing but signals makes up is exactly at an edge of the table: it belongs to the block before, always.
_EDGE = 1.0 - 1e-9


@exact
def quick_cost(a: float, n: float, precision: float) -> float:
    """The expected cost c(a, n), error 1e-5. O(1)."""
    if n == 0.0:
        return ein(a)
    s = a + n * precision
    if s > 12.0:
        r = precision / s
        share = n * r
        series = 0.5 + r * (2.0 / 3 - 0.75 * share + r * (1.5 - share * (4.0 - 2.5 * share)))
        return math.log(s) + EULER_GAMMA + r * share * series
    if s < 1e-4:
        return s - 0.25 * (s * s - n * precision * precision)
    if n > 1e6:  # so many weak signals are as good as silent changes
        return ein(s)
    total = 0.0
    whole = int(n)
    for i in range(8):
        total += _RATIOS[i] * (1.0 - math.exp(-a * _NODES[i]) * (1.0 - precision * _NODES[i]) ** whole)
    return total


@exact
def quick_inverse_ein(c: float) -> float:
    """The x with Ein(x) = c, error 2e-6. O(1)."""
    if c < 2.4:
        return c * polynomial(c, _INVERSE_EIN)
    y = math.exp(c - EULER_GAMMA)
    return y - (y / (y + 1.0 - 1.0 / (y + 3.0)) * math.exp(-y) if y < 40.0 else 0.0)


@exact
def quick_value(page: Shape, x: float, cost: float) -> float:
    """ΔV at the threshold cost = Ein(x), error 6e-4. O(1)."""
    overshoot = 0.5 * page.load * page.precision * page.precision
    base = h(x) - overshoot * math.expm1(-x)
    if x > (BLOCKS + 2.0) * page.precision:
        return base
    n, place = _place(cost, page.precision) if x > page.precision else (0, 0.0)
    if n == 0:
        return _value_before_signals(page, x)
    return base * table_ratio(n, page.ratio * page.precision, page.precision, place) if n <= BLOCKS else base


@exact
def quick_threshold(page: Shape, value: float) -> float:
    """The x at which ΔV is `value`, error 1e-3. O(1), some four evaluations of `quick_value`."""
    overshoot = 0.5 * page.load * page.precision * page.precision
    x = _threshold_guess(page, value, overshoot)
    low, high = 0.0, math.inf
    elasticity = 0.0
    last_step = 0.0
    last_error = 0.0
    for _ in range(40):
        here = quick_value(page, x, ein(x))
        error = math.log(value / here)
        if abs(error) < _CLOSE:
            break
        low, high = (x, high) if error > 0.0 else (low, x)
        if last_step == 0.0:
            rise = -math.expm1(-x)
            elasticity = min(max(x * (rise + overshoot * (1.0 - rise)) / (h(x) + overshoot * rise), 1.0), 2.0)
        else:
            elasticity = min(max((last_error - error) / last_step, 0.7), 2.5)
        last_step = error / elasticity
        last_error = error
        trial = x * math.exp(min(max(last_step, -2.0), 2.0))
        if not low < trial < high:
            trial = math.sqrt(low * high) if low > 0.0 else 0.5 * high
            last_step = math.log(trial / x)
        if high - low < _CLOSE * low:  # the table leaps a little between its blocks
            break
        x = trial
    return x


@exact
def _threshold_guess(page: Shape, value: float, overshoot: float) -> float:
    """A first guess, right within a factor of 2."""
    signals = page.load * value
    x = 0.5 * (signals + math.sqrt(signals * signals + 8.0 * signals / page.ratio))
    if x < page.precision:  # one signal starts a crawl: κΔV is about x·kx/(2 + kx)
        return x
    x = 2.0 * value / (overshoot + math.sqrt(overshoot * overshoot + 2.0 * value))
    return x if x < 1.0 else max(1.0, value + 1.0 - overshoot)


@exact
def quick_boundary(x: float, n: float, precision: float) -> float:
    """The a at which a page with n signals reaches the threshold Ein(x); 0 if it has passed it. O(1)."""
    if n == 0.0:
        return x
    cost = ein(x)
    if n * precision >= x or quick_cost(0.0, n, precision) >= cost:
        return 0.0
    a = x - n * precision
    for _ in range(20):
        # ∂c/∂a is close to that of a page without signals at the same cost.
        step = (quick_cost(a, n, precision) - cost) * x / -math.expm1(-x)
        a = max(a - step, 0.0)
        if abs(step) <= _CLOSE * x:
            break
    return a


@exact
def _place(cost: float, precision: float) -> tuple[int, float]:
    """How many signals alone cost less, at most 21, and where from 0 to 1 the cost is on the way to one more."""
    if precision < 1e-6:
        # Bounded before it becomes an integer: a large float does not fit into one.
        n = int(min(cost / precision, BLOCKS + 1.0))
        return n, min(cost / precision - n, 1.0)
    reached = 0.0
    miss = 1.0
    for n in range(BLOCKS + 1):
        miss *= 1.0 - precision
        step = (1.0 - miss) * _RECIPROCALS[n]
        if reached + step > cost * _EDGE:
            return n, min((cost - reached) / step, 1.0)
        reached += step
    return BLOCKS + 1, 0.0


@exact
def _value_before_signals(page: Shape, x: float) -> float:
    """ΔV where the first signal starts a crawl: (1/κ) ∫₀ˣ (1 − e^{−ka})(1 − e^{−a})/a da."""
    z = page.ratio * x
    if z < 1e-3:  # the first factor is ka(1 − ka/2)
        return h(x) * (page.ratio / page.load) * (1.0 - z / 3.0)
    if x < 1e-3:  # the second is 1 − a/2
        return h(z) / z * (x / page.load) * (1.0 - 0.29 * x)
    return (ein(x) + ein(z) - ein(z + x)) / page.load
