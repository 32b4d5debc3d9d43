"""A page with noisy signals as a planner sees it: crawl rate for a value, value and costs for a crawl rate.

The policy of a page crawls when its expected cost reaches a threshold, so rate, value and costs are three functions of
one threshold; see `freshness` (NCIS, Busa-Fekete et al. 2025) and `harmonic`. Everything is per unit importance. If a
rate lies between those of two thresholds the page follows both in turn, each for a share of the time: between the steps
of a page whose every change is announced, and, under freshness, between never and at every signal where no signal is
false.

A copy that missed C changes is stale by 1 − 0^C in the binary measure and by H(C) in the harmonic one. For a freshness
policy both come from one function, the time average over a cycle

    stale(u) = 1 − E[(1 − u)^C],   binary = stale(1),   harmonic = ∫₀¹ stale(u)/u du

because H(C) = ∫₀¹ (1 − (1 − u)^C)/u du. After time τ and n signals E[(1 − u)^C] = e^{−ατu}(1 − πu)ⁿ. With A_n = z_n of
`freshness` and ψ the duration, the discounted cycle F(u) = ψ·(1 − stale(u)) is

    F(u) = (1/γ) Σ_n (1 − πu)ⁿ (k/(k+u))^{n+1} P(n+1, (k+u)A_n)

and past the transient, with r the root of α(r − u) = γ(1 − (1 − πu)e^{rb}) and E = α + b(γ − α(r − u)),

    F(u) = 1/(uΔ) − e^{−ry}/(rE)

The integral is Gauss and Legendre's in s, u = (e^s − 1)/scale, which spreads the nodes over the decades of u that
matter.

Harmonic rates are exact to 1e-11 where cycles are summed, or to 1e-16/(1 − recall) where that is more: there the rate
itself is nearly a staircase, and from 1e8 signals per cycle on its steps are not told apart. Where the smooth form is
used they are good to 2.2e-6. Scalar kernels for any legal page; pure.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from recrawl.jit import exact
from recrawl.values.gamma import share
from recrawl.values.signals.freshness import (
    full_terms,
    level_at_value,
    linear_form,
    linear_from,
    state_at_duration,
    step_value,
    steps_at_value,
)
from recrawl.values.signals.harmonic import (
    fresh_time,
    harmonic_steps_at_value,
    mean_steps,
    threshold_at_duration,
    threshold_at_value,
)
from recrawl.values.signals.harmonic_cost import expected_cost
from recrawl.values.signals.page import Cycle, SignalPage, is_plain, shape_of
from recrawl.values.signals.table import quick_boundary, quick_threshold
from recrawl.values.special import ein, excess, g, h, inverse_ein, inverse_g, inverse_h

# Rates this close are one: where the rate hardly moves with the value, a value is known up to an interval.
_SAME = 1e-13
_SAME_HARMONIC = 1e-11
# A rate this close to γ/n is that step.
_SAME_STEP = 1e-12
# The largest V·Δ whose level is known: closer to 1 the level is lost in rounding.
_LIMIT = 1.0 - 1e-15
# Silent changes so rare that under harmonic cost every change counts as announced.
_ANNOUNCED = 1e-13
# Numbers of changes, and values, from which on V is the time, and below which V is αψ²/2.
_ENDLESS = 1e17
_INSTANT = 1e-140
_TINY = 1e-280
_points, _weights = np.polynomial.legendre.leggauss(10)
_NODES = 0.5 * (_points + 1.0)
_WEIGHTS = 0.5 * _weights
# How far in s one set of nodes reaches.
_REACH = 3.0
_EPSILON = 1e-16

_FIRST, _SUM, _LINEAR = 0, 1, 2


class _Policy(NamedTuple):
    """Crawl at the level signals·b + rest; `durations` is γψ and `form` how stale(u) is computed."""

    form: int
    signals: float
    rest: float
    level: float
    durations: float


@exact
def freshness_rate_at_value(page: SignalPage, value: float) -> tuple[float, float]:
    """Return the crawl rate whose marginal value is `value`, and its slope d rate / d ln value.

    Rate 0 from 1/Δ on; infinite at value 0, except where every change is announced: there rates are γ/n, n whole,
    and the slope is 0. About three evaluations of a cycle.
    """
    if page.change_rate == 0.0 or value * page.change_rate >= _LIMIT:
        return 0.0, 0.0
    if page.silent_rate == 0.0:
        return page.signal_rate / steps_at_value(page, value), 0.0
    if value <= 0.0:
        return math.inf, -math.inf
    if is_plain(page):
        level = inverse_g(value * page.change_rate)
        rate = page.change_rate / level
        return rate, -rate * g(level) * math.exp(level) / (level * level)
    level, cycle = level_at_value(page, value)
    rate = 1.0 / cycle.duration
    return rate, -value * cycle.growth * rate * rate * rate * math.exp(level)


@exact
def harmonic_rate_at_value(page: SignalPage, value: float) -> tuple[float, float]:
    """Return the same under harmonic cost, where no value makes the rate 0. Two or three evaluations of a cycle."""
    if page.change_rate == 0.0:
        return 0.0, 0.0
    if is_announced(page):
        return page.signal_rate / harmonic_steps_at_value(page, value), 0.0
    if value <= 0.0:
        return math.inf, -math.inf
    target = value * page.change_rate
    if is_plain(page) or not _TINY < target < _ENDLESS:
        return _plain_harmonic_rate(page, value, target)
    shape = shape_of(page)
    _, cycle = threshold_at_value(shape, target, quick_threshold(shape, target))
    rate = page.change_rate / cycle.duration
    return rate, -rate * (target / cycle.duration) * (cycle.growth / cycle.duration)


@exact
def freshness_value_at_rate(page: SignalPage, rate: float) -> tuple[float, float]:
    """Return the least and the most that the marginal value at this crawl rate can be; they differ at steps.

    At rate 0 both are 1/Δ, what the first crawl would bring. Elsewhere the interval belongs to all rates within
    1e-13 of this one, so it is narrow but not empty. O(log) evaluations of a cycle.
    """
    if page.change_rate == 0.0 or math.isinf(rate):
        return 0.0, 0.0
    most = 1.0 / page.change_rate
    if rate <= 0.0:
        return most, most
    if is_plain(page):
        value = g(page.change_rate / rate) / page.change_rate
        return value, value
    if page.silent_rate == 0.0:
        return _freshness_step_values(page, rate)
    low = _freshness_value_at_duration(page, (1.0 - _SAME) / rate)
    return low, max(low, _freshness_value_at_duration(page, (1.0 + _SAME) / rate))


@exact
def harmonic_value_at_rate(page: SignalPage, rate: float) -> tuple[float, float]:
    """Return the same under harmonic cost: infinite at rate 0, for rates within 1e-11. A few evaluations of a cycle."""
    if page.change_rate == 0.0 or math.isinf(rate):
        return 0.0, 0.0
    if rate <= 0.0:
        return math.inf, math.inf
    if is_announced(page):
        return _harmonic_step_values(page, rate)
    low = _harmonic_value_at_duration(page, (1.0 - _SAME_HARMONIC) / rate)
    return low, max(low, _harmonic_value_at_duration(page, (1.0 + _SAME_HARMONIC) / rate))


@exact
def freshness_costs_at_rate(page: SignalPage, rate: float) -> tuple[float, float]:
    """Return binary and harmonic cost rate, per unit importance, of the best freshness policy with this crawl rate.

    Without crawls they are 1 and infinity, for a page that never changes 0 and 0. O(log) evaluations of a cycle.
    """
    if page.change_rate == 0.0 or math.isinf(rate):
        return 0.0, 0.0
    if rate <= 0.0:
        return 1.0, math.inf
    if is_plain(page):
        return _plain_costs(page.change_rate / rate)
    if math.isinf(page.signal_weight) and rate < page.signal_rate * (1.0 - _SAME):
        return 1.0 - rate / page.change_rate, math.inf
    if page.silent_rate == 0.0:
        return _mixed_step_costs(page, rate, _SAME)
    signals, rest, cycle = state_at_duration(page, 1.0 / rate)
    return _cycle_costs(page, signals, rest, cycle)


@exact
def harmonic_costs_at_rate(page: SignalPage, rate: float) -> tuple[float, float]:
    """Return the same of the best harmonic policy with this crawl rate. A few evaluations of a cycle."""
    if page.change_rate == 0.0 or math.isinf(rate):
        return 0.0, 0.0
    if rate <= 0.0:
        return 1.0, math.inf
    if is_announced(page):
        return _mixed_step_costs(page, rate, _SAME_HARMONIC)
    duration = page.change_rate / rate
    if duration < _INSTANT:
        stale = 0.5 * page.silent_rate / rate
        return stale, stale
    if is_plain(page) or duration > _ENDLESS:
        return _plain_costs(duration)
    shape = shape_of(page)
    x, cycle = threshold_at_duration(shape, duration)
    fresh = fresh_time(shape, x)
    return max(0.0, 1.0 - fresh / duration), ein(x) - cycle.value / duration


@exact
def freshness_threshold(page: SignalPage, value: float) -> float:
    """Return the level y = ατ + bn at which a crawl is worth `value`; infinite if it never is.

    Where every change is announced and the n-th signal starts a crawl, it lies where the value would be met if the cost
    grew in a straight line.
    """
    if value * page.change_rate >= 1.0:
        return math.inf
    if is_plain(page):
        return inverse_g(value * page.change_rate)
    if page.silent_rate == 0.0:
        n = steps_at_value(page, value)
        fresh = math.exp(-n * page.signal_weight) + (step_value(page, n) - value) * page.signal_rate / n
        return -math.log(fresh)
    return level_at_value(page, value)[0]


@exact
def harmonic_threshold(page: SignalPage, value: float) -> float:
    """Return the x with Ein(x) the expected cost at which a crawl is worth `value`; as above between signals."""
    if is_plain(page):
        return inverse_h(value * page.change_rate)
    if is_announced(page):
        n = harmonic_steps_at_value(page, value)
        over = mean_steps(n, page.precision) / page.signal_rate - value
        return inverse_ein(max(0.0, expected_cost(0.0, n, page.precision) - over * page.signal_rate / n))
    shape = shape_of(page)
    target = value * page.change_rate
    return threshold_at_value(shape, target, quick_threshold(shape, target))[0]


@exact
def freshness_wait(page: SignalPage, level: float, signals: float) -> float:
    """Return the time since the last crawl at which a page with n signals reaches a level: 0 if it has, or inf."""
    rest = level - signals * page.signal_weight if signals > 0.0 else level
    if rest <= 0.0:
        return 0.0
    return rest / page.silent_rate if page.silent_rate > 0.0 else math.inf


@exact
def harmonic_wait(page: SignalPage, x: float, signals: float) -> float:
    """Return the same for the expected cost Ein(x), to 1e-5."""
    if signals > 0.0:
        if expected_cost(0.0, signals, page.precision) >= ein(x):
            return 0.0
        x = quick_boundary(x, signals, page.precision)
        if x == 0.0:
            return 0.0
    return x / page.silent_rate if page.silent_rate > 0.0 else math.inf


@exact
def is_announced(page: SignalPage) -> bool:
    """Return whether every change that counts is announced, so that the state is the number of signals alone."""
    return page.silent_rate <= _ANNOUNCED * page.change_rate and page.signal_rate < math.inf


@exact
def _plain_costs(x: float) -> tuple[float, float]:
    """Return both costs of evenly spaced crawls without signals, where x changes are expected between two."""
    stale = (h(x) / x if x > 0.0 else 0.0) if x < _ENDLESS else 1.0
    return stale, ein(x) - stale


@exact
def _plain_harmonic_rate(page: SignalPage, value: float, target: float) -> tuple[float, float]:
    """Return rate and slope without signals, or where the value is so small or large that they do not matter."""
    if target >= _ENDLESS:
        return 1.0 / value, -1.0 / value
    if target <= _TINY:  # V = αψ²/2
        rate = math.sqrt(0.5 * page.silent_rate) / math.sqrt(value)
        return rate, -0.5 * rate
    x = inverse_h(target)
    rate = page.change_rate / x
    return rate, rate * target / (x * math.expm1(-x))


@exact
def _freshness_value_at_duration(page: SignalPage, duration: float) -> float:
    if math.isinf(page.signal_weight) and page.signal_rate * duration >= 1.0:
        return 1.0 / page.change_rate
    return state_at_duration(page, duration)[2].value


@exact
def _harmonic_value_at_duration(page: SignalPage, time: float) -> float:
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
    """Return the step n whose rate γ/n is next at or above `rate` ≤ γ, and the share of time at n, not at n + 1."""
    ratio = page.signal_rate / rate
    n: float = max(1.0, np.floor(ratio + _SAME_STEP * ratio))
    part = n * (n + 1.0 - ratio) / ratio
    return n, 1.0 if part > 1.0 - 2.0 * _SAME_STEP * n else max(0.0, part)


@exact
def _freshness_step_values(page: SignalPage, rate: float) -> tuple[float, float]:
    """Return the interval of values where every change is announced."""
    if rate > page.signal_rate * (1.0 + _SAME):
        return 0.0, 0.0
    if math.isinf(page.signal_weight):
        most = 1.0 / page.change_rate
        return (0.0 if rate >= page.signal_rate * (1.0 - _SAME) else most), most
    n, part = _steps_at_rate(page, rate)
    high = step_value(page, n)
    return (min(high, step_value(page, n - 1.0)) if part == 1.0 else high), high


@exact
def _harmonic_step_values(page: SignalPage, rate: float) -> tuple[float, float]:
    """Return the same under harmonic cost."""
    if rate > page.signal_rate * (1.0 + _SAME_HARMONIC):
        return 0.0, 0.0
    n, part = _steps_at_rate(page, rate)
    high = mean_steps(n, page.precision) / page.signal_rate
    return (min(high, mean_steps(n - 1.0, page.precision) / page.signal_rate) if part == 1.0 else high), high


@exact
def _mixed_step_costs(page: SignalPage, rate: float, same: float) -> tuple[float, float]:
    """Return the costs where every change is announced: two neighbouring steps, in turn."""
    if rate >= page.signal_rate * (1.0 - same):
        return 0.0, 0.0
    n, part = _steps_at_rate(page, rate)
    binary, harmonic = _step_costs(page, n)
    if part == 1.0:
        return binary, harmonic
    more_binary, more_harmonic = _step_costs(page, n + 1.0)
    return part * binary + (1.0 - part) * more_binary, part * harmonic + (1.0 - part) * more_harmonic


@exact
def _step_costs(page: SignalPage, n: float) -> tuple[float, float]:
    """Return the costs of crawling at every n-th signal, where every change is announced. O(1).

    The n stretches of a cycle follow 0, 1, … n − 1 signals: binary is the mean of 1 − (1 − π)^j over j < n.
    """
    precision = page.precision
    harmonic = max(0.0, expected_cost(0.0, n, precision) - mean_steps(n, precision) / n)
    if n == 1.0 or precision >= 1.0:
        return 1.0 - 1.0 / n, harmonic
    decay = -math.log1p(-precision)
    if n * decay > 1.0:
        return 1.0 + math.expm1(-n * decay) / (n * precision), harmonic
    return (h(n * decay) - n * excess(-precision)) / (n * precision), harmonic


@exact
def _cycle_costs(page: SignalPage, signals: float, rest: float, cycle: Cycle) -> tuple[float, float]:
    """Return the binary and harmonic cost rate of crawling at the level signals·b + rest; for α > 0 and γ > 0. O(1)."""
    level = rest + signals * page.signal_weight if signals > 0.0 else rest
    form = _FIRST if signals == 0.0 else (_LINEAR if signals >= linear_from(page) else _SUM)
    policy = _Policy(form, signals, rest, level, page.signal_rate * cycle.duration)
    # e^{−y} + V/ψ is the share of time fresh.
    binary = max(0.0, -math.expm1(-level) - cycle.value / cycle.duration)
    if math.isinf(level):
        return binary, math.log1p(page.silent_rate / page.signal_rate)
    return binary, _harmonic(page, policy, 1.0 + level)


@exact
def _harmonic(page: SignalPage, policy: _Policy, scale: float) -> float:
    """Return the integral of stale(u)/u, where `scale` is about the number of changes missed. O(log scale)."""
    width = math.log1p(scale)
    pieces = math.ceil(width / _REACH)
    width /= pieces
    total = 0.0
    for piece in range(pieces):
        for i in range(_NODES.size):
            grown = math.expm1((piece + _NODES[i]) * width)
            # du/u = (1 + 1/grown) ds
            total += _WEIGHTS[i] * (1.0 + 1.0 / grown) * _stale(page, policy, grown / scale)
    return total * width


@exact
def _stale(page: SignalPage, policy: _Policy, u: float) -> float:
    """Return stale(u), by the form that fits the policy."""
    if policy.form == _SUM:
        return _summed_stale(page, policy, u)
    if policy.form == _LINEAR:
        return _linear_stale(page, policy.level, u)
    return _first_stale(page.signal_rate / page.silent_rate, policy.level, u)


@exact
def _first_stale(k: float, level: float, u: float) -> float:
    """Return stale(u) before the first signal counts: a sum of positive terms. O(1)."""
    x = k * level
    if x > 700.0:
        return u / (k + u)
    d = u * level
    return u * (g(x) + x * math.exp(-x) * h(d) / d) / ((k + u) * -math.expm1(-x))


@exact
def _summed_stale(page: SignalPage, policy: _Policy, u: float) -> float:
    """Return stale(u) by the sum over signals. O(terms) Poisson tails."""
    k = page.signal_rate / page.silent_rate
    signals, rest = policy.signals, policy.rest
    full = min(full_terms(page, k, signals, rest), signals + 1.0)
    fade = math.log1p(-page.precision * u) - math.log1p(u / k)
    fresh = -math.expm1(full * fade) * k / (u * (1.0 + page.precision * k))
    kept = math.exp(full * fade) * k / (k + u)
    again = math.exp(fade)
    i = full
    while i <= signals:
        z = rest + (signals - i) * page.signal_weight if signals > i else rest
        part = kept * share(i, (k + u) * z).more
        fresh += part
        if part <= _EPSILON * fresh:
            break
        kept *= again
        i += 1.0
    return max(0.0, 1.0 - fresh / policy.durations)


@exact
def _linear_stale(page: SignalPage, level: float, u: float) -> float:
    """Return stale(u) past the transient, arranged so that nothing cancels for small levels. O(1)."""
    slope, offset, _ = linear_form(page)
    weight = page.signal_weight
    lost = weight * u + math.log1p(-page.precision * u)
    shift = 0.0  # r − u
    for _ in range(20):
        grown = page.signal_rate * math.expm1(weight * shift + lost)
        step = (page.silent_rate * shift + grown) / (page.silent_rate + weight * (page.signal_rate + grown))
        shift -= step
        if abs(step) < 1e-15 * u:
            break
    root = u + shift
    jump = weight * root
    silent_shift = page.silent_rate * shift
    pace = page.silent_rate + weight * (page.signal_rate - silent_shift)
    # rE − uΔ, where the leading terms have gone.
    rise = page.signal_rate * (page.precision * u * math.expm1(jump) - math.exp(jump) * g(jump)) - jump * silent_shift
    missing = h(root * level) / (root * pace) - level * weight * silent_shift * slope / pace
    missing += slope * offset - rise / (u * page.change_rate * root * pace)
    return max(0.0, missing / (slope * (level + offset)))
