"""The cycle of a page with noisy signals under harmonic cost: how long it is and what its last crawl is worth.

The best policy crawls when the expected cost c(ατ, n) reaches a threshold. For a threshold that a page with n
signals reaches at a = A_n, with k = γ/α and T_n the gains of `noisy_harmonic_terms`,

    duration  ψ(c) = (1/γ) Σ_n P(n+1, kA_n)      expected time between crawls
    value     V(c) = ∫₀^c ψ = (1/γ) Σ_n T_n       what one more crawl per unit time is worth

Few of the terms need work:

* Where kA_n is far above n, P is 1 and T_n = c − M_n, with M_n the mean cost just before signal n + 1,

      M_n = ln(1 + 1/k) + C_n(p),   C_n(p) = Σ_{j≤n} (1 − (1−p)^j)/j,   p = Δ/(Δ + ν),
      Σ_{i<n} M_i = n M_n − Σ_{j≤n} (1 − (1−p)^j)

  (substitute q = (1 − πu)k/(k + u) in the integral over u). Far above, the terms vanish.
* Where that leaves many terms they are smooth in n, so every h-th is enough: the trapezoidal rule is exact to
  rounding for sums of bell-shaped terms. Summation by parts makes them so: with D_n = P_n − P_{n+1},

      Σ P_n = Σ (n+1) D_n,   Σ T_n = Σ (c(n+1) − Σ_{i≤n} M_i) D_n + Σ (T_n − P_n (c − M_n))

* For very many signals per cycle (π → 0 or x → ∞) the duration is that of a page without signals, but for
  the last signal's overshoot:

      Δψ = x + (λπ/2) x/(eˣ − 1),   ΔV = h(x) + (λπ/2)(1 − e^{−x}),   Ein(x) = c

  with a relative error below 0.3 λ³/N² for N signals per cycle. (With recall near 1 the duration is a
  staircase of N steps, smooth only on the whole.)

Everything is per unit importance, in units of the mean time between changes 1/Δ, and the threshold is named by
x. Scalar kernels; pure.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from recrawl.jit import exact
from recrawl.values.noisy_harmonic_cost import Threshold, boundary, expected_cost, threshold
from recrawl.values.noisy_harmonic_terms import gain, share
from recrawl.values.signal_page import SignalPage
from recrawl.values.special import excess, h

_EPSILON = 1e-14
_LARGEST = 1e300
# P(n, z) is 1 within 1e-13 where z − n ≥ √(60z), by Chernoff's bound.
_LATEST = 0.55  # signals beyond n after which a threshold is surely reached
_FAR = 60.0
# Signals per cycle below which there are none, and above which all cycles are smooth.
FEWEST_SIGNALS = 1e-15
_MOST_SIGNALS = 1e8
# The same from this number times λ^{3/2} on, if the terms are smooth: the error, 0.3λ³/N², is 1e-11 there.
_MANY = 1.7e5
# Standard deviations of the bell-shaped terms from which on not every term is taken, and the step then.
_WIDE = 3.0
_STEP = 0.8


# How the sums are taken: not at all for lack or plenty of signals, by every h-th term, or term by term.
RARE, SMOOTH, STRIDED, WHOLE = range(4)


class Shape(NamedTuple):
    """A page with α > 0 and γ > 0, up to its time unit.

    `load` is κ = γ/Δ, signals per change; `ratio` is k = γ/α, signals per silent change; `hit` is
    p = Δ/(Δ + ν).
    """

    precision: float
    load: float
    ratio: float
    hit: float


class Cycle(NamedTuple):
    """What a threshold policy does: Δψ, ΔV, and `growth`, Δ·dψ/dc."""

    duration: float
    value: float
    growth: float


@exact
def shape_of(page: SignalPage) -> Shape:
    """The shape of a page. O(1)."""
    return Shape(
        page.precision,
        min(page.signal_rate / page.change_rate, _LARGEST),
        min(page.signal_rate / page.silent_rate, _LARGEST),
        1.0 / (1.0 + page.false_signal_rate / page.change_rate),
    )


@exact
def cycle_at(page: Shape, x: float) -> Cycle:
    """The policy that crawls when the cost reaches Ein(x), x > 0. O(1) terms, however many signals come."""
    regime = regime_of(page, x)
    if regime == RARE:
        return rare_cycle(page, x)
    if regime == SMOOTH:
        return smooth_cycle(page, x)
    case = threshold(page.precision, x)
    if regime == STRIDED:
        return _strided_sums(page, case)
    return _whole_sums(page, case)


@exact
def regime_of(page: Shape, x: float) -> int:
    """How the sums at this threshold are taken. O(1)."""
    if page.ratio * x < FEWEST_SIGNALS:
        return RARE
    expected = page.load * x
    deviation = math.sqrt(expected) * (page.load / page.ratio)
    many = _MANY * math.pow(page.load * page.precision, 1.5)
    if expected > _MOST_SIGNALS or (deviation > 1.5 and expected > many):
        return SMOOTH
    return STRIDED if deviation > _WIDE and full_terms(page, x) >= 1.0 else WHOLE


@exact
def stride_at(page: Shape, x: float) -> float:
    """How many terms to step at once where that is allowed. O(1)."""
    return _STEP * math.sqrt(page.load * x) * (page.load / page.ratio)


@exact
def rare_cycle(page: Shape, x: float) -> Cycle:
    """The cycle where hardly ever a signal comes: that of the silent changes alone. O(1)."""
    stretch = page.ratio / page.load
    return Cycle(stretch * x, stretch * h(x), -stretch * x / math.expm1(-x))


@exact
def smooth_cycle(page: Shape, x: float) -> Cycle:
    """The cycle for very many signals. O(1)."""
    overshoot = 0.5 * page.load * page.precision * page.precision
    if x > 700.0:
        return Cycle(1.0 * x, x - 1.0 + overshoot, 1.0 * x)
    lag = x / math.expm1(x)
    bend = lag * (1.0 - lag * math.exp(x)) / x  # d lag/dx
    slope = -math.expm1(-x) / x
    value = h(x) - overshoot * math.expm1(-x)
    return Cycle(x + overshoot * lag, value, (1.0 + overshoot * bend) / slope)


@exact
def mean_steps(n: float, hit: float) -> float:
    """Σ_{j≤n} (1 − (1−p)^j), as a smooth function of n. O(1)."""
    if hit == 1.0:
        return n
    weight = -n * math.log1p(-hit)
    return (h(weight) - n * excess(-hit)) / hit - math.expm1(-weight)


@exact
def lead(page: Shape, x: float) -> float:
    """How far a grows less than linearly per signal along a threshold: A_n ≈ x − nπ(1 + lead). O(1)."""
    if x < 1e-3:
        return 0.25 * page.precision
    rest = x / math.expm1(x) if x < 700.0 else 0.0
    return 0.5 * page.precision * (1.0 - rest) / x


@exact
def full_terms(page: Shape, x: float) -> float:
    """A number of first terms with P(n+1, kA_n) = 1 within 1e-13. O(1)."""
    z = page.ratio * x
    if z - math.sqrt(_FAR * z) < 1.0:
        return 0.0
    # A_n ≥ x − (n + 0.55)π: at π = 1 the threshold is reached at x = n + ½ + 1/(24n) and less.
    # With z = k(x − (n + 0.55)π), z − √(80z) ≥ n + 1 is a quadratic inequality in √z.
    loss = page.ratio * page.precision
    stretch = 1.0 + 1.0 / loss
    root = (math.sqrt(_FAR) + math.sqrt(_FAR + 4.0 * stretch * (z / loss + _LATEST))) / (2.0 * stretch)
    return float(max(1.0, np.floor((z - root * root) / loss - _LATEST) + 1.0))


@exact
def _whole_sums(page: Shape, case: Threshold) -> Cycle:
    """The cycle, term by term."""
    full = full_terms(page, case.x)
    durations, growth = full, 0.0
    gains = _full_gains(page, case.cost, full)
    step = -page.precision * (1.0 + lead(page, case.x))
    bend = 0.0
    guess = case.x + full * step
    n = full
    while True:
        edge = boundary(case, n, guess)
        z = page.ratio * edge.a
        if z <= 0.0:
            break
        shares = share(n, z)
        if shares.more <= _EPSILON * durations:
            break
        durations += shares.more
        gains += gain(case, n, edge.a, z, shares)
        growth += page.ratio * shares.exactly / edge.slope
        if n > full:
            bend += edge.a - guess
        step += bend
        guess = edge.a + step
        n += 1.0
    return Cycle(durations / page.load, gains / page.load, growth / page.load)


@exact
def _strided_sums(page: Shape, case: Threshold) -> Cycle:
    """The cycle by every h-th term."""
    full = full_terms(page, case.x)
    stride = stride_at(page, case.x)
    # The sums over D are of differences to the middle one: what D lacks to 1 by rounding then does not count.
    middle = float(np.floor(page.load * case.x))
    middle_gains = _full_gains(page, case.cost, middle)
    durations, gains, growth = 0.0, 0.0, 0.0
    slope = -page.precision * (1.0 + lead(page, case.x))
    guess = case.x + full * slope
    n = full
    while True:
        after = boundary(case, n + 1.0, guess + slope)
        edge = boundary(case, n, after.a - slope)
        z = page.ratio * edge.a
        shares = share(n, z)
        if shares.more <= _EPSILON:
            break
        drop = shares.more - share(n + 1.0, page.ratio * after.a).more
        durations += (n + 1.0 - middle) * drop
        gains += (_full_gains(page, case.cost, n + 1.0) - middle_gains) * drop
        gains += gain(case, n, edge.a, z, shares) - shares.more * (case.cost - _mean_cost(page, n))
        growth += page.ratio * shares.exactly / edge.slope
        slope = after.a - edge.a
        guess = edge.a + stride * slope
        n += stride
    duration = (middle + stride * durations) / page.load
    value = (middle_gains + stride * gains) / page.load
    return Cycle(duration, value, stride * growth / page.load)


@exact
def _mean_cost(page: Shape, n: float) -> float:
    """The mean cost M_n just before signal n + 1."""
    return math.log1p(1.0 / page.ratio) + expected_cost(0.0, n, page.hit)


@exact
def _full_gains(page: Shape, cost: float, n: float) -> float:
    """The sum Σ_{i<n} (c − M_i), the gains of the first n terms where their share is 1."""
    gains = n * (cost - math.log1p(1.0 / page.ratio))
    # Of one term nothing is left of the rest, and the cost may be much smaller than it.
    return gains - (n * expected_cost(0.0, n, page.hit) - mean_steps(n, page.hit)) if n > 1.0 else gains


@exact
def hit_by(n: float, hit: float) -> float:
    """1 − (1−p)ⁿ. O(1)."""
    if hit == 1.0:
        return 1.0 if n > 0.0 else 0.0
    return -math.expm1(n * math.log1p(-hit))
