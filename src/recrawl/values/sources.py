"""Content sources and the new pages found on them (the setting of ECHO, Lefortier et al. 2013).

A source yields links to new pages at rate λ. Each page will gather P hits (its profit), and interest in it
decays at rate κ. So a crawl of the source after time τ is worth V = (Pλ/κ) g(κτ), and one new page of age a is
worth P e^{−κa} now, once. In the one-price market a new page is crawled only while its worth is at least the price,
until age τ* = ln(P/price)/κ, and a source counts only such pages: V = (Pλ/κ) g(κ·min(τ, τ*)).
"""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from recrawl.jit import elementwise, exact
from recrawl.values.arrays import AMOUNT, SPAN, Values, evaluate
from recrawl.values.shapes import amount, bounded_due, bounded_value, finite_product

_SOURCE = {"profit": AMOUNT, "new_page_rate": AMOUNT, "decay": AMOUNT, "elapsed": SPAN}
_SOURCE_DUE = {"profit": AMOUNT, "new_page_rate": AMOUNT, "decay": AMOUNT, "price": SPAN}
_MARKET = {"profit": AMOUNT, "new_page_rate": AMOUNT, "decay": AMOUNT, "elapsed": SPAN, "price": SPAN}
_PAGE = {"profit": AMOUNT, "decay": AMOUNT, "age": SPAN}
_DEADLINE = {"profit": AMOUNT, "decay": AMOUNT, "price": SPAN}


@exact
def source_value_kernel(profit: float, new_page_rate: float, decay: float, elapsed: float) -> float:
    """(Pλ/κ) g(κτ) as a scalar kernel; NaN if an argument is illegal."""
    if not (amount(profit) and amount(new_page_rate)):
        return math.nan
    return bounded_value(finite_product(profit, new_page_rate), decay, elapsed)


@exact
def source_due_kernel(profit: float, new_page_rate: float, decay: float, price: float) -> float:
    """The inverse of `source_value_kernel` in the elapsed time."""
    if not (amount(profit) and amount(new_page_rate)):
        return math.nan
    return bounded_due(finite_product(profit, new_page_rate), decay, price)


@exact
def source_market_value_kernel(
    profit: float, new_page_rate: float, decay: float, elapsed: float, price: float
) -> float:
    """(Pλ/κ) g(κ·min(τ, τ*)) as a scalar kernel; NaN if an argument is illegal."""
    deadline = new_page_deadline_kernel(profit, decay, price)
    if math.isnan(deadline) or not elapsed >= 0.0:
        return math.nan
    return source_value_kernel(profit, new_page_rate, decay, min(elapsed, deadline))


@exact
def source_market_due_kernel(profit: float, new_page_rate: float, decay: float, price: float) -> float:
    """The inverse of `source_market_value_kernel` in the elapsed time, at the same price."""
    due = source_due_kernel(profit, new_page_rate, decay, price)
    return math.inf if due > new_page_deadline_kernel(profit, decay, price) else due


@exact
def new_page_value_kernel(profit: float, decay: float, age: float) -> float:
    """P e^{−κa} as a scalar kernel; NaN if an argument is illegal."""
    if not (amount(profit) and amount(decay) and age >= 0.0):
        return math.nan
    return profit * math.exp(-decay * age) if decay > 0.0 else profit


@exact
def new_page_deadline_kernel(profit: float, decay: float, price: float) -> float:
    """τ* = ln(P/price)/κ, 0 if P ≤ price, as a scalar kernel; NaN if an argument is illegal."""
    if not (amount(profit) and amount(decay) and price >= 0.0):
        return math.nan
    if price == 0.0 or (decay == 0.0 and profit >= price):
        return math.inf
    if profit <= price:
        return 0.0
    if profit < 2.0 * price:  # close prices keep their digits
        return math.log1p((profit - price) / price) / decay
    ratio = profit / price
    return (math.log(ratio) if ratio < math.inf else math.log(profit) - math.log(price)) / decay


