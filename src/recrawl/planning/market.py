"""The market: every page answers a price with a crawl rate; the price is where they spend the budget.

Hosts with a cap pay a surcharge of their own on top of the price. A host's surcharge is the root of its own sum;
all hosts are solved side by side, one pass for all of them, inside the search for the price. A pass is one fused
kernel over all pages: what the budget spends at a price, in all and per capped host.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import exact, kernel
from recrawl.pages import Floats
from recrawl.planning.laws import BLOCK, Block, Columns, fill
from recrawl.planning.root import LOWEST, Found, find_price

Mask: TypeAlias = NDArray[np.bool_]

NONE: Floats = np.empty(0)
_SAMPLE = 4096
_SAMPLE_FROM = 5 * _SAMPLE
_SAMPLE_PART = 64
_CLOSE = 1e-12  # relative error of the budget spent at which a price is good
_CLOSE_FOR_MANY = 1e-10  # the same where one more digit would cost one more long pass
_HOST_CLOSE = 1e-13
_HOST_TIED = 1e-13
_HOST_STEPS = 200
_NEWTON_STEPS = 8  # after which every second step halves the bracket: a sum that jumps misleads Newton's method
_OUT_OF_REACH = 1e200  # a price that no page pays


@dataclass(frozen=True, slots=True)
class Market:
    """Pages, their limits and the caps of their hosts.

    `caps` holds the cap of each group of `columns` (entry 0, pages without a capped host: infinity), or is empty.
    `refill` works out the rates of the law GIVEN at a price and surcharges. `sampled` builds the market of a part of
    the pages, for a first guess of the price.
    """

    columns: Columns
    caps: Floats = field(default_factory=lambda: NONE)
    refill: Callable[[float, Floats], None] | None = None
    sampled: Callable[[slice], Market] | None = None


@dataclass(slots=True)
class Allocation:
    """What a market settles on: the price, the rates, the budget they spend, and the surcharge of each group."""

    price: float
    rates: Floats
    spent: float
    surcharge: Floats
    passes: int


def allocate(market: Market, budget: float, guess: float | None = None) -> Allocation:
    """Find the price at which the pages spend the budget, and their rates there.

    `guess` is a price to start from. If all pages together cannot use the budget the price is 0. O(pages) per pass,
    5 to 12 passes (more where a jump in the sum must be bracketed).
    """
    search = _Search(market)
    if guess is None or not 0 < guess < math.inf:
        guess = _first_guess(market, budget)
    close = _CLOSE if market.columns.gain.size < _SAMPLE_FROM else _CLOSE_FOR_MANY
    found = find_price(search.at, budget, math.log(guess), close)
    if found.low == found.high:
        price = 0.0 if found.low <= LOWEST else math.exp(found.low)
        return search.allocation(price, search.rates, search.spent)
    return _share_the_tie(search, found, budget)


def _share_the_tie(search: _Search, found: Found, budget: float) -> Allocation:
    """Mix the rates on both sides of a jump: pages that tie at the price share what is left of the budget."""
    lower_spent, _ = search.at(found.low)
    generous = search.rates.copy()
    upper_spent, _ = search.at(found.high)
    gap = lower_spent - upper_spent
    share = min(max((budget - upper_spent) / gap, 0.0), 1.0) if gap > 0 else 0.0
    rates = search.rates
    rates += share * (generous - rates)
    price = 0.0 if found.low <= LOWEST else math.exp(found.high)
    return search.allocation(price, rates, upper_spent + share * gap)


def _first_guess(market: Market, budget: float) -> float:
    """Solve for an evenly drawn sample first: its price is close, and costs next to nothing."""
    pages = market.columns.gain.size
    if pages >= _SAMPLE_FROM and market.sampled is not None:
        step = pages // max(_SAMPLE, pages // _SAMPLE_PART)
        sample = market.sampled(slice(step // 2, None, step))
        part = budget * sample.columns.gain.size / pages
        price = allocate(sample, part).price
        if price > 0:
            return price
    return max(float(market.columns.gain.sum()), 1e-100) / budget


class _Search:
    """Evaluates a market at prices and remembers what the hosts settled on last."""

    def __init__(self, market: Market) -> None:
        self.market = market
        self.rates = np.empty(market.columns.gain.size)
        self.spent = 0.0
        self.passes = 0
        groups = market.caps.size
        self.own_price = np.zeros(groups)  # what the last page on a capped host paid when its sum met the cap
        self.sums = HostSums(*(np.zeros(groups) for _ in range(5)))
        self.surcharge = np.zeros(groups)

    def at(self, log_price: float) -> tuple[float, float]:
        """Spend at this price and keep the rates; return what is spent and its derivative by ln price."""
        price = math.exp(log_price)
        if not self.market.caps.size:
            self._refill(price, NONE)
            self.passes += 1
            self.spent, bend = spend(self.market.columns, price, self.rates)
            return self.spent, bend
        return self._settle_hosts(price)

    def allocation(self, price: float, rates: Floats, spent: float) -> Allocation:
        """Wrap up."""
        return Allocation(price, rates, spent, self.surcharge, self.passes)

    def _refill(self, price: float, surcharge: Floats) -> None:
        if self.market.refill is not None:
            self.market.refill(price, surcharge)

    def _pass(self, price: float, surcharge: Floats) -> None:
        self._refill(price, surcharge)
        self.passes += 1
        spend_by_host(self.market.columns, price, surcharge, self.sums, self.rates)

    def _settle_hosts(self, price: float) -> tuple[float, float]:
        """Find the surcharge of every capped host at this price, all side by side.

        A host that is over its cap raises what its last page pays until its sum meets the cap. Without costs that
        amount does not depend on the price, so from one price to the next there is little left to do.
        """
        caps = self.market.caps
        # With costs it does, and starting where the last price ended would make the answer depend on the search.
        own = np.full(caps.size, price) if self.market.columns.cost.size else np.maximum(self.own_price, price)
        bracket = _Brackets(caps.size)
        for step in range(_HOST_STEPS):
            self._pass(price, own - price)
            crawls = self.sums.crawls
            unmet = np.abs(crawls - caps) > _HOST_CLOSE * caps
            unmet &= (crawls > caps) | (own > price)  # at the common price a host need not reach its cap
            bracket.narrow(own, crawls, over=unmet & (crawls > caps), under=unmet & (crawls < caps))
            moving = unmet & ~bracket.closed()
            if not moving.any():
                break
            halve = step >= _NEWTON_STEPS and step % 2 == 0
            own = np.where(moving, np.maximum(self._next_own_price(own, bracket, halve=halve), price), own)
        if unmet.any():
            self._share_host_ties(price, own, unmet & bracket.closed(), bracket)
        self.own_price, self.surcharge = np.where(own > price, own, 0.0), own - price
        self.spent = float(self.sums.spent.sum())
        return self.spent, self._bend(price, own > price)

    def _next_own_price(self, own: Floats, bracket: _Brackets, *, halve: bool) -> Floats:
        """Newton's method on the logarithms of crawls and price; bisection where it leaves the bracket, or is slow."""
        low, high = bracket.low, bracket.high
        with np.errstate(all="ignore"):
            bend = self.sums.bend0 * own / self.sums.crawls
            step = np.clip(-np.log(self.sums.crawls / self.market.caps) / bend, -300, 300)
            # Where the price has no digits left to tell two rates apart, step across; ties are shared.
            step = np.where(np.abs(step) < 0.1 * _HOST_TIED, np.copysign(0.5 * _HOST_TIED, step), step)
            newton = own * np.exp(step)
            middle = np.sqrt(low) * np.sqrt(high)
        known = (low > 0) & (high < _OUT_OF_REACH)
        return np.where((newton > low) & (newton < high) & ~(halve & known), newton, middle)

    def _share_host_ties(self, price: float, own: Floats, tied: Mask, bracket: _Brackets) -> None:
        """Mix the rates on both sides of a jump in a host's sum, so that its cap is met."""
        self._pass(price, np.where(tied, bracket.low, own) - price)
        generous, generous_spent = self.rates.copy(), self.sums.spent.copy()
        self._pass(price, np.where(tied, bracket.high, own) - price)
        gap = np.where(tied, bracket.low_crawls - bracket.high_crawls, 1.0)
        share = np.where(tied, (self.market.caps - bracket.high_crawls) / gap, 0.0)
        self.rates += share[self.market.columns.group] * (generous - self.rates)
        self.sums.spent[:] += share * (generous_spent - self.sums.spent)

    def _bend(self, price: float, full: Mask) -> float:
        """Derivative of the budget spent by ln price, the surcharges of full hosts following the price."""
        bend0, bend1, bend2 = self.sums.bend0, self.sums.bend1, self.sums.bend2
        crossed = bend1 if self.market.columns.charged else bend2
        with np.errstate(all="ignore"):
            followed = np.where(full & (bend0 < 0), crossed * bend1 / bend0, 0.0)
        return float(price * (bend2 - followed).sum())


