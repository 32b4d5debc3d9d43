"""What a crawl of a page in the table is worth, and how long until it is worth a price. Scalar kernels; pure.

Values are by unit of cost, since `gain` is. `signals` and `limits` are the arrays beside the pages; a caller whose
pages have none passes None for signals, and the code for them is not even compiled.

A page without a copy counts as one that missed a change: freshness is worth its most, gain/decay, and the harmonic
value is that of a page whose expected staleness is 1 when it is added, (gain/decay) h(x₀ + decay·age), Ein(x₀) = 1.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.jit import borrowing, kernel
from recrawl.pages import Floats
from recrawl.scheduling.table.records import (
    FRESHNESS,
    HARMONIC,
    LEARNED_FRESHNESS,
    LEARNED_HARMONIC,
    LIMITED,
    NO_COPY,
    NOISY_FRESHNESS,
    NOISY_HARMONIC,
    ONCE,
    SOURCE,
    WINDOW,
    Record,
    Records,
    Slots,
)
from recrawl.values.laws import (
    growing_due,
    growing_value,
    new_page_deadline_kernel,
    new_page_value_kernel,
    saturating_due,
    saturating_value,
)
from recrawl.values.signals.freshness import noisy_freshness_due_kernel, noisy_freshness_value_kernel
from recrawl.values.signals.harmonic import noisy_harmonic_due_fast_kernel, noisy_harmonic_value_fast_kernel
from recrawl.values.signals.page import signal_page
from recrawl.values.signals.planning import freshness_rate_at_value
from recrawl.values.signals.table import quick_boundary
from recrawl.values.special import ein, g
from recrawl.values.uncertain import (
    uncertain_freshness_due_kernel,
    uncertain_freshness_value_kernel,
    uncertain_harmonic_due_kernel,
    uncertain_harmonic_value_kernel,
)

MISSED_ONE = 1.3450165493830403  # x₀ with Ein(x₀) = 1: as stale as after one missed change
FOR_EVER = 1e30  # a time after which nothing is expected; it fits into single precision
MOST = 1e300  # values are at most this, so that they can be compared and divided


@borrowing
def worth(pages: Records, limits: Records, signals: Records | None, slot: int, now: float, price: float) -> float:
    """What a crawl of the page is worth now, by unit of cost. O(1)."""
    page = pages[slot]
    elapsed = max(now - page["last"], 0.0)
    law = page["law"]
    if page["flags"] & NO_COPY != 0 and law != ONCE:
        return _worth_of_no_copy(page, limits, slot, elapsed, price)
    if law == FRESHNESS:
        return saturating_value(page["gain"], page["decay"], elapsed)
    if law == HARMONIC:
        return growing_value(page["gain"], page["decay"], elapsed)
    if signals is not None:  # noqa: SIM102 - alone, so that it is decided when this is compiled
        if law >= NOISY_FRESHNESS:
            return _worth_with_signals(page, signals[slot], elapsed)
    return _rarer_worth(page, limits, slot, elapsed, price)


@borrowing
def wait_for(pages: Records, limits: Records, signals: Records | None, slot: int, now: float, price: float) -> float:
    """The time from the last crawl at which the page is worth the price, infinity if never; with its own limits.

    `now` matters only to values that do not rise. O(1).
    """
    return max(own_wait(pages, limits, signals, slot, now, price), np.float64(pages[slot]["not_before"]))


@borrowing
def own_wait(pages: Records, limits: Records, signals: Records | None, slot: int, now: float, price: float) -> float:
    """The same as if the page might be taken at any time: without its least interval and waits after failures. O(1)."""
    wait = _unlimited_wait(pages, limits, signals, slot, now, price)
    if pages[slot]["flags"] & LIMITED != 0:
        wait = min(wait, np.float64(limits[slot]["max_interval"]))
    return wait


@borrowing
def is_held(page: Record, now: float) -> bool:
    """Whether the page may not be taken yet."""
    return bool(now - page["last"] < np.float64(page["not_before"]))


@borrowing
def usual_wait(pages: Records, limits: Records, signals: Records | None, slot: int, now: float, price: float) -> float:
    """The mean time between crawls of a page that is crawled when it is worth the price; signals come meanwhile."""
    wait = wait_for(pages, limits, signals, slot, now, price)
    page = pages[slot]
    if signals is not None:  # noqa: SIM102 - alone, so that it is decided when this is compiled
        if page["law"] >= NOISY_FRESHNESS and page["flags"] & NO_COPY == 0 and page["decay"] > 0.0:
            signal = signals[slot]
            recall = np.float64(signal["recall"])
            if page["law"] == NOISY_FRESHNESS:
                known = signal_page(page["decay"], recall, false_rate(page, signal))
                rate = freshness_rate_at_value(known, price / page["gain"])[0] if page["gain"] > 0.0 else 0.0
                wait = 1.0 / rate if rate > 0.0 else math.inf
            else:
                wait = _harmonic_cycle(page, signal, price)
            wait = max(wait, np.float64(page["not_before"]))
    return wait


@borrowing
def _harmonic_cycle(page: Record, signal: Record, price: float) -> float:
    """The mean time between crawls with signals: the slope of the value in the expected cost, good to a percent."""
    recall, noise = np.float64(signal["recall"]), false_rate(page, signal)
    silent_rate = (1.0 - recall) * page["decay"]
    if silent_rate == 0.0:  # a crawl is worth so many announced changes
        return max(price / page["gain"], 1.0 / (recall * page["decay"] + noise))
    wait = noisy_harmonic_due_fast_kernel(page["gain"], page["decay"], recall, noise, 0.0, price)
    sooner, later = 0.95 * wait, 1.05 * wait
    most = noisy_harmonic_value_fast_kernel(page["gain"], page["decay"], recall, noise, later, 0.0)
    least = noisy_harmonic_value_fast_kernel(page["gain"], page["decay"], recall, noise, sooner, 0.0)
    return (most - least) / (page["gain"] * (ein(silent_rate * later) - ein(silent_rate * sooner)))


@borrowing
def is_overdue(pages: Records, limits: Records, slot: int, now: float) -> bool:
    """Whether the page's longest interval has passed: then it is crawled whatever it is worth."""
    page = pages[slot]
    if page["flags"] & LIMITED == 0:
        return False
    return bool(now - page["last"] >= np.float64(limits[slot]["max_interval"]))


