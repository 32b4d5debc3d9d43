"""What a crawl of a page is worth now, and how long until it is worth a price. Kernels; they write nothing.

The only module of the room that knows the laws by which values grow, and signals. Values are per unit of cost, since
`gain` is. `signals` and `limits` are the arrays beside the pages. A caller whose pages have no signals passes None, and
the code for signals is not compiled.

A page without a copy counts as one that has missed a change: its value is (gain/decay) h(x₀ + decay·age) with
Ein(x₀) = 1, under every law but ONCE. This value rises without bound, so that every page is fetched in the end.
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
    LIMITED,
    NO_COPY,
    NOISY_FRESHNESS,
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
from recrawl.values.signals.table import quick_boundary
from recrawl.values.special import ein, g
from recrawl.values.uncertain import (
    uncertain_freshness_due_kernel,
    uncertain_freshness_value_kernel,
    uncertain_harmonic_due_kernel,
    uncertain_harmonic_value_kernel,
)

MISSED_ONE = 1.3450165493830403  # x₀ with Ein(x₀) = 1: as stale as after one missed change
FOR_EVER = 1e30  # a wait that never ends; it fits into single precision
MOST = 1e300  # upper bound of values, so that they can be compared and divided

VALUE, BID, PLACE, WAIT, OWN_WAIT, MEAN_WAIT = 0, 1, 2, 3, 4, 5
"""What `appraise` answers."""

Tables = tuple[Records, Records, Records | None, Records]
"""Pages, limits, signals and hosts."""


@kernel
def appraise(tables: Tables, slots: Slots, now: float, price: float, mode: int, out: Floats) -> None:
    """Value pages. The price of a page is that of its host if it is higher than `price`. O(slots).

    Args:
        tables: pages and what is beside them.
        slots: which pages.
        now: the time.
        price: by unit of cost.
        mode: VALUE: the value now. BID: the value now, infinity if the longest interval has passed. PLACE: the wait
            from the last crawl until the page is worth its price, infinity if never; its bid if it is due, the highest
            value it can reach if it is never due; the threshold of signals. WAIT: the wait. OWN_WAIT: the wait without
            least intervals and waits after failures. MEAN_WAIT: the mean time between crawls, with signals meanwhile.
        out: (3, slots): waits, values, thresholds; what the mode does not answer is undefined.
    """
    pages, limits, signals, hosts = tables
    for i in range(len(slots)):
        slot = slots[i]
        page = pages[slot]
        if mode <= BID:
            overdue = mode == BID and is_overdue(page, limits, slot, now)
            out[1, i] = math.inf if overdue else value_of(pages, limits, signals, slot, now, price)
            continue
        dear = price
        number = page["host"]
        if number >= 0:
            dear = max(price, hosts[number]["price"])
        wait, out[2, i] = own_wait(pages, limits, signals, slot, now, dear)
        if mode == MEAN_WAIT:
            wait = _mean_wait(page, signals, slot, dear, wait)
        if mode != OWN_WAIT:
            wait = max(wait, np.float64(page["not_before"]))
        out[0, i] = min(wait, math.inf)
        if mode == PLACE:
            out[1, i] = 0.0
            if wait >= FOR_EVER:
                out[1, i] = ceiling(pages, limits, signals, slot, now, price)
            elif page["last"] + np.float64(np.float32(wait)) <= now:
                overdue = is_overdue(page, limits, slot, now)
                out[1, i] = math.inf if overdue else value_of(pages, limits, signals, slot, now, price)


@kernel
def wait_after_signals(pages: Records, limits: Records, signals: Records, slots: Slots, waits: Floats) -> None:
    """Compute the waits of pages that heard signals from their thresholds; NaN where that is not enough. O(slots)."""
    for i in range(len(slots)):
        page = pages[slots[i]]
        wait = _wait_after_signal(page, signals[slots[i]])
        if page["flags"] & LIMITED != 0:
            wait = min(wait, np.float64(limits[slots[i]]["max_interval"]))
        waits[i] = max(wait, np.float64(page["not_before"]))


@borrowing
def value_of(pages: Records, limits: Records, signals: Records | None, slot: int, now: float, price: float) -> float:
    """Return what a crawl of the page is worth now, by unit of cost. O(1)."""
    page = pages[slot]
    elapsed = max(now - page["last"], 0.0)
    law = page["law"]
    if page["flags"] & NO_COPY != 0 and law != ONCE:
        return _value_without_copy(page, elapsed)
    if law == FRESHNESS:
        return saturating_value(page["gain"], page["decay"], elapsed)
    if law == HARMONIC:
        return min(growing_value(page["gain"], page["decay"], elapsed), MOST)
    if signals is not None:  # noqa: SIM102 - alone, so that it is decided when this is compiled
        if law >= NOISY_FRESHNESS:
            return min(_value_with_signals(page, signals[slot], elapsed), MOST)
    return min(_rarer_value(page, limits, slot, elapsed, price), MOST)


@borrowing
def own_wait(
    pages: Records, limits: Records, signals: Records | None, slot: int, now: float, price: float
) -> tuple[float, float]:
    """Return the time from the last crawl until the page is worth the price, and its threshold of signals. O(1).

    The wait includes the longest interval, but not the least one or waits after failures. `now` matters only to values
    that do not rise.
    """
    page = pages[slot]
    law, gain = page["law"], page["gain"]
    threshold = math.inf
    if gain == 0.0:
        wait = math.inf
    elif law == ONCE:
        wait = 0.0 if value_of(pages, limits, signals, slot, now, price) >= price else math.inf
    elif page["flags"] & NO_COPY != 0:
        wait = _wait_without_copy(page, price)
    elif law == FRESHNESS:
        wait = saturating_due(gain, page["decay"], price)
    elif law == HARMONIC:
        wait = growing_due(gain, page["decay"], price)
    else:
        wait = math.nan
        if signals is not None:  # noqa: SIM102 - alone, so that it is decided when this is compiled
            if law >= NOISY_FRESHNESS:
                wait, threshold = _wait_with_signals(page, signals[slot], price)
        if law < NOISY_FRESHNESS:
            wait = _rarer_wait(page, limits, slot, price)
    if page["flags"] & LIMITED != 0:
        wait = min(wait, np.float64(limits[slot]["max_interval"]))
    return wait, threshold


@borrowing
def is_overdue(page: Record, limits: Records, slot: int, now: float) -> bool:
    """Return whether the page's longest interval has passed: then it is crawled whatever it is worth."""
    if page["flags"] & LIMITED == 0:
        return False
    return bool(now - page["last"] >= np.float64(limits[slot]["max_interval"]))


