"""What the policies of the NCIS paper believe of pages, what a crawl is worth to them, and bounds on that.

    greedy          ignores signals
    greedy-cis      believes every signal
    greedy-cis+     believes signals of precision above 0.7 and recall above 0.6, ignores the others
    greedy-ncis     weighs signals by what they are worth
    ncis-approx-j   the same with the first j terms of its sums only

All five are one value function of the level y = ατ + bn under different beliefs (NCIS, Busa-Fekete et al. 2025):
V(y) = μ∫₀^y e^{−s}ψ(s)ds, where ψ is the expected time between crawls, or its first terms. So V grows with y, and as
αdψ/dy ≤ 1 it is after a further time d without signals at most

    V(y) + μαe^{−y}(ψ(y)·d + d²/2).

The lazy argmax rests on these two facts. Scalar kernels; pure.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, get_args

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.jit import exact, kernel
from recrawl.pages import Floats
from recrawl.values.signals.freshness import (
    DEEP,
    GOOD_PRECISION,
    GOOD_RECALL,
    cycle_at,
    partial_step_value,
    summed_cycle,
)
from recrawl.values.signals.page import SignalPage, is_plain, signal_page
from recrawl.values.special import g, inverse_g

NcisPolicy = Literal["greedy", "greedy-cis", "greedy-cis+", "greedy-ncis", "ncis-approx-1", "ncis-approx-2"]

# A level is good enough if its value is this close below the one asked for.
_CLOSE = 2e-3
# From this share of the most that a page can be worth on, a value counts as out of reach.
_REACHABLE = 1.0 - 1e-12
_STEPS = 60


class Beliefs(NamedTuple):
    """Pages as a policy sees them: importance, the fields of `SignalPage` by row, and how many terms it sums."""

    importance: Floats
    pages: Floats
    terms: float


class Worth(NamedTuple):
    """V per unit importance, and the bound value + slope·d + curve·d² on it after a further time d."""

    value: float
    slope: float
    curve: float


def beliefs(
    policy: NcisPolicy, importance: Floats, change_rate: Floats, recall: Floats, false_signal_rate: Floats
) -> Beliefs:
    """What a policy believes of pages whose signals have this quality. O(pages).

    >>> ones = np.ones(1)
    >>> beliefs("greedy", ones, ones, 0.5 * ones, ones).pages[0].tolist()
    [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    """
    if policy not in get_args(NcisPolicy):
        raise InvalidInput(f"is {policy!r}, but must be one of {', '.join(get_args(NcisPolicy))}", field="policy")
    if len(change_rate) and change_rate.min() <= 0.0:
        row = int(np.argmin(change_rate))
        raise InvalidInput("must be above 0: leave out pages that never change", field="change_rate", row=row)
    trusted, doubted = recall, false_signal_rate
    if policy == "greedy":
        trusted = np.zeros_like(recall)
    elif policy == "greedy-cis+":
        announced = recall * change_rate
        good = (recall > GOOD_RECALL) & (announced * (1.0 - GOOD_PRECISION) > GOOD_PRECISION * false_signal_rate)
        trusted = np.where(good, recall, 0.0)
    if policy.startswith("greedy-cis"):
        doubted = np.zeros_like(false_signal_rate)
    pages = np.empty((len(importance), len(SignalPage._fields)))
    _fill_pages(change_rate, trusted, doubted, pages)
    terms = float(policy.rpartition("-")[2]) if policy.startswith("ncis-approx") else math.inf
    return Beliefs(importance, pages, terms)


@kernel
def _fill_pages(change_rate: Floats, recall: Floats, false_signal_rate: Floats, pages: Floats) -> None:
    for i in range(change_rate.size):
        page = signal_page(change_rate[i], recall[i], false_signal_rate[i])
        for j in range(len(page)):
            pages[i, j] = page[j]


@exact
def page_of(pages: Floats, i: int) -> SignalPage:
    """The page of a row."""
    return SignalPage(pages[i, 0], pages[i, 1], pages[i, 2], pages[i, 3], pages[i, 4], pages[i, 5])


@exact
def worth_of(page: SignalPage, elapsed: float, signals: float, terms: float) -> Worth:
    """V after this time and so many signals, and how fast it can grow; infinite `elapsed`: never crawled. O(1)."""
    if math.isinf(elapsed) or (signals > 0.0 and math.isinf(page.signal_weight)):
        return Worth(1.0 / page.change_rate, 0.0, 0.0)
    if page.signal_rate == 0.0:
        x = page.change_rate * elapsed
        fresh = math.exp(-x)
        return Worth(g(x) / page.change_rate, x * fresh, 0.5 * page.change_rate * fresh)
    if page.silent_rate == 0.0:
        return Worth(partial_step_value(page, signals, min(terms, signals + 1.0)), 0.0, 0.0)
    rest = page.silent_rate * elapsed
    if rest >= page.signal_weight:
        steps = np.floor(rest / page.signal_weight)
        signals += steps
        rest = max(0.0, rest - steps * page.signal_weight)
    value, duration = _value_and_duration(page, signals, rest, terms)
    level = rest + signals * page.signal_weight if signals > 0.0 else rest
    pace = page.silent_rate * math.exp(-level)
    return Worth(value, pace * duration, 0.5 * pace)


@exact
def _value_and_duration(page: SignalPage, signals: float, rest: float, terms: float) -> tuple[float, float]:
    if math.isinf(terms) or is_plain(page):
        cycle = cycle_at(page, signals, rest)
    else:
        cycle = summed_cycle(page, signals, rest, terms)
    return cycle.value, cycle.duration


@exact
def level_below(page: SignalPage, value: float, terms: float, guess: float) -> float:
    """A level whose V per unit importance is at most `value` and close to it; infinite if V never reaches it.

    Where every change is announced it lies half a signal below the first number of signals that reaches the value.
    Newton's method inside a bracket, from `guess` if that is finite and above 0; some four evaluations of V.
    """
    if value >= _most(page, terms) * _REACHABLE:
        return math.inf
    if value <= 0.0:
        return 0.0
    if page.signal_rate == 0.0:
        return inverse_g(value * page.change_rate)
    if page.silent_rate == 0.0:
        return _step_below(page, value, terms)
    low, high = 0.0, math.inf
    level = guess if 0.0 < guess < DEEP else inverse_g(value * page.silent_rate) + 1e-9
    for _ in range(_STEPS):
        found, duration = _at_level(page, level, terms)
        if found <= value:
            low = level
            if found >= (1.0 - _CLOSE) * value:
                break
        else:
            high = level
        slope = math.exp(-level) * duration
        moved = level + ((1.0 - 0.5 * _CLOSE) * value - found) / slope if slope > 0.0 else math.inf
        if not low < moved < high:
            moved = 2.0 * low if math.isinf(high) else 0.5 * (low + high)
        if moved > DEEP:
            if low >= DEEP:
                return math.inf
            moved = DEEP
        level = moved
    return low


@exact
def _at_level(page: SignalPage, level: float, terms: float) -> tuple[float, float]:
    signals = 0.0
    rest = level
    if level >= page.signal_weight:
        signals = np.floor(level / page.signal_weight)
        rest = max(0.0, level - signals * page.signal_weight)
    return _value_and_duration(page, signals, rest, terms)


@exact
def _most(page: SignalPage, terms: float) -> float:
    """The most that V per unit importance can be."""
    if math.isinf(terms) or page.false_signal_rate == 0.0:
        return 1.0 / page.change_rate
    share = page.false_signal_rate / (page.change_rate + page.false_signal_rate)
    return (1.0 - math.pow(share, terms)) / page.change_rate


@exact
def _step_below(page: SignalPage, value: float, terms: float) -> float:
    if math.isinf(page.signal_weight):
        return 1.0
    low, high = 0.0, 1.0
    while partial_step_value(page, high, min(terms, high + 1.0)) < value:
        if high * page.signal_weight > DEEP:
            return math.inf
        low, high = high, 2.0 * high
    while high - low > 1.0:
        middle = np.floor(0.5 * (low + high))
        if partial_step_value(page, middle, min(terms, middle + 1.0)) < value:
            low = middle
        else:
            high = middle
    return (high - 0.5) * page.signal_weight
