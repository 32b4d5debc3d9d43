"""One fused pass over all pages: what the budget spends at a price, in all and per capped host."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recrawl.jit import exact, kernel
from recrawl.pages import Floats
from recrawl.planning.laws import BLOCK, Block, Columns, fill


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
