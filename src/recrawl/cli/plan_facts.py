"""The facts of a plan that a report shows: what the budget buys, who gets it, who goes without.

One set of facts serves the table for people and the JSON line for machines, so both say the same. O(pages),
in blocks, so that twenty million pages need little memory beside the plan's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from recrawl.pages import Floats

if TYPE_CHECKING:
    from recrawl.planning.plan import Plan

LISTED = 5
"""Pages in each short list of a report."""
LISTED_HOSTS = 10
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Shown:
    """What a report shows of pages beside their rates: worth, changes per day, a name for each row."""

    importance: Floats
    change_rate: Floats
    labels: Callable[[Sequence[int]], list[str]]


@dataclass(frozen=True, slots=True)
class PageFact:
    """One page of a short list; rates are per day, an infinite interval means never."""

    page: str
    importance: float
    change_rate: float
    crawl_rate: float
    interval_days: float


@dataclass(frozen=True, slots=True)
class MoreBudget:
    """What ten percent more budget would buy; `freshness_points` are percentage points on top."""

    budget_per_day: float
    freshness: float
    freshness_points: float
    harmonic: float
    binary: float
    gain: float


@dataclass(frozen=True, slots=True)
class Starved:
    """Pages that are never crawled: how many, how many of them never change, their share of importance."""

    pages: int
    unchanging: int
    importance_share: float
    most_important: list[PageFact]


@dataclass(frozen=True, slots=True)
class MissedFloors:
    """Floors (`min_rate`) that cannot be met, in crawls per day: counts, sums, and the worst of each."""

    pages: int
    missing: float
    missing_budget: float
    hosts: int
    worst_pages: list[PageFact]
    worst_missing: list[float]
    worst_hosts: dict[str, float]


@dataclass(frozen=True, slots=True)
class FullHost:
    """A host whose cap is reached: crawls per day there, and what one more would be worth."""

    host: str
    used: float
    price: float


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """All that a report says of a plan; `harmonic` and `binary` are staleness per page."""

    pages: int
    hosts: int | None
    budget_per_day: float
    budget_unit: Literal["crawls", "cost"]
    objective: str
    solver: str
    price: float
    used: float
    surplus: float
    starved: float
    freshness: float
    harmonic: float
    binary: float
    gain: float
    gain_share: float
    total_importance: float
    more_budget: MoreBudget | None
    shortfall: MissedFloors
    never_crawled: Starved
    most_crawled: list[PageFact]
    least_crawled: list[PageFact]
    hosts_at_cap: int
    dearest_hosts: list[FullHost]

    def as_json(self) -> dict[str, Any]:
        """The facts as plain dictionaries and lists."""
        return asdict(self)


def gather(plan: Plan, shown: Shown, more: MoreBudget | None = None) -> PlanFacts:
    """Gather the facts of a plan."""
    costs = plan.costs.per_page()
    most, least = _extremes(plan.rates)
    full = sorted(plan.host_prices.items(), key=lambda item: -item[1])
    # A news source has no copy that could be stale: what counts is the gain.
    told = math.nan if plan.objective == "news" else 1.0
    return PlanFacts(
        pages=len(plan.rates),
        hosts=len(plan.host_use) or None,
        budget_per_day=plan.budget,
        budget_unit="crawls" if plan.question.pages.cost is None else "cost",
        objective=plan.objective,
        solver=plan.solver,
        price=plan.price,
        used=plan.used,
        surplus=plan.surplus,
        starved=plan.starved,
        freshness=told * plan.freshness,
        harmonic=told * costs.harmonic,
        binary=told * costs.binary,
        gain=plan.gain,
        gain_share=plan.gain_share,
        total_importance=float(shown.importance.sum()),
        more_budget=more,
        shortfall=_missed_floors(plan, shown),
        never_crawled=_starved(plan.rates, shown),
        most_crawled=_page_facts(plan.rates, shown, most),
        least_crawled=_page_facts(plan.rates, shown, least),
        hosts_at_cap=len(full),
        dearest_hosts=[FullHost(str(host), plan.host_use[host], price) for host, price in full[:LISTED_HOSTS]],
    )


def compare_budgets(plan: Plan, more: Plan) -> MoreBudget:
    """What a second plan with a larger budget buys beyond the first."""
    costs = more.costs.per_page()
    told = math.nan if plan.objective == "news" else 1.0
    return MoreBudget(
        budget_per_day=more.budget,
        freshness=told * more.freshness,
        freshness_points=told * 100 * (more.freshness - plan.freshness),
        harmonic=told * costs.harmonic,
        binary=told * costs.binary,
        gain=more.gain,
    )


def smallest_rows(key: Callable[[slice], Floats], total: int, count: int) -> list[int]:
    """Rows with the smallest keys, in order, earlier rows first among equals; infinite keys are left out.

    >>> smallest_rows(lambda part: np.array([3.0, 1.0, np.inf, 1.0])[part], total=4, count=3)
    [1, 3, 0]
    """
    rows = np.zeros(0, dtype=np.int64)
    keys = np.zeros(0)
    for start in range(0, total, _BLOCK):
        block = key(slice(start, min(start + _BLOCK, total)))
        found = _smallest_of(block, count)
        rows = np.concatenate([rows, found + start])
        keys = np.concatenate([keys, block[found]])
    order = np.lexsort((rows, keys))[:count]
    return [int(row) for row in rows[order][np.isfinite(keys[order])]]


def _smallest_of(keys: Floats, count: int) -> NDArray[np.int64]:
    if len(keys) <= count:
        return np.arange(len(keys))
    bound = np.partition(keys, count)[count]
    return np.concatenate([np.flatnonzero(keys < bound), np.flatnonzero(keys == bound)[:count]])


def _extremes(rates: Floats) -> tuple[list[int], list[int]]:
    """Rows of the most and of the least crawled pages; with few pages no page is in both lists."""
    crawled = int(np.count_nonzero(rates))
    most = smallest_rows(lambda part: np.where(rates[part] > 0, -rates[part], math.inf), len(rates), LISTED)
    least = smallest_rows(lambda part: np.where(rates[part] > 0, rates[part], math.inf), len(rates), LISTED)
    return most[: (crawled + 1) // 2], least[: crawled // 2]


def _starved(rates: Floats, shown: Shown) -> Starved:
    def key(part: slice) -> Floats:
        starved = (rates[part] == 0) & (shown.change_rate[part] > 0) & (shown.importance[part] > 0)
        return np.where(starved, -shown.importance[part], math.inf)

    pages, unchanging, importance = 0, 0, 0.0
    for start in range(0, len(rates), _BLOCK):
        part = slice(start, start + _BLOCK)
        never = rates[part] == 0
        pages += int(np.count_nonzero(never))
        unchanging += int(np.count_nonzero(never & (shown.change_rate[part] == 0)))
        importance += float(shown.importance[part][never].sum())
    total = float(shown.importance.sum())
    rows = smallest_rows(key, len(rates), LISTED) if pages else []
    share = importance / total if total > 0 else 0.0
    return Starved(pages, unchanging, share, _page_facts(rates, shown, rows))


def _missed_floors(plan: Plan, shown: Shown) -> MissedFloors:
    short = plan.shortfall
    worst = smallest_rows(lambda part: -short.missing[part], len(short.missing), LISTED)
    hosts = sorted(short.hosts.items(), key=lambda item: -item[1])
    return MissedFloors(
        pages=len(short.pages),
        missing=float(short.missing.sum()),
        missing_budget=short.budget,
        hosts=len(hosts),
        worst_pages=_page_facts(plan.rates, shown, [int(short.pages[place]) for place in worst]),
        worst_missing=[float(short.missing[place]) for place in worst],
        worst_hosts={str(host): missing for host, missing in hosts[:LISTED_HOSTS]},
    )


def _page_facts(rates: Floats, shown: Shown, rows: Sequence[int]) -> list[PageFact]:
    if not rows:
        return []
    return [
        PageFact(
            page=label,
            importance=float(shown.importance[row]),
            change_rate=float(shown.change_rate[row]),
            crawl_rate=float(rates[row]),
            interval_days=1 / float(rates[row]) if rates[row] > 0 else math.inf,
        )
        for row, label in zip(rows, shown.labels(rows), strict=True)
    ]