@borrowing
def ceiling(pages: Records, limits: Records, signals: Records | None, slot: int, now: float, price: float) -> float:
    """The most that a crawl of the page will be worth if no signal comes, by unit of cost. O(1)."""
    page = pages[slot]
    law, gain, decay = page["law"], page["gain"], page["decay"]
    if gain > 0.0 and decay > 0.0 and law == SOURCE:
        most = _highest_price(gain, decay, np.float64(limits[slot]["profit"]))
    elif law == WINDOW:
        most = gain * decay
    elif stands_still(pages, signals, slot):
        most = worth(pages, limits, signals, slot, now, price)
    elif law in (FRESHNESS, NOISY_FRESHNESS) and decay > 0.0:
        most = gain / decay
    elif law == LEARNED_FRESHNESS and page["belief"] > 1.0:
        shape = np.float64(page["belief"])
        most = gain / decay * (shape / (shape - 1.0))
    else:
        most = worth(pages, limits, signals, slot, page["last"] + FOR_EVER, price)
    return min(most, MOST)


@borrowing
def stands_still(pages: Records, signals: Records | None, slot: int) -> bool:
    """Whether the value of a page that is not worth its price will not rise by itself."""
    page = pages[slot]
    law = page["law"]
    if law == ONCE:
        return True
    if page["flags"] & NO_COPY != 0:
        return law not in (HARMONIC, LEARNED_HARMONIC, NOISY_HARMONIC)
    return law >= NOISY_FRESHNESS and _hears_all(signals, slot)


@borrowing
def _highest_price(gain: float, decay: float, profit: float) -> float:
    """The highest price at which a content source is worth a crawl at all: V(p) = p, by halving in p/profit.

    At price p only pages younger than ln(profit/p)/decay count.
    """
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if gain * g(-math.log(middle)) >= middle * profit * decay:
            low = middle
        else:
            high = middle
    return low * profit


@borrowing
def _hears_all(signals: Records | None, slot: int) -> bool:
    """Whether every change of the page is announced, so that nothing is missed in silence."""
    if signals is not None:
        return signals[slot]["recall"] == 1.0
    return False


