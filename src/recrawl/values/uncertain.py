"""Values where the change rate itself is uncertain: Δ ~ Gamma(shape k, rate θ), mean k/θ.

θ is a time, the `exposure`: k changes in θ is what has been seen. With z = τ/θ and L = ln(1 + z) the values are
averages of those for a known rate,

    freshness  V = μθ k ∫₀ᴸ (eᵛ − 1) e^{−kv} dv = μθ k (E(k − 1) − E(k))
    harmonic   V = μθ ∫₀ᴸ (1 − e^{−kv}) eᵛ dv   = μθ (z − E(k − 1))         E(a) = (1 − e^{−aL})/a

Both differences cancel for small z or large k. There the exponential that does not hold k is expanded, which
leaves sums of positive terms. As k and θ grow together the values tend to those of the known rate k/θ.
"""

from __future__ import annotations

import math

from recrawl.jit import exact
from recrawl.values.special import g, product, quotient

_TERMS = 14
_WIDEST = 1e300  # z beyond this is treated as this
_FACTORIALS = (
    1.0, 1.0, 2.0, 6.0, 24.0, 120.0, 720.0, 5040.0, 40320.0, 362880.0, 3628800.0, 39916800.0, 479001600.0,
    6227020800.0, 87178291200.0, 1307674368000.0,
)  # fmt: skip


@exact
def uncertain_freshness_value_kernel(importance: float, shape: float, exposure: float, elapsed: float) -> float:
    """Return μθ k (E(k − 1) − E(k))."""
    if importance == 0.0 or elapsed == 0.0:
        return 0.0
    if elapsed == math.inf:
        return quotient(importance, exposure, shape - 1.0) if shape > 1.0 else math.inf
    z = min(elapsed / exposure, _WIDEST)
    return product(importance, _span(exposure, elapsed, z), _freshness_curve(shape, z))


@exact
def uncertain_harmonic_value_kernel(importance: float, shape: float, exposure: float, elapsed: float) -> float:
    """Return μθ (z − E(k − 1))."""
    if importance == 0.0 or elapsed == 0.0:
        return 0.0
    if elapsed == math.inf:
        return math.inf
    z = min(elapsed / exposure, _WIDEST)
    return product(importance, _span(exposure, elapsed, z), _harmonic_curve(shape, z))


@exact
def uncertain_freshness_due_kernel(importance: float, shape: float, exposure: float, price: float) -> float:
    """Return the inverse of `uncertain_freshness_value_kernel` in the elapsed time."""
    level = _level(importance, exposure, price)
    if shape > 1.0 and level * (shape - 1.0) >= 1.0:
        return math.inf
    return exposure * _solve(False, shape, level)


@exact
def uncertain_harmonic_due_kernel(importance: float, shape: float, exposure: float, price: float) -> float:
    """Return the inverse of `uncertain_harmonic_value_kernel` in the elapsed time."""
    return exposure * _solve(True, shape, _level(importance, exposure, price))


@exact
def _span(exposure: float, elapsed: float, z: float) -> float:
    """Return θL: what the curves are multiples of, close to the elapsed time while that is short."""
    return exposure * math.log1p(z) if z > 1e-17 else elapsed


@exact
def _level(importance: float, exposure: float, price: float) -> float:
    """Return V/(μθ) at which V is the price."""
    if price == 0.0:
        return 0.0
    return price / importance / exposure if importance > 0.0 else math.inf


@exact
def _freshness_curve(shape: float, z: float) -> float:
    """Return V/(μθL) for binary freshness. O(1)."""
    length = math.log1p(z)
    y = min(shape * length, _WIDEST)
    if length > 0.5 and shape < 100.0:
        return shape * (_discounted(shape - 1.0, length) - _discounted(shape, length)) / length
    return _expanded_far(shape, y) if y > _TERMS else _expanded_near(length, y)


@exact
def _harmonic_curve(shape: float, z: float) -> float:
    """Return V/(μθL) for harmonic staleness. O(1)."""
    length = math.log1p(z)
    y = shape * length
    if y > 1.0:
        return (z - _discounted(shape - 1.0, length)) / length
    growth = -math.expm1(-y)
    if length > 0.5:
        return ((1.0 + z) * growth - shape * _discounted(shape - 1.0, length)) / length
    # ∫₀¹ (1 − e^{−yu}) uᵐ/m! du, by parts, for each power of L.
    moment = _last_moment(y)
    total = 0.0
    for m in range(_TERMS - 1, -1, -1):
        total = total * length + (growth / _FACTORIALS[m + 1] - y * moment)
        moment = y * moment + math.exp(-y) / _FACTORIALS[m + 1]
    return total


@exact
def _discounted(rate: float, length: float) -> float:
    """Return E(rate) = (1 − e^{−rate·L})/rate, L at rate 0."""
    return -math.expm1(-rate * length) / rate if rate != 0.0 else length


@exact
def _last_moment(y: float) -> float:
    """Return ∫₀¹ e^{−yu} uᵐ/m! du for m = `_TERMS`, as e^{−y} Σⱼ yʲ/(m + 1 + j)!; y at most about m."""
    term = math.exp(-y) / _FACTORIALS[_TERMS + 1]
    total = term
    divisor = _TERMS + 1.0
    while term > 1e-17 * total:
        divisor += 1.0
        term *= y / divisor
        total += term
    return total


@exact
def _expanded_near(length: float, y: float) -> float:
    """Return the freshness curve as y Σ Lᵐ⁻¹ ∫₀¹ e^{−yu} uᵐ/m! du from m = 1 on, each from the one after it."""
    moment = _last_moment(y)
    total = moment
    for m in range(_TERMS - 1, 0, -1):
        moment = y * moment + math.exp(-y) / _FACTORIALS[m + 1]
        total = total * length + moment
    return y * total


@exact
def _expanded_far(shape: float, y: float) -> float:
    """Return the freshness curve for large y as Σ k^{1−m} P(m + 1, y)/y from m = 1 on, P from the one before it."""
    term = math.exp(-y) * y  # Poisson(1; y)
    remaining = g(y)  # P(2, y)
    power = 1.0
    total = remaining
    for m in range(2, _TERMS):
        power /= shape
        term *= y / m
        remaining -= term
        total += power * remaining
    return total / y


@exact
def _solve(harmonic: bool, shape: float, level: float) -> float:
    """Return the z at which V/(μθ) is the level, by Newton in logarithms.

    ln V is concave in ln z, and V ≤ μθkz²/2 puts the start left of the root: no step overshoots but by rounding.
    """
    if level == 0.0 or level > _WIDEST:
        return level
    z = math.sqrt(2.0 * level / shape)
    low = 0.0
    for _ in range(100):
        length = math.log1p(z)
        reached = length * (_harmonic_curve(shape, z) if harmonic else _freshness_curve(shape, z))
        slope = _slope(harmonic, shape, z)
        if reached < level:
            low = z
        step = math.log(level / reached) * reached / (z * slope)
        following = max(z * math.exp(step), 0.5 * (low + z))
        if abs(step) <= 1e-15 or following == z or following > _WIDEST:
            break
        z = following
    return following if following <= _WIDEST else math.inf


@exact
def _slope(harmonic: bool, shape: float, z: float) -> float:
    """Return the derivative of V/(μθ) in z."""
    length = math.log1p(z)
    if harmonic:
        return -math.expm1(-shape * length)
    return shape * math.exp(-shape * length) * (z / (1.0 + z))
