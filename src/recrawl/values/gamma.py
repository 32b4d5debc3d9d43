"""The Poisson distribution to full precision: its terms, its tail, the incomplete gamma function, and its inverse.

    p(n, x) = xⁿ e^{−x} / n!         probability of n events where x are expected
    P(a, x) = Σ_{n ≥ a} p(n, x)      probability of a events or more (for a whole number a)

P is the regularised lower incomplete gamma function; NCIS (Busa-Fekete et al. 2025) writes Rⁱ(x) for
P(i + 1, x). The values of pages with signals are sums of differences of such terms, so small results must
keep their digits too: the terms come from the saddle-point form of Loader ("Fast and accurate computation of
binomial probabilities", 2000), which never subtracts two large logarithms.

Scalar kernels; pure.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from recrawl.jit import exact
from recrawl.values.special import excess

_DIRECT = 30.0  # up to here x^n / n! neither overflows nor loses digits
_EPSILON = 1e-17
_FEW = 20.0  # events up to which terms are added one by one


class Share(NamedTuple):
    """The probability P(n+1, x) that more than n events came where x were expected, and of n exactly."""

    more: float
    exactly: float


@exact
def poisson_term(n: float, x: float) -> float:
    """Return xⁿ e^{−x} / Γ(n + 1) for n ≥ 0 (whole or not) and x in [0, ∞]. O(1)."""
    if x == 0.0 or math.isinf(x) or math.isinf(n):
        return 1.0 if n == 0.0 and x == 0.0 else 0.0
    if n < _DIRECT:
        return _direct_term(n, x)
    return math.exp(-_stirling_error(n) - n * _divergence(x, n)) / math.sqrt(2.0 * math.pi * n)


@exact
def lower_gamma(shape: float, x: float) -> float:
    """Return the regularised lower incomplete gamma function P(shape, x) for shape > 0 and x in [0, ∞].

    Relative error about 1e-13, also where the result is tiny. O(√shape) near x = shape, O(1) far from it.
    """
    term = poisson_term(shape, x)
    if x < shape + 1.0:
        return term * rising_series(shape, x)
    if term == 0.0:  # far above the shape
        return 1.0
    return 1.0 - term * shape * _upper_fraction(shape, x)


@exact
def rising_series(shape: float, x: float) -> float:
    """Return P(a, x)/p(a, x) = 1 + x/(a+1) + x²/((a+1)(a+2)) + …, a the shape, best for x < a + 1. O(√shape)."""
    term = 1.0
    total = 1.0
    divisor = shape
    while term > _EPSILON * total:
        divisor += 1.0
        term *= x / divisor
        total += term
    return total


@exact
def _upper_fraction(shape: float, x: float) -> float:
    """Return Legendre's continued fraction for x^{−a} e^x Γ(a, x), x ≥ a + 1, by Lentz's method. O(√shape)."""
    partial = x + 1.0 - shape
    numerator = 1e300
    denominator = 1.0 / partial
    value = denominator
    i = 0.0
    change = 0.0
    while abs(change - 1.0) > 2e-16 and i < 1e7:
        i += 1.0
        weight = -i * (i - shape)
        partial += 2.0
        denominator = 1.0 / (weight * denominator + partial)
        numerator = partial + weight / numerator
        change = numerator * denominator
        value *= change
    return value


@exact
def _direct_term(n: float, x: float) -> float:
    """Return the Poisson term by its definition, for small n."""
    if x > 2000.0:  # e^{−x} is 0 and x^n could be infinite
        return 0.0
    if x < 700.0:
        return math.exp(-x) * (math.pow(x, n) / math.gamma(n + 1.0))
    half = math.exp(-0.5 * x)
    return half * (math.pow(x, n) / math.gamma(n + 1.0)) * half


@exact
def _divergence(x: float, n: float) -> float:
    """Return x/n − 1 − ln(x/n): how unlikely n is where x are expected, per event."""
    ratio = x / n
    if 0.6 < ratio < 1.8:
        return excess((x - n) / n)
    return (ratio - 1.0) - math.log(ratio)


@exact
def _stirling_error(n: float) -> float:
    """Return ln Γ(n + 1) minus Stirling's formula, for n ≥ 30."""
    r = 1.0 / (n * n)
    return (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r * (1.0 / 1680 - r / 1188)))) / n


@exact
def poisson_of_count(n: float, x: float) -> float:
    """Return the Poisson term of a whole number, by products where they are quicker."""
    if n > 12.0 or x > 700.0:
        return poisson_term(n, x)
    term = math.exp(-x)
    j = 1.0
    while j <= n:
        term *= x / j
        j += 1.0
    return term


@exact
def share(n: float, x: float) -> Share:
    """Return both probabilities for a whole n ≥ 0. O(√n), quicker for small n."""
    if x == 0.0 or n >= _FEW or x > 700.0:
        return Share(lower_gamma(n + 1.0, x), poisson_term(n, x))
    term = math.exp(-x)
    fewer = term
    for i in range(1, int(n) + 1):
        term *= x / i
        fewer += term
    if x > n + 1.0:
        return Share(1.0 - fewer, term)
    return Share(term * x / (n + 1.0) * rising_series(n + 1.0, x), term)


@exact
def inverse_lower_gamma(shape: float, share: float) -> float:
    """Return the x with P(shape, x) = share, for 0 < share < 1 and a finite shape ≥ 1. O(√shape).

    Newton on ln P in ln x. That curve is concave and the start lies left of the root, so steps only overshoot
    where rounding makes them; a bracket holds those.
    """
    # P(a, x) ≤ x^a / Γ(a + 1), so this is a lower bound but for rounding.
    x = math.exp((math.log(share) + math.lgamma(shape + 1.0)) / shape)
    low = 0.0
    high = math.inf
    for _ in range(200):
        reached = lower_gamma(shape, x)
        if reached < share:
            low = max(low, x)
        else:
            high = min(high, x)
        step = _log_step(shape, share, x, reached)
        following = x * math.exp(step)
        if not low <= following <= high:
            following = 0.5 * low + 0.5 * high if high < math.inf else 2.0 * low
        if abs(step) <= 1e-15 or following == x or abs(reached - share) <= 1e-16 * share:
            return following
        x = following
    return x


@exact
def _log_step(shape: float, share: float, x: float, reached: float) -> float:
    """Return the Newton step in ln x."""
    if reached < 1e-300:  # P has left the floats: use the logarithm of its bound
        bound = shape * math.log(x) - x - math.lgamma(shape + 1.0)
        return (math.log(share) - bound) / (shape - x)
    slope = poisson_term(shape - 1.0, x) * x / reached
    return math.log(share / reached) / slope if slope > 0.0 else -1.0
