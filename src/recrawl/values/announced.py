"""Every change is announced: the state is the number n of announced changes not yet crawled.

Harmonic staleness (LambdaCrawl's complete observations, Kolobov et al. 2019): V = (μ/Δ) n. Binary freshness:
V = μ/Δ as soon as n > 0. A change on a page whose change rate is 0 contradicts that rate; its V is infinite,
so it is crawled at once and the rate can be learned.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from recrawl.jit import elementwise, exact
from recrawl.values.arrays import AMOUNT, COUNT, SPAN, Values, evaluate
from recrawl.values.shapes import amount, count
from recrawl.values.special import quotient

_VALUE = {"importance": AMOUNT, "change_rate": AMOUNT, "changes": COUNT}
_DUE = {"importance": AMOUNT, "change_rate": AMOUNT, "price": SPAN}


@exact
def announced_harmonic_value_kernel(importance: float, change_rate: float, changes: float) -> float:
    """(μ/Δ) n as a scalar kernel; NaN if an argument is illegal."""
    if not (amount(importance) and amount(change_rate) and count(changes)):
        return math.nan
    if importance == 0.0 or changes == 0.0:
        return 0.0
    return quotient(importance, changes, change_rate) if change_rate > 0.0 else math.inf


@exact
def announced_harmonic_due_kernel(importance: float, change_rate: float, price: float) -> float:
    """The smallest whole n with (μ/Δ) n ≥ price, as a scalar kernel."""
    if not (amount(importance) and amount(change_rate) and price >= 0.0):
        return math.nan
    if price == 0.0:
        return 0.0
    if importance == 0.0 or price == math.inf:
        return math.inf
    needed = quotient(price, change_rate, importance)
    if needed > 1e15:  # no longer countable in floats
        return needed
    # The quotient is rounded, and one ulp is one change too many or too few.
    changes = max(1.0, float(np.ceil(needed)) - 1.0)
    for _ in range(3):
        if announced_harmonic_value_kernel(importance, change_rate, changes) >= price:
            break
        changes += 1.0
    return changes


@exact
def announced_freshness_value_kernel(importance: float, change_rate: float, changes: float) -> float:
    """μ/Δ once there is a change, else 0, as a scalar kernel; NaN if an argument is illegal."""
    some = 1.0 if changes > 1.0 and count(changes) else changes
    return announced_harmonic_value_kernel(importance, change_rate, some)


@exact
def announced_freshness_due_kernel(importance: float, change_rate: float, price: float) -> float:
    """How many changes make a crawl worth the price: 0, 1 or infinity."""
    changes = announced_harmonic_due_kernel(importance, change_rate, price)
    return math.inf if changes > 1.0 else changes


@elementwise
def _announced_harmonic_value(importance: float, change_rate: float, changes: float) -> float:
    return announced_harmonic_value_kernel(importance, change_rate, changes)


@elementwise
def _announced_harmonic_due(importance: float, change_rate: float, price: float) -> float:
    return announced_harmonic_due_kernel(importance, change_rate, price)


@elementwise
def _announced_freshness_value(importance: float, change_rate: float, changes: float) -> float:
    return announced_freshness_value_kernel(importance, change_rate, changes)


@elementwise
def _announced_freshness_due(importance: float, change_rate: float, price: float) -> float:
    return announced_freshness_due_kernel(importance, change_rate, price)


def announced_harmonic_value(importance: ArrayLike, change_rate: ArrayLike, changes: ArrayLike) -> Values:
    """What a crawl is worth after this many announced changes, at harmonic staleness.

    Args:
        importance: weight of the page.
        change_rate: changes per unit time.
        changes: announced changes since the last crawl, a whole number.

    Returns:
        (μ/Δ) n, in units of importance × time. O(elements).

    >>> announced_harmonic_value(2.0, 0.5, [0, 1, 3])
    array([ 0.,  4., 12.])
    """
    return evaluate(_announced_harmonic_value, _VALUE, importance, change_rate, changes)


def announced_harmonic_due(importance: ArrayLike, change_rate: ArrayLike, price: ArrayLike) -> Values:
    """The smallest number of announced changes that makes a crawl worth the price. O(elements).

    >>> announced_harmonic_due(2.0, 0.5, [0.0, 4.0, 4.1])
    array([0., 1., 2.])
    """
    return evaluate(_announced_harmonic_due, _DUE, importance, change_rate, price)


def announced_freshness_value(importance: ArrayLike, change_rate: ArrayLike, changes: ArrayLike) -> Values:
    """What a crawl is worth after this many announced changes, when a copy is fresh or stale. O(elements).

    >>> announced_freshness_value(2.0, 0.5, [0, 1, 3])
    array([0., 4., 4.])
    """
    return evaluate(_announced_freshness_value, _VALUE, importance, change_rate, changes)


def announced_freshness_due(importance: ArrayLike, change_rate: ArrayLike, price: ArrayLike) -> Values:
    """How many announced changes make a crawl worth the price: 1, or infinity if none do. O(elements).

    >>> announced_freshness_due(2.0, 0.5, [0.0, 4.0, 4.1])
    array([ 0.,  1., inf])
    """
    return evaluate(_announced_freshness_due, _DUE, importance, change_rate, price)
