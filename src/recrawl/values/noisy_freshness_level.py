"""The inverse questions about a page with noisy signals: which level has this value, which this duration.

Levels, durations and values are those of `noisy_freshness_sums`. Both grow with the level, so each question
is one root. Scalar kernels for pages with α > 0 and γ > 0; pure.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.jit import exact
from recrawl.values.noisy_freshness_sums import DEEP, Cycle, cycle_at, cycle_at_level, linear_form, linear_from
from recrawl.values.signal_page import SignalPage
from recrawl.values.special import excess, inverse_g, inverse_h

_STEPS = 100


@exact
def level_at_value(page: SignalPage, value: float) -> tuple[float, Cycle]:
    """The level whose crawl is worth `value`, and its cycle; for 0 < value < 1/Δ.

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
    """A start for the level, and whether it is the answer."""
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
    """The y ≥ 0 with 1 − e^{−y}(1 + (1 − slack)y) = c: 0 for c ≤ 0, infinity for c ≥ 1; slack in [0, 1].

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
    """The level whose cycle lasts `duration`, as signals·b + rest, and the cycle; for a reachable duration.

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
    """The largest whole number of signals whose cycle is no longer than `duration`, from a close start."""
    while signals > 0.0 and cycle_at(page, signals, 0.0).duration > duration:
        signals -= 1.0
    while cycle_at(page, signals + 1.0, 0.0).duration <= duration:
        signals += 1.0
    return signals


@exact
def _rest_at_duration(page: SignalPage, duration: float, signals: float) -> float:
    """The rest in [0, b) with that duration: Newton's method, or a halving where it leaves the bracket."""
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
    """A number between, halving the logarithm if the two are far apart."""
    if math.isinf(high):
        return 2.0 * low
    if low > 0.0:
        return math.sqrt(low) * math.sqrt(high) if high > 4.0 * low else 0.5 * (low + high)
    return 1e-3 * high
