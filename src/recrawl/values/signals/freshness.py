"""Binary freshness with noisy change-indicating signals (NCIS, Busa-Fekete et al. 2025). Scalar kernels.

Freshness after silent time τ and n signals is e^{−y} with the *level* y = ατ + n·b (names in `page`). The best policy
crawls when y reaches a level. For that policy, per unit importance:

    duration  ψ(y) = (1/γ) Σ_i P(i+1, X_i)         expected time between crawls
    value     V(y) = ∫₀^y e^{−s} ψ(s) ds           what one more crawl per unit time is worth

over i = 0 … ⌊y/b⌋, with z_i = y − i·b, X_i = k·z_i, k = γ/α. The paper gives V as w − e^{−y}ψ, a difference
that loses all digits for small y, and the sums have endless terms for weak signals. Here instead:

* V term by term as sums of positive numbers. With p Poisson terms, a = i + 1 and ε = ln(1 + 1/k),

      e^y γ V = Σ_i B_i,   B_i = Σ_{l>a} p(l, X_i) ((1 + 1/k)^{l−a} − 1)
                               = e^{z_i − aε} − 1 + Σ_{j<a} p(j, X_i) (1 − (1 + 1/k)^{j−a})

  where the first form is short for X_i < a and the second for X_i ≥ a.
* Where X_i is far above a, P is 1 and B_i is e^{z_i − aε} − 1: a geometric sum in closed form. Where it is
  far below, the terms vanish. So about twenty terms are summed, however many there are.
* Past its transient ψ is linear: with D = α + γb, m = 1/D, ω = γb²/(2D),

      ψ = m(y + ω),   V = 1/Δ − m(1 + ω) + m(g(y) + ω(1 − e^{−y})),
      1/Δ − m(1 + ω) = γ/(D²Δ) · (D(h(b) − b²/2) + γ h(b) b²/2)

  because ∫₀^∞ e^{−s}ψ ds = 1/Δ. With q = kb the transient dies as e^{−ξ y/b}, ξ the smallest decay among the
  complex roots of σ + q(1 − e^{−σ}) = 0: about 2π²/q² for large q. This holds for all b and is exact to
  rounding, where the weak-signal formula without the constant is off by about (b/y)².

With recall 1 (α = 0) the state is the number n of signals alone. The policy that crawls at every n-th signal has rate
γ/n, so rates and values come in steps:

    V_n = (1 − e^{−nb})/Δ − n e^{−nb}/γ = (e^{−nb}/γ) Σ_{j=0}^{n} (e^{jb} − 1)

The second form is a sum of positive numbers and is what is computed. Kernels that end in `_kernel` take any legal page
with its importance; inside them the unit of time is 1/Δ, so that no legal input overflows. Where nothing else is said,
the other kernels take pages with α > 0 and γ > 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from recrawl.jit import exact
from recrawl.values.gamma import poisson_of_count
from recrawl.values.laws import saturating_due, saturating_value
from recrawl.values.signals.page import Cycle, SignalPage, is_plain, signal_page
from recrawl.values.special import excess, g, h, inverse_g, inverse_h, polynomial, product, quotient

_EPSILON = 1e-16
# P(a, x) is 1 to the last digit where x − a ≥ √(80x), by Chernoff's bound.
_FAR = math.sqrt(80.0)
# More terms than these are never summed: the steps that are left then move V by 2e-11 or less.
_MOST_TERMS = 1e5
# From this level on V is at its limit to the last digit.
DEEP = 100.0
# Signals rarer than this, against silent changes, make no difference until one comes.
_RARE = 1e-17
# −1/n! from n = 14 down to 3: the series of (x − 1 + e^{−x} − x²/2)/x³ in −x.
_CUBIC = tuple(-1.0 / math.factorial(n) for n in range(14, 2, -1))
_STEPS = 100
# Below this level V is μτy/2 and its square would vanish.
_TINY = 1e-140
# No level is told from one beyond this.
_ENDLESS = 1e200
# GREEDY-CIS+ trusts the signals of pages above both.
GOOD_PRECISION = 0.7
GOOD_RECALL = 0.6


class Term(NamedTuple):
    """One i of the sums: P(i+1, X), B and p(i, X)."""

    share: float
    body: float
    density: float


@exact
def cycle_at_level(page: SignalPage, level: float) -> Cycle:
    """Return the cycle of the policy that crawls when the level reaches `level`. O(1)."""
    if math.isinf(page.signal_weight):
        return cycle_at(page, 0.0, level)
    signals = np.floor(level / page.signal_weight)
    rest = level - signals * page.signal_weight
    return cycle_at(page, signals, max(0.0, rest))


@exact
def cycle_at(page: SignalPage, signals: float, rest: float) -> Cycle:
    """Return the same for the level signals·b + rest, where 0 ≤ rest < b."""
    level = rest + signals * page.signal_weight if signals > 0.0 else rest
    if page.signal_rate < _RARE * page.silent_rate:
        return Cycle(level / page.silent_rate, g(level) / page.silent_rate, 1.0 / page.silent_rate)
    if signals >= linear_from(page):
        return linear_cycle(page, level)
    return summed_cycle(page, signals, rest, signals + 1.0)


@exact
def linear_from(page: SignalPage) -> float:
    """Return the number y/b from which on the duration is linear in the level to the last digit. O(1)."""
    q = page.signal_rate * page.signal_weight / page.silent_rate
    return min(7.0 + q * (9.0 + q), _MOST_TERMS)


@exact
def linear_cycle(page: SignalPage, level: float) -> Cycle:
    """Return the cycle past its transient. O(1)."""
    slope, offset, constant = linear_form(page)
    value = constant + slope * (g(level) - offset * math.expm1(-level))
    return Cycle(slope * (level + offset), value, slope)


@exact
def linear_form(page: SignalPage) -> tuple[float, float, float]:
    """Return the numbers m, ω and 1/Δ − m(1 + ω) of the linear form. O(1)."""
    weight = page.signal_weight
    pace = page.silent_rate + page.signal_rate * weight
    gap = h(weight)
    square = 0.5 * weight * weight
    bracket = pace * _cubic_part(weight) + page.signal_rate * gap * square
    constant = page.signal_rate * bracket / (pace * pace * page.change_rate)
    return 1.0 / pace, page.signal_rate * square / pace, constant


@exact
def _cubic_part(x: float) -> float:
    """Return h(x) − x²/2 = −x³/6 + x⁴/24 − … without cancellation. O(1)."""
    if x > 0.5:
        return h(x) - 0.5 * x * x
    return x * x * x * polynomial(-x, _CUBIC)


@exact
def summed_cycle(page: SignalPage, signals: float, rest: float, terms: float) -> Cycle:
    """Return the cycle by the first `terms` terms of its sums. O(1) terms are evaluated."""
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
    """Return how many of the first terms have P(i + 1, X_i) = 1 to the last digit. O(1)."""
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
    """Return Σ_{j<count} (e^{start + j·step} − 1) for start, step ≥ 0, without cancellation. O(1)."""
    if count == 1.0:
        return math.expm1(start)
    last = math.exp((count - 1.0) * step)
    share = -math.expm1(-step)
    ratio = -last * math.expm1(-count * step) / share
    # The part of Σ (e^{j·step} − 1): e^x − 1 − x is e^x g(x).
    return math.expm1(start) * ratio + max(0.0, last * g(count * step) - count * g(step)) / share


@exact
def level_term(shape: float, z: float, k: float, epsilon: float) -> Term:
    """Return one term of the sums, by whichever of its two forms is short. O(√shape)."""
    x = k * z
    if x < shape:
        return _low_term(shape, z, x)
    j = shape - 1.0
    density = poisson_of_count(j, x)
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
    """Return one term where x is below the shape. O(√shape + z)."""
    if x == 0.0:
        return Term(0.0, 0.0, 1.0 if shape == 1.0 else 0.0)
    term = poisson_of_count(shape, x)
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
def level_at_value(page: SignalPage, value: float) -> tuple[float, Cycle]:
    """Return the level whose crawl is worth `value`, and its cycle; for 0 < value < 1/Δ.

    Halley's method from a start that is exact for weak signals and close for strong ones, inside a bracket.
    Some three evaluations of a cycle.
    """
    level, known = _first_level(page, value)
    low, high = 0.0, DEEP
    cycle = cycle_at_level(page, level)
    if known:
        return level, cycle
    sharpness = 1.0 + page.signal_rate / page.silent_rate
    for _ in range(_STEPS):
        slope = math.exp(-level) * cycle.duration
        step = (value - cycle.value) / slope
        if step > 0.0:
            low = level
        else:
            high = level
        bend = 1.0 + 0.5 * step * (cycle.growth / cycle.duration - 1.0)
        step /= min(max(bend, 0.5), 2.0)
        moved = level + step
        if abs(step) * (sharpness + 1.0 / level) < 1e-7:
            # The step is exact by now, and the duration follows it in a straight line.
            return moved, Cycle(cycle.duration + step * cycle.growth, value, cycle.growth)
        if not low < moved < high:
            moved = 0.5 * (low + high)
        if abs(moved - level) < 4e-16 * level:
            break
        level = moved
        cycle = cycle_at_level(page, level)
    return level, cycle


@exact
def _first_level(page: SignalPage, value: float) -> tuple[float, bool]:
    """Return a start for the level, and whether it is the answer."""
    if page.signal_weight < math.inf:
        slope, offset, constant = linear_form(page)
        whole = slope * (1.0 + offset)
        level = min(tilted_inverse((value - constant) / whole, offset / (1.0 + offset)), 0.5 * DEEP)
        steps = level / page.signal_weight
        if steps >= 1.0:
            return level, steps >= linear_from(page) + 1.0
    k = page.signal_rate / page.silent_rate
    if k > 1.0:
        # ψ is (1 − e^{−ky})/γ before the first signal; with e^{−y}dy as the measure V is h(kx)/(kγ).
        x = inverse_h(k * page.signal_rate * value) / k
        if x < 0.98:
            return -math.log1p(-x), False
    return inverse_g(page.silent_rate * value), False


@exact
def tilted_inverse(c: float, slack: float) -> float:
    """Return the y ≥ 0 with 1 − e^{−y}(1 + (1 − slack)y) = c: 0 for c ≤ 0, infinity for c ≥ 1; slack in [0, 1].

    g⁻¹(c) is the case of no slack. Newton's method from there, from the right and so without overshooting.
    """
    if c <= 0.0:
        return 0.0
    if c >= 1.0:
        return math.inf
    tilt = 1.0 - slack
    target = -math.log1p(-c)
    y = inverse_g(c)
    for _ in range(_STEPS):
        surplus = slack * y + excess(tilt * y) - target
        step = surplus * (1.0 + tilt * y) / (slack + tilt * y)
        y -= step
        if abs(step) < 1e-9 * y:
            break
    return y


@exact
def state_at_duration(page: SignalPage, duration: float) -> tuple[float, float, Cycle]:
    """Return the level whose cycle lasts `duration`, as signals·b + rest, and the cycle; for a reachable duration.

    The duration climbs in steps as steep as α/γ where nearly every change is announced, so the rest is found
    by its own root and keeps its digits. O(log) evaluations of a cycle.
    """
    k = page.signal_rate / page.silent_rate
    share = page.signal_rate * duration
    if share < -math.expm1(-k * page.signal_weight):  # before the first signal counts γψ is 1 − e^{−ky}
        rest = -math.log1p(-share) / k
        return 0.0, rest, cycle_at(page, 0.0, rest)
    if math.isinf(page.signal_weight):  # no cycle is longer than the wait for a signal
        return 0.0, math.inf, cycle_at(page, 0.0, math.inf)
    slope, offset, _ = linear_form(page)
    level = max(0.0, duration / slope - offset)
    signals: float = np.floor(level / page.signal_weight)
    if signals > linear_from(page):
        rest = level - signals * page.signal_weight
        return signals, rest, cycle_at(page, signals, rest)
    signals = _last_step_below(page, duration, signals)
    rest = _rest_at_duration(page, duration, signals)
    return signals, rest, cycle_at(page, signals, rest)


@exact
def _last_step_below(page: SignalPage, duration: float, signals: float) -> float:
    """Return the largest whole number of signals whose cycle is no longer than `duration`, from a close start."""
    while signals > 0.0 and cycle_at(page, signals, 0.0).duration > duration:
        signals -= 1.0
    while cycle_at(page, signals + 1.0, 0.0).duration <= duration:
        signals += 1.0
    return signals


@exact
def _rest_at_duration(page: SignalPage, duration: float, signals: float) -> float:
    """Return the rest in [0, b) with that duration: Newton's method, or a halving where it leaves the bracket."""
    low, high = 0.0, page.signal_weight
    rest = min(duration * page.silent_rate, 0.5 * high)
    for _ in range(4 * _STEPS):
        cycle = cycle_at(page, signals, rest)
        missing = duration - cycle.duration
        if missing == 0.0:
            break
        if missing > 0.0:
            low = rest
        else:
            high = rest
        moved = rest + missing / cycle.growth if cycle.growth > 0.0 else high
        if not low < moved < high:
            moved = _between(low, high)
        if abs(moved - rest) <= 2e-16 * rest:
            break
        rest = moved
    return rest


