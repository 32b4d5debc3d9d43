"""The policy `price`: sell crawls at a price that follows the market, for millions of pages.

Owns the queues and their size, asks for values (`value.py`) and hands them to the market (`auction.py`). The first
price is that at which the pages together would spend the budget; from then on it follows what crawls are worth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.pages import LARGEST, Floats
from recrawl.planning.root import find_price
from recrawl.scheduling.market import auction
from recrawl.scheduling.market.queues import COARSE, DESK, FEWEST_BINS, Arrays
from recrawl.scheduling.policies.contract import Chosen, check_state
from recrawl.scheduling.table.pages import PageTable
from recrawl.scheduling.table.records import FREE, IDLE, QUEUED, Slots
from recrawl.scheduling.value import BID, MEAN_WAIT, MOST, PLACE, VALUE, WAIT, Tables, appraise, wait_after_signals

_SAMPLE = 50_000  # pages asked for a first guess of the price
_CLOSE = 1e-3  # relative error of the guess
_CLOSER = 1e-4  # of the price; the market does the rest
_MANY = 1_000_000  # pages, of which only a sample is asked for the prices of hosts
_HALVINGS = 24  # when the price of a host is searched
_REACH = 32  # turns of the wheel, of two cycles each, without an auction: then the queues are built again
_SWEPT_TOGETHER = 64  # pages whose due times are renewed in one call
_SWEPT = 2  # pages for each sale
_LEAST = 5e-324  # above 0
_KEPT = {  # numbers of the desk that are state, and the least and the most that each can be
    "entry": (_LEAST, MOST),
    "price": (0.0, MOST),
    "scale": (_LEAST, MOST),
    "swept": (0.0, MOST),
    "sweep_at": (0, 2**31),
    "sweep_left": (0, 2**31),
    "tick": (0.0, MOST),
    "width": (_LEAST, MOST),
    "origin": (-LARGEST, LARGEST),
}
_NOTHING = Chosen(np.empty(0, dtype=np.int64), np.empty(0))


class ByPrice:
    """The market for all pages; see `policies/contract.py` for what the methods promise."""

    def __init__(self, table: PageTable, budget: float, now: float) -> None:
        self._table = table
        self.budget = budget
        self._desk = np.zeros(1, dtype=DESK)
        self._desk["entry"] = self._desk["scale"] = self._desk["width"] = 1.0
        self._built = (0.0, 0)  # budget and bins that the queues were made for; 0 bins: not made yet
        self._latest = now  # time of the last auction
        self._to_sweep = 0  # pages that may be swept by now
        self._queue: NDArray[np.int32] = np.empty(0, dtype=np.int32)
        self._ready: NDArray[np.int32] = np.empty(0, dtype=np.int32)
        self._again: Slots = np.empty(0, dtype=np.int64)
        self._make_wheel(FEWEST_BINS)
        self._known = (-1, -1)  # version of the table that the arrays are of
        self._market: Arrays
        self._tables: Tables

    @property
    def nbytes(self) -> int:
        """Bytes of the queues. The list of candidates takes memory only for those that there are."""
        return self._roots.nbytes + self._bits.nbytes + self._queue.nbytes

    def price(self) -> float:
        """Return what a crawl must be worth at present."""
        return float(self._desk["price"][0])

    def entry_price(self) -> float:
        """Return the price at which pages become candidates, a little below the other."""
        return float(self._desk["entry"][0])

    def place(self, slots: Slots, now: float) -> None:
        """Let pages wait where they belong."""
        if self._built[1] == 0:
            self._table.pages["state"][slots] = QUEUED  # placed when the first price is known
            return
        market = self._arrays()
        out = self._appraise(slots, now, PLACE)
        if len(self._table.signals):
            with np.errstate(over="ignore"):  # beyond single precision: infinity
                self._table.signals["threshold"][slots] = out[2]
        auction.place_all(market, slots, out[0], out[1], now, self._table.burst)

    def withdraw(self, slots: Slots, now: float) -> None:
        """Take pages out of their queues."""
        if self._built[1] == 0:
            self._table.pages["state"][slots] = IDLE
            return
        auction.withdraw_all(self._arrays(), slots, now, self._table.burst)

    def signalled(self, slots: Slots, now: float) -> None:
        """Bring forward pages that heard a signal."""
        if self._built[1] == 0:
            return
        market, table = self._arrays(), self._table
        waits, again = np.empty(len(slots)), np.empty(len(slots), dtype=np.int64)
        wait_after_signals(table.pages, table.limits, table.signals, slots, waits)
        more = auction.move_all(market, slots, waits, now, table.burst, again)
        if more:
            self.place(again[:more], now)

    def hosts_changed(self, numbers: Slots, now: float) -> None:
        """Schedule hosts by their limits."""
        if self._built[1]:
            auction.schedule_hosts(self._arrays(), numbers, now, self._table.burst)

    def choose(self, now: float, most: int, tokens: float) -> Chosen:
        """Sell at most `most` crawls."""
        table = self._table
        if not self._keep_in_shape(now):
            return _NOTHING
        market = self._arrays()
        want = min(most, table.live)
        if tokens + auction.SLACK < min(table.least_cost, table.burst):
            want = 0
        elif want > 1:
            want = max(min(want, int(min(tokens / table.least_cost + auction.SLACK, 1e9))), 1)
        if want == 0:
            return _NOTHING
        self._latest = now
        count, more = auction.collect(market, now, table.burst, want, self._again)
        if more:
            self.place(self._again[:more].copy(), now)
            count = self._desk["candidates"].item()
        values = self._appraise(self._ready[:count].astype(np.int64), now, BID)[1]
        slots, sales = np.empty(want, dtype=np.int64), np.empty(want)
        sold, more, crowded = auction.sell(market, values, want, tokens, slots, sales, self._again)
        again = self._again[:more].copy() if more else None
        if crowded:
            self._thin_out(values, want, now)  # before `place` adds candidates that have no value yet
        if again is not None:
            self.place(again, now)
        self._to_sweep += _SWEPT * sold
        if self._to_sweep >= _SWEPT_TOGETHER:
            self._sweep(now)
        if sold and sales[0] == math.inf:
            return self._with_values(slots[:sold], sales[:sold], now)
        return Chosen(slots, sales) if sold == want else Chosen(slots[:sold], sales[:sold])

    def state(self) -> dict[str, float]:
        """Return prices, times and sizes; queues follow from the table."""
        budget, bins = self._built
        kept = {name: float(self._desk[name][0]) for name in _KEPT}
        return {**kept, "budget": budget, "bins": bins, "latest": self._latest, "to_sweep": self._to_sweep}

    def restore(self, state: Mapping[str, float]) -> None:
        """Continue from a state: rebuild the queues. O(pages)."""
        used = self._table.used
        sizes = {"budget": (0.0, LARGEST), "bins": (0, max(FEWEST_BINS, used)), "latest": (-LARGEST, self._latest)}
        check_state(state, {**_KEPT, "sweep_left": (0, used), **sizes, "to_sweep": (0, _SWEPT_TOGETHER)})
        bins = int(state["bins"])
        if bins and (bins < FEWEST_BINS or bins & (bins - 1)):
            raise InvalidInput(f"is {bins}, but must be a power of 2 from {FEWEST_BINS} on", field="bins")
        for name in _KEPT:
            self._desk[name] = state[name]
        self._built, self._known = (state["budget"], bins), (-1, -1)
        self._latest, self._to_sweep = state["latest"], int(state["to_sweep"])
        if bins:
            self._make_wheel(bins)
            auction.rebuild(self._arrays(), self._latest, self._table.burst)

    def _appraise(self, slots: Slots, now: float, mode: int, price: float = 0.0) -> Floats:
        """Value pages at a price, or at the entry price; see `value.appraise`."""
        out = np.empty((3, len(slots)))
        appraise(self._tables, slots, now, price or self._desk["entry"].item(), mode, out)
        return out

    def _thin_out(self, values: Floats, want: int, now: float) -> None:
        """Let all but the best candidates wait: until some of those are sold, or at their due times if not due."""
        market = self._arrays()
        count, worthy, bar = auction.thin_out(market, values, want, self._again)
        crowd = self._again[:count].copy()
        if worthy < count:  # candidates before they were due, or at another price
            self.place(crowd[worthy:], now)
        if worthy:
            waits = self._appraise(crowd[:worthy], now, WAIT, bar)[0]
            auction.rest(market, crowd[:worthy], waits, want)

    def _sweep(self, now: float) -> None:
        """Renew due times of pages, some for each sale, if the price has moved."""
        if self._desk["sweep_left"].item() > 0:
            count = auction.sweep(self._arrays(), self._to_sweep, self._again)
            if count:
                self.place(self._again[:count].copy(), now)
        self._to_sweep = 0

    def _with_values(self, slots: Slots, sales: Floats, now: float) -> Chosen:
        """Put the values of pages in place of infinity, the bid of a page that has to be crawled."""
        return Chosen(slots, np.where(sales < math.inf, sales, self._appraise(slots, now, VALUE)[1]))

    def _arrays(self) -> Arrays:
        """Return the arrays of the market, which are replaced when the table grows."""
        table = self._table
        version = (table.version, len(table.hosts))
        if self._known == version:
            return self._market
        self._ready = _longer(self._ready, len(table.pages) + 1)
        self._again = _longer(self._again, len(table.pages) + 1)
        hosts = table.hosts.records
        self._queue = _longer(self._queue, len(hosts))
        desk = self._desk[0]
        desk["used"], desk["live"], desk["least_cost"] = table.used, table.live, table.least_cost
        self._known = version
        queues = self._roots, self._bits, self._queue, self._ready, self._desk
        self._market = (table.pages, table.limits, hosts, *queues)
        self._tables = (table.pages, table.limits, table.signals if len(table.signals) else None, hosts)
        return self._market

    def _make_wheel(self, bins: int) -> None:
        self._roots: NDArray[np.int32] = np.full(bins + COARSE + 1, -1, dtype=np.int32)
        self._bits: NDArray[np.uint64] = np.zeros(bins // 64 + bins // 4096, dtype=np.uint64)
        self._desk["bins"] = bins

    def _keep_in_shape(self, now: float) -> bool:
        """Build the queues for the first time, or again if pages, budget or time have left them behind.

        Returns:
            False while there is no page that is worth a crawl, and so no price.
        """
        pages = max(self._table.live, 1)
        budget, bins = self._built
        cycle = pages / self.budget if self.budget > 0 else 1.0
        if bins:
            fits = pages <= 4 * bins and self.budget <= 4 * budget and (budget <= 4 * self.budget or self.budget == 0)
            if fits and now - self._latest <= _REACH * bins * self._desk["width"][0]:
                return True
        elif not self._first_price(now):
            return False
        bins = max(FEWEST_BINS, (1 << math.ceil(math.log2(pages))) // 2)
        self._make_wheel(bins)
        self._built, self._latest, self._known = (max(self.budget, 1e-300), bins), now, (-1, -1)
        desk = self._desk[0]
        desk["width"], desk["origin"], desk["tick"] = 2 * cycle / bins, now, cycle / pages
        count = auction.clear(self._arrays(), now, self._table.burst, self._again)
        self.place(self._again[:count].copy(), now)
        return True

    def _first_price(self, now: float) -> bool:
        """Set the price at which the pages together would spend the budget, and the prices of hosts."""
        table, desk = self._table, self._desk[0]
        self._arrays()
        pages = table.pages[: table.used]
        known = np.flatnonzero((pages["state"] != FREE) & (pages["gain"] > 0))
        if not len(known) or self.budget == 0:
            return False
        # A page worth its gain times the mean interval is the first guess.
        start = math.log(float(np.median(pages["gain"][known]))) + math.log(len(known) / self.budget)
        desk["scale"] = math.exp(start)
        sample = np.ascontiguousarray(known[:: max(len(known) // _SAMPLE, 1)])
        for slots, close in ((sample, _CLOSE), (known, _CLOSER)):
            start = self._clearing_price(slots, len(known) / len(slots), now, start, close)
            if len(sample) == len(known) or len(table.signals):  # with signals a page takes a microsecond
                break
        desk["entry"] = desk["price"] = math.exp(start)
        self._set_host_prices(sample if len(known) > _MANY else known, now)
        return True

    def _clearing_price(self, slots: Slots, scale: float, now: float, start: float, close: float) -> float:
        """Return the logarithm of the price at which pages spend the budget; each is one of `scale` pages. O(slots).

        A host spends no more than its gap and cap allow; what waits for its first crawl is not counted.
        """
        costs, host, capacity = self._table.costs(slots), self._table.pages["host"][slots], self._capacity()

        def evaluate(log_price: float) -> tuple[float, float]:
            waits = self._appraise(slots, now, MEAN_WAIT, math.exp(log_price))[0]
            use = scale * costs * _rates(waits)
            if not len(capacity):
                return float(use.sum()), math.nan
            by_host = np.bincount(host + 1, use, len(capacity) + 1)
            by_host[1:] = np.minimum(by_host[1:], capacity)
            return float(by_host.sum()), math.nan

        return find_price(evaluate, self.budget, start, close).high

    def _set_host_prices(self, slots: Slots, now: float) -> None:
        """Set the prices at which hosts with limits are asked for what they can serve. O(pages)."""
        hosts, entry, capacity = self._table.hosts.records, self.entry_price(), self._capacity()
        if not len(hosts):
            return
        host = self._table.pages["host"][slots]
        limited = (host >= 0) & (capacity[host] < math.inf)
        slots, host = slots[limited], host[limited]
        low, high = np.zeros(len(hosts)), np.full(len(hosts), 30.0)  # logarithms of price/entry
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            hosts["price"] = entry * np.exp(middle)
            use = np.bincount(host, _rates(self._appraise(slots, now, MEAN_WAIT)[0]), len(hosts))
            low, high = np.where(use > capacity, middle, low), np.where(use > capacity, high, middle)
        hosts["price"] = np.where(high > 1e-3, entry * np.exp(high), 0.0)
        hosts["built_price"] = hosts["price"]

    def _capacity(self) -> Floats:
        """Return the crawls per unit time that the gap and the cap of each host allow. O(hosts)."""
        hosts = self._table.hosts.records
        with np.errstate(divide="ignore"):
            return np.minimum(hosts["rate_cap"], 1.0 / hosts["min_gap"])


def _rates(waits: Floats) -> Floats:
    """Return crawls per unit time at these intervals; 0 for pages that are due at once or never."""
    with np.errstate(divide="ignore"):
        return np.where((waits > 0.0) & (waits < math.inf), 1.0 / waits, 0.0)


def _longer(array: NDArray[Any], length: int) -> NDArray[Any]:
    """Return the array with room for `length` entries."""
    if len(array) >= length:
        return array
    longer = np.empty(max(length, 2 * len(array)), dtype=array.dtype)
    longer[: len(array)] = array
    return longer
