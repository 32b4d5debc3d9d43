"""`recrawl plan`: the best crawl rates for a file of pages, and what the budget buys.

The order of work is the promise: everything that can be refused is refused before the file is read,
everything is computed before anything is written, and each file is written whole or not at all.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click
import numpy as np

from recrawl.cli.options import parse_share
from recrawl.cli.plan_report import SECONDS_PER_DAY, amount, count, number, percent, print_plan
from recrawl.cli.terminal import check_figure, print_json, progress
from recrawl.errors import InvalidInput
from recrawl.pages import OBJECTIVES
from recrawl.planning.solve import SOLVERS
from recrawl.units import Budget, parse_budget

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from recrawl.cli.plan_report import PlanFacts
    from recrawl.files.page_file import PageFile
    from recrawl.pages import Floats, Hosts, Objective
    from recrawl.planning.plan import Plan

_FILE = click.Path(path_type=Path)
_EVERY_OBJECTIVE = ("host", "cost", "min_rate", "max_rate")
_WEIGHTS = ("importance", "change_rate")
_COLUMNS = {
    "freshness": (*_WEIGHTS, *_EVERY_OBJECTIVE, "recall", "precision", "false_signal_rate"),
    "harmonic": (*_WEIGHTS, *_EVERY_OBJECTIVE, "recall", "precision", "false_signal_rate"),
    "captures": (*_WEIGHTS, *_EVERY_OBJECTIVE, "decay", "life", "window"),
    "news": ("profit", "new_page_rate", "decay", *_EVERY_OBJECTIVE),
}


@click.command("plan")
@click.argument("pages", type=_FILE)
@click.option("--budget", metavar="B", help="Crawls to spend: 2000/day, 2/s, or 20% of the pages per day.")
@click.option("--objective", type=click.Choice(OBJECTIVES), help="What to make the most of; default: the solver's own.")
@click.option("--solver", type=click.Choice(SOLVERS), default="even", show_default=True, help="How rates are found.")
@click.option(
    "--host-cap",
    multiple=True,
    metavar="HOST=RATE",
    help="Most crawls on a host, such as x.org=500/day; repeatable.",
)
@click.option("--host-caps", type=_FILE, metavar="FILE", help="A file of caps: columns host and max_rate (per day).")
@click.option("--target-freshness", metavar="F", help="Ask which budget gives this freshness, such as 0.95.")
@click.option("--out", type=_FILE, metavar="FILE", help="Write the pages with crawl_rate and interval (days).")
@click.option("--plot", type=_FILE, metavar="FILE", help="Draw the plan; .png, .svg or .pdf.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line instead of the table.")
def plan(
    pages: Path,
    budget: str | None,
    objective: Objective | None,
    solver: str,
    host_cap: tuple[str, ...],
    host_caps: Path | None,
    target_freshness: str | None,
    out: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Find the crawl rates that make the most of a budget.

    PAGES is a CSV, JSONL or Parquet file with the columns importance and change_rate (per day). It may have
    host, cost, min_rate, max_rate, recall with precision or false_signal_rate; other columns are kept.

    \b
    Examples:
      recrawl plan pages.csv --budget 2000/day --out rates.csv --plot plan.png
      recrawl plan pages.parquet --target-freshness 0.95 --json
    """
    started = time.monotonic()
    # Solvers with an objective of their own read the same columns as the others.
    column_set = objective or ("news" if solver.startswith("echo") else "harmonic")
    wanted, target = _budget_or_target(budget, target_freshness, column_set)
    named_caps = parse_host_caps(host_cap)
    if plot is not None:
        check_figure(plot)
    file = _open(pages, out, host_caps)
    work = _read(file, column_set, Ways(objective, solver), named_caps, host_caps)
    with progress(f"planning {count(work.rows, 'page')}"):
        planned, needed = _plan(work, wanted, target)
        facts = _facts(work, planned)
    _write(work, planned, out, plot)
    answer = None if target is None or needed is None else Answer(target, needed)
    if as_json:
        said = {"target": None if answer is None else answer.as_json(), "out": out, "plot": plot}
        print_json({"file": pages, **facts.as_json(), **said, "seconds": time.monotonic() - started})
    else:
        print_plan(facts, _title(pages, facts), None if answer is None else answer.words(facts))
        for path in (out, plot):
            if path is not None:
                click.echo(f"wrote {path}", err=True)