@exact
def _between(low: float, high: float) -> float:
    """Return a number between two, halving the logarithm if they are far apart."""
    if math.isinf(high):
        return 2.0 * low
    if low > 0.0:
        return math.sqrt(low) * math.sqrt(high) if high > 4.0 * low else 0.5 * (low + high)
    return 1e-3 * high


@exact
def step_value(page: SignalPage, signals: float) -> float:
    """Return V after n signals. O(1)."""
    return partial_step_value(page, signals, signals + 1.0)


@exact
def partial_step_value(page: SignalPage, signals: float, terms: float) -> float:
    """Return V after n signals by the first `terms` terms of its sum. O(1)."""
    if signals == 0.0:
        return 0.0
    terms = min(terms, signals + 1.0)
    level = signals * page.signal_weight
    if level > DEEP:
        return -math.expm1(-terms * page.signal_weight) / page.change_rate
    start = (signals + 1.0 - terms) * page.signal_weight
    return math.exp(-level) * rising_sum(start, page.signal_weight, terms) / page.signal_rate


@exact
def steps_at_value(page: SignalPage, value: float) -> float:
    """Return the least number of signals, 1 or more, whose V reaches `value` < 1/Δ. O(1)."""
    if math.isinf(page.signal_weight):
        return 1.0
    slack = h(page.signal_weight) / page.signal_weight
    level = tilted_inverse(page.change_rate * value, slack)
    signals: float = max(1.0, np.ceil(level / page.signal_weight))
    # The root is rounded: look at both neighbours.
    if signals > 1.0 and step_value(page, signals - 1.0) >= value:
        return signals - 1.0
    if step_value(page, signals) < value:
        return signals + 1.0
    return signals


