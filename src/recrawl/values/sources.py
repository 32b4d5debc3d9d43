"""Content sources and the new pages found on them (the setting of ECHO, Lefortier et al. 2013).

A source yields links to new pages at rate λ. Each page will gather P hits (its profit), and interest in it
decays at rate κ. So a crawl of the source after time τ is worth V = (Pλ/κ) g(κτ), and one new page of age a is
worth P e^{−κa} now, once. In the one-price market a new page is crawled only while its worth is at least the price,
until age τ* = ln(P/price)/κ, and a source counts only such pages: V = (Pλ/κ) g(κ·min(τ, τ*)).
"""

from __future__ import annotations

import math

from recrawl.jit import exact
from recrawl.values.shapes import amount, bounded_value, finite_product


@exact
def source_value_kernel(profit: float, new_page_rate: float, decay: float, elapsed: float) -> float:
    """(Pλ/κ) g(κτ) as a scalar kernel; NaN if an argument is illegal."""
    if not (amount(profit) and amount(new_page_rate)):
        return math.nan
    return bounded_value(finite_product(profit, new_page_rate), decay, elapsed)


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
