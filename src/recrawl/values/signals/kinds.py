"""Binary freshness with several kinds of noisy signals on one page, such as a feed and a sitemap.

Each change fires at most one kind. Kind j has recall λ_j and false signals at rate ν_j, so γ_j = λ_jΔ + ν_j and
b_j = ln(γ_j/ν_j). The level is y = ατ + Σ_j b_j n_j with α = (1 − Σ λ_j)Δ; summing the rates and using one b can be
wrong by a sixth. The duration of a cycle obeys α dψ/dy = 1 − γψ(y) + Σ_j γ_j ψ((y − b_j)₊), γ = Σγ_j. Among i
signals the kinds are multinomial, which solves it as a sum over how many of each kind came,

    ψ(y) = (1/γ) Σ_i multinomial(i) Π_j (γ_j/γ)^{i_j} P(|i| + 1, (γ/α)(y − Σ_j i_j b_j))

and V = ∫₀^y e^{−s}ψ ds term by term as in `freshness`. That is O(Π_j y/b_j) terms, too many where
signals are weak: kinds whose b is below a fiftieth of y become one kind and a drift that move the level with the
same mean, variance and third moment, and if its b is below a thousandth of y, one of that b with the same mean and
variance. V is then good to one part in a million, in some 1000·50^{K−1}/K! terms for K kinds at most.

This extends NCIS (Busa-Fekete et al. 2025), which has one kind.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from recrawl.errors import InvalidInput
from recrawl.jit import exact, kernel
from recrawl.pages import Floats
from recrawl.values.arrays import AMOUNT, COUNT, PROBABILITY, SPAN, Values
from recrawl.values.signals.freshness import DEEP, level_term
from recrawl.values.special import g, quotient

_EPSILON = 1e-15
# Kinds with less than this share of the level are pooled, and the pool has at least this share.
_POOLED = 0.02
_FINEST = 0.001
# As in `page`: a kind weaker than this tells nothing.
_WEAKEST = 1e-30


class Kinds(NamedTuple):
    """What a page's level is made of: drift, rate of all signals, and for each kind its rate and b."""

    silent_rate: float
    signal_rate: float
    rates: Floats
    weights: Floats


def several_signals_value(
    importance: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_signal_rate: ArrayLike,
    elapsed: ArrayLike,
    signals: ArrayLike,
) -> Values:
    """Return what a crawl is worth when several kinds of signals tell of changes.

    Args:
        importance: weight of the page.
        change_rate: changes per unit time.
        recall: for each kind, on the last axis, the probability that a change fires it; together at most 1.
        false_signal_rate: for each kind, its signals per unit time with no change behind them.
        elapsed: time since the last crawl, may be infinite.
        signals: for each kind, the number of its signals since the last crawl.

    Returns:
        V in units of importance × time, without the axis of kinds. The error is below 1e-6 relative.

    >>> round(several_signals_value(1.0, 0.5, [0.3, 0.2], [0.05, 0.4], 1.0, [1, 0]), 6)
    1.100582
    """
    columns = [np.asarray(x, dtype=np.float64) for x in (importance, change_rate, elapsed)]
    stacks = [np.atleast_1d(np.asarray(x, dtype=np.float64)) for x in (recall, false_signal_rate, signals)]
    try:
        kinds = np.broadcast_shapes(*(stack.shape[-1:] for stack in stacks))
        shape = np.broadcast_shapes(*(column.shape for column in columns), *(stack.shape[:-1] for stack in stacks))
    except ValueError:
        raise InvalidInput(
            "recall, false_signal_rate and signals need the kinds on their last axis, and pages before it must fit"
        ) from None
    weight, rate, time = (np.broadcast_to(column, shape).ravel() for column in columns)
    shares, false_rates, counts = (np.broadcast_to(stack, shape + kinds).reshape(-1, *kinds) for stack in stacks)
    for name, rule, column in (
        ("importance", AMOUNT, weight),
        ("change_rate", AMOUNT, rate),
        ("recall", PROBABILITY, shares),
        ("false_signal_rate", AMOUNT, false_rates),
        ("elapsed", SPAN, time),
        ("signals", COUNT, counts),
    ):
        rule.check(name, column)
    together = shares.sum(axis=-1)
    if (together > 1 + 1e-12).any():
        problem = "must add up to 1 or less: a change fires at most one kind"
        raise InvalidInput(problem, field="recall", row=int(np.argmax(together)))
    values = np.empty(weight.size)
    _fill(weight, rate, time, shares, false_rates, counts, values)
    return values.reshape(shape) if shape else float(values[0])


