"""A page with noisy signals as a planner sees it: crawl rate for a value, value and costs for a crawl rate.

The policy of a page crawls when its level reaches a threshold (NCIS, Busa-Fekete et al. 2025), so rate, value and
costs are three functions of one threshold; see `freshness`. Everything is per unit importance. Where a
rate lies between those of two thresholds the page follows both in turn, each for a share of the time: between the
steps of a page whose every change is announced, and between never and at every signal where no signal is false.

Scalar kernels for any legal page; pure.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from recrawl.jit import exact
from recrawl.values.signals.freshness import (
    Cycle,
    full_terms,
    is_plain,
    level_at_value,
    linear_form,
    linear_from,
    poisson_tail,
    state_at_duration,
    step_value,
    steps_at_rate,
    steps_at_value,
)
from recrawl.values.signals.page import SignalPage
from recrawl.values.special import ein, excess, g, h, inverse_g

# Rates this close are one: where the rate hardly moves with the value, a value is known up to an interval.
_SAME = 1e-13
# The largest V·Δ whose level is known: closer to 1 the level is lost in rounding.
_LIMIT = 1.0 - 1e-15
_points, _weights = np.polynomial.legendre.leggauss(10)
_NODES = 0.5 * (_points + 1.0)
_WEIGHTS = 0.5 * _weights
# How far in s one set of nodes reaches.
_REACH = 3.0
# Up to so many signals the harmonic cost of a step is added up, beyond it is integrated.
_FEW = 64.0
_EPSILON = 1e-16

_STEP, _FIRST, _SUM, _LINEAR = 0, 1, 2, 3


@exact
def rate_at_value(page: SignalPage, value: float) -> tuple[float, float]:
    """The crawl rate whose marginal value is `value`, and its slope d rate / d ln value.

    Rate 0 from 1/Δ on; infinite at value 0, except where every change is announced: there rates are γ/n, n whole,
    and the slope is 0. Some three evaluations of a cycle.
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
def value_at_rate(page: SignalPage, rate: float) -> tuple[float, float]:
    """The least and the most that the marginal value at this crawl rate can be; they differ at steps.

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
        return _step_values(page, rate)
    low = _value_at_duration(page, (1.0 - _SAME) / rate)
    return low, max(low, _value_at_duration(page, (1.0 + _SAME) / rate))


@exact
def costs_at_rate(page: SignalPage, rate: float) -> tuple[float, float]:
    """Binary and harmonic cost rate, per unit importance, of the best freshness policy with this crawl rate.

    Without crawls they are 1 and infinity, for a page that never changes 0 and 0. O(log) evaluations of a cycle.
    """
    if page.change_rate == 0.0 or math.isinf(rate):
        return 0.0, 0.0
    if rate <= 0.0:
        return 1.0, math.inf
    if is_plain(page):
        x = page.change_rate / rate
        stale = h(x) / x if x > 0.0 else 0.0
        return stale, ein(x) - stale
    if math.isinf(page.signal_weight) and rate < page.signal_rate * (1.0 - _SAME):
        return 1.0 - rate / page.change_rate, math.inf
    if page.silent_rate == 0.0:
        return _mixed_step_costs(page, rate)
    signals, rest, cycle = state_at_duration(page, 1.0 / rate)
    return cycle_costs(page, signals, rest, cycle)


@exact
def _value_at_duration(page: SignalPage, duration: float) -> float:
    if math.isinf(page.signal_weight) and page.signal_rate * duration >= 1.0:
        return 1.0 / page.change_rate
    return state_at_duration(page, duration)[2].value


@exact
def _step_values(page: SignalPage, rate: float) -> tuple[float, float]:
    """The interval of values where every change is announced."""
    if rate > page.signal_rate * (1.0 + _SAME):
        return 0.0, 0.0
    if math.isinf(page.signal_weight):
        most = 1.0 / page.change_rate
        return (0.0 if rate >= page.signal_rate * (1.0 - _SAME) else most), most
    signals, share = steps_at_rate(page, rate)
    value = step_value(page, signals)
    return (min(value, step_value(page, signals - 1.0)) if share == 1.0 else value), value


@exact
def _mixed_step_costs(page: SignalPage, rate: float) -> tuple[float, float]:
    """Costs where every change is announced: two neighbouring steps, in turn."""
    if rate >= page.signal_rate * (1.0 - _SAME):
        return 0.0, 0.0
    signals, share = steps_at_rate(page, rate)
    binary, harmonic = step_costs(page, signals)
    if share == 1.0:
        return binary, harmonic
    more_binary, more_harmonic = step_costs(page, signals + 1.0)
    return share * binary + (1.0 - share) * more_binary, share * harmonic + (1.0 - share) * more_harmonic


class _Policy(NamedTuple):
    """Crawl at the level signals·b + rest; `durations` is γψ and `form` how stale(u) is computed."""

    form: int
    signals: float
    rest: float
    level: float
    durations: float


@exact
def cycle_costs(page: SignalPage, signals: float, rest: float, cycle: Cycle) -> tuple[float, float]:
    """Binary and harmonic cost rate of crawling at the level signals·b + rest; for α > 0 and γ > 0. O(1)."""
    level = rest + signals * page.signal_weight if signals > 0.0 else rest
    form = _FIRST if signals == 0.0 else (_LINEAR if signals >= linear_from(page) else _SUM)
    policy = _Policy(form, signals, rest, level, page.signal_rate * cycle.duration)
    # e^{−y} + V/ψ is the share of time fresh.
    binary = max(0.0, -math.expm1(-level) - cycle.value / cycle.duration)
    if math.isinf(level):
        return binary, math.log1p(page.silent_rate / page.signal_rate)
    return binary, _harmonic(page, policy, 1.0 + level)


@exact
def step_costs(page: SignalPage, signals: float) -> tuple[float, float]:
    """Binary and harmonic cost rate of crawling at every n-th signal, n ≥ 1; for α = 0 and γ > 0. O(1)."""
    binary = _step_stale(page, signals, 1.0)
    if signals <= _FEW:
        return binary, _few_harmonic(page, signals)
    policy = _Policy(_STEP, signals, 0.0, signals * page.signal_weight, signals)
    return binary, _harmonic(page, policy, 1.0 + page.precision * signals)


@exact
def _harmonic(page: SignalPage, policy: _Policy, scale: float) -> float:
    """The integral of stale(u)/u, where `scale` is about the number of changes missed. O(log scale)."""
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
    """The function stale(u), by the form that fits the policy."""
    if policy.form == _SUM:
        return _summed_stale(page, policy, u)
    if policy.form == _LINEAR:
        return _linear_stale(page, policy.level, u)
    if policy.form == _STEP:
        return _step_stale(page, policy.signals, u)
    return _first_stale(page.signal_rate / page.silent_rate, policy.level, u)


@exact
def _first_stale(k: float, level: float, u: float) -> float:
    """The function stale(u) before the first signal counts: a sum of positive terms. O(1)."""
    x = k * level
    if x > 700.0:
        return u / (k + u)
    d = u * level
    return u * (g(x) + x * math.exp(-x) * h(d) / d) / ((k + u) * -math.expm1(-x))


@exact
def _summed_stale(page: SignalPage, policy: _Policy, u: float) -> float:
    """The function stale(u) by the sum over signals. O(terms) Poisson tails."""
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
        part = kept * poisson_tail(i + 1.0, (k + u) * z)
        fresh += part
        if part <= _EPSILON * fresh:
            break
        kept *= again
        i += 1.0
    return max(0.0, 1.0 - fresh / policy.durations)


@exact
def _linear_stale(page: SignalPage, level: float, u: float) -> float:
    """The function stale(u) past the transient, arranged so that nothing cancels for small levels. O(1)."""
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


@exact
def _step_stale(page: SignalPage, signals: float, u: float) -> float:
    """The function stale(u) where every change is announced: the mean of 1 − (1 − πu)^j over j < n. O(1)."""
    thinned = page.precision * u
    if signals == 1.0 or thinned >= 1.0:
        return 1.0 - 1.0 / signals
    decay = -math.log1p(-thinned)
    if signals * decay > 1.0:
        return 1.0 + math.expm1(-signals * decay) / (signals * thinned)
    return (h(signals * decay) - signals * excess(-thinned)) / (signals * thinned)


@exact
def _few_harmonic(page: SignalPage, signals: float) -> float:
    """The mean over j < n of E[H(C)] = Σ_{i≤j} (1 − (1 − π)^i)/i, C of j signals true. O(n)."""
    total = 0.0
    cost = 0.0
    i = 1.0
    while i < signals:
        cost -= math.expm1(-i * page.signal_weight) / i
        total += cost
        i += 1.0
    return total / signals