class _Brackets:
    """For each host the highest price tried at which it is over its cap, and the lowest at which it is under."""

    def __init__(self, hosts: int) -> None:
        self.low = np.zeros(hosts)
        self.high = np.full(hosts, _OUT_OF_REACH)
        self.low_crawls = np.zeros(hosts)
        self.high_crawls = np.zeros(hosts)

    def narrow(self, own: Floats, crawls: Floats, *, over: Mask, under: Mask) -> None:
        """Take in what a pass showed."""
        self.low = np.where(over, own, self.low)
        self.low_crawls = np.where(over, crawls, self.low_crawls)
        self.high = np.where(under, own, self.high)
        self.high_crawls = np.where(under, crawls, self.high_crawls)

    def closed(self) -> Mask:
        """Hosts whose sum jumps across the cap: both sides are known and next to each other."""
        closed: Mask = (self.low > 0) & (self.high <= self.low * (1 + _HOST_TIED))
        return closed


class HostSums(NamedTuple):
    """Sums per capped host (entry 0: pages without one), filled by `spend_by_host`.

    `crawls` is the sum of rates, `spent` of cost·rate; `bend0`, `bend1`, `bend2` are sums of slope/price times
    cost to the power 0, 1 and 2: what a change of the price or of a host's surcharge does to them.
    """

    crawls: Floats
    spent: Floats
    bend0: Floats
    bend1: Floats
    bend2: Floats


