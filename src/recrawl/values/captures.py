"""Captured changes: a crawl gains the changes it still finds (the setting of WIC, Pandey et al. 2004).

Changes come at rate Δ, and each is worth the importance μ times an urgency e^{−δ·delay}. What is left to find
when the crawler comes depends on the life of a change:

    append     changes pile up and lose value at rate κ = δ          V = (μΔ/κ) g(κτ)
    overwrite  each change replaces the one before, κ = δ + Δ        V = (μΔ/κ) g(κτ)
    window     a change is there for a time W, then gone             V = 0 before W, μΔW from then on
    last       the last Z changes stay                               V = μ Z P(Z + 1, Δτ)

V is the gain u of a crawl less elapsed time times the rate at which that gain still grows. Where changes
append and never lose value all schedules gain the same, and V is 0.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from recrawl.jit import elementwise, exact
from recrawl.values.arrays import AMOUNT, SPAN, Rule, Values, evaluate
from recrawl.values.incomplete_gamma import lower_gamma
from recrawl.values.inverse_gamma import inverse_lower_gamma
from recrawl.values.shapes import amount, bounded_due, bounded_value, count, finite_product, finite_sum
from recrawl.values.special import product

_MOST_KEPT = 1e9  # the incomplete gamma function takes √keep steps
_KEPT = Rule(
    "must be a whole number from 1 to a thousand million",
    lambda x: (x >= 1) & (x <= _MOST_KEPT) & (x == np.floor(x)),
)
_DECAY = {"importance": AMOUNT, "change_rate": AMOUNT, "decay": AMOUNT, "elapsed": SPAN}
_DECAY_DUE = {"importance": AMOUNT, "change_rate": AMOUNT, "decay": AMOUNT, "price": SPAN}
_WINDOW = {"importance": AMOUNT, "change_rate": AMOUNT, "window": SPAN, "elapsed": SPAN}
_WINDOW_DUE = {"importance": AMOUNT, "change_rate": AMOUNT, "window": SPAN, "price": SPAN}
_LAST = {"importance": AMOUNT, "change_rate": AMOUNT, "keep": _KEPT, "elapsed": SPAN}
_LAST_DUE = {"importance": AMOUNT, "change_rate": AMOUNT, "keep": _KEPT, "price": SPAN}


@exact
def append_value_kernel(importance: float, change_rate: float, decay: float, elapsed: float) -> float:
    """(μΔ/δ) g(δτ) as a scalar kernel; NaN if an argument is illegal."""
    if not (amount(importance) and amount(change_rate)):
        return math.nan
    return bounded_value(finite_product(importance, change_rate), decay, elapsed)


@exact
def append_due_kernel(importance: float, change_rate: float, decay: float, price: float) -> float:
    """The inverse of `append_value_kernel` in the elapsed time."""
    if not (amount(importance) and amount(change_rate)):
        return math.nan
    return bounded_due(finite_product(importance, change_rate), decay, price)


@exact
def overwrite_value_kernel(importance: float, change_rate: float, decay: float, elapsed: float) -> float:
    """(μΔ/κ) g(κτ), κ = δ + Δ, as a scalar kernel; NaN if an argument is illegal."""
    if not (amount(change_rate) and amount(decay)):
        return math.nan
    return append_value_kernel(importance, change_rate, finite_sum(change_rate, decay), elapsed)


@exact
def overwrite_due_kernel(importance: float, change_rate: float, decay: float, price: float) -> float:
    """The inverse of `overwrite_value_kernel` in the elapsed time."""
    if not (amount(change_rate) and amount(decay)):
        return math.nan
    return append_due_kernel(importance, change_rate, finite_sum(change_rate, decay), price)


@exact
def window_value_kernel(importance: float, change_rate: float, window: float, elapsed: float) -> float:
    """0 before the window, μΔW from then on, as a scalar kernel; NaN if an argument is illegal."""
    if not (amount(importance) and amount(change_rate) and window >= 0.0 and elapsed >= 0.0):
        return math.nan
    if elapsed < window or window == math.inf:
        return 0.0
    return product(importance, change_rate, window)


@exact
def window_due_kernel(importance: float, change_rate: float, window: float, price: float) -> float:
    """0 for price 0, the window if its step reaches the price, else infinity."""
    if not (price >= 0.0):
        return math.nan
    step = window_value_kernel(importance, change_rate, window, window)
    if math.isnan(step):
        return math.nan
    if price == 0.0:
        return 0.0
    return window if step >= price else math.inf


@exact
def _keepable(keep: float) -> bool:
    return 1.0 <= keep <= _MOST_KEPT and count(keep)


@exact
def last_changes_value_kernel(importance: float, change_rate: float, keep: float, elapsed: float) -> float:
    """μ Z P(Z + 1, Δτ) as a scalar kernel; NaN if an argument is illegal."""
    if not (amount(importance) and amount(change_rate) and _keepable(keep) and elapsed >= 0.0):
        return math.nan
    if importance == 0.0 or change_rate == 0.0:
        return 0.0
    return product(importance, keep, lower_gamma(keep + 1.0, change_rate * elapsed))


@exact
def last_changes_due_kernel(importance: float, change_rate: float, keep: float, price: float) -> float:
    """The inverse of `last_changes_value_kernel` in the elapsed time."""
    if not (amount(importance) and amount(change_rate) and _keepable(keep) and price >= 0.0):
        return math.nan
    if price == 0.0:
        return 0.0
    if importance == 0.0 or change_rate == 0.0:
        return math.inf
    share = max(price / importance / keep, 5e-324)  # a share of 0 has no logarithm
    return inverse_lower_gamma(keep + 1.0, share) / change_rate if share < 1.0 else math.inf


@elementwise
def _append_value(importance: float, change_rate: float, decay: float, elapsed: float) -> float:
    return append_value_kernel(importance, change_rate, decay, elapsed)


@elementwise
def _append_due(importance: float, change_rate: float, decay: float, price: float) -> float:
    return append_due_kernel(importance, change_rate, decay, price)


@elementwise
def _overwrite_value(importance: float, change_rate: float, decay: float, elapsed: float) -> float:
    return overwrite_value_kernel(importance, change_rate, decay, elapsed)


@elementwise
def _overwrite_due(importance: float, change_rate: float, decay: float, price: float) -> float:
    return overwrite_due_kernel(importance, change_rate, decay, price)


@elementwise
def _window_value(importance: float, change_rate: float, window: float, elapsed: float) -> float:
    return window_value_kernel(importance, change_rate, window, elapsed)


@elementwise
def _window_due(importance: float, change_rate: float, window: float, price: float) -> float:
    return window_due_kernel(importance, change_rate, window, price)


@elementwise
def _last_changes_value(importance: float, change_rate: float, keep: float, elapsed: float) -> float:
    return last_changes_value_kernel(importance, change_rate, keep, elapsed)


@elementwise
def _last_changes_due(importance: float, change_rate: float, keep: float, price: float) -> float:
    return last_changes_due_kernel(importance, change_rate, keep, price)


def append_value(importance: ArrayLike, change_rate: ArrayLike, decay: ArrayLike, elapsed: ArrayLike) -> Values:
    """What a crawl is worth where changes pile up and lose value at rate `decay`.

    Args:
        importance: worth of one change captured at once.
        change_rate: changes per unit time.
        decay: urgency, how fast an uncaptured change loses value; 0 makes every V 0.
        elapsed: time since the last crawl, may be infinite.

    Returns:
        (μΔ/δ) g(δτ), in units of importance. O(elements).

    >>> round(append_value(2.0, 3.0, 0.5, 1.0), 6)
    1.082448
    """
    return evaluate(_append_value, _DECAY, importance, change_rate, decay, elapsed)


def append_due(importance: ArrayLike, change_rate: ArrayLike, decay: ArrayLike, price: ArrayLike) -> Values:
    """How long after a crawl the next is worth the price; infinity if it never is. O(elements)."""
    return evaluate(_append_due, _DECAY_DUE, importance, change_rate, decay, price)


def overwrite_value(importance: ArrayLike, change_rate: ArrayLike, decay: ArrayLike, elapsed: ArrayLike) -> Values:
    """What a crawl is worth where each change replaces the one before.

    Arguments as for `append_value`. Returns (μΔ/κ) g(κτ) with κ = δ + Δ. O(elements).

    >>> round(overwrite_value(2.0, 3.0, 0.5, 1.0), 6)
    1.481334
    """
    return evaluate(_overwrite_value, _DECAY, importance, change_rate, decay, elapsed)


def overwrite_due(importance: ArrayLike, change_rate: ArrayLike, decay: ArrayLike, price: ArrayLike) -> Values:
    """How long after a crawl the next is worth the price; infinity if it never is. O(elements)."""
    return evaluate(_overwrite_due, _DECAY_DUE, importance, change_rate, decay, price)


def window_value(importance: ArrayLike, change_rate: ArrayLike, window: ArrayLike, elapsed: ArrayLike) -> Values:
    """What a crawl is worth where a change can be captured for the time `window`, then is gone.

    Returns 0 before the window has passed since the last crawl, μΔW from then on. An infinite window is
    `append_value` without decay: 0. O(elements).

    >>> window_value(2.0, 3.0, 0.5, [0.4, 0.5, 9.0])
    array([0., 3., 3.])
    """
    return evaluate(_window_value, _WINDOW, importance, change_rate, window, elapsed)


def window_due(importance: ArrayLike, change_rate: ArrayLike, window: ArrayLike, price: ArrayLike) -> Values:
    """How long after a crawl the next is worth the price: the window, or infinity. O(elements)."""
    return evaluate(_window_due, _WINDOW_DUE, importance, change_rate, window, price)


def last_changes_value(importance: ArrayLike, change_rate: ArrayLike, keep: ArrayLike, elapsed: ArrayLike) -> Values:
    """What a crawl is worth where the page shows its last `keep` changes, all of equal worth.

    Args:
        importance: worth of one captured change.
        change_rate: changes per unit time.
        keep: how many changes the page shows, a whole number; 1 is `overwrite_value` without decay.
        elapsed: time since the last crawl, may be infinite.

    Returns:
        μ Z P(Z + 1, Δτ), in units of importance. O(√keep) for each element.

    >>> round(last_changes_value(2.0, 3.0, 4, 1.0), 6)
    1.477894
    """
    return evaluate(_last_changes_value, _LAST, importance, change_rate, keep, elapsed)


def last_changes_due(importance: ArrayLike, change_rate: ArrayLike, keep: ArrayLike, price: ArrayLike) -> Values:
    """How long after a crawl the next is worth the price; infinity if it never is. O(√keep) each."""
    return evaluate(_last_changes_due, _LAST_DUE, importance, change_rate, keep, price)
