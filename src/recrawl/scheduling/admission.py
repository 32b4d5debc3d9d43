"""Letting pages through in an order that a policy chose: budget, page and host decide who may be crawled now."""

from __future__ import annotations

import numpy as np

from recrawl.jit import kernel
from recrawl.pages import Floats
from recrawl.scheduling.host_limits import has_paced_host, opens_at, start_crawl
from recrawl.scheduling.page_record import IN_FLIGHT, Records, Slots
from recrawl.scheduling.page_table import PageTable

_SLACK = 1e-6  # of a token: rounding of times must not cost a crawl


def admit(table: PageTable, order: Slots, now: float, most: int, tokens: float) -> Slots:
    """Take the pages that may be crawled now, best first, at most so many; marks them in flight. O(order)."""
    return admit_or_save(table, order, now, most, tokens)[0]


def admit_or_save(table: PageTable, order: Slots, now: float, most: int, tokens: float) -> tuple[Slots, bool]:
    """The same, and whether a page ended it that may be crawled, but that the tokens do not pay for yet.

    Tokens are saved for such a page, so that dear pages are not passed over for ever.
    """
    taken = np.empty(min(most, len(order)), dtype=np.int64)
    limits = (now, tokens, table.burst)
    count, saves = _admit(table.pages, table.hosts.records, order, table.costs(order), limits, taken)
    return taken[:count], bool(saves)


@kernel
def _admit(
    pages: Records, hosts: Records, order: Slots, costs: Floats, limits: tuple[float, float, float], taken: Slots
) -> tuple[int, bool]:
    now, tokens, burst = limits
    count = 0
    for i in range(len(order)):
        if count == len(taken):
            break
        page = pages[order[i]]
        if now - page["last"] < np.float64(page["not_before"]):
            continue
        number = page["host"]
        if has_paced_host(page, hosts) and opens_at(hosts[number], burst) > now:
            continue
        if costs[i] > tokens + _SLACK and not tokens + _SLACK >= burst:
            return count, True
        tokens -= costs[i]
        page["state"] = IN_FLIGHT
        if number >= 0:
            start_crawl(hosts[number], now)
        taken[count] = order[i]
        count += 1
    return count, False


@kernel
def claim(pages: Records, hosts: Records, slots: Slots, now: float) -> None:
    """Mark pages that wait nowhere as in flight, whatever they are worth and their hosts allow. O(slots)."""
    for i in range(len(slots)):
        page = pages[slots[i]]
        page["state"] = IN_FLIGHT
        if page["host"] >= 0:
            start_crawl(hosts[page["host"]], now)
