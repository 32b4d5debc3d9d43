"""How each kind of plan answers a price: the crawl rate of a page, and how fast it falls as the price rises.

A law fills one block of pages at a time, so that a pass over millions of pages reads each column once and the
block stays in the cache. Rates solve "the marginal value of one more crawl equals the price"; slopes are
derivatives of the rate by the logarithm of the price. To add a law, write its block function, give it a number
and add it to `fill`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import kernel
from recrawl.pages import Floats
from recrawl.values.special import inverse_g, inverse_h

EVEN_G = 0
"""Evenly spaced crawls whose value is (gain/decay)·g: freshness, captures, news."""
EVEN_H = 1
"""Evenly spaced crawls whose value is (gain/decay)·h: harmonic staleness."""
POISSON_BINARY = 2
"""Crawls at random times, freshness (Azar et al. 2018, continuous time)."""
SLOT_BINARY = 3
"""A coin in each slot, freshness (Azar et al. 2018, discrete time); the rate is a probability."""
POISSON_HARMONIC = 4
"""Crawls at random times, or by a coin at each announced change, harmonic staleness (LambdaCrawl)."""
SHARE = 5
"""In proportion to `gain`: the rules of thumb."""
GIVEN = 6
"""Rates and slopes worked out before the pass (pages with noisy signals)."""

BLOCK = 512


class Columns(NamedTuple):
    """What a pass reads; an array of length 0 stands for a column that is not there.

    `gain` and `decay` are what the law says of them. `special` lists, in order, the pages that follow a rule of their
    own: announced ones (POISSON_HARMONIC) or those whose changes stay for a window (EVEN_G). `group` numbers the capped
    host of a page (0: none),
    `given_rate` and `given_slope` belong to the law GIVEN. `charged` says whether a page pays price times cost;
    the rules of thumb do not.
    """

    law: int
    gain: Floats
    decay: Floats
    special: NDArray[np.int64]
    cost: Floats
    low: Floats
    high: Floats
    group: NDArray[np.int64]
    given_rate: Floats
    given_slope: Floats
    charged: bool


class Block(NamedTuple):
    """Room for one block of pages: the price each pays and its inverse, its rate and slope."""

    price: Floats
    inverse: Floats
    rate: Floats
    slope: Floats


@kernel
def fill(columns: Columns, start: int, stop: int, block: Block) -> None:
    """Fill the block with rates and slopes of pages `start` to `stop` at the block's prices."""
    if columns.law == EVEN_G:
        _fill_even_g(columns, start, stop, block)
    elif columns.law == EVEN_H:
        _fill_even_h(columns, start, stop, block)
    elif columns.law == POISSON_BINARY:
        _fill_poisson_binary(columns, start, stop, block)
    elif columns.law == SLOT_BINARY:
        _fill_slot_binary(columns, start, stop, block)
    elif columns.law == POISSON_HARMONIC:
        _fill_poisson_harmonic(columns, start, stop, block)
    elif columns.law == SHARE:
        _fill_share(columns, start, stop, block)
    else:
        for j in range(stop - start):
            block.rate[j] = columns.given_rate[start + j]
            block.slope[j] = columns.given_slope[start + j]


@kernel
def _fill_even_g(columns: Columns, start: int, stop: int, block: Block) -> None:
    """Rate = decay/x with (gain/decay)·g(x) = price.

    Written without a branch, so that it vectorises: pages that are not crawled compute something harmless.
    """
    for j in range(stop - start):
        gain, decay = columns.gain[start + j], columns.decay[start + j]
        c = block.price[j] * decay / gain
        crawled = (c > 0.0) & (c < 1.0)
        c = c if crawled else 0.5
        x = inverse_g(c)
        rate = decay / x
        # (1+x)e^{−x} = 1−c saves an exponential.
        slope = rate * c * (1.0 + x) / ((c - 1.0) * x * x)
        block.rate[j] = rate if crawled else 0.0
        block.slope[j] = slope if crawled else 0.0
    _fill_windows(columns, start, stop, block)