@kernel
def _fill(
    importance: Floats,
    change_rate: Floats,
    elapsed: Floats,
    recall: Floats,
    false_rate: Floats,
    signals: Floats,
    values: Floats,
) -> None:
    for row in range(values.size):
        values[row] = 0.0
        if importance[row] > 0.0 and change_rate[row] > 0.0:
            # The unit of time is 1/Δ.
            kinds = _kinds(recall[row], false_rate[row] / change_rate[row])
            level = _level(kinds, change_rate[row] * elapsed[row], signals[row])
            values[row] = quotient(importance[row], _value_at_level(kinds, level), change_rate[row])


@exact
def _kinds(recall: Floats, false_rate: Floats) -> Kinds:
    """Return rate and weight of every kind at change rate 1; both are 0 if the kind tells nothing."""
    rates, weights = np.zeros(recall.size), np.zeros(recall.size)
    announced = 0.0
    for j in range(recall.size):
        weight = math.log1p(recall[j] / false_rate[j]) if false_rate[j] > 0.0 else math.inf
        if recall[j] > 0.0 and weight > _WEAKEST:
            announced += recall[j]
            rates[j] = recall[j] + false_rate[j]
            weights[j] = weight
    return Kinds(max(0.0, 1.0 - announced), rates.sum(), rates, weights)


@exact
def _level(kinds: Kinds, elapsed: float, signals: Floats) -> float:
    """Return the level y = ατ + Σ b_j n_j."""
    level = kinds.silent_rate * elapsed if kinds.silent_rate > 0.0 else 0.0
    for j in range(signals.size):
        if signals[j] > 0.0 and kinds.weights[j] > 0.0:
            level += signals[j] * kinds.weights[j]
    return level


@exact
def _value_at_level(kinds: Kinds, level: float) -> float:
    """Return V per unit importance and unit change rate at this level."""
    if level == 0.0:
        return 0.0
    if level >= DEEP:
        return 1.0
    if kinds.signal_rate == 0.0:
        return g(level)
    kinds = _pooled(kinds, level)
    return min(1.0, math.exp(-level) * _sum_of_bodies(kinds, level) / kinds.signal_rate)


@exact
def _pooled(kinds: Kinds, level: float) -> Kinds:
    """Return the kinds within reach of the level, the strongest first; the weak ones become one kind and a drift."""
    first = second = third = 0.0
    rates, weights = np.zeros(kinds.rates.size + 1), np.zeros(kinds.rates.size + 1)
    signal_rate = 0.0
    count = 0
    for j in np.argsort(-kinds.weights):
        rate, weight = kinds.rates[j], kinds.weights[j]
        if 0.0 < weight < _POOLED * level:
            first += rate * weight
            second += rate * weight * weight
            third += rate * weight * weight * weight
        elif weight > 0.0:
            signal_rate += rate
            if weight <= level:
                rates[count], weights[count] = rate, weight
                count += 1
    silent_rate = kinds.silent_rate
    if second > 0.0:
        weights[count] = max(third / second, _FINEST * level)
        rates[count] = second / (weights[count] * weights[count])
        silent_rate += max(0.0, first - second / weights[count])
        signal_rate += rates[count]
        count += 1
    return Kinds(silent_rate, signal_rate, rates[:count], weights[:count])


@exact
def _sum_of_bodies(kinds: Kinds, level: float) -> float:
    """Return Σ over the numbers of signals of each kind of their probability times B, so e^y γ V."""
    depth = kinds.rates.size
    # After the first d kinds: the level left, the probability of these numbers, and how many signals they are.
    left, chance, number = np.full(depth + 1, level), np.ones(depth + 1), np.zeros(depth + 1)
    counts = np.zeros(depth)
    total = durations = 0.0
    d = 0
    while d >= 0:
        share, body = _term(kinds, number[depth] + 1.0, left[depth])
        total += chance[depth] * body
        durations += chance[depth] * share
        # One more of the last kind that still fits; none of the weakest if this term was nothing already.
        d = depth - 1 if share > _EPSILON * durations else depth - 2
        while d >= 0 and left[d + 1] < kinds.weights[d]:
            d -= 1
        if d >= 0:
            counts[d] += 1.0
            number[d + 1] += 1.0
            chance[d + 1] *= kinds.rates[d] / kinds.signal_rate * number[d + 1] / counts[d]
            left[d + 1] -= kinds.weights[d]
            counts[d + 1 :] = 0.0
            number[d + 2 :] = number[d + 1]
            chance[d + 2 :] = chance[d + 1]
            left[d + 2 :] = left[d + 1]
    return total


@exact
def _term(kinds: Kinds, shape: float, z: float) -> tuple[float, float]:
    """Return P(shape, kz) and B of `freshness`, also without a drift."""
    if kinds.silent_rate == 0.0:
        return 1.0, math.expm1(z)
    k = kinds.signal_rate / kinds.silent_rate
    epsilon = math.log1p(kinds.silent_rate / kinds.signal_rate)
    if k * z - shape > math.sqrt(80.0 * k * z):
        return 1.0, math.expm1(z - shape * epsilon)
    term = level_term(shape, z, k, epsilon)
    return term.share, term.body