class Ways(NamedTuple):
    """What a plan makes the most of, and how its rates are found."""

    objective: Objective | None
    solver: str


@dataclass(frozen=True, slots=True)
class _Work:
    """The pages of a file and how they are to be planned."""

    file: PageFile
    columns: dict[str, Any]
    rows: int
    ways: Ways
    host_caps: dict[Hashable, float] | None

    def plan(self, budget: float) -> Plan:
        """Plan a budget; trouble with a column is told in terms of the file."""
        import recrawl

        try:
            return recrawl.plan(
                self.columns,
                budget=budget,
                objective=self.ways.objective,
                solver=cast(Any, self.ways.solver),
                host_caps=self.host_caps,
            )
        except InvalidInput as error:
            if error.field is None or error.field in self.file.columns:
                raise self.file.explain(error) from None
            raise


@dataclass(frozen=True, slots=True)
class Answer:
    """The budget that reaches a freshness."""

    freshness: float
    budget_per_day: float

    def words(self, facts: PlanFacts) -> str:
        """The answer as people read it."""
        needed, per_second = amount(self.budget_per_day, facts), number(self.budget_per_day / SECONDS_PER_DAY)
        return f"{percent(self.freshness)} freshness needs {needed} a day, {per_second} a second"

    def as_json(self) -> dict[str, float]:
        """The answer for machines."""
        return {
            "freshness": self.freshness,
            "budget_per_day": self.budget_per_day,
            "budget_per_second": self.budget_per_day / SECONDS_PER_DAY,
        }


def _budget_or_target(budget: str | None, target: str | None, columns: str) -> tuple[Budget | None, float | None]:
    """Return the budget, or None if only a freshness is asked for, and that freshness, in (0, 1)."""
    if budget is None and target is None:
        raise InvalidInput("a plan needs --budget, such as 2000/day, 2/s or 20%, or --target-freshness, such as 0.95")
    parsed = None if budget is None else parse_budget(budget)
    if target is None:
        return parsed, None
    if columns == "news":
        raise InvalidInput("has no meaning for news, which are found and not kept fresh", field="target-freshness")
    return parsed, parse_share(target, "target-freshness", zero=False)


def _open(pages: Path, out: Path | None, host_caps: Path | None) -> PageFile:
    from recrawl.files.page_file import open_pages

    file = open_pages(pages)
    if out is not None:
        file.check_output(out)
        if host_caps is not None and out.exists() and out.samefile(host_caps):
            raise InvalidInput("is the file of host caps, which would be lost: choose another name", field="out")
    return file


def _read(file: PageFile, column_set: str, ways: Ways, named_caps: dict[str, float], host_caps: Path | None) -> _Work:
    with progress(f"reading {file.path.name}") as report:
        columns: dict[str, Any] = dict(file.read(columns_for(column_set, file.columns), report))
    listed_caps = {} if host_caps is None else _read_caps(host_caps)
    caps = caps_of(columns.get("host"), named_caps, listed_caps)
    assert file.rows is not None
    return _Work(file, columns, file.rows, ways, caps)


def _read_caps(path: Path) -> dict[str, float]:
    """Read a file of host caps: one row per host, `max_rate` in crawls per day."""
    from recrawl.files.page_file import open_pages
    from recrawl.pages import check_number

    file = open_pages(path)
    columns: dict[str, Any] = dict(file.read(["host", "max_rate"]))
    for name in ("host", "max_rate"):
        if name not in columns:
            raise file.explain(InvalidInput(f"there is no column {name!r}, which a file of host caps needs"))
    hosts = columns["host"]
    caps: dict[str, float] = {}
    for row, (code, cap) in enumerate(zip(hosts.codes.tolist(), columns["max_rate"].tolist(), strict=True)):
        host = str(hosts.names[code])
        if host in caps:
            raise file.explain(InvalidInput(f"names {host!r} twice: give each host one cap", field="host", row=row))
        try:
            caps[host] = check_number(cap, "max_rate")
        except InvalidInput as error:
            raise file.explain(InvalidInput(error.problem, field="max_rate", row=row)) from None
    return caps


