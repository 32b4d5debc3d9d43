"""Policies that look at every waiting page in each step: the shared base, and the exact argmax.

`WaitingPages` keeps nothing but the state QUEUED of a page, `Ranked` takes the pages of highest worth, `Argmax` ranks
by the scheduler's own values: the discrete policy of the NCIS paper (Busa-Fekete et al. 2025), and the policy that
`price` is measured against. O(pages) per step. Ties go to the lower slot. A page whose longest interval has passed
comes before all others; a page whose crawl is worth nothing is never chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from recrawl.jit import kernel
from recrawl.pages import Floats
from recrawl.scheduling.policies.contract import Chosen, check_state
from recrawl.scheduling.table.hosts import has_paced_host, opens_at, start_crawl
from recrawl.scheduling.table.pages import PageTable
from recrawl.scheduling.table.records import FREE, IDLE, IN_FLIGHT, LIMITED, QUEUED, Records, Slots

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOTHING = Chosen(np.empty(0, dtype=np.int64), np.empty(0))
_SLACK = 1e-6  # of a token: rounding of times must not cost a crawl
_SPARE = 64  # more candidates than asked for: hosts may refuse some
_SMOOTHING = 0.1  # of the price, per batch
_MOST_PRICE = 1e299  # larger values mean "infinitely much" and are ignored


class WaitingPages:
    """The pages that wait, straight from the table.

    `budget` is what may be spent per unit time; the scheduler sets it when it changes.
    """

    def __init__(self, table: PageTable, budget: float, seed: int) -> None:
        self.table = table
        self.budget = budget
        self.seed = seed
        self._price = 0.0

    def place(self, slots: Slots, now: float) -> None:  # noqa: ARG002 - the contract's
        """Let these pages compete. O(slots)."""
        self.table.pages["state"][slots] = QUEUED

    def withdraw(self, slots: Slots, now: float) -> None:  # noqa: ARG002 - the contract's
        """Let these pages compete no more. O(slots)."""
        self.table.pages["state"][slots] = IDLE

    def signalled(self, slots: Slots, now: float) -> None:
        """Do nothing: counts are read from the table when pages are chosen."""

    def hosts_changed(self, hosts: Slots, now: float) -> None:
        """Do nothing: hosts are asked when a page is admitted."""

    def price(self) -> float:
        """Return what a crawl must be worth at present; 0 before it is known."""
        return self._price

    def state(self) -> dict[str, float]:
        """Return the price: all else is in the table."""
        return {"price": self._price}

    def restore(self, state: Mapping[str, float]) -> None:
        """Continue at the price of the state; all pages that are not in flight compete. O(pages)."""
        check_state(state, {"price": (0.0, math.inf)})
        self._price = state["price"]
        pages = self.table.pages[: self.table.used]
        self.place(np.flatnonzero((pages["state"] != FREE) & (pages["state"] != IN_FLIGHT)), math.nan)

    def waiting(self) -> Slots:
        """The pages that wait, by slot. O(pages)."""
        return np.flatnonzero(self.table.pages["state"][: self.table.used] == QUEUED)


def overdue(table: PageTable, slots: Slots, now: float) -> NDArray[np.bool_]:
    """Pages whose longest interval has passed: they are crawled whatever that is worth. O(slots)."""
    longest = limit(table, slots, "max_interval", default=np.inf)
    late: NDArray[np.bool_] = now - table.pages["last"][slots] >= longest
    return late


def limit(table: PageTable, slots: Slots, name: str, default: float) -> Floats:
    """A column of the limits, with this for pages that have none. O(slots)."""
    values = np.full(len(slots), default)
    if len(table.limits):
        limited = table.pages["flags"][slots] & LIMITED != 0
        values[limited] = table.limits[name][slots[limited]]
    return values


def admit(table: PageTable, order: Slots, now: float, most: int, tokens: float) -> Slots:
    """Take at most `most` pages that may be crawled now, in this order, and mark them in flight. O(order)."""
    return admit_or_save(table, order, now, most, tokens)[0]


def admit_or_save(table: PageTable, order: Slots, now: float, most: int, tokens: float) -> tuple[Slots, bool]:
    """Do the same, and return whether it stopped at a page that may be crawled but costs more than the tokens.

    Tokens are saved for such a page, so that expensive pages are crawled too.
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


class Ranked(WaitingPages):
    """Takes the pages that are worth most. O(pages) per step."""

    def worth(self, slots: Slots, now: float) -> Floats:
        """What a crawl of each of these waiting pages is worth, by unit of cost."""
        raise NotImplementedError

    def choose(self, now: float, most: int, tokens: float) -> Chosen:
        """Choose the pages that are worth most among those that tokens and hosts allow."""
        slots = self.waiting()
        if most <= 0 or not len(slots):
            return NOTHING
        worth = self.worth(slots, now)
        late = overdue(self.table, slots, now)
        taken: list[Slots] = []
        values: list[Floats] = []
        for group in _groups(worth, late, _enough(self.table, most, tokens)):
            admitted, saves = admit_or_save(self.table, slots[group], now, most, tokens)
            at = np.searchsorted(slots, admitted)
            taken.append(admitted)
            values.append(worth[at])
            self._follow(worth[at[~late[at]]])
            most -= len(admitted)
            tokens -= float(self.table.costs(admitted).sum())
            if most <= 0 or saves:
                break
        return Chosen(np.concatenate(taken), np.concatenate(values)) if taken else NOTHING

    def _follow(self, sold: Floats) -> None:
        """Let the price follow the least value sold in a batch, smoothed."""
        sold = sold[sold < _MOST_PRICE]
        if len(sold):
            lowest = float(sold.min())
            self._price = self._price + _SMOOTHING * (lowest - self._price) if self._price > 0.0 else lowest


def best_first(worth: Floats) -> Slots:
    """Positions in order of worth, the largest first, ties by position. O(n log n)."""
    return np.argsort(-worth, kind="stable")


def _groups(worth: Floats, late: np.ndarray, enough: int) -> Iterator[Slots]:
    """Positions of candidates, best first, group by group; later groups are sorted only when asked for."""
    if late.any():
        positions = np.flatnonzero(late)
        yield positions[best_first(worth[positions])]
    positions = np.flatnonzero(~late & (worth > 0))
    if len(positions) <= enough:
        yield positions[best_first(worth[positions])]
        return
    eligible = worth[positions]
    least = np.partition(eligible, len(eligible) - enough)[len(eligible) - enough]
    for chosen in (eligible >= least, eligible < least):  # all that tie go together, so that ties go by slot
        part = positions[chosen]
        yield part[best_first(worth[part])]


def _enough(table: PageTable, most: int, tokens: float) -> int:
    """How many candidates are enough unless hosts refuse many."""
    affordable = math.floor(min(tokens / table.least_cost, 1e9))
    return min(most, affordable + 1) + _SPARE


class Argmax(Ranked):
    """Takes the page that is worth most by the scheduler's own belief. O(pages) per step."""

    def worth(self, slots: Slots, now: float) -> Floats:
        """What the table says, at the price of the last crawls."""
        return self.table.values(slots, now, self.price())