@kernel
def _price_block(columns: Columns, start: int, stop: int, price: float, surcharge: Floats, block: Block) -> None:
    """Set what each page of the block pays for a crawl: price times cost, plus its host's surcharge."""
    for j in range(stop - start):
        block.price[j] = price
        block.inverse[j] = 1.0 / price
    if columns.charged and columns.cost.size:
        for j in range(stop - start):
            block.price[j] *= columns.cost[start + j]
    if surcharge.size:
        for j in range(stop - start):
            block.price[j] += surcharge[columns.group[start + j]]
    if surcharge.size or columns.cost.size:
        for j in range(stop - start):
            block.inverse[j] = 1.0 / block.price[j]


@kernel
def _keep_limits(columns: Columns, start: int, stop: int, block: Block) -> None:
    """Hold rates between floor and ceiling; a page at its limit no longer follows the price."""
    if columns.high.size:
        for j in range(stop - start):
            above = block.rate[j] >= columns.high[start + j]
            block.rate[j] = columns.high[start + j] if above else block.rate[j]
            block.slope[j] = 0.0 if above else block.slope[j]
    if columns.low.size:
        for j in range(stop - start):
            below = block.rate[j] <= columns.low[start + j]
            block.rate[j] = columns.low[start + j] if below else block.rate[j]
            block.slope[j] = 0.0 if below else block.slope[j]


@exact
def _add(total: float, lost: float, part: float) -> tuple[float, float]:
    """Add with the rounding error carried along, so that 20 million pages sum as well as 20."""
    part -= lost
    higher = total + part
    return higher, (higher - total) - part


@kernel
def spend(columns: Columns, price: float, rates: Floats) -> tuple[float, float]:
    """Return the budget spent at this price and its derivative by the logarithm of the price.

    Writes the rates if `rates` has room for them (length 0: it has none). O(pages), no allocation but a block.
    """
    size = columns.gain.size
    none = np.empty(0)
    block = Block(np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK))
    spent, bend, lost = 0.0, 0.0, 0.0
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        if start == 0 or columns.cost.size:  # without costs all blocks pay the same
            _price_block(columns, start, stop, price, none, block)
        fill(columns, start, stop, block)
        _keep_limits(columns, start, stop, block)
        part, part_bend = 0.0, 0.0
        if columns.cost.size:
            for j in range(stop - start):
                part += block.rate[j] * columns.cost[start + j]
                part_bend += block.slope[j] * columns.cost[start + j]
        else:
            for j in range(stop - start):
                part += block.rate[j]
                part_bend += block.slope[j]
        spent, lost = _add(spent, lost, part)
        bend += part_bend
        if rates.size:
            for j in range(stop - start):
                rates[start + j] = block.rate[j]
    return spent, bend


@kernel
def spend_by_host(columns: Columns, price: float, surcharge: Floats, sums: HostSums, rates: Floats) -> None:
    """Fill the sums per capped host at this price and these surcharges; write the rates if there is room."""
    size = columns.gain.size
    block = Block(np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK))
    for array in sums:
        array[:] = 0.0
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        _price_block(columns, start, stop, price, surcharge, block)
        fill(columns, start, stop, block)
        _keep_limits(columns, start, stop, block)
        for j in range(stop - start):
            host = columns.group[start + j]
            cost = columns.cost[start + j] if columns.cost.size else 1.0
            bend = block.slope[j] / block.price[j]
            sums.crawls[host] += block.rate[j]
            sums.spent[host] += block.rate[j] * cost
            charge = cost if columns.charged else 1.0
            sums.bend0[host] += bend
            sums.bend1[host] += bend * charge
            sums.bend2[host] += bend * charge * cost
        if rates.size:
            for j in range(stop - start):
                rates[start + j] = block.rate[j]
