"""Hosts by the time of their next offer: two binary heaps of host numbers that know where each host is in them.

A closed host is in the first, by the time it opens; an open one in the second, by the time its next page is due. So
whoever wants a page before it is due finds the next one of a host that allows it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import borrowing
from recrawl.scheduling.market_state import Market
from recrawl.scheduling.table.records import Records

CLOSED = 0
OPEN = 1


@borrowing
def enter(market: Market, number: int, book: int, time: float) -> None:
    """Put a host into a heap of the agenda, or move it there; infinity takes it out of both. O(log hosts)."""
    hosts = market.hosts
    host = hosts[number]
    present = host["book"]
    if present >= 0 and (present != book or time == math.inf):
        _leave(market, number)
    host["offer_at"] = time
    if time == math.inf:
        return
    sizes = market.desk[0]["agenda"]
    if host["book"] < 0:
        host["book"] = book
        host["place"] = sizes[book]
        sizes[book] += 1
    _settle(market.agenda[book], hosts, host["place"], number, sizes[book])


@borrowing
def first_of(market: Market, book: int) -> int:
    """The host with the earliest time in a heap, or NOTHING. O(1)."""
    return market.agenda[book, 0] if market.desk[0]["agenda"][book] > 0 else -1


@borrowing
def _leave(market: Market, number: int) -> None:
    hosts, sizes = market.hosts, market.desk[0]["agenda"]
    host = hosts[number]
    heap = market.agenda[host["book"]]
    book, place = host["book"], host["place"]
    host["book"] = -1
    sizes[book] -= 1
    if place < sizes[book]:
        _settle(heap, hosts, place, heap[sizes[book]], sizes[book])


@borrowing
def _settle(heap: NDArray[np.int32], hosts: Records, place: int, number: int, size: int) -> None:
    """Put a host at a place and move it to where it belongs."""
    time = hosts[number]["offer_at"]
    while place > 0:
        above = (place - 1) // 2
        if hosts[heap[above]]["offer_at"] <= time:
            break
        _write(heap, hosts, place, heap[above])
        place = above
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and hosts[heap[below + 1]]["offer_at"] < hosts[heap[below]]["offer_at"]:
            below += 1
        if hosts[heap[below]]["offer_at"] >= time:
            break
        _write(heap, hosts, place, heap[below])
        place = below
    _write(heap, hosts, place, number)


@borrowing
def _write(heap: NDArray[np.int32], hosts: Records, place: int, number: int) -> None:
    heap[place] = number
    hosts[number]["place"] = place
