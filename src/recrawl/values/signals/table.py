"""Harmonic values with noisy signals for hot paths: a fraction of a microsecond, relative error below 1e-3.

The same quantities as in `harmonic_cost` and `harmonic`, by short quadrature, fits and a table. The cost is good to
1e-5, the value to 7e-4. A due time is one at which the value meets the price to 1e-3; where the value hardly rises with
time, that can be another time than the exact one.

The table holds the ratio of the exact value to that of the smooth form (`smooth_cycle`), which is right where
many signals come per cycle. With x the threshold the ratio is smooth between the costs C_n and C_{n+1} of n and
n + 1 signals alone, and has kinks there that become sharp as recall λ → 1. So for each n from 1 to 20 there is
one block with the coordinates, all equally spaced,

    precision    π from 0 to 1
    certainty    ln(1 + 4θ), θ = λ/(1−λ), from 0 to recall 1 − e^{−8.5}
    stretch      ln(1 + Kη)/ln(1 + K), K = θ/(2n + 2), where η from 0 to 1 is the place of c between C_n and C_{n+1}

The stretch follows the width of the kinks. Below C_1 the value has a closed form, and above C_21 the ratio is 1
within 6e-4. `tools/build_harmonic_table.py` makes the file; the digest below names it, so that kernels compiled for
another table are not taken for current.

Scalar kernels for pages with α > 0 and γ > 0; pure; units as in `harmonic`.
"""

from __future__ import annotations

import math
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import exact, shared
from recrawl.values.signals.page import Shape
from recrawl.values.special import EULER_GAMMA, ein, h, polynomial

BLOCKS = 20
CERTAINTIES = 24
PRECISIONS = 4
STRETCHES = 18
MOST_CERTAIN = math.expm1(8.5)  # the largest θ
CERTAINTY_SCALE = 4.0
STRETCH_SCALE = 0.5
TABLE_SHA256 = "c06858a4ed7cc80a2e1ba4c584b3f04e311bcf590184d6857c92bf05fa63090d"
_CERTAINTY_STEPS = (CERTAINTIES - 1) / math.log1p(CERTAINTY_SCALE * MOST_CERTAIN)
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
# A cost that signals alone make up lies exactly at an edge of the table: it always belongs to the block before.
_EDGE = 1.0 - 1e-9


@shared
def ratios() -> NDArray[np.float32]:
    """Return the table, indexed by n − 1, certainty, precision and stretch."""
    with resources.files("recrawl.values.signals").joinpath("table.npy").open("rb") as file:
        table: NDArray[np.float32] = np.load(file)
    return table


@exact
def table_ratio(n: int, theta: float, precision: float, place: float) -> float:
    """Return the exact value over the smooth value at a place between the costs of n and n + 1 signals, n ≤ 20.

    The place is 0 at the first cost and 1 at the second. Cubic interpolation in three coordinates, error below 6e-4.
    O(1), about 60 ns.
    """
    theta = min(theta, MOST_CERTAIN)
    row, u = _cell(math.log1p(CERTAINTY_SCALE * theta) * _CERTAINTY_STEPS, CERTAINTIES)
    column, v = _cell(precision * (PRECISIONS - 1), PRECISIONS)
    steepness = STRETCH_SCALE * theta / (n + 1.0)
    if steepness > 1e-6:
        place = math.log1p(steepness * place) / math.log1p(steepness)
    first, w = _cell(place * (STRETCHES - 1), STRETCHES)
    rows = _cubic(u)
    columns = _cubic(v)
    points = _cubic(w)
    table = ratios()
    total = 0.0
    for i in range(4):
        line = 0.0
        for j in range(4):
            cell = table[n - 1, row + i, column + j]
            part = points[0] * cell[first] + points[1] * cell[first + 1]
            part += points[2] * cell[first + 2] + points[3] * cell[first + 3]
            line += columns[j] * part
        total += rows[i] * line
    return total


@exact
def _cell(place: float, size: int) -> tuple[int, float]:
    """Return the first of the four grid points around a place, and the place counted from there."""
    first = int(min(max(place - 1.0, 0.0), size - 4.0))
    return first, place - first


@exact
def _cubic(t: float) -> tuple[float, float, float, float]:
    """Return Lagrange's weights of the points 0, 1, 2, 3."""
    a, b, c = t - 1.0, t - 2.0, t - 3.0
    return -a * b * c / 6.0, t * b * c * 0.5, -t * a * c * 0.5, t * a * b / 6.0


@exact
def quick_cost(a: float, n: float, precision: float) -> float:
    """Return the expected cost c(a, n), error 1e-5. O(1)."""
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
    if n > 1e6:  # this many weak signals are as good as silent changes
        return ein(s)
    total = 0.0
    whole = int(n)
    for i in range(8):
        total += _RATIOS[i] * (1.0 - math.exp(-a * _NODES[i]) * (1.0 - precision * _NODES[i]) ** whole)
    return total


@exact
def quick_inverse_ein(c: float) -> float:
    """Return the x with Ein(x) = c, error 2e-6. O(1)."""
    if c < 2.4:
        return c * polynomial(c, _INVERSE_EIN)
    y = math.exp(c - EULER_GAMMA)
    return y - (y / (y + 1.0 - 1.0 / (y + 3.0)) * math.exp(-y) if y < 40.0 else 0.0)


@exact
def quick_value(page: Shape, x: float, cost: float) -> float:
    """Return ΔV at the threshold cost = Ein(x), error 6e-4. O(1)."""
    overshoot = 0.5 * page.signals_per_change * page.precision * page.precision
    base = h(x) - overshoot * math.expm1(-x)
    if x > (BLOCKS + 2.0) * page.precision:
        return base
    n, place = _place(cost, page.precision) if x > page.precision else (0, 0.0)
    if n == 0:
        return _value_before_signals(page, x)
    return (
        base * table_ratio(n, page.signals_per_silent_change * page.precision, page.precision, place)
        if n <= BLOCKS
        else base
    )


@exact
def quick_threshold(page: Shape, value: float) -> float:
    """Return the x at which ΔV is `value`, error 1e-3. O(1), about four evaluations of `quick_value`."""
    overshoot = 0.5 * page.signals_per_change * page.precision * page.precision
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
    """Return a first guess, right within a factor of 2."""
    signals = page.signals_per_change * value
    x = 0.5 * (signals + math.sqrt(signals * signals + 8.0 * signals / page.signals_per_silent_change))
    if x < page.precision:  # one signal starts a crawl: κΔV is about x·kx/(2 + kx)
        return x
    x = 2.0 * value / (overshoot + math.sqrt(overshoot * overshoot + 2.0 * value))
    return x if x < 1.0 else max(1.0, value + 1.0 - overshoot)


@exact
def quick_boundary(x: float, n: float, precision: float) -> float:
    """Return the a at which a page with n signals reaches the threshold Ein(x); 0 if it has passed it. O(1)."""
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
    """Return how many signals alone cost less, at most 21, and where from 0 to 1 the cost is on the way to one more."""
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
    """Return ΔV where the first signal starts a crawl: (1/κ) ∫₀ˣ (1 − e^{−ka})(1 − e^{−a})/a da."""
    z = page.signals_per_silent_change * x
    if z < 1e-3:  # the first factor is ka(1 − ka/2)
        return h(x) * (page.signals_per_silent_change / page.signals_per_change) * (1.0 - z / 3.0)
    if x < 1e-3:  # the second is 1 − a/2
        return h(z) / z * (x / page.signals_per_change) * (1.0 - 0.29 * x)
    return (ein(x) + ein(z) - ein(z + x)) / page.signals_per_change
