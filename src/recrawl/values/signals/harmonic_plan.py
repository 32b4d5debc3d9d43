"""A page with noisy signals and harmonic cost as a planner sees it: rate for a value, value and costs for a rate.

The policy of a page crawls when its expected cost reaches a threshold, so rate, value and costs are functions of
one threshold; see `harmonic`. Everything is per unit importance. Where every change is announced
(α = 0) the state is the number n of signals: V_n = (1/γ) Σ_{j≤n} (1 − (1−π)^j), the policy that crawls at every
n-th signal has rate γ/n, and a rate between two steps is two policies in turn, each for a share of the time.

Rates are exact to 1e-11, or to 1e-16/(1 − recall) where that is more: there the rate itself is nearly a staircase,
and from 1e8 signals per cycle on its steps are not told apart.
Scalar kernels for any legal page; pure.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.jit import exact
from recrawl.values.signals.harmonic import (
    RARE,
    SMOOTH,
    STRIDED,
    full_terms,
    hit_by,
    is_plain,
    lead,
    mean_steps,
    regime_of,
    stride_at,
    threshold_at_duration,
    threshold_at_value,
)
from recrawl.values.signals.harmonic_cost import Threshold, boundary, expected_cost, share, threshold
from recrawl.values.signals.page import Shape, SignalPage, shape_of
from recrawl.values.signals.table import quick_threshold
from recrawl.values.special import ein, h, inverse_h

# Rates this close are one.
_SAME = 1e-11
# Silent changes so rare that every change counts as announced.
_ANNOUNCED = 1e-13
# A rate this close to γ/n is that step.
_SAME_STEP = 1e-12
_COUNTABLE = 1e15  # beyond this a float no longer counts one by one
_ENDLESS = 1e17
_TINY = 1e-280
_INSTANT = 1e-140
_EPSILON = 1e-16


@exact
def rate_at_value(page: SignalPage, value: float) -> tuple[float, float]:
    """The crawl rate whose marginal value is `value`, and its slope d rate / d ln value.

    Infinite at value 0, except where every change is announced: there rates are γ/n, n whole, and the slope is 0.
    Two or three evaluations of a cycle.
    """
    if page.change_rate == 0.0:
        return 0.0, 0.0
    if is_announced(page):
        return page.signal_rate / steps_at_value(page, value), 0.0
    if value <= 0.0:
        return math.inf, -math.inf
    target = value * page.change_rate
    if is_plain(page) or not _TINY < target < _ENDLESS:
        return _plain_rate(page, value, target)
    shape = shape_of(page)
    _, cycle = threshold_at_value(shape, target, quick_threshold(shape, target))
    rate = page.change_rate / cycle.duration
    return rate, -rate * (target / cycle.duration) * (cycle.growth / cycle.duration)


@exact
def value_at_rate(page: SignalPage, rate: float) -> tuple[float, float]:
    """The least and the most that the marginal value at this crawl rate can be; they differ at steps.

    Infinite at rate 0. Elsewhere the interval belongs to all rates within 1e-11 of this one, so it is narrow but
    not empty. A few evaluations of a cycle.
    """
    if page.change_rate == 0.0 or math.isinf(rate):
        return 0.0, 0.0
    if rate <= 0.0:
        return math.inf, math.inf
    if is_announced(page):
        return _step_values(page, rate)
    low = _value_at_duration(page, (1.0 - _SAME) / rate)
    return low, max(low, _value_at_duration(page, (1.0 + _SAME) / rate))


@exact
def costs_at_rate(page: SignalPage, rate: float) -> tuple[float, float]:
    """Binary and harmonic cost rate, per unit importance, of the best harmonic policy with this crawl rate.

    Without crawls they are 1 and infinity, for a page that never changes 0 and 0. A few evaluations of a cycle.
    """
    if page.change_rate == 0.0 or math.isinf(rate):
        return 0.0, 0.0
    if rate <= 0.0:
        return 1.0, math.inf
    if is_announced(page):
        return _mixed_step_costs(page, rate)
    duration = page.change_rate / rate
    if duration < _INSTANT:
        stale = 0.5 * page.silent_rate / rate
        return stale, stale
    if is_plain(page) or duration > _ENDLESS:
        stale = h(duration) / duration if duration < _ENDLESS else 1.0
        return stale, ein(duration) - stale
    shape = shape_of(page)
    x, cycle = threshold_at_duration(shape, duration)
    fresh = fresh_time(shape, x)
    return max(0.0, 1.0 - fresh / duration), ein(x) - cycle.value / duration


@exact
def is_announced(page: SignalPage) -> bool:
    """Whether every change that counts is announced, so that the state is the number of signals alone."""
    return page.silent_rate <= _ANNOUNCED * page.change_rate and page.signal_rate < math.inf


@exact
def steps_at_value(page: SignalPage, value: float) -> float:
    """The least number of signals, 1 or more, whose V reaches `value`, where every change is announced. O(1)."""
    target = value * page.signal_rate
    # Σ (1 − (1−π)^j) is h(πn)/π and a little more: never more than 1 a step.
    n: float = max(1.0, np.floor(inverse_h(page.precision * target) / page.precision))
    if n > _COUNTABLE:
        return n
    for _ in range(50):
        step = float(np.ceil((mean_steps(n, page.precision) - target) / hit_by(n, page.precision))) - 1.0
        if step <= 0.0:
            break
        n = max(1.0, n - step)
    while mean_steps(n, page.precision) < target:
        n += 1.0
    while n > 1.0 and mean_steps(n - 1.0, page.precision) >= target:
        n -= 1.0
    return n


@exact
def _plain_rate(page: SignalPage, value: float, target: float) -> tuple[float, float]:
    """The rate and its slope without signals, or where the value is so small or large that they do not matter."""
    if target >= _ENDLESS:
        return 1.0 / value, -1.0 / value
    if target <= _TINY:  # V = αψ²/2
        rate = math.sqrt(0.5 * page.silent_rate) / math.sqrt(value)
        return rate, -0.5 * rate
    x = inverse_h(target)
    rate = page.change_rate / x
    return rate, rate * target / (x * math.expm1(-x))


@exact
def _value_at_duration(page: SignalPage, time: float) -> float:
    duration = page.change_rate * time
    if duration > _ENDLESS:
        return time
    if duration < _INSTANT:
        return 0.5 * (page.silent_rate * time) * time
    if is_plain(page):
        return h(duration) / page.change_rate
    return threshold_at_duration(shape_of(page), duration)[1].value / page.change_rate


@exact
def _steps_at_rate(page: SignalPage, rate: float) -> tuple[float, float]:
    """The step n whose rate γ/n is next at or above `rate` ≤ γ, and the share of time at n, not at n + 1."""
    ratio = page.signal_rate / rate
    n: float = max(1.0, np.floor(ratio + _SAME_STEP * ratio))
    share = n * (n + 1.0 - ratio) / ratio
    return n, 1.0 if share > 1.0 - 2.0 * _SAME_STEP * n else max(0.0, share)


@exact
def _step_values(page: SignalPage, rate: float) -> tuple[float, float]:
    """The interval of values where every change is announced."""
    if rate > page.signal_rate * (1.0 + _SAME):
        return 0.0, 0.0
    n, share = _steps_at_rate(page, rate)
    high = mean_steps(n, page.precision) / page.signal_rate
    low = mean_steps(n - 1.0, page.precision) / page.signal_rate if share == 1.0 else high
    return min(low, high), high


@exact
def _mixed_step_costs(page: SignalPage, rate: float) -> tuple[float, float]:
    """Costs where every change is announced: two neighbouring steps, in turn."""
    if rate >= page.signal_rate * (1.0 - _SAME):
        return 0.0, 0.0
    n, share = _steps_at_rate(page, rate)
    binary, harmonic = _step_costs(page, n)
    if share == 1.0:
        return binary, harmonic
    more_binary, more_harmonic = _step_costs(page, n + 1.0)
    return share * binary + (1.0 - share) * more_binary, share * harmonic + (1.0 - share) * more_harmonic


@exact
def _step_costs(page: SignalPage, n: float) -> tuple[float, float]:
    """Costs of crawling at every n-th signal, where every change is announced."""
    # The cycle's n stretches follow 0, 1, … n − 1 signals.
    binary = 1.0 - hit_by(n, page.precision) / (n * page.precision)
    return max(0.0, binary), expected_cost(0.0, n, page.precision) - mean_steps(n, page.precision) / n


@exact
def fresh_time(page: Shape, x: float) -> float:
    """Δ times the expected fresh time of a cycle with the threshold Ein(x), x > 0. O(1) terms."""
    regime = regime_of(page, x)
    if regime == RARE:
        return -math.expm1(-x) * (page.ratio / page.load)
    if regime == SMOOTH:
        lag = x / math.expm1(x) if x < 700.0 else 0.0
        return -math.expm1(-x - 0.5 * page.load * page.precision * page.precision * (x + lag))
    case = threshold(page.precision, x)
    return _strided_sum(page, case) if regime == STRIDED else _whole_sum(page, case)


@exact
def _whole_sum(page: Shape, case: Threshold) -> float:
    """The fresh time, term by term."""
    n = full_terms(page, case.x)
    total = page.load * hit_by(n, page.hit)
    step = -page.precision * (1.0 + lead(page, case.x))
    guess = case.x + n * step
    while True:
        a = boundary(case, n, guess).a
        weight = (1.0 - hit_by(n, page.hit)) * (page.ratio / (page.ratio + 1.0))
        term = weight * share(n, (page.ratio + 1.0) * a).more
        if term <= _EPSILON * total:
            return total / page.load
        total += term
        guess = a + step
        n += 1.0


@exact
def _strided_sum(page: Shape, case: Threshold) -> float:
    """The fresh time by every h-th term."""
    stride = stride_at(page, case.x)
    middle = hit_by(float(np.floor(page.load * case.x)), page.hit)
    total = 0.0
    slope = -page.precision * (1.0 + lead(page, case.x))
    n = full_terms(page, case.x)
    guess = case.x + n * slope
    while True:
        after = boundary(case, n + 1.0, guess + slope).a
        a = boundary(case, n, after - slope).a
        more = share(n, (page.ratio + 1.0) * a).more
        if more <= _EPSILON:
            return middle + stride * total
        drop = more - share(n + 1.0, (page.ratio + 1.0) * after).more
        total += (hit_by(n + 1.0, page.hit) - middle) * drop
        slope = after - a
        guess = a + stride * slope
        n += stride
