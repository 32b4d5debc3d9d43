"""The policy `price`: sell crawls at a price that follows the market, for millions of pages.

Owns the lists behind `scheduling/selling.py` and their size. The first price is that at which the pages together
would spend the budget; from then on it follows what crawls are sold at.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.pages import Floats
from recrawl.planning.root import find_price
from recrawl.scheduling.building import build, spending
from recrawl.scheduling.market_state import FEWEST_BINS, Arrays, Market, empty_desk, empty_lists
from recrawl.scheduling.placing import announce_all, move_signalled, place_all, withdraw_all
from recrawl.scheduling.policies.contract import Chosen
from recrawl.scheduling.selling import sell
from recrawl.scheduling.table.pages import PageTable
from recrawl.scheduling.table.records import FREE, IDLE, QUEUED, Slots
from recrawl.scheduling.wheel import LONGEST_STEP

_SAMPLE = 50_000  # pages asked for a first guess of the price
_CLOSE = 1e-3  # of the guess
_CLOSER = 1e-4  # of the price; the market does the rest


class ByPrice:
    """The market for all pages; see `policy.Policy` for what the methods promise."""

    def __init__(self, table: PageTable, budget: float, now: float) -> None:
        self._table = table
        self._budget = budget
        self._desk = empty_desk(now)
        self._heads, self._bits = empty_lists(FEWEST_BINS)
        self._agenda: NDArray[np.int32] = np.zeros((2, 0), dtype=np.int32)
        self._built_budget = 0.0  # that the lists are made for; 0: not built yet
        self._built_bins = 0
        self._reach = 0.0  # how far time may go on before the lists are built anew
        self._latest = now
        self._known = (-1, -1)  # version of the table that the arrays are of
        self._latest_market: Market
        self._latest_arrays: Arrays

    @property
    def budget(self) -> float:
        """Crawls, or cost, per unit time."""
        return self._budget

    @budget.setter
    def budget(self, budget: float) -> None:
        self._budget = budget

    @property
    def nbytes(self) -> int:
        """What the lists take."""
        return sum(array.nbytes for array in (self._heads, self._bits, self._agenda))

    def place(self, slots: Slots, now: float) -> None:
        """Let pages wait where they belong."""
        if self._built_budget == 0.0:
            self._table.pages["state"][slots] = QUEUED  # placed when the first price is known
            return
        place_all(self._arrays(), slots, now, self._table.burst)

    def withdraw(self, slots: Slots, now: float) -> None:
        """Take pages out of wherever they wait."""
        if self._built_budget == 0.0:
            self._table.pages["state"][slots] = IDLE
            return
        withdraw_all(self._market(), slots, now, self._table.burst)

    def signalled(self, slots: Slots, now: float) -> None:
        """Bring forward pages that heard a signal."""
        if self._built_budget > 0.0:
            move_signalled(self._arrays(), slots, now, self._table.burst)

    def hosts_changed(self, numbers: Slots, now: float) -> None:
        """Enter hosts into the agenda anew."""
        if self._built_budget > 0.0:
            announce_all(self._market(), numbers, now, self._table.burst)

    def choose(self, now: float, most: int, tokens: float) -> Chosen:
        """Sell at most so many crawls."""
        self._keep_lists_in_shape(now)
        most = min(most, self._table.live)
        slots, values = np.empty(most, dtype=np.int64), np.empty(most)
        sold = sell(self._arrays(), now, most, tokens, self._table.burst, slots, values)
        return Chosen(slots, values) if sold == most else Chosen(slots[:sold], values[:sold])

    def price(self) -> float:
        """What a crawl must be worth at present."""
        return float(self._desk["price"][0])

    def entry_price(self) -> float:
        """The price at which pages come on offer, a little below the other."""
        return float(self._desk["entry"][0])

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays to keep for a later `restore`; the links are in the pages."""
        return {"desk": self._desk, "agenda": self._agenda, "heads": self._heads, "bits": self._bits}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from kept arrays."""
        self._desk, self._agenda = state["desk"], state["agenda"]
        self._heads, self._bits = state["heads"], state["bits"]
        self._known = (-1, -1)
        desk = self._desk[0]
        self._built_budget = self._budget if desk["entry"] > 0 else 0.0
        self._built_bins = int(desk["bins"])
        self._reach = LONGEST_STEP / 64 * float(desk["bins"] * desk["width"])
        self._latest = float(desk["origin"] + desk["base"] * desk["width"])

    def _arrays(self) -> Arrays:
        version = (self._table.version, len(self._table.hosts))
        if self._known != version:
            self._market()
        return self._latest_arrays

    def _market(self) -> Market:
        table = self._table
        version = (table.version, len(table.hosts))
        if self._known == version:
            return self._latest_market
        hosts = table.hosts.records
        if self._agenda.shape[1] < len(hosts):
            agenda = np.zeros((2, len(hosts)), dtype=np.int32)
            agenda[:, : self._agenda.shape[1]] = self._agenda
            self._agenda = agenda
        desk = self._desk[0]
        desk["used"], desk["live"], desk["least_cost"] = table.used, table.live, table.least_cost
        signals = table.signals if len(table.signals) else None
        self._known = version
        lists = self._agenda, self._heads, self._bits, self._desk
        self._latest_arrays = (table.pages, table.limits, signals, hosts, *lists)
        self._latest_market = Market(*self._latest_arrays)
        return self._latest_market

    def _keep_lists_in_shape(self, now: float) -> None:
        """Build the lists for the first time, or anew if pages, budget or time have left them behind."""
        pages = max(self._table.live, 1)
        if self._built_budget > 0.0:
            fits = pages <= 4 * self._built_bins and self._budget <= 4 * self._built_budget
            fits = fits and (self._built_budget <= 4 * self._budget or self._budget == 0)
            if fits and now - self._latest <= self._reach:
                self._latest = now
                return
        bins = max(FEWEST_BINS, (1 << math.ceil(math.log2(pages))) // 2)
        cycle = pages / self._budget if self._budget > 0 else 1.0
        self._heads, self._bits = empty_lists(bins)
        self._known = (-1, -1)
        desk = self._desk[0]
        desk["bins"], desk["width"], desk["origin"] = bins, 2 * cycle / bins, now
        if self._built_budget == 0.0:
            self._first_price(now)
        self._built_budget, self._built_bins, self._latest = max(self._budget, 1e-300), bins, now
        self._reach = LONGEST_STEP / 64 * 2 * cycle
        build(self._market(), now, self._table.burst)

    def _first_price(self, now: float) -> None:
        """Set the price at which the pages together would spend the budget."""
        market = self._market()
        pages = self._table.pages
        known = np.flatnonzero((pages["state"][: self._table.used] != FREE) & (pages["gain"][: self._table.used] > 0))
        desk = self._desk[0]
        desk["entry"] = desk["price"] = 1.0
        if not len(known) or self._budget == 0:
            return
        by_host: Floats = np.zeros(len(market.hosts))
        # A page worth its gain times the mean interval is the first guess.
        start = math.log(float(np.median(pages["gain"][known]))) + math.log(len(known) / self._budget)
        sample = np.ascontiguousarray(known[:: max(len(known) // _SAMPLE, 1)])
        for slots, close in ((sample, _CLOSE), (known, _CLOSER)):
            scale = len(known) / len(slots)

            def evaluate(log_price: float, slots: Slots = slots, scale: float = scale) -> tuple[float, float]:
                return float(spending(market, slots, scale, now, math.exp(log_price), by_host)), math.nan

            start = find_price(evaluate, self._budget, start, close).high
            if len(sample) == len(known) or len(self._table.signals):  # with signals a page takes a microsecond
                break
        desk["entry"] = desk["price"] = math.exp(start)
