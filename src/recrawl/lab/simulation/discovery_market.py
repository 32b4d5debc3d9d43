"""Sources and new pages in one market: each crawl goes to whatever is worth most, a source or a page that was found.

A page of age a is worth P e^{−κa}; a source counts only pages worth the price, so it is worth (Pλ/κ) g(κ·min(τ, τ*))
with τ* = ln(P/price)/κ. λ counts pages that no source had shown before: what a crawl yields.

The price moves so that in nine slots of ten something is worth it. Crawls of sources are sold as soon as they are, so
it is they that hold the price, while pages are often worth more. A slot for which nothing is worth the price is to
spare and goes to the source that was not crawled for longest: sources of which little is known get a chance. Compiled.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from recrawl.jit import borrowing, kernel
from recrawl.lab.simulation.news_kernels import LOOKED, WAITING, Codes, Crawler, Graph, Stretch, look
from recrawl.lab.worlds.news import NewsWorld
from recrawl.pages import Floats
from recrawl.values.laws import new_page_value_kernel, source_market_value_kernel

FIRST_PRICE = 0.01
_TO_SPARE = 0.1
_STEP = 0.05  # of ln price, per slot
_BLOCK = 64
_VALUES_A_DAY = 720.0  # how often all are valued anew: every two minutes, far shorter than any interval


class Offers(NamedTuple):
    """What is for sale: each source, and the newest page found on it that waits; `below` chains older ones.

    `best` is the largest value in each block of sources, of a source or a page, so that the largest of all is soon
    found.
    """

    source_value: Floats
    page_value: Floats
    best: Floats
    top: Codes
    below: Codes
    price: Floats


class Estimates(NamedTuple):
    """What is believed of each source."""

    profit: Floats
    new_page_rate: Floats
    decay: Floats


def new_offers(world: NewsWorld) -> Offers:
    """Nothing for sale yet."""
    none = np.full(world.sources, -1, dtype=np.int32)
    return Offers(
        np.zeros(world.sources),
        np.full(world.sources, -1.0),
        np.zeros(-(-world.sources // _BLOCK)),
        none,
        np.full(world.pages, -1, dtype=np.int32),
        np.full(1, FIRST_PRICE),
    )


@kernel
def crawl_by_value(graph: Graph, crawler: Crawler, stretch: Stretch, offers: Offers, believed: Estimates) -> None:
    """Sell each slot to the largest value, if it is worth the price; ties go to the first source, and to its page.

    O(√sources) per slot, beside valuing all of them every two minutes. Sources not crawled since the start come first.
    """
    counts = crawler.counts
    every = max(1, int(stretch.per_day / _VALUES_A_DAY))
    for slot in range(stretch.first, stretch.end):
        now = (slot + 1) / stretch.per_day
        if slot == stretch.first or slot % every == 0:
            _value_all(graph, crawler, offers, believed, now)
        if counts[LOOKED] < crawler.order.size:
            source = int(crawler.order[counts[LOOKED]])
            counts[LOOKED] += 1
            _buy_source(graph, crawler, offers, source, slot, now)
        else:
            source = _best(offers)
            value, price = max(offers.source_value[source], offers.page_value[source]), offers.price[0]
            offers.price[0] *= math.exp(_STEP * (_TO_SPARE if value >= price else _TO_SPARE - 1.0))
            if value < price:
                source = int(np.argmin(crawler.last))
                _buy_source(graph, crawler, offers, source, slot, now)
            elif offers.page_value[source] == value:
                page = offers.top[source]
                offers.top[source] = offers.below[page]
                crawler.crawled[slot] = crawler.order.size + page
            else:
                _buy_source(graph, crawler, offers, source, slot, now)
        _value_page(graph, offers, believed, source, now)
        _compare(offers, source // _BLOCK)


@kernel
def _buy_source(graph: Graph, crawler: Crawler, offers: Offers, source: int, slot: int, now: float) -> None:
    """Crawl a source; what it shows is offered on its own stack, newest on top."""
    look(graph, crawler, source, slot, now)
    for i in range(crawler.counts[WAITING]):
        page = crawler.stack[i]
        offers.below[page] = offers.top[source]
        offers.top[source] = page
    crawler.counts[WAITING] = 0
    offers.source_value[source] = 0.0


@borrowing
def _best(offers: Offers) -> int:
    """The first source that, or a page of which, has the largest value of all."""
    block = 0
    for i in range(offers.best.size):
        if offers.best[i] > offers.best[block]:
            block = i
    source = block * _BLOCK
    while max(offers.source_value[source], offers.page_value[source]) < offers.best[block]:
        source += 1
    return source


@borrowing
def _compare(offers: Offers, block: int) -> None:
    best = 0.0
    for i in range(block * _BLOCK, min((block + 1) * _BLOCK, offers.top.size)):
        best = max(best, offers.source_value[i], offers.page_value[i])
    offers.best[block] = best


@borrowing
def _value_page(graph: Graph, offers: Offers, believed: Estimates, source: int, now: float) -> None:
    """The newest page is the best of its source; −1 if none waits."""
    page = offers.top[source]
    if page < 0:
        offers.page_value[source] = -1.0
    else:
        age = now - graph.births[page]
        offers.page_value[source] = new_page_value_kernel(believed.profit[source], believed.decay[source], age)


@kernel
def _value_all(graph: Graph, crawler: Crawler, offers: Offers, believed: Estimates, now: float) -> None:
    price = offers.price[0]
    for i in range(crawler.order.size):
        offers.source_value[i] = 0.0
        if believed.profit[i] > price:  # else none of its pages is worth it
            offers.source_value[i] = source_market_value_kernel(
                believed.profit[i], believed.new_page_rate[i], believed.decay[i], now - crawler.last[i], price
            )
        _value_page(graph, offers, believed, i, now)
    for block in range(offers.best.size):
        _compare(offers, block)
