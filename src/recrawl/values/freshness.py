"""Binary freshness: a copy is fresh until the page changes (Cho & Garcia-Molina 2003, Azar et al. 2018).

After elapsed time τ a page of importance μ that changes at rate Δ is stale with probability 1 − e^{−Δτ} and a
crawl is worth V = (μ/Δ) g(Δτ). V stays below μ/Δ: a page whose μ/Δ is under the price is never worth a crawl.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from recrawl.jit import elementwise, exact
from recrawl.values.arrays import AMOUNT, SPAN, Values, evaluate
from recrawl.values.shapes import bounded_due, bounded_value

_VALUE = {"importance": AMOUNT, "change_rate": AMOUNT, "elapsed": SPAN}
_DUE = {"importance": AMOUNT, "change_rate": AMOUNT, "price": SPAN}


@exact
def freshness_value_kernel(importance: float, change_rate: float, elapsed: float) -> float:
    """(μ/Δ) g(Δτ) as a scalar kernel; NaN if an argument is illegal."""
    return bounded_value(importance, change_rate, elapsed)


@exact
def freshness_due_kernel(importance: float, change_rate: float, price: float) -> float:
    """The inverse of `freshness_value_kernel` in the elapsed time."""
    return bounded_due(importance, change_rate, price)


@elementwise
def _freshness_value(importance: float, change_rate: float, elapsed: float) -> float:
    return freshness_value_kernel(importance, change_rate, elapsed)


@elementwise
def _freshness_due(importance: float, change_rate: float, price: float) -> float:
    return freshness_due_kernel(importance, change_rate, price)


def freshness_value(importance: ArrayLike, change_rate: ArrayLike, elapsed: ArrayLike) -> Values:
    """What a crawl is worth when a copy counts as fresh or stale.

    Args:
        importance: weight of the page.
        change_rate: changes per unit time; 0 means it never changes and a crawl is worth nothing.
        elapsed: time since the last crawl, may be infinite.

    Returns:
        (μ/Δ) g(Δτ), in units of importance × time. O(elements).

    >>> round(freshness_value(2.0, 0.5, 3.0), 6)
    1.768698
    """
    return evaluate(_freshness_value, _VALUE, importance, change_rate, elapsed)


def freshness_due(importance: ArrayLike, change_rate: ArrayLike, price: ArrayLike) -> Values:
    """How long after a crawl the next one is worth the price; infinity if it never is. O(elements).

    >>> round(freshness_due(2.0, 0.5, 1.768698), 5), freshness_due(2.0, 0.5, 4.0)
    (3.0, inf)
    """
    return evaluate(_freshness_due, _DUE, importance, change_rate, price)
