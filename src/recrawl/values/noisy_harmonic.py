"""Harmonic staleness with noisy change-indicating signals: the n-th missed change costs 1/n.

A page that was crawled τ ago and has had n signals since has missed Poisson(ατ) + Binomial(n, π) changes (names
in `signal_page`; the cost is LambdaCrawl's, Kolobov et al. 2019, the signals are those of NCIS, Busa-Fekete et al.
2025). What a crawl is worth then, and when that reaches a price: exact, and from a table for hot paths. Without
signals it is (μ/Δ) h(Δτ), and where every change is announced in truth (μ/Δ) n: V has no bound, so no page that
changes is ever starved. The mathematics is in `noisy_harmonic_cycle`.

Inside, the unit of time is 1/Δ, so that no legal input overflows.
"""

from __future__ import annotations

import math

from recrawl.jit import exact
from recrawl.values.laws import amount, count, unbounded_due, unbounded_value
from recrawl.values.noisy_harmonic_cost import boundary, expected_cost, threshold
from recrawl.values.noisy_harmonic_cycle import FEWEST_SIGNALS, Shape, cycle_at, mean_steps, shape_of
from recrawl.values.noisy_harmonic_fast import (
    quick_boundary,
    quick_cost,
    quick_inverse_ein,
    quick_threshold,
    quick_value,
)
from recrawl.values.noisy_harmonic_plan import is_plain
from recrawl.values.noisy_harmonic_solve import threshold_at_value
from recrawl.values.signal_page import SignalPage, is_legal_page, signal_page
from recrawl.values.special import ein, h, inverse_ein, inverse_h, product, quotient

# Below this many expected changes V would vanish in between, and one signal more or less is one too many.
_TINY = 1e-140
# Above this many V is μ/Δ times their number, to the last digit.
_ENDLESS = 1e17


@exact
def noisy_harmonic_value_kernel(
    importance: float, change_rate: float, recall: float, false_signal_rate: float, elapsed: float, signals: float
) -> float:
    """`noisy_harmonic_value` as a scalar kernel; NaN if an argument is illegal."""
    return _value(importance, change_rate, recall, false_signal_rate, elapsed, signals, False)


@exact
def noisy_harmonic_value_fast_kernel(
    importance: float, change_rate: float, recall: float, false_signal_rate: float, elapsed: float, signals: float
) -> float:
    """`noisy_harmonic_value_fast` as a scalar kernel; NaN if an argument is illegal."""
    return _value(importance, change_rate, recall, false_signal_rate, elapsed, signals, True)


@exact
def noisy_harmonic_due_kernel(
    importance: float, change_rate: float, recall: float, false_signal_rate: float, signals: float, price: float
) -> float:
    """`noisy_harmonic_due` as a scalar kernel; NaN if an argument is illegal."""
    return _due(importance, change_rate, recall, false_signal_rate, signals, price, False)


@exact
def noisy_harmonic_due_fast_kernel(
    importance: float, change_rate: float, recall: float, false_signal_rate: float, signals: float, price: float
) -> float:
    """`noisy_harmonic_due_fast` as a scalar kernel; NaN if an argument is illegal."""
    return _due(importance, change_rate, recall, false_signal_rate, signals, price, True)


@exact
def _value(
    importance: float,
    change_rate: float,
    recall: float,
    false_signal_rate: float,
    elapsed: float,
    signals: float,
    fast: bool,
) -> float:
    legal = is_legal_page(change_rate, recall, false_signal_rate) and amount(importance) and count(signals)
    if not (legal and elapsed >= 0.0):
        return math.nan
    if importance == 0.0 or change_rate == 0.0:
        return 0.0
    page = signal_page(1.0, recall, false_signal_rate / change_rate)
    if _signals_say_nothing(page) or (signals == 0.0 and is_plain(page)):
        return unbounded_value(importance, change_rate, elapsed)
    return _page_value(page, importance, change_rate, elapsed, signals, fast)