@kernel
def _fill_windows(columns: Columns, start: int, stop: int, block: Block) -> None:
    """A page kept for a window is a step: crawled once a window while a window of gain is worth the price."""
    for k in range(_first_special(columns, start), columns.special.size):
        page = columns.special[k]
        if page >= stop:
            break
        worth_it = block.price[page - start] * columns.decay[page] < columns.gain[page]
        block.rate[page - start] = columns.decay[page] if worth_it else 0.0
        block.slope[page - start] = 0.0


@kernel
def _first_special(columns: Columns, start: int) -> int:
    """Where the special pages from `start` on begin."""
    return int(np.searchsorted(columns.special, start)) if columns.special.size else 0


@kernel
def _fill_even_h(columns: Columns, start: int, stop: int, block: Block) -> None:
    """Rate = decay/x with (gain/decay)·h(x) = price."""
    for j in range(stop - start):
        gain, decay = columns.gain[start + j], columns.decay[start + j]
        c = block.price[j] * decay / gain
        crawled = (c > 0.0) & (c < math.inf)
        c = c if crawled else 1.0
        x = inverse_h(c)
        rate = decay / x
        # 1−e^{−x} = x−c saves an exponential; it is 1 to all digits long before c = 100.
        slope = -rate * c / (x * (x - c if c < 100.0 else 1.0))
        block.rate[j] = rate if crawled else 0.0
        block.slope[j] = slope if crawled else 0.0


@kernel
def _fill_poisson_binary(columns: Columns, start: int, stop: int, block: Block) -> None:
    """Rate = (√(μΔ/Λ) − Δ)₊."""
    for j in range(stop - start):
        gain, decay = columns.gain[start + j], columns.decay[start + j]
        value = gain * decay
        root = math.sqrt(value * block.inverse[j])
        crawled = root > decay
        block.rate[j] = root - decay if crawled else 0.0
        block.slope[j] = -0.5 * root if crawled else 0.0


@kernel
def _fill_slot_binary(columns: Columns, start: int, stop: int, block: Block) -> None:
    """Probability = (√(μΔ/Λ) − Δ)₊/(1−Δ), at most 1."""
    for j in range(stop - start):
        gain, decay = columns.gain[start + j], columns.decay[start + j]
        value = gain * decay
        root = math.sqrt(value * block.inverse[j])
        sure = root >= 1.0
        crawled = root > decay
        block.rate[j] = 1.0 if sure else (root - decay) / (1.0 - decay) if crawled else 0.0
        block.slope[j] = -0.5 * root / (1.0 - decay) if crawled and not sure else 0.0


@kernel
def _fill_poisson_harmonic(columns: Columns, start: int, stop: int, block: Block) -> None:
    """Rate solves ρ(ρ+Δ) = μΔ/Λ; an announced page has pΔ = min(Δ, μ/Λ).

    With s = √(Δ² + 4μΔ/Λ) the rate is 2(μΔ/Λ)/(Δ+s), without cancellation, and its slope −(μΔ/Λ)/s: one division.
    """
    for j in range(stop - start):
        gain, decay = columns.gain[start + j], columns.decay[start + j]
        value = gain * decay * block.inverse[j]
        root = math.sqrt(decay * decay + 4.0 * value)
        both = decay + root
        inverse = 1.0 / (root * both)
        crawled = value > 0.0
        block.rate[j] = 2.0 * value * root * inverse if crawled else 0.0
        block.slope[j] = -value * both * inverse if crawled else 0.0
    _fill_announced(columns, start, stop, block)


@kernel
def _fill_announced(columns: Columns, start: int, stop: int, block: Block) -> None:
    """An announced page is crawled at a change with probability min(1, μ/(ΛΔ))."""
    for k in range(_first_special(columns, start), columns.special.size):
        page = columns.special[k]
        if page >= stop:
            break
        decay, ratio = columns.decay[page], columns.gain[page] * block.inverse[page - start]
        block.rate[page - start] = min(decay, ratio)
        block.slope[page - start] = 0.0 if ratio >= decay else -ratio


@kernel
def _fill_share(columns: Columns, start: int, stop: int, block: Block) -> None:
    """Rate = weight/price."""
    for j in range(stop - start):
        gain = columns.gain[start + j]
        block.rate[j] = gain * block.inverse[j]
        block.slope[j] = -block.rate[j]
