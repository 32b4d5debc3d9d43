"""Harmonic staleness: the n-th missed change costs 1/n (LambdaCrawl, Kolobov et al. 2019).

After elapsed time τ the expected cost rate is Ein(Δτ), the mean harmonic number of a Poisson(Δτ) count, and a
crawl is worth V = (μ/Δ) h(Δτ). V grows without bound: no page that changes is ever starved.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from recrawl.jit import elementwise, exact
from recrawl.values.arrays import AMOUNT, SPAN, Values, evaluate
from recrawl.values.shapes import unbounded_due, unbounded_value

_VALUE = {"importance": AMOUNT, "change_rate": AMOUNT, "elapsed": SPAN}
_DUE = {"importance": AMOUNT, "change_rate": AMOUNT, "price": SPAN}


@exact
def harmonic_value_kernel(importance: float, change_rate: float, elapsed: float) -> float:
    """(μ/Δ) h(Δτ) as a scalar kernel; NaN if an argument is illegal."""
    return unbounded_value(importance, change_rate, elapsed)


@exact
def harmonic_due_kernel(importance: float, change_rate: float, price: float) -> float:
    """The inverse of `harmonic_value_kernel` in the elapsed time."""
    return unbounded_due(importance, change_rate, price)


@elementwise
def _harmonic_value(importance: float, change_rate: float, elapsed: float) -> float:
    return harmonic_value_kernel(importance, change_rate, elapsed)


@elementwise
def _harmonic_due(importance: float, change_rate: float, price: float) -> float:
    return harmonic_due_kernel(importance, change_rate, price)


def harmonic_value(importance: ArrayLike, change_rate: ArrayLike, elapsed: ArrayLike) -> Values:
    """What a crawl is worth when every further missed change costs a little less than the one before.

    Args:
        importance: weight of the page.
        change_rate: changes per unit time; 0 means it never changes and a crawl is worth nothing.
        elapsed: time since the last crawl, may be infinite.

    Returns:
        (μ/Δ) h(Δτ), in units of importance × time. O(elements).

    >>> round(harmonic_value(2.0, 0.5, 3.0), 6)
    2.892521
    """
    return evaluate(_harmonic_value, _VALUE, importance, change_rate, elapsed)


def harmonic_due(importance: ArrayLike, change_rate: ArrayLike, price: ArrayLike) -> Values:
    """How long after a crawl the next is worth the price; infinity if the page never changes. O(elements).

    >>> round(harmonic_due(2.0, 0.5, 2.892521), 5), harmonic_due(2.0, 0.0, 1.0)
    (3.0, inf)
    """
    return evaluate(_harmonic_due, _DUE, importance, change_rate, price)
