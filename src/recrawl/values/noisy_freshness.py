"""Binary freshness with noisy change-indicating signals (NCIS, Busa-Fekete et al. 2025).

A copy that was crawled τ ago and has had n signals since is fresh with probability e^{−(ατ + bn)}. What a crawl is
worth then, when that reaches a price, and the rules the paper compares: GREEDY-NCIS exact and with its first
terms only, GREEDY-CIS that trusts every signal, GREEDY-CIS+ that trusts the good ones. The mathematics is in
`noisy_freshness_sums`.

Inside, the unit of time is 1/Δ, so that no legal input overflows.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.jit import exact
from recrawl.values.laws import amount, bounded_due, bounded_value
from recrawl.values.noisy_freshness_level import level_at_value
from recrawl.values.noisy_freshness_plan import is_plain
from recrawl.values.noisy_freshness_steps import partial_step_value, step_value
from recrawl.values.noisy_freshness_sums import cycle_at, summed_cycle
from recrawl.values.signal_page import SignalPage, is_count, is_legal_page, signal_page
from recrawl.values.special import g, product, quotient

# Below this level V is μτy/2 and its square would vanish.
_TINY = 1e-140
# No level is told from one beyond this.
_ENDLESS = 1e200
# GREEDY-CIS+ trusts the signals of pages above both.
_GOOD_PRECISION = 0.7
_GOOD_RECALL = 0.6


@exact
def noisy_freshness_value_kernel(
    importance: float, change_rate: float, recall: float, false_signal_rate: float, elapsed: float, signals: float
) -> float:
    """`noisy_freshness_value` as a scalar kernel; NaN if an argument is illegal."""
    return partial_freshness_value_kernel(
        importance, change_rate, recall, false_signal_rate, elapsed, signals, math.inf
    )


@exact
def noisy_freshness_due_kernel(
    importance: float, change_rate: float, recall: float, false_signal_rate: float, signals: float, price: float
) -> float:
    """`noisy_freshness_due` as a scalar kernel; NaN if an argument is illegal."""
    legal = is_legal_page(change_rate, recall, false_signal_rate) and amount(importance) and is_count(signals)
    if not (legal and price >= 0.0):
        return math.nan
    if importance == 0.0 or change_rate == 0.0 or price == 0.0:
        return bounded_due(importance, change_rate, price)
    page = signal_page(1.0, recall, false_signal_rate / change_rate)
    if page.signal_rate == 0.0 or (signals == 0.0 and is_plain(page)):
        return bounded_due(importance, change_rate, price)
    target = quotient(price, change_rate, importance)
    if target < _TINY * _TINY and signals == 0.0 and page.silent_rate > 0.0:
        pace = math.sqrt(importance) * math.sqrt(page.silent_rate) * math.sqrt(change_rate)
        return math.sqrt(2.0) * math.sqrt(price) / pace
    return _wait(page, signals, target) / change_rate


@exact
def _wait(page: SignalPage, signals: float, value: float) -> float:
    """The time since the last crawl at which V per unit importance is `value`, with so many signals. O(1)."""
    if value_after(page, 0.0, signals, math.inf) >= value:
        return 0.0
    if value * page.change_rate >= 1.0 or page.silent_rate == 0.0:
        return math.inf
    level = level_at_value(page, value)[0]
    silent = level - signals * page.signal_weight if signals > 0.0 else level
    return max(0.0, silent) / page.silent_rate


@exact
def value_after(page: SignalPage, elapsed: float, signals: float, terms: float) -> float:
    """V per unit importance after this time and so many signals; infinite `terms` is the exact value. O(1)."""
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
    """The same by the first `terms` terms of the sums; all of them if infinite."""
    legal = is_legal_page(change_rate, recall, false_signal_rate) and amount(importance) and is_count(signals)
    if not (legal and elapsed >= 0.0 and terms >= 1.0 and (math.isinf(terms) or is_count(terms))):
        return math.nan
    if importance == 0.0 or change_rate == 0.0:
        return 0.0
    page = signal_page(1.0, recall, false_signal_rate / change_rate)
    if page.signal_rate == 0.0:
        return bounded_value(importance, change_rate, elapsed)
    level = page.silent_rate * (change_rate * elapsed)
    if signals == 0.0 and level < _TINY:
        return product(importance, elapsed, 0.5 * level) if level > 0.0 else 0.0
    return quotient(importance, value_after(page, change_rate * elapsed, signals, terms), change_rate)


@exact
def trusting_freshness_value_kernel(
    importance: float, change_rate: float, recall: float, elapsed: float, signals: float
) -> float:
    """The value without false signals."""
    return noisy_freshness_value_kernel(importance, change_rate, recall, 0.0, elapsed, signals)


@exact
def selective_freshness_value_kernel(
    importance: float, change_rate: float, recall: float, false_signal_rate: float, elapsed: float, signals: float
) -> float:
    """The value without false signals where signals are good, else without signals."""
    announced_rate = recall * change_rate
    # precision > p without a division, which 0/0 would spoil
    if recall > _GOOD_RECALL and announced_rate * (1.0 - _GOOD_PRECISION) > _GOOD_PRECISION * false_signal_rate:
        return noisy_freshness_value_kernel(importance, change_rate, recall, 0.0, elapsed, signals)
    return noisy_freshness_value_kernel(importance, change_rate, 0.0, false_signal_rate, elapsed, signals)