@exact
def noisy_freshness_value_kernel(
    importance: float, change_rate: float, recall: float, false_signal_rate: float, elapsed: float, signals: float
) -> float:
    """Return `noisy_freshness_value` of one page."""
    return partial_freshness_value_kernel(
        importance, change_rate, recall, false_signal_rate, elapsed, signals, math.inf
    )


@exact
def noisy_freshness_due_kernel(
    importance: float, change_rate: float, recall: float, false_signal_rate: float, signals: float, price: float
) -> float:
    """Return `noisy_freshness_due` of one page."""
    if importance == 0.0 or change_rate == 0.0 or price == 0.0:
        return saturating_due(importance, change_rate, price)
    page = signal_page(1.0, recall, false_signal_rate / change_rate)
    if page.signal_rate == 0.0 or (signals == 0.0 and is_plain(page)):
        return saturating_due(importance, change_rate, price)
    target = quotient(price, change_rate, importance)
    if target < _TINY * _TINY and signals == 0.0 and page.silent_rate > 0.0:
        pace = math.sqrt(importance) * math.sqrt(page.silent_rate) * math.sqrt(change_rate)
        return math.sqrt(2.0) * math.sqrt(price) / pace
    return _wait(page, signals, target) / change_rate


@exact
def _wait(page: SignalPage, signals: float, value: float) -> float:
    """Return the time since the last crawl at which V per unit importance is `value`, with n signals. O(1)."""
    if value_after(page, 0.0, signals, math.inf) >= value:
        return 0.0
    if value * page.change_rate >= 1.0 or page.silent_rate == 0.0:
        return math.inf
    level = level_at_value(page, value)[0]
    silent = level - signals * page.signal_weight if signals > 0.0 else level
    return max(0.0, silent) / page.silent_rate


