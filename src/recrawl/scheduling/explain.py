"""Why a page is, or is not, crawled now: what it is worth, what it must be worth, and what it waits for. Pure.

Works on copies of the records, because computing the due time writes the signal threshold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from recrawl.scheduling.budget import TokenBucket
from recrawl.scheduling.columns import PageObjective
from recrawl.scheduling.table.entries import objective_of
from recrawl.scheduling.table.pages import PageTable
from recrawl.scheduling.table.records import (
    AT_HOST,
    BY_VALUE,
    HELD,
    IDLE,
    IN_FLIGHT,
    LEARNS,
    LIMITED,
    LISTENS,
    NAMES,
    NO_COPY,
    NOISY_FRESHNESS,
    ONCE,
    QUEUED,
    READY,
    SOURCE,
    STANDING,
    WINDOW,
    HostName,
    Record,
)
from recrawl.scheduling.value import OWN_WAIT, VALUE

Reason = Literal[
    "nothing", "price", "budget", "host gap", "host in flight", "host cap", "retry after", "floor", "in flight"
]
"""What a page can wait for; `retry after` is what its host or the page itself asked for, or the wait after failures."""

_STATES = {
    QUEUED: "waits for its time",
    STANDING: "waits for the price to fall",
    READY: "is on offer",
    IN_FLIGHT: "is being crawled",
    AT_HOST: "waits at its host",
    BY_VALUE: "waits at its host",
    HELD: "may not be crawled yet",
    IDLE: "is left alone, for a crawl of it is worth nothing",
}
_NEVER = 1e30
_SLACK = 1e-6  # of a token


class Quote(NamedTuple):
    """What the market says at the time of the question."""

    price: float  # the common one, by unit of cost
    bucket: TokenBucket  # of the budget
    interval: tuple[float, float] | None  # of a learned change rate, 90 %


@dataclass(frozen=True, slots=True)
class Explanation:
    """What the scheduler knows of a page and means to do with it. Times, rates and intervals are in the caller's unit.

    Args:
        id: of the page.
        host: its name; None: none.
        objective: what the page is crawled for.
        law: how its value grows, in words.
        state: where it is, in words.
        now: the time of the explanation.
        value: what a crawl now is worth.
        value_by_cost: the same by unit of cost, which is what pages compete with.
        price: what a crawl must be worth by unit of cost: the common price, or that of its host if the host cannot
            serve all that is worth the common one. 0 before the first crawls are handed out, and while hosts or
            pages cannot use the budget.
        due: when it will be worth the price, with its own limits and no further signal; None: never.
        waits_for: what it waits for longest; `nothing` if it can be sold at once.
        until: when that ends; None if that cannot be known.
        limits: all that keeps it from being crawled now, and `ceiling` if its longest interval decides when it is due.
        importance: as given; importance × change rate for `captures`, profit × rate of new pages for `news`, profit
            for `once`.
        change_rate: believed, per unit time; None where the objective has none.
        change_rate_interval: low and high end of the 90 % interval of a learned change rate, else None.
        shape: of the Gamma distribution of a learned change rate, about the number of changes it is known from.
        decay: rate at which what is missed fades, for `captures`, `news` and `once`.
        window: how long a change stays, if it does for a window.
        signals: heard since the last crawl, in signals of average weight; None: it does not listen.
        recall: probability that a change comes with a signal, all kinds together.
        precision: probability that a signal means a change, all kinds together.
        last_crawled: None: there is no copy yet.
        cost: of a crawl.
        min_interval: least time between two crawls.
        max_interval: most time between two crawls; infinity: no limit.
        failures: in a row.
    """

    id: int
    host: HostName | None
    objective: PageObjective
    law: str
    state: str
    now: float
    value: float
    value_by_cost: float
    price: float
    due: float | None
    waits_for: Reason
    until: float | None
    limits: tuple[str, ...]
    importance: float
    change_rate: float | None
    change_rate_interval: tuple[float, float] | None
    shape: float | None
    decay: float | None
    window: float | None
    signals: float | None
    recall: float | None
    precision: float | None
    last_crawled: float | None
    cost: float
    min_interval: float
    max_interval: float
    failures: int

    def __str__(self) -> str:
        sentences = [self._who(), self._worth(), self._what_next(), self._change(), self._past()]
        return " ".join(sentence for sentence in sentences if sentence)

    def _who(self) -> str:
        where = "" if self.host is None else f" of host {self.host}"
        return f"Page {self.id}{where} ({self.law}) {self.state}."

    def _worth(self) -> str:
        by_cost = "" if self.cost == 1 else " for each unit of its cost"
        price = "there is no price yet" if self.price == 0 else f"the price is {self.price:.4g}"
        return f"A crawl now is worth {self.value_by_cost:.4g}{by_cost}, {price}."

    def _what_next(self) -> str:
        until = "" if self.until is None else f" until {self.until:.6g}, {self.until - self.now:.3g} from now"
        if self.waits_for == "nothing":
            return "Nothing holds it back: it is crawled as soon as no page is worth more."
        if self.waits_for == "in flight":
            return "Its crawl has to be settled first."
        if self.waits_for == "price":
            if self.until is None:
                return "As things are it will never be worth the price."
            if "ceiling" in self.limits:
                return f"Its longest interval passes at {self.until:.6g}, {self.until - self.now:.3g} from now."
            return f"It will be worth the price at {self.until:.6g}, {self.until - self.now:.3g} from now."
        return f"It waits for {_PHRASES[self.waits_for]}{until}."

    def _change(self) -> str:
        if self.change_rate is None:
            return ""
        times = "once" if self.change_rate == 1 else f"{self.change_rate:.4g} times"
        sentence = f"It changes {times} per unit time"
        if self.change_rate_interval is not None:
            low, high = self.change_rate_interval
            sentence += f" as far as is known (90 %: {low:.3g} to {high:.3g})"
        if self.signals:
            came = "1 signal" if self.signals == 1 else f"{self.signals:.3g} signals"
            sentence += f", and {came} came since its last crawl"
        return sentence + "."

    def _past(self) -> str:
        failures = "" if not self.failures else f" and has failed {_times(self.failures)} in a row since"
        if self.objective == "once":
            return f"It has failed {_times(self.failures)} in a row." if self.failures else ""
        if self.last_crawled is None:
            return f"It was never crawled{failures}."
        return f"It was last crawled at {self.last_crawled:.6g}{failures}."


_PHRASES = {
    "budget": "the budget",
    "host gap": "the gap between two crawls of its host",
    "host in flight": "other crawls of its host to end",
    "host cap": "the rate cap of its host",
    "retry after": "the time it was told, or has learned, to stay away",
    "floor": "its shortest interval to pass",
}


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def explain_page(table: PageTable, slot: int, now: float, quote: Quote) -> Explanation:
    """Explain a page of the table at a time that is not before any it has seen; changes nothing. O(1)."""
    page = table.pages[slot]
    law, flags = int(page["law"]), int(page["flags"])
    signal = table.signals[slot] if flags & LISTENS else None
    limit = table.limits[slot] if flags & LIMITED else None
    cost = 1.0 if limit is None else float(limit["cost"])
    longest = math.inf if limit is None else float(limit["max_interval"])
    host = table.hosts.records[page["host"]] if page["host"] >= 0 else None
    price = market_price(host, quote.price)
    value, wait = _appraise(table, slot, now, price)
    due = float(page["last"]) + max(wait, float(page["not_before"]))
    holds = _holds(page, host, now, wait, table.burst) or _budget_holds(cost, now, quote.bucket)
    waits_for, until = _longest(holds, now)
    limits = tuple(dict.fromkeys(hold.reason for hold in holds))
    has_rate = law not in (ONCE, SOURCE, WINDOW)
    return Explanation(
        id=int(table.ids_of(np.array([slot]))[0]),
        host=None if host is None else table.hosts.names[page["host"]],
        objective=objective_of(table, np.array([slot])),
        law=NAMES[law] + (", learned" if flags & LEARNS and law >= NOISY_FRESHNESS else ""),
        state=_STATES[int(page["state"])],
        now=now,
        value=value * cost,
        value_by_cost=value,
        price=price,
        due=due if due < math.inf and wait < _NEVER else None,
        waits_for=waits_for,
        until=until,
        limits=(*limits, "ceiling") if wait == longest < math.inf else limits,
        importance=float(page["gain"]) * cost,
        change_rate=float(page["decay"]) if has_rate else None,
        change_rate_interval=quote.interval,
        shape=float(page["belief"]) if flags & LEARNS else None,
        decay=float(page["decay"]) if law in (ONCE, SOURCE) else None,
        window=float(page["decay"]) if law == WINDOW else None,
        signals=None if signal is None else float(page["signals"]),
        recall=None if signal is None else float(signal["recall"]),
        precision=None if signal is None else float(signal["precision"]),
        last_crawled=None if flags & NO_COPY or law == ONCE else float(page["last"]),
        cost=cost,
        min_interval=0.0 if limit is None else float(limit["min_interval"]),
        max_interval=longest,
        failures=int(page["failures"]),
    )


def market_price(host: Record | None, common: float) -> float:
    """The price that pages of a host pay: its own if that is above the common one."""
    return common if host is None or not host["paced"] else max(common, float(host["price"]))


def _appraise(table: PageTable, slot: int, now: float, price: float) -> tuple[float, float]:
    """What the page is worth now by unit of cost, and the time from its last crawl until it is worth the price.

    The wait has the page's longest interval in it, and neither its shortest nor any wait after failures.
    """
    slots = np.array([slot])
    value = float(table.appraise(slots, now, price, VALUE)[1, 0])
    if price > 0.0:
        return value, float(table.appraise(slots, now, price, OWN_WAIT)[0, 0])
    return value, 0.0 if table.pages["gain"][slot] > 0.0 else math.inf


class _Hold(NamedTuple):
    """Something that keeps a page from being crawled now."""

    reason: Reason
    until: float  # infinity: for ever; NaN: unknown


def _holds(page: Record, host: Record | None, now: float, wait: float, burst: float) -> list[_Hold]:
    """All that keeps a page from being crawled, but for the budget."""
    if page["state"] == IN_FLIGHT:
        return [_Hold("in flight", math.nan)]
    last = float(page["last"])
    holds = [_Hold("price", last + wait if wait < _NEVER else math.inf)]
    holds.append(_Hold("retry after" if page["failures"] else "floor", last + float(page["not_before"])))
    if host is not None and host["paced"]:
        holds.append(_Hold("retry after", float(host["blocked_until"])))
        holds.append(_Hold("host gap", float(host["next_start"])))
        cap = float(host["rate_cap"])
        if cap < math.inf:
            holds.append(
                _Hold("host cap", float(host["cap_time"]) - (max(burst, 1.0) - 1) / cap if cap > 0 else math.inf)
            )
        if 0 < host["max_in_flight"] <= host["in_flight"]:
            holds.append(_Hold("host in flight", math.nan))
    return [hold for hold in holds if not hold.until <= now]


def _budget_holds(cost: float, now: float, bucket: TokenBucket) -> list[_Hold]:
    """The budget, if it cannot pay for a crawl now; a dear page waits for a full bucket."""
    tokens = bucket.tokens + bucket.rate * (now - bucket.filled)
    lacking = min(cost, bucket.burst) - tokens
    if lacking <= _SLACK:
        return []
    return [_Hold("budget", now + lacking / bucket.rate if bucket.rate > 0 else math.inf)]


def _longest(holds: list[_Hold], now: float) -> tuple[Reason, float | None]:
    """What holds longest, and until when; what ends at an unknown time is reckoned to end soon."""
    if not holds:
        return "nothing", None
    hold = max(holds, key=lambda each: now if math.isnan(each.until) else each.until)
    return hold.reason, hold.until if math.isfinite(hold.until) else None
