"""What a crawl is worth without signals, and when that reaches a price. Scalar kernels.

Most values have one of two forms, V = (gain/decay)·shape(decay·elapsed), where the shape is g (saturating) or h
(growing without bound). Freshness has gain μ and decay Δ, captured changes have gain μΔ, a content source has gain Pλ:
one queue can hold them all as three numbers. The kernels take finite gain and decay ≥ 0 and never overflow on the way:
as decay → 0 the value tends to gain·decay·elapsed²/2, so to 0.

A content source yields links to new pages at rate λ. Each page will gather P hits (its profit), and interest in it
decays at rate κ (ECHO, Lefortier et al. 2013). One new page of age a is worth P e^{−κa}, once. In the one-price market
a new page is crawled only while its worth is at least the price, until age τ* = ln(P/price)/κ, and a source counts only
such pages: V = (Pλ/κ) g(κ·min(τ, τ*)).
"""

from __future__ import annotations

import math

from recrawl.jit import exact
from recrawl.values.special import g, h, inverse_g, inverse_h, product, quotient

_LARGEST = 1.7976931348623157e308


@exact
def finite_product(a: float, b: float) -> float:
    """Return the product of finite numbers ≥ 0, at most the largest float, so that no ∞·0 follows."""
    return min(a * b, _LARGEST)


@exact
def saturating_value(gain: float, decay: float, elapsed: float) -> float:
    """Return (gain/decay)·g(decay·elapsed), which rises to gain/decay. O(1)."""
    if gain == 0.0 or decay == 0.0:
        return 0.0
    x = decay * elapsed
    if x < 1.0:
        return product(gain, elapsed, g(x) / x) if x > 1e-150 else product(gain, elapsed, 0.5 * x)
    return gain * g(x) / decay


@exact
def saturating_due(gain: float, decay: float, price: float) -> float:
    """Return the elapsed time at which `saturating_value` reaches the price, infinity if it never does. O(1)."""
    if price == 0.0:
        return 0.0
    if gain == 0.0 or decay == 0.0 or price == math.inf:
        return math.inf
    level = quotient(price, decay, gain)
    if level < 1e-280:  # the level itself may have lost its digits
        return math.sqrt(2.0) * math.sqrt(price) / (math.sqrt(gain) * math.sqrt(decay))
    return inverse_g(level) / decay


@exact
def growing_value(gain: float, decay: float, elapsed: float) -> float:
    """Return (gain/decay)·h(decay·elapsed), which rises like gain·elapsed. O(1)."""
    if gain == 0.0 or decay == 0.0:
        return 0.0
    x = decay * elapsed
    if x < 1e17:
        return product(gain, elapsed, h(x) / x) if x > 1e-150 else product(gain, elapsed, 0.5 * x)
    return gain * elapsed


@exact
def growing_due(gain: float, decay: float, price: float) -> float:
    """Return the elapsed time at which `growing_value` reaches the price. O(1)."""
    if price == 0.0:
        return 0.0
    if gain == 0.0 or decay == 0.0 or price == math.inf:
        return math.inf
    level = quotient(price, decay, gain)
    if level < 1e-280:
        return math.sqrt(2.0) * math.sqrt(price) / (math.sqrt(gain) * math.sqrt(decay))
    return inverse_h(level) / decay if level < 1e17 else price / gain


@exact
def source_market_value_kernel(
    profit: float, new_page_rate: float, decay: float, elapsed: float, price: float
) -> float:
    """Return what a source is worth if only new pages worth the price count: (Pλ/κ) g(κ·min(τ, τ*)). O(1)."""
    deadline = new_page_deadline_kernel(profit, decay, price)
    return saturating_value(finite_product(profit, new_page_rate), decay, min(elapsed, deadline))


@exact
def new_page_value_kernel(profit: float, decay: float, age: float) -> float:
    """Return what a new page of this age is worth: P e^{−κa}. O(1)."""
    return profit * math.exp(-decay * age) if decay > 0.0 else profit


@exact
def new_page_deadline_kernel(profit: float, decay: float, price: float) -> float:
    """Return the age until which a new page is worth the price: τ* = ln(P/price)/κ, 0 if P ≤ price. O(1)."""
    if price == 0.0 or (decay == 0.0 and profit >= price):
        return math.inf
    if profit <= price:
        return 0.0
    if profit < 2.0 * price:  # close prices keep their digits
        return math.log1p((profit - price) / price) / decay
    ratio = profit / price
    return (math.log(ratio) if ratio < math.inf else math.log(profit) - math.log(price)) / decay
