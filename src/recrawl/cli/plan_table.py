"""The report of a plan as people read it: facts in, text on the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from recrawl.cli.terminal import clean, show
from recrawl.units import format_duration

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from recrawl.cli.plan_facts import PageFact, PlanFacts

SECONDS_PER_DAY = 86400


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
    lines.append(("never crawled", _starved(facts)))
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


def _starved(facts: PlanFacts) -> str:
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
