"""How the scheduler as a whole is doing: prices, budget and where the pages are. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import kernel
from recrawl.scheduling.hosts import HostName, HostTable
from recrawl.scheduling.page_record import HELD, IN_FLIGHT, READY, Records
from recrawl.scheduling.page_table import PageTable

if TYPE_CHECKING:
    from recrawl.scheduling.counts import Counts


@dataclass(frozen=True, slots=True)
class Status:
    """The scheduler at one moment.

    Args:
        now: the latest time it was told, in the caller's unit.
        budget: crawls, or cost, per unit time.
        price: what a crawl must be worth at present, by unit of cost.
        pages: how many there are: those in flight, on offer and waiting.
        in_flight: taken and not settled yet.
        on_offer: worth the price, and next in turn; 0 for policies that look at all pages each time.
        waiting: for their time, for the price to fall, or at their hosts.
        hosts: how many are known.
        hosts_saturated: hosts that cannot serve all that is worth the common price, and the price of each.
        counts: what happened so far.
    """

    now: float
    budget: float
    price: float
    pages: int
    in_flight: int
    on_offer: int
    waiting: int
    hosts: int
    hosts_saturated: Mapping[HostName, float]
    counts: Counts

    @property
    def marginal_value(self) -> float:
        """What one more crawl per unit time would add to the objective, per unit time: the price."""
        return self.price


def status_of(table: PageTable, now: float, budget: float, price: float, counts: Counts) -> Status:
    """The status at a time, with a copy of the counts. O(pages)."""
    dear = saturated(table.hosts, price)
    places = count_states(table)
    return Status(now, budget, price, table.live, *places, len(table.hosts), dear, replace(counts))


def count_states(table: PageTable) -> tuple[int, int, int]:
    """Pages in flight, on offer and waiting. O(pages)."""
    counts = np.zeros(HELD + 1, dtype=np.int64)
    _count_states(table.pages[: table.used], counts)
    flying, offered = int(counts[IN_FLIGHT]), int(counts[READY])
    return flying, offered, table.live - flying - offered


def saturated(hosts: HostTable, common: float) -> dict[HostName, float]:
    """Hosts whose own price is above the common one, by name. O(hosts)."""
    records = hosts.records
    dear = np.flatnonzero((records["paced"] != 0) & (records["price"] > common))
    return {hosts.names[number]: float(records["price"][number]) for number in dear.tolist()}


@kernel
def _count_states(pages: Records, counts: NDArray[np.int64]) -> None:
    for slot in range(len(pages)):
        counts[pages[slot]["state"]] += 1