@elementwise
def _source_value(profit: float, new_page_rate: float, decay: float, elapsed: float) -> float:
    return source_value_kernel(profit, new_page_rate, decay, elapsed)


@elementwise
def _source_due(profit: float, new_page_rate: float, decay: float, price: float) -> float:
    return source_due_kernel(profit, new_page_rate, decay, price)


@elementwise
def _source_market_value(profit: float, new_page_rate: float, decay: float, elapsed: float, price: float) -> float:
    return source_market_value_kernel(profit, new_page_rate, decay, elapsed, price)


@elementwise
def _source_market_due(profit: float, new_page_rate: float, decay: float, price: float) -> float:
    return source_market_due_kernel(profit, new_page_rate, decay, price)


@elementwise
def _new_page_value(profit: float, decay: float, age: float) -> float:
    return new_page_value_kernel(profit, decay, age)


@elementwise
def _new_page_deadline(profit: float, decay: float, price: float) -> float:
    return new_page_deadline_kernel(profit, decay, price)


def source_value(profit: ArrayLike, new_page_rate: ArrayLike, decay: ArrayLike, elapsed: ArrayLike) -> Values:
    """What a crawl of a content source is worth if every new page found on it is crawled.

    Args:
        profit: hits a new page will gather.
        new_page_rate: new pages per unit time.
        decay: decay of the interest in a page; 0 makes every V 0, since waiting loses nothing.
        elapsed: time since the last crawl of the source, may be infinite.

    Returns:
        (Pλ/κ) g(κτ), in units of profit. O(elements).

    >>> round(source_value(2.0, 3.0, 0.5, 1.0), 6)
    1.082448
    """
    return evaluate(_source_value, _SOURCE, profit, new_page_rate, decay, elapsed)


def source_due(profit: ArrayLike, new_page_rate: ArrayLike, decay: ArrayLike, price: ArrayLike) -> Values:
    """How long after a crawl the next is worth the price; infinity if it never is. O(elements)."""
    return evaluate(_source_due, _SOURCE_DUE, profit, new_page_rate, decay, price)


def source_market_value(
    profit: ArrayLike, new_page_rate: ArrayLike, decay: ArrayLike, elapsed: ArrayLike, price: ArrayLike
) -> Values:
    """What a crawl of a content source is worth if only new pages worth the price are crawled.

    Arguments as for `source_value`, and the price of a crawl: pages older than `new_page_deadline` count
    nothing. Returns (Pλ/κ) g(κ·min(τ, τ*)). O(elements).

    >>> source_market_value(2.0, 3.0, 0.5, [1.0, 9.0], [1.0, 2.0]).round(6)
    array([1.082448, 0.      ])
    """
    return evaluate(_source_market_value, _MARKET, profit, new_page_rate, decay, elapsed, price)


def source_market_due(profit: ArrayLike, new_page_rate: ArrayLike, decay: ArrayLike, price: ArrayLike) -> Values:
    """How long after a crawl of a source the next is worth the price at which its pages are bought too.

    Infinity if its worth stops growing before. O(elements).
    """
    return evaluate(_source_market_due, _SOURCE_DUE, profit, new_page_rate, decay, price)


def new_page_value(profit: ArrayLike, decay: ArrayLike, age: ArrayLike) -> Values:
    """What the one crawl of a new page of this age is worth: the hits still to come, P e^{−κa}. O(elements).

    >>> round(new_page_value(2.0, 0.5, 1.0), 6)
    1.213061
    """
    return evaluate(_new_page_value, _PAGE, profit, decay, age)


def new_page_deadline(profit: ArrayLike, decay: ArrayLike, price: ArrayLike) -> Values:
    """The age until which a new page is worth the price. O(elements).

    Infinity for price 0, or if interest does not decay; 0 if the page is never worth more than the price.

    >>> new_page_deadline(2.0, 0.5, [1.0, 2.0, 3.0]).round(6)
    array([1.386294, 0.      , 0.      ])
    """
    return evaluate(_new_page_deadline, _DEADLINE, profit, decay, price)