@exact
def _page_value(
    page: SignalPage, importance: float, change_rate: float, elapsed: float, signals: float, fast: bool
) -> float:
    """V of a page whose signals say something; `page` is in units of 1/change_rate."""
    if page.silent_rate == 0.0:
        return quotient(importance, mean_steps(signals, page.precision) / page.signal_rate, change_rate)
    silent = page.silent_rate * (change_rate * elapsed)
    missed = silent + signals * page.precision
    if missed > _ENDLESS:
        return importance * (page.silent_rate * elapsed) + quotient(importance, signals * page.precision, change_rate)
    if missed < _TINY:
        return _first_value(page, importance, elapsed, silent) if signals == 0.0 and silent > 0.0 else 0.0
    return quotient(importance, _value_after(shape_of(page), silent, signals, fast), change_rate)


@exact
def _value_after(page: Shape, silent: float, signals: float, fast: bool) -> float:
    """ΔV after so many expected silent changes and so many signals. O(1)."""
    if fast:
        cost = quick_cost(silent, signals, page.precision)
        return quick_value(page, quick_inverse_ein(cost) if signals > 0.0 else silent, cost)
    x = inverse_ein(expected_cost(silent, signals, page.precision)) if signals > 0.0 else silent
    return cycle_at(page, x).value


@exact
def _first_value(page: SignalPage, importance: float, elapsed: float, silent: float) -> float:
    """V where next to no change is expected: μτ h(γτ)/(γτ k)."""
    ratio = page.signal_rate / page.silent_rate
    signals = ratio * silent
    if signals < 1e-100:
        return product(importance, elapsed, 0.5 * silent)
    return product(importance, elapsed, h(signals) / signals / ratio) if signals < math.inf else 0.0


@exact
def _due(
    importance: float,
    change_rate: float,
    recall: float,
    false_signal_rate: float,
    signals: float,
    price: float,
    fast: bool,
) -> float:
    legal = is_legal_page(change_rate, recall, false_signal_rate) and amount(importance) and count(signals)
    if not (legal and price >= 0.0):
        return math.nan
    if importance == 0.0 or change_rate == 0.0 or price == 0.0 or price == math.inf:
        return unbounded_due(importance, change_rate, price)
    page = signal_page(1.0, recall, false_signal_rate / change_rate)
    if _signals_say_nothing(page) or (signals == 0.0 and is_plain(page)):
        return unbounded_due(importance, change_rate, price)
    return _page_due(page, importance, change_rate, signals, price, fast)


@exact
def _page_due(
    page: SignalPage, importance: float, change_rate: float, signals: float, price: float, fast: bool
) -> float:
    """When a page whose signals say something is due; `page` is in units of 1/change_rate."""
    target = quotient(price, change_rate, importance)
    if page.silent_rate == 0.0:
        return 0.0 if mean_steps(signals, page.precision) / page.signal_rate >= target else math.inf
    if target > _ENDLESS:
        rest = price / importance - signals * (page.precision / change_rate)
        return max(0.0, rest) / page.silent_rate
    if target < _TINY * _TINY:
        pace = math.sqrt(importance) * math.sqrt(page.silent_rate) * math.sqrt(change_rate)
        return math.sqrt(2.0) * math.sqrt(price) / pace if signals == 0.0 else 0.0
    return _wait(shape_of(page), signals, target, fast) / page.silent_rate / change_rate


@exact
def _wait(page: Shape, signals: float, target: float, fast: bool) -> float:
    """The expected silent changes at which ΔV meets the target, with so many signals; 0 if it has already. O(1)."""
    rare = page.ratio * page.precision <= FEWEST_SIGNALS
    x = inverse_h(target) if rare else quick_threshold(page, target)
    if fast:
        return quick_boundary(x, signals, page.precision)
    if not rare:
        x, _ = threshold_at_value(page, target, x)
    if signals == 0.0:
        return x
    if ein(x) <= expected_cost(0.0, signals, page.precision):
        return 0.0
    return boundary(threshold(page.precision, x), signals, x - signals * page.precision).a


@exact
def _signals_say_nothing(page: SignalPage) -> bool:
    """Whether signals are none, or so many and so empty that floats cannot tell."""
    return page.precision == 0.0 or math.isinf(page.signal_rate)