@borrowing
def ceiling(pages: Records, limits: Records, signals: Records | None, slot: int, now: float, price: float) -> float:
    """Return the highest value of a page that is never worth its price, if no signal comes. O(1)."""
    page = pages[slot]
    law, gain, decay = page["law"], page["gain"], page["decay"]
    if gain > 0.0 and decay > 0.0 and law == SOURCE:
        most = _highest_price(gain, decay, np.float64(limits[slot]["profit"]))
    elif law == WINDOW:
        most = gain * decay
    elif law in (FRESHNESS, NOISY_FRESHNESS) and decay > 0.0 and not _hears_all(page, signals, slot):
        most = gain / decay
    elif law == LEARNED_FRESHNESS and page["belief"] > 1.0:
        shape = np.float64(page["belief"])
        most = gain / decay * (shape / (shape - 1.0))
    elif law == ONCE or _hears_all(page, signals, slot):
        most = value_of(pages, limits, signals, slot, now, price)
    else:
        most = value_of(pages, limits, signals, slot, page["last"] + FOR_EVER, price)
    return min(most, MOST)


@borrowing
def false_rate(page: Record, signal: Record) -> float:
    """Return the rate of signals with no change behind them."""
    precision = np.float64(signal["precision"])
    return np.float64(signal["recall"]) * page["decay"] * (1.0 - precision) / precision


