"""What a policy that crawls at a level costs: the share of time stale, and the harmonic staleness.

A copy that missed C changes is stale by 1 − 0^C in the binary measure and by H(C) in the harmonic one. Both come
from one function, the time average over a cycle

    stale(u) = 1 − E[(1 − u)^C],   binary = stale(1),   harmonic = ∫₀¹ stale(u)/u du

because H(C) = ∫₀¹ (1 − (1 − u)^C)/u du. After time τ and n signals E[(1 − u)^C] = e^{−ατu}(1 − πu)ⁿ. With the
names of `noisy_freshness_sums`, A_n = z_n, and ψ the duration, the discounted cycle F(u) = ψ·(1 − stale(u)) is

    F(u) = (1/γ) Σ_n (1 − πu)ⁿ (k/(k+u))^{n+1} P(n+1, (k+u)A_n)

and past the transient, with r the root of α(r − u) = γ(1 − (1 − πu)e^{rb}) and E = α + b(γ − α(r − u)),

    F(u) = 1/(uΔ) − e^{−ry}/(rE)

The integral is Gauss and Legendre's in s, u = (e^s − 1)/scale, which spreads the nodes over the decades of u
that matter. Scalar kernels; pure.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from recrawl.jit import exact
from recrawl.values.noisy_freshness_sums import Cycle, full_terms, linear_form, linear_from, poisson_tail
from recrawl.values.signal_page import SignalPage
from recrawl.values.special import excess, g, h

_points, _weights = np.polynomial.legendre.leggauss(10)
_NODES = 0.5 * (_points + 1.0)
_WEIGHTS = 0.5 * _weights
# How far in s one set of nodes reaches.
_REACH = 3.0
# Up to so many signals the harmonic cost of a step is added up, beyond it is integrated.
_FEW = 64.0
_EPSILON = 1e-16

_STEP, _FIRST, _SUM, _LINEAR = 0, 1, 2, 3


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