def _plan(work: _Work, budget: Budget | None, target: float | None) -> tuple[Plan, float | None]:
    """The plan, and the budget that the target needs; without a budget the plan is for that one."""
    if budget is not None:
        plan = work.plan(budget.per_day(work.rows))
        return plan, None if target is None else plan.budget_for(freshness=target)
    assert target is not None
    needed = work.plan(float(max(work.rows, 1))).budget_for(freshness=target)
    return work.plan(needed), needed


def _facts(work: _Work, plan: Plan) -> PlanFacts:
    from recrawl.cli.plan_report import Shown, compare_budgets, gather
    from recrawl.planning.plan import at_budget

    importance, change_rate = weights_of(work.columns, plan.objective)
    more = compare_budgets(plan, at_budget(plan, 1.1 * plan.budget)) if plan.budget > 0 else None
    return gather(plan, Shown(importance, change_rate, work.file.labels), more)


def _write(work: _Work, plan: Plan, out: Path | None, plot: Path | None) -> None:
    """Write what was asked for; the figure is drawn before the first file is written."""
    figure = None if plot is None else _draw(work, plan)
    if out is not None:
        extra = {"crawl_rate": plan.rates, "interval": _intervals(plan.rates)}
        with progress(f"writing {out.name}") as report:
            work.file.copy_with(out, extra, report)
    if figure is not None and plot is not None:
        from recrawl.plots.save import save_figure

        save_figure(figure, plot)


def _intervals(rates: Floats) -> Floats:
    """Days between crawls; missing (an empty cell, a null) for pages that are never crawled."""
    with np.errstate(divide="ignore"):
        return np.ma.masked_array(1 / rates, mask=rates == 0)


def _draw(work: _Work, plan: Plan) -> Figure:
    from recrawl.cli.plan_report import draw_plan

    with progress("drawing the budget curve") as report:
        return draw_plan(plan, weights_of(work.columns, plan.objective), report)


def _title(pages: Path, facts: PlanFacts) -> str:
    hosts = "" if facts.hosts is None else f" on {count(facts.hosts, 'host')}"
    return f"{pages}: {count(facts.pages, 'page')}{hosts}, objective {facts.objective}, solver {facts.solver}"


def parse_host_caps(texts: Iterable[str]) -> dict[str, float]:
    """Read `example.org=500/day` as crawls per day by host.

    >>> parse_host_caps(["example.org=1/min"])
    {'example.org': 1440.0}
    """
    caps: dict[str, float] = {}
    for text in texts:
        host, equals, rate = text.rpartition("=")
        if not equals or not host:
            raise InvalidInput(f"is {text!r}: write HOST=RATE, such as example.org=500/day", field="host-cap")
        if host in caps:
            raise InvalidInput(f"names {host!r} twice: give each host one cap", field="host-cap")
        caps[host] = _rate(rate, text)
    return caps


def _rate(rate: str, text: str) -> float:
    try:
        crawls_per_day = parse_budget(rate).crawls_per_day
    except InvalidInput:
        crawls_per_day = None
    if crawls_per_day is None:
        raise InvalidInput(
            f"is {text!r}: write the rate as a number and a unit, such as example.org=500/day",
            field="host-cap",
        )
    return crawls_per_day


def caps_of(
    known: Hosts | None, named: Mapping[str, float], listed: Mapping[str, float]
) -> dict[Hashable, float] | None:
    """Caps by the hosts that the pages are on.

    A host `named` on the command line must have pages; a `listed` one, from a file of caps, need not. The
    command line wins over the file.
    """
    if not named and not listed:
        return None
    if known is None:
        raise InvalidInput("there is no column 'host', which host caps need")
    names = {str(name): name for name in known.names}
    for host in named:
        if host not in names:
            raise InvalidInput(f"names {host!r}, but no page is on that host", field="host-cap")
    return {names[host]: cap for host, cap in {**listed, **named}.items() if host in names}


def columns_for(objective: str, present: Iterable[str]) -> list[str]:
    """Columns of a file that a plan for this objective reads; columns it needs are named even if absent."""
    there = set(present)
    needed = ("profit", "new_page_rate", "decay") if objective == "news" else _WEIGHTS
    return [name for name in _COLUMNS[objective] if name in there or name in needed]


def weights_of(columns: Mapping[str, Any], objective: str) -> tuple[Any, Any]:
    """The two columns a report shows: what a page is worth, how often it changes (news: has new pages)."""
    if objective == "news":
        return columns["profit"], columns["new_page_rate"]
    return columns["importance"], columns["change_rate"]