@borrowing
def _highest_price(gain: float, decay: float, profit: float) -> float:
    """Return the highest price at which a content source is worth a crawl: V(p) = p, by halving in p/profit.

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
def _hears_all(page: Record, signals: Records | None, slot: int) -> bool:
    """Return whether every change of the page is announced, so that its value rises with signals only."""
    if signals is not None:
        return page["law"] >= NOISY_FRESHNESS and signals[slot]["recall"] == 1.0
    return False


@borrowing
def _decay_without_copy(page: Record) -> float:
    """Return the rate at which a page without a copy gains value: of a window, one in its length."""
    if page["law"] == WINDOW:
        return 1.0 / page["decay"] if page["decay"] > 0.0 else math.inf
    return page["decay"]


@borrowing
def _value_without_copy(page: Record, age: float) -> float:
    gain, decay = page["gain"], _decay_without_copy(page)
    if gain == 0.0:
        return 0.0
    if decay == 0.0:  # one crawl serves for ever
        return MOST
    return min(growing_value(gain, decay, age + MISSED_ONE / decay), MOST)


@borrowing
def _wait_without_copy(page: Record, price: float) -> float:
    decay = _decay_without_copy(page)
    if decay == 0.0:
        return 0.0
    return max(growing_due(page["gain"], decay, price) - MISSED_ONE / decay, 0.0)


@borrowing
def _weight(signal: Record) -> float:
    """Return the evidence of one signal, b = −ln(1 − precision)."""
    return -math.log1p(-np.float64(signal["precision"]))


@borrowing
def _value_with_signals(page: Record, signal: Record, elapsed: float) -> float:
    recall = np.float64(signal["recall"])
    heard = np.float64(page["signals"])
    noise = false_rate(page, signal)
    silent_rate = (1.0 - recall) * page["decay"]
    if page["law"] == NOISY_FRESHNESS and heard > 0.0 and silent_rate > 0.0 and noise > 0.0:
        # Only the level counts: signals are worth the time in which as much is missed silently.
        elapsed += heard * _weight(signal) / silent_rate
        heard = np.float64(0.0)
    # Signals of several kinds, counted in average ones, need not be a whole number.
    whole = np.floor(heard)
    value = _value_of_whole_signals(page, recall, noise, elapsed, whole)
    if heard > whole:
        value += (heard - whole) * (_value_of_whole_signals(page, recall, noise, elapsed, whole + 1.0) - value)
    return value


@borrowing
def _value_of_whole_signals(page: Record, recall: float, noise: float, elapsed: float, signals: float) -> float:
    if page["law"] == NOISY_FRESHNESS:
        return noisy_freshness_value_kernel(page["gain"], page["decay"], recall, noise, elapsed, signals)
    return noisy_harmonic_value_fast_kernel(page["gain"], page["decay"], recall, noise, elapsed, signals)


@borrowing
def _rarer_value(page: Record, limits: Records, slot: int, elapsed: float, price: float) -> float:
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
        return uncertain_freshness_value_kernel(gain, shape, shape / decay, elapsed)
    return uncertain_harmonic_value_kernel(gain, shape, shape / decay, elapsed)


@borrowing
def _wait_with_signals(page: Record, signal: Record, price: float) -> tuple[float, float]:
    """Return the wait of a page that listens, and its threshold: the wait without any signal."""
    recall, noise = np.float64(signal["recall"]), false_rate(page, signal)
    start = _wait_of_whole_signals(page, recall, noise, 0.0, price)
    heard = np.float64(page["signals"])
    if heard == 0.0:
        return start, start
    wait = _wait_heard(page, signal, start, heard)
    if not math.isnan(wait):
        return wait, start
    whole = np.floor(heard)
    wait = _wait_of_whole_signals(page, recall, noise, whole, price)
    if heard > whole:
        sooner = _wait_of_whole_signals(page, recall, noise, whole + 1.0, price)
        if wait < math.inf:
            wait += (heard - whole) * (sooner - wait)
        elif _value_with_signals(page, signal, sooner) >= price:
            wait = sooner
    return wait, start


@borrowing
def _mean_wait(page: Record, signals: Records | None, slot: int, price: float, wait: float) -> float:
    """Return the mean time between crawls of a page, which is its wait if it does not listen."""
    if signals is not None:  # noqa: SIM102 - alone, so that it is decided when this is compiled
        if page["law"] >= NOISY_FRESHNESS and page["flags"] & NO_COPY == 0:
            return _mean_cycle(page, signals[slot], price)
    return wait


@borrowing
def _mean_cycle(page: Record, signal: Record, price: float) -> float:
    """Return the mean time between crawls of a page that listens, good to some percent.

    It is the slope of the value in the expected cost: of freshness 1 − e^{−x}, of harmonic staleness Ein(x), where x is
    the number of changes missed in silence.
    """
    gain, decay = page["gain"], page["decay"]
    recall, noise = np.float64(signal["recall"]), false_rate(page, signal)
    silent_rate = (1.0 - recall) * decay
    if gain == 0.0 or decay == 0.0:
        return math.inf
    if silent_rate == 0.0:  # crawled after enough signals
        return max(price / gain, 1.0 / (recall * decay + noise))
    wait = _wait_of_whole_signals(page, recall, noise, 0.0, price)
    if not wait < math.inf:
        return math.inf
    sooner, later = 0.95 * wait, 1.05 * wait
    rise = _value_of_whole_signals(page, recall, noise, later, 0.0)
    rise -= _value_of_whole_signals(page, recall, noise, sooner, 0.0)
    if page["law"] == NOISY_FRESHNESS:
        cost = math.exp(-silent_rate * sooner) - math.exp(-silent_rate * later)
    else:
        cost = ein(silent_rate * later) - ein(silent_rate * sooner)
    return rise / (gain * cost) if cost > 0.0 else wait


@borrowing
def _wait_after_signal(page: Record, signal: Record) -> float:
    """Return the wait of a page that listens, from its threshold and the signals heard; NaN if it needs the price."""
    return _wait_heard(page, signal, np.float64(signal["threshold"]), np.float64(page["signals"]))


@borrowing
def _wait_heard(page: Record, signal: Record, start: float, heard: float) -> float:
    silent_rate = (1.0 - np.float64(signal["recall"])) * page["decay"]
    if silent_rate == 0.0 or not start < math.inf or page["flags"] & NO_COPY != 0:
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
