"""The report of a plan: what the budget buys, who gets it, who goes without; as facts, as text, and as a figure.

One set of facts serves the text for people and the JSON line for machines, so both say the same. Gathering facts is
O(pages), in blocks, so that twenty million pages need little memory beside the plan's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from recrawl.cli.terminal import clean, show
from recrawl.pages import LARGEST, SMALLEST, Floats
from recrawl.units import format_duration

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType
    from rich.table import Table

    from recrawl.cli.terminal import Report
    from recrawl.planning.plan import Plan

LISTED = 5
"""Pages in each short list of a report."""
LISTED_HOSTS = 10
_BLOCK = 1 << 20
SECONDS_PER_DAY = 86400
# Each point is a plan of its own; above this many pages fewer points keep the wait short.
_MANY_PAGES = 2_000_000
_POINTS, _POINTS_OF_MANY, _FEWEST_POINTS = 25, 9, 5


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


def print_plan(facts: PlanFacts, title: str, answer: str | None = None) -> None:
    """Print the report: the answer to a question that was asked, the totals, the short lists."""
    from rich.table import Table
    from rich.text import Text

    totals = Table.grid(padding=(0, 2))
    totals.add_column(no_wrap=True)
    totals.add_column()
    for name, value in [*_totals(facts), *_limits(facts)]:
        totals.add_row(Text(f"  {name}", style="cyan"), Text(value))
    parts: list[RenderableType] = [Text(clean(title), style="bold")]
    if answer:
        parts.append(Text(answer, style="bold green"))
    parts += [Text(), totals]
    if lists := _lists(facts):
        parts += [Text(), _page_table(lists, facts.objective)]
    show(*parts)


def number(value: float) -> str:
    """Write a number for people.

    >>> number(1234567.8), number(0.123456), number(math.inf)
    ('1,234,568', '0.123', 'infinite')
    """
    if math.isinf(value):
        return "infinite"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.3g}"


def count(things: int, name: str) -> str:
    """Write how many there are.

    >>> count(1, "page"), count(2000, "host")
    ('1 page', '2,000 hosts')
    """
    return f"{things:,} {name}{'' if things == 1 else 's'}"


def percent(share: float) -> str:
    """Write a share as percent, with two digits of meaning if it is small.

    >>> percent(0.8042), percent(0.00042), percent(0.0)
    ('80.4 %', '0.042 %', '0 %')
    """
    if share == 0 or math.isnan(share):
        return "0 %" if share == 0 else "unknown"
    return f"{100 * share:.1f} %" if abs(share) >= 0.001 else f"{100 * share:.2g} %"


def amount(budget: float, facts: PlanFacts) -> str:
    """Write so much budget, in crawls or in units of cost."""
    one = "crawl" if facts.budget_unit == "crawls" else "unit"
    cost = "" if facts.budget_unit == "crawls" else " of cost"
    return f"{number(budget)} {one}{'' if budget == 1 else 's'}{cost}"


def _totals(facts: PlanFacts) -> list[tuple[str, str]]:
    lines = [("budget", _budget(facts)), ("price", _price(facts))]
    if facts.objective != "news":
        lines.append(("freshness", f"{percent(facts.freshness)} of the importance is fresh at any moment"))
    if not math.isnan(facts.gain):
        lines.append(("gain", f"{number(facts.gain)} a day, {percent(facts.gain_share)} of all there is"))
    if facts.objective != "news":
        harmonic, binary = number(facts.harmonic), number(facts.binary)
        lines.append(("staleness", f"{harmonic} harmonic, {binary} binary (per page, weighted by importance)"))
    lines.append(("never crawled", _never_crawled(facts)))
    if facts.more_budget is not None:
        lines.append(("+10 % budget", _more_budget(facts)))
    return lines


def _budget(facts: PlanFacts) -> str:
    budget = f"{amount(facts.budget_per_day, facts)} a day"
    if facts.budget_per_day >= SECONDS_PER_DAY / 10:
        budget += f" ({number(facts.budget_per_day / SECONDS_PER_DAY)} a second)"
    if facts.surplus == 0:
        return f"{budget}, all used"
    return f"{budget}, {number(facts.used)} used, {number(facts.surplus)} left over: more cannot be used"


def _price(facts: PlanFacts) -> str:
    """The price in plain words; what it buys depends on the objective."""
    price = facts.price
    if math.isnan(price):
        return "none: this solver shares the budget out by a rule and weighs no crawl against another"
    if price == 0:
        return "0: more budget would buy nothing"
    if math.isinf(price):
        return "infinite: nothing of the budget is left to spend freely"
    buys = {
        "freshness": f"keep {number(price)} more importance fresh",
        "harmonic": f"cut the harmonic staleness by {number(price)}",
        "captures": f"capture {number(price)} more a day",
        "news": f"bring {number(price)} more hits a day",
    }
    whole = {"freshness": facts.total_importance, "harmonic": facts.harmonic * facts.pages}.get(
        facts.objective, math.nan
    )
    share = price / whole if whole > 0 else 0.0
    of_all = f" ({percent(share)})" if share >= 0.0001 else ""
    one = "crawl" if facts.budget_unit == "crawls" else "unit of cost"
    if facts.budget_per_day < 10:  # one more would be a big step, and the price holds for small ones
        return f"{number(price)}: a little more budget would {buys[facts.objective]} for each {one} a day"
    return f"{number(price)}: one more {one} a day would {buys[facts.objective]}{of_all}"


def _never_crawled(facts: PlanFacts) -> str:
    never = facts.never_crawled
    if never.pages == 0:
        return "no page"
    share, importance = percent(never.pages / facts.pages), percent(never.importance_share)
    unchanging = f"; {never.unchanging:,} of them never change" if never.unchanging else ""
    return f"{count(never.pages, 'page')} ({share}) with {importance} of the importance{unchanging}"


def _more_budget(facts: PlanFacts) -> str:
    more = facts.more_budget
    assert more is not None
    parts = []
    if facts.gain > 0:
        parts.append(f"{100 * (more.gain / facts.gain - 1):+.2g} % gain")
    if facts.objective != "news":
        parts.append(f"{more.freshness_points:+.2g} points of freshness")
    if facts.objective != "news" and 0 < facts.harmonic < math.inf:
        parts.append(f"{100 * (more.harmonic / facts.harmonic - 1):+.2g} % harmonic staleness")
    return ", ".join(parts) or "no measurable difference"


def _limits(facts: PlanFacts) -> list[tuple[str, str]]:
    """Lines on hosts and floors, where there is anything to say."""
    lines = []
    if facts.hosts_at_cap:
        named = ", ".join(
            f"{clean(full.host)} ({number(full.used)}/day, price {number(full.price)})"
            for full in facts.dearest_hosts[:3]
        )
        more = f" and {facts.hosts_at_cap - 3:,} more" if facts.hosts_at_cap > 3 else ""
        lines.append(("hosts at their cap", f"{facts.hosts_at_cap:,}: {named}{more}"))
    short = facts.shortfall
    if short.missing_budget > 0:
        lines.append(("budget too small", f"the floors need {amount(short.missing_budget, facts)} a day more"))
    for host, missing in list(short.worst_hosts.items())[:3]:
        lines.append(("cap too small", f"{clean(host)}: its floors need {number(missing)} crawls a day more"))
    if short.pages:
        text = f"{count(short.pages, 'page')} below their min_rate, {number(short.missing)} crawls a day short"
        lines.append(("floors missed", text))
    return lines


def _lists(facts: PlanFacts) -> list[tuple[str, Sequence[PageFact]]]:
    lists = [
        ("most crawled", facts.most_crawled),
        ("least crawled", facts.least_crawled),
        ("most important never crawled", facts.never_crawled.most_important),
        ("furthest below their floor", facts.shortfall.worst_pages),
    ]
    return [(heading, pages) for heading, pages in lists if pages]


def _page_table(lists: Sequence[tuple[str, Sequence[PageFact]]], objective: str) -> Table:
    """The short lists under one another, in the same columns."""
    from rich.table import Table
    from rich.text import Text

    news = objective == "news"
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="cyan")
    table.add_column(Text(f"  {lists[0][0]}"), no_wrap=True, overflow="ellipsis", max_width=56)
    for name in (
        "profit" if news else "importance",
        "new page every" if news else "changes every",
        "crawled every",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    for place, (heading, pages) in enumerate(lists):
        if place:
            table.add_row()
            table.add_row(Text(f"  {heading}", style="cyan"))
        for fact in pages:
            table.add_row(*(Text(cell) for cell in _page_cells(fact)))
    return table


def _page_cells(fact: PageFact) -> tuple[str, str, str, str]:
    changes = format_duration(1 / fact.change_rate if fact.change_rate > 0 else math.inf)
    return f"  {clean(fact.page)}", number(fact.importance), changes, format_duration(fact.interval_days)


def draw_plan(
    plan: Plan, weights: tuple[Floats, Floats], report: Report | None = None, points: int | None = None
) -> Figure:
    """Draw a plan with its budget–freshness curve; `weights` are importance and change rate of the pages.

    A plan for news has no freshness and so no curve; neither has one for which there is time for few `points`.
    """
    from recrawl.planning.plan import trace
    from recrawl.plots.plan import BudgetCurve, PageRates, plan_figure

    importance, change_rate = weights
    rates = PageRates(change_rate, plan.rates, importance)
    if points is None:
        points = _POINTS if len(plan.rates) <= _MANY_PAGES else _POINTS_OF_MANY
    if plan.objective == "news" or not len(plan.rates) or points < _FEWEST_POINTS:
        return plan_figure(rates)
    curve = trace(plan, curve_budgets(plan, points), report)
    return plan_figure(rates, BudgetCurve(curve.budgets, curve.freshness, plan.budget, plan.freshness))


def curve_budgets(plan: Plan, points: int) -> Floats:
    """Budgets from a thirtieth to thirty times the plan's own; around one crawl per page if it is 0."""
    middle = plan.budget if plan.budget > 0 else float(max(len(plan.rates), 1))
    return np.geomspace(max(middle / 30, SMALLEST), min(middle * 30, LARGEST), points).clip(SMALLEST, LARGEST)