@borrowing
def wait_after_signal(page: Record, signal: Record) -> float:
    """The wait of a page that listens, from its threshold and the signals heard; NaN if that needs the long way."""
    start = np.float64(signal["threshold"])
    heard = np.float64(page["signals"])
    silent_rate = (1.0 - np.float64(signal["recall"])) * page["decay"]
    if silent_rate == 0.0 or not start < math.inf:
        return math.nan
    if page["law"] == NOISY_FRESHNESS:
        return max(start - heard * _weight(signal) / silent_rate, 0.0)
    precision = np.float64(signal["precision"])
    whole = np.floor(heard)
    wait = quick_boundary(silent_rate * start, whole, precision)
    if heard > whole:
        wait += (heard - whole) * (quick_boundary(silent_rate * start, whole + 1.0, precision) - wait)
    return wait / silent_rate


@borrowing
def false_rate(page: Record, signal: Record) -> float:
    """Rate of signals with no change behind them."""
    precision = np.float64(signal["precision"])
    return np.float64(signal["recall"]) * page["decay"] * (1.0 - precision) / precision


@borrowing
def _weight(signal: Record) -> float:
    """Evidence of one signal, b = −ln(1 − precision)."""
    return -math.log1p(-np.float64(signal["precision"]))


@borrowing
def _worth_of_no_copy(page: Record, limits: Records, slot: int, elapsed: float, price: float) -> float:
    gain = page["gain"]
    if gain == 0.0:
        return 0.0
    law = page["law"]
    if law == WINDOW:
        return gain * page["decay"]
    if page["decay"] == 0.0:  # a crawl serves for ever
        return MOST
    if law in (FRESHNESS, LEARNED_FRESHNESS, NOISY_FRESHNESS):
        most = gain / page["decay"]
        if law == LEARNED_FRESHNESS:
            # By the mean logarithm of the rate, ψ(k) − ln θ with ψ(k) ≈ ln(k + ½) − 1/k: a rate that may be tiny makes
            # a first crawl worth much, so that pages are explored.
            shape = np.float64(page["belief"])
            most *= shape / (shape + 0.5) * math.exp(min(1.0 / shape, 50.0))
        return min(most, MOST)
    if law == SOURCE:
        deadline = new_page_deadline_kernel(np.float64(limits[slot]["profit"]), page["decay"], price)
        return saturating_value(gain, page["decay"], deadline)
    return min(growing_value(gain, page["decay"], elapsed + MISSED_ONE / page["decay"]), MOST)


@borrowing
def _worth_with_signals(page: Record, signal: Record, elapsed: float) -> float:
    recall = np.float64(signal["recall"])
    heard = np.float64(page["signals"])
    noise = false_rate(page, signal)
    silent_rate = (1.0 - recall) * page["decay"]
    if page["law"] != NOISY_FRESHNESS or heard == 0.0 or silent_rate == 0.0 or noise == 0.0:
        # Signals of several kinds, in average ones, need not be a whole number.
        whole = np.floor(heard)
        value = _worth_of_whole_signals(page, recall, noise, elapsed, whole)
        if heard > whole:
            value += (heard - whole) * (_worth_of_whole_signals(page, recall, noise, elapsed, whole + 1.0) - value)
        return value
    # Only the level counts: signals are as good as the time in which as much is missed silently.
    elapsed += heard * _weight(signal) / silent_rate
    return noisy_freshness_value_kernel(page["gain"], page["decay"], recall, noise, elapsed, 0.0)


@borrowing
def _worth_of_whole_signals(page: Record, recall: float, noise: float, elapsed: float, signals: float) -> float:
    if page["law"] == NOISY_FRESHNESS:
        return noisy_freshness_value_kernel(page["gain"], page["decay"], recall, noise, elapsed, signals)
    return noisy_harmonic_value_fast_kernel(page["gain"], page["decay"], recall, noise, elapsed, signals)


@borrowing
def _rarer_worth(page: Record, limits: Records, slot: int, elapsed: float, price: float) -> float:
    law, gain, decay = page["law"], page["gain"], page["decay"]
    if law == ONCE:
        return new_page_value_kernel(gain, decay, elapsed)
    if law == SOURCE:
        deadline = new_page_deadline_kernel(np.float64(limits[slot]["profit"]), decay, price)
        return saturating_value(gain, decay, min(elapsed, deadline))
    if law == WINDOW:
        return gain * decay if elapsed >= decay else 0.0
    shape = np.float64(page["belief"])
    if law == LEARNED_FRESHNESS:
        return min(uncertain_freshness_value_kernel(gain, shape, shape / decay, elapsed), MOST)
    return min(uncertain_harmonic_value_kernel(gain, shape, shape / decay, elapsed), MOST)


