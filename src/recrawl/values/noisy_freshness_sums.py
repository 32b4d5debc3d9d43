"""The cycle of a page with noisy signals: how long it is and what its last crawl is worth.

Freshness after silent time τ and n signals is e^{−y} with the *level* y = ατ + n·b (names in `signal_page`).
The best policy crawls when y reaches a level. For that policy, per unit importance (NCIS, Busa-Fekete et al.
2025):

    duration  ψ(y) = (1/γ) Σ_i P(i+1, X_i)         expected time between crawls
    value     V(y) = ∫₀^y e^{−s} ψ(s) ds           what one more crawl per unit time is worth

over i = 0 … ⌊y/b⌋, with z_i = y − i·b, X_i = k·z_i, k = γ/α. The paper gives V as w − e^{−y}ψ, a difference
that loses all digits for small y, and the sums have endless terms for weak signals. Here instead:

* V term by term as sums of positive numbers. With p Poisson terms, a = i + 1 and ε = ln(1 + 1/k),

      e^y γ V = Σ_i B_i,   B_i = Σ_{l>a} p(l, X_i) ((1 + 1/k)^{l−a} − 1)
                               = e^{z_i − aε} − 1 + Σ_{j<a} p(j, X_i) (1 − (1 + 1/k)^{j−a})

  where the first form is short for X_i < a and the second for X_i ≥ a.
* Where X_i is far above a, P is 1 and B_i is e^{z_i − aε} − 1: a geometric sum in closed form. Where it is
  far below, the terms vanish. So some twenty terms are summed however many there are.
* Past its transient ψ is linear: with D = α + γb, m = 1/D, ω = γb²/(2D),

      ψ = m(y + ω),   V = 1/Δ − m(1 + ω) + m(g(y) + ω(1 − e^{−y})),
      1/Δ − m(1 + ω) = γ/(D²Δ) · (D(h(b) − b²/2) + γ h(b) b²/2)

  because ∫₀^∞ e^{−s}ψ ds = 1/Δ. With q = kb the transient dies as e^{−ξ y/b}, ξ the smallest decay among the
  complex roots of σ + q(1 − e^{−σ}) = 0: about 2π²/q² for large q. This holds for all b and is exact to
  rounding, where the weak-signal formula without the constant is off by about (b/y)².

Scalar kernels for pages with α > 0 and γ > 0; pure.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from recrawl.jit import exact
from recrawl.values.gamma import poisson_term
from recrawl.values.signal_page import SignalPage
from recrawl.values.special import g, h, polynomial

_EPSILON = 1e-16
# P(a, x) is 1 to the last digit where x − a ≥ √(80x), by Chernoff's bound.
_FAR = math.sqrt(80.0)
# More terms than these are never summed: the steps that are left then move V by 2e-11 or less.
_MOST_TERMS = 1e5
# From this level on V is at its limit to the last digit.
DEEP = 100.0
# Signals rarer than this, against silent changes, make no difference until one comes.
RARE = 1e-17
# −1/n! from n = 14 down to 3: the series of (x − 1 + e^{−x} − x²/2)/x³ in −x.
_CUBIC = tuple(-1.0 / math.factorial(n) for n in range(14, 2, -1))


class Cycle(NamedTuple):
    """What a threshold policy does: expected `duration` between crawls, `value`, and `growth`, dψ/dy."""

    duration: float
    value: float
    growth: float


class Term(NamedTuple):
    """One i of the sums: P(i+1, X), B and p(i, X)."""

    share: float
    body: float
    density: float


@exact
def cycle_at_level(page: SignalPage, level: float) -> Cycle:
    """The policy that crawls when the level reaches `level`. O(1), see the module."""
    if math.isinf(page.signal_weight):
        return cycle_at(page, 0.0, level)
    signals = np.floor(level / page.signal_weight)
    rest = level - signals * page.signal_weight
    return cycle_at(page, signals, max(0.0, rest))


@exact
def cycle_at(page: SignalPage, signals: float, rest: float) -> Cycle:
    """The same for the level signals·b + rest, where 0 ≤ rest < b."""
    level = rest + signals * page.signal_weight if signals > 0.0 else rest
    if page.signal_rate < RARE * page.silent_rate:
        return Cycle(level / page.silent_rate, g(level) / page.silent_rate, 1.0 / page.silent_rate)
    if signals >= linear_from(page):
        return linear_cycle(page, level)
    return summed_cycle(page, signals, rest, signals + 1.0)


@exact
def linear_from(page: SignalPage) -> float:
    """The number y/b from which on the duration is linear in the level to the last digit. O(1)."""
    q = page.signal_rate * page.signal_weight / page.silent_rate
    return min(7.0 + q * (9.0 + q), _MOST_TERMS)


@exact
def linear_cycle(page: SignalPage, level: float) -> Cycle:
    """The cycle past its transient. O(1)."""
    slope, offset, constant = linear_form(page)
    value = constant + slope * (g(level) - offset * math.expm1(-level))
    return Cycle(slope * (level + offset), value, slope)


@exact
def linear_form(page: SignalPage) -> tuple[float, float, float]:
    """The numbers m, ω and 1/Δ − m(1 + ω) of the linear form. O(1)."""
    weight = page.signal_weight
    pace = page.silent_rate + page.signal_rate * weight
    gap = h(weight)
    square = 0.5 * weight * weight
    bracket = pace * _cubic_part(weight) + page.signal_rate * gap * square
    constant = page.signal_rate * bracket / (pace * pace * page.change_rate)
    return 1.0 / pace, page.signal_rate * square / pace, constant


@exact
def _cubic_part(x: float) -> float:
    """Accurate h(x) − x²/2 = −x³/6 + x⁴/24 − … . O(1)."""
    if x > 0.5:
        return h(x) - 0.5 * x * x
    return x * x * x * polynomial(-x, _CUBIC)


@exact
def summed_cycle(page: SignalPage, signals: float, rest: float, terms: float) -> Cycle:
    """The cycle by its sums, of which the first `terms` terms are kept. O(1) terms are evaluated."""
    k = page.signal_rate / page.silent_rate
    epsilon = math.log1p(page.silent_rate / page.signal_rate)
    terms = min(terms, signals + 1.0)
    full = min(full_terms(page, k, signals, rest), terms)
    decay = page.signal_weight + epsilon
    level = rest + signals * page.signal_weight if signals > 0.0 else rest
    durations, bodies, densities = full, 0.0, 0.0
    if full > 0.0 and level < DEEP:
        last = rest + (signals - full + 1.0) * page.signal_weight if signals >= full else rest
        bodies = rising_sum(last - full * epsilon, decay, full)
    i = full
    while i < terms:
        z = rest + (signals - i) * page.signal_weight if signals > i else rest
        term = level_term(i + 1.0, z, k, epsilon)
        durations += term.share
        bodies += term.body
        densities += term.density
        if term.share <= _EPSILON * durations:
            break
        i += 1.0
    if level < DEEP:
        value = math.exp(-level) * bodies / page.signal_rate
    else:
        value = math.expm1(-terms * decay) / math.expm1(-decay) / (page.silent_rate + page.signal_rate)
    return Cycle(durations / page.signal_rate, value, densities / page.silent_rate)


@exact
def full_terms(page: SignalPage, k: float, signals: float, rest: float) -> float:
    """How many of the first terms have P(i + 1, X_i) = 1 to the last digit. O(1)."""
    if signals == 0.0:
        return 1.0 if k * rest > 85.0 else 0.0
    q = k * page.signal_weight
    first = k * rest + q * signals
    # X_i = X_0 − q·i and X_i − √(80 X_i) ≥ i + 1, a quadratic inequality in √X_i.
    share = q / (1.0 + q)
    root = 0.5 * (share * _FAR + math.sqrt(share * share * _FAR * _FAR + 4.0 * (first / (1.0 + q) + share)))
    # np.floor, because math.floor makes an int64 that a large number does not fit in.
    full: float = np.floor(root * (root - _FAR))
    return max(0.0, full)


@exact
def rising_sum(start: float, step: float, count: float) -> float:
    """Σ_{j<count} (e^{start + j·step} − 1) for start, step ≥ 0, without cancellation. O(1)."""
    if count == 1.0:
        return math.expm1(start)
    last = math.exp((count - 1.0) * step)
    share = -math.expm1(-step)
    ratio = -last * math.expm1(-count * step) / share
    # The part of Σ (e^{j·step} − 1): e^x − 1 − x is e^x g(x).
    return math.expm1(start) * ratio + max(0.0, last * g(count * step) - count * g(step)) / share


@exact
def level_term(shape: float, z: float, k: float, epsilon: float) -> Term:
    """One term of the sums, by whichever of its two forms is short. O(√shape)."""
    x = k * z
    if x < shape:
        return _low_term(shape, z, x)
    j = shape - 1.0
    density = _poisson(j, x)
    term = density
    missing = 0.0
    body = math.expm1(z - shape * epsilon)
    keep = k / (1.0 + k)
    share = 1.0 / (1.0 + k)
    loss = share
    per_x = 1.0 / x
    while j >= 0.0 and term > _EPSILON:
        missing += term
        body += term * loss
        loss = loss * keep + share
        term *= j * per_x
        j -= 1.0
    return Term(1.0 - missing, body, density)


@exact
def _low_term(shape: float, z: float, x: float) -> Term:
    """One term where x is below the shape. O(√shape + z)."""
    if x == 0.0:
        return Term(0.0, 0.0, 1.0 if shape == 1.0 else 0.0)
    term = _poisson(shape, x)
    density = term * shape / x
    share = term
    y = x + z
    divisor = shape + 1.0
    gain = term * z / divisor
    body = gain
    while gain > _EPSILON * body:
        # Only products wait for each other here; the divisions run ahead.
        term *= x / divisor
        share += term
        divisor += 1.0
        part = 1.0 / divisor
        gain = gain * (y * part) + term * (z * part)
        body += gain
    return Term(share, body, density)


@exact
def _poisson(n: float, x: float) -> float:
    """The Poisson term of a whole number, by products where they are quicker."""
    if n > 12.0 or x > 700.0:
        return poisson_term(n, x)
    term = math.exp(-x)
    j = 1.0
    while j <= n:
        term *= x / j
        j += 1.0
    return term


@exact
def poisson_tail(shape: float, x: float) -> float:
    """P(shape, x) of a whole shape: quicker than `lower_gamma` if that is small. O(√shape)."""
    total = 0.0
    if x < shape:
        term = _poisson(shape, x)
        while term > _EPSILON * total:
            total += term
            shape += 1.0
            term *= x / shape
        return total
    j = shape - 1.0
    term = _poisson(j, x)
    per_x = 1.0 / x
    while j >= 0.0 and term > _EPSILON:
        total += term
        term *= j * per_x
        j -= 1.0
    return 1.0 - total
