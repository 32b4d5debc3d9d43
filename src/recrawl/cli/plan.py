"""`recrawl plan`: the best crawl rates for a file of pages, and what the budget buys.

The order of work is the promise: everything that can be refused is refused before the file is read,
everything is computed before anything is written, and each file is written whole or not at all.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
import numpy as np

from recrawl.cli.plan_options import PlanRequest, caps_of, columns_for, parse_host_caps, weights_of
from recrawl.cli.plan_table import SECONDS_PER_DAY, amount, count, number, percent, print_plan
from recrawl.cli.terminal import check_figure, print_json, progress
from recrawl.errors import InvalidInput
from recrawl.pages import OBJECTIVES
from recrawl.planning.solve import SOLVERS

if TYPE_CHECKING:
    from collections.abc import Hashable

    from matplotlib.figure import Figure

    from recrawl.cli.plan_facts import PlanFacts
    from recrawl.files.page_file import PageFile
    from recrawl.pages import Floats, Objective
    from recrawl.planning.plan import Plan
    from recrawl.units import Budget

_FILE = click.Path(path_type=Path)


@click.command("plan", short_help="Find the crawl rates that make the most of a budget.")
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
def command(**options: Any) -> None:
    """Find the crawl rates that make the most of a budget.

    PAGES is a CSV, JSONL or Parquet file with the columns importance and change_rate (per day). It may have
    host, cost, min_rate, max_rate, recall with precision or false_signal_rate; other columns are kept.

    \b
    Examples:
      recrawl plan pages.csv --budget 2000/day --out rates.csv --plot plan.png
      recrawl plan pages.parquet --target-freshness 0.95 --json
    """
    run(PlanRequest(**options))


@dataclass(frozen=True, slots=True)
class _Work:
    """The pages of a file and how they are to be planned."""

    file: PageFile
    columns: dict[str, Any]
    rows: int
    objective: Objective | None
    solver: str
    host_caps: dict[Hashable, float] | None

    def plan(self, budget: float) -> Plan:
        """Plan a budget; trouble with a column is told in terms of the file."""
        import recrawl

        try:
            return recrawl.plan(
                self.columns,
                budget=budget,
                objective=self.objective,
                solver=cast(Any, self.solver),
                host_caps=self.host_caps,
            )
        except InvalidInput as error:
            if error.field is None or error.field in self.file.columns:
                raise self.file.explain(error) from None
            raise


def run(request: PlanRequest) -> None:
    """Check, read, plan, write, tell."""
    started = time.monotonic()
    budget, target = request.parsed_budget(), request.parsed_target()
    named_caps = parse_host_caps(request.host_cap)
    if request.plot is not None:
        check_figure(request.plot)
    work = _read(request, named_caps)
    with progress(f"planning {count(work.rows, 'page')}"):
        plan, needed = _plan(work, budget, target)
        facts = _facts(work, plan)
    _write(request, work, plan)
    answer = None if target is None or needed is None else Answer(target, needed)
    if request.as_json:
        print_json(_as_json(request, facts, answer) | {"seconds": time.monotonic() - started})
    else:
        print_plan(facts, _title(request, facts), None if answer is None else answer.words(facts))
        for path in (request.out, request.plot):
            if path is not None:
                click.echo(f"wrote {path}", err=True)


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


def _read(request: PlanRequest, named_caps: dict[str, float]) -> _Work:
    from recrawl.files.page_file import open_pages

    file = open_pages(request.pages)
    if request.out is not None:
        file.check_output(request.out)
        if request.host_caps is not None and request.out.exists() and request.out.samefile(request.host_caps):
            raise InvalidInput("is the file of host caps, which would be lost: choose another name", field="out")
    with progress(f"reading {request.pages.name}") as report:
        columns: dict[str, Any] = dict(file.read(columns_for(request.column_set(), file.columns), report))
    listed_caps = {} if request.host_caps is None else _read_caps(request.host_caps)
    caps = caps_of(columns.get("host"), named_caps, listed_caps)
    assert file.rows is not None
    return _Work(file, columns, file.rows, cast("Objective | None", request.objective), request.solver, caps)


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
    from recrawl.cli.plan_facts import Shown, compare_budgets, gather
    from recrawl.planning.curve import at_budget

    importance, change_rate = weights_of(work.columns, plan.objective)
    more = compare_budgets(plan, at_budget(plan, 1.1 * plan.budget)) if plan.budget > 0 else None
    return gather(plan, Shown(importance, change_rate, work.file.labels), more)


def _write(request: PlanRequest, work: _Work, plan: Plan) -> None:
    """Write what was asked for; the picture is drawn before the first file is written."""
    figure = None if request.plot is None else _draw(work, plan)
    if request.out is not None:
        extra = {"crawl_rate": plan.rates, "interval": _intervals(plan.rates)}
        with progress(f"writing {request.out.name}") as report:
            work.file.copy_with(request.out, extra, report)
    if figure is not None and request.plot is not None:
        from recrawl.plots.save import save_figure

        save_figure(figure, request.plot)


def _intervals(rates: Floats) -> Floats:
    """Days between crawls; missing (an empty cell, a null) for pages that are never crawled."""
    with np.errstate(divide="ignore"):
        return np.ma.masked_array(1 / rates, mask=rates == 0)


def _draw(work: _Work, plan: Plan) -> Figure:
    from recrawl.cli.plan_picture import draw_plan

    with progress("drawing the budget curve") as report:
        return draw_plan(plan, weights_of(work.columns, plan.objective), report)


def _as_json(request: PlanRequest, facts: PlanFacts, answer: Answer | None) -> dict[str, Any]:
    return {
        "file": request.pages,
        **facts.as_json(),
        "target": None if answer is None else answer.as_json(),
        "out": request.out,
        "plot": request.plot,
    }


def _title(request: PlanRequest, facts: PlanFacts) -> str:
    hosts = "" if facts.hosts is None else f" on {count(facts.hosts, 'host')}"
    pages = count(facts.pages, "page")
    return f"{request.pages}: {pages}{hosts}, objective {facts.objective}, solver {facts.solver}"