@borrowing
def _unlimited_wait(
    pages: Records, limits: Records, signals: Records | None, slot: int, now: float, price: float
) -> float:
    page = pages[slot]
    law, gain, decay = page["law"], page["gain"], page["decay"]
    if page["flags"] & NO_COPY != 0 or law == ONCE or gain == 0.0:
        return _wait_without_copy(pages, limits, signals, slot, now, price)
    if law == FRESHNESS:
        return saturating_due(gain, decay, price)
    if law == HARMONIC:
        return growing_due(gain, decay, price)
    if signals is not None:  # noqa: SIM102 - alone, so that it is decided when this is compiled
        if law >= NOISY_FRESHNESS:
            return _wait_with_signals(page, signals[slot], price)
    return _rarer_wait(page, limits, slot, price)


@borrowing
def _wait_without_copy(
    pages: Records, limits: Records, signals: Records | None, slot: int, now: float, price: float
) -> float:
    page = pages[slot]
    law, gain, decay = page["law"], page["gain"], page["decay"]
    if gain > 0.0 and decay > 0.0 and law in (HARMONIC, LEARNED_HARMONIC, NOISY_HARMONIC):
        return max(growing_due(gain, decay, price) - MISSED_ONE / decay, 0.0)
    if gain == 0.0:
        return math.inf
    return 0.0 if worth(pages, limits, signals, slot, now, price) >= price else math.inf


@borrowing
def _wait_with_signals(page: Record, signal: Record, price: float) -> float:
    """The wait of a page that listens; leaves the wait without signals as its threshold."""
    gain, decay = page["gain"], page["decay"]
    recall, noise = np.float64(signal["recall"]), false_rate(page, signal)
    if page["law"] == NOISY_FRESHNESS:
        start = noisy_freshness_due_kernel(gain, decay, recall, noise, 0.0, price)
    else:
        start = noisy_harmonic_due_fast_kernel(gain, decay, recall, noise, 0.0, price)
    signal["threshold"] = start
    heard = np.float64(page["signals"])
    if heard == 0.0:
        return start
    wait = wait_after_signal(page, signal)
    if not math.isnan(wait):
        return wait
    whole = np.floor(heard)
    wait = _wait_of_whole_signals(page, recall, noise, whole, price)
    if heard > whole:
        sooner = _wait_of_whole_signals(page, recall, noise, whole + 1.0, price)
        if wait < math.inf:
            wait += (heard - whole) * (sooner - wait)
        elif _worth_with_signals(page, signal, sooner) >= price:
            wait = sooner
    return wait


@borrowing
def _wait_of_whole_signals(page: Record, recall: float, noise: float, signals: float, price: float) -> float:
    if page["law"] == NOISY_FRESHNESS:
        return noisy_freshness_due_kernel(page["gain"], page["decay"], recall, noise, signals, price)
    return noisy_harmonic_due_fast_kernel(page["gain"], page["decay"], recall, noise, signals, price)


@borrowing
def _rarer_wait(page: Record, limits: Records, slot: int, price: float) -> float:
    law, gain, decay = page["law"], page["gain"], page["decay"]
    if law == SOURCE:
        due = saturating_due(gain, decay, price)
        return math.inf if due > new_page_deadline_kernel(np.float64(limits[slot]["profit"]), decay, price) else due
    if law == WINDOW:
        return decay if gain * decay >= price else math.inf
    shape = np.float64(page["belief"])
    if law == LEARNED_FRESHNESS:
        return uncertain_freshness_due_kernel(gain, shape, shape / decay, price)
    return uncertain_harmonic_due_kernel(gain, shape, shape / decay, price)


@kernel
def fill_worth(
    pages: Records, limits: Records, signals: Records | None, slots: Slots, now: float, price: float, out: Floats
) -> None:
    """The worth of these pages, one by one. O(slots)."""
    for i in range(len(slots)):
        out[i] = worth(pages, limits, signals, slots[i], now, price)