@exact
def value_after(page: SignalPage, elapsed: float, signals: float, terms: float) -> float:
    """Return V per unit importance after this time and n signals; infinite `terms` is the exact value. O(1)."""
    if page.change_rate == 0.0:
        return 0.0
    if page.signal_rate == 0.0:
        return g(page.change_rate * elapsed) / page.change_rate
    if signals > 0.0 and math.isinf(page.signal_weight):
        return 1.0 / page.change_rate
    if page.silent_rate == 0.0:
        return partial_step_value(page, signals, terms) if terms < math.inf else step_value(page, signals)
    rest = min(page.silent_rate * elapsed, _ENDLESS)
    if rest >= page.signal_weight:
        steps = np.floor(rest / page.signal_weight)
        signals += steps
        rest = max(0.0, rest - steps * page.signal_weight)
    if math.isinf(terms) or is_plain(page):
        return cycle_at(page, signals, rest).value
    return summed_cycle(page, signals, rest, terms).value


@exact
def partial_freshness_value_kernel(
    importance: float,
    change_rate: float,
    recall: float,
    false_signal_rate: float,
    elapsed: float,
    signals: float,
    terms: float,
) -> float:
    """Return the same by the first `terms` terms of the sums; all of them if infinite."""
    if importance == 0.0 or change_rate == 0.0:
        return 0.0
    page = signal_page(1.0, recall, false_signal_rate / change_rate)
    if page.signal_rate == 0.0:
        return saturating_value(importance, change_rate, elapsed)
    level = page.silent_rate * (change_rate * elapsed)
    if signals == 0.0 and level < _TINY:
        return product(importance, elapsed, 0.5 * level) if level > 0.0 else 0.0
    return quotient(importance, value_after(page, change_rate * elapsed, signals, terms), change_rate)


@exact
def trusting_freshness_value_kernel(
    importance: float, change_rate: float, recall: float, elapsed: float, signals: float
) -> float:
    """Return the value without false signals."""
    return noisy_freshness_value_kernel(importance, change_rate, recall, 0.0, elapsed, signals)


@exact
def selective_freshness_value_kernel(
    importance: float, change_rate: float, recall: float, false_signal_rate: float, elapsed: float, signals: float
) -> float:
    """Return the value without false signals where signals are good, else without signals."""
    announced_rate = recall * change_rate
    # precision > p without a division, which 0/0 would spoil
    if recall > GOOD_RECALL and announced_rate * (1.0 - GOOD_PRECISION) > GOOD_PRECISION * false_signal_rate:
        return noisy_freshness_value_kernel(importance, change_rate, recall, 0.0, elapsed, signals)
    return noisy_freshness_value_kernel(importance, change_rate, 0.0, false_signal_rate, elapsed, signals)
