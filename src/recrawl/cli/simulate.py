"""`recrawl simulate`: which policy serves a synthetic world best, on the same budget and the same worlds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recrawl.cli.laboratory import (
    PAGE_MEASURES,
    by_rank,
    check_count,
    check_plot,
    check_seed,
    check_share,
    check_workers,
    draw_comparison,
    names_of,
    policies_document,
    print_comparison,
)
from recrawl.cli.terminal import print_json, progress
from recrawl.errors import InvalidInput
from recrawl.units import parse_budget

if TYPE_CHECKING:
    from recrawl.simulation.compare import Comparison

_USUAL = ("recrawl", "recrawl-harmonic", "recrawl-known", "round-robin", "nutch-adaptive", "stormcrawler-adaptive")
_MOST_PAGES = 10_000_000
_MOST_DAYS = 36_500.0


@click.command("simulate", short_help="Compare policies on a synthetic world.")
@click.option("--world", default="web", show_default=True, metavar="NAME", help="Law of the world; see --list.")
@click.option(
    "--policy", "policies", multiple=True, metavar="NAME", help="A policy; repeat it or use commas. See --list."
)
@click.option("--budget", default="20%", show_default=True, metavar="B", help="2000/day, 2/s, or 20% of the pages.")
@click.option("--pages", default=1_000, show_default=True, metavar="N", help="Pages of the world.")
@click.option("--days", default=60.0, show_default=True, metavar="D", help="Length of the world.")
@click.option(
    "--warm-up", default="30%", show_default=True, metavar="S", help="Share of the days that is not measured."
)
@click.option(
    "--repetitions", default=5, show_default=True, metavar="N", help="Worlds to try; intervals come from them."
)
@click.option("--seed", default=0, show_default=True, metavar="N", help="Another seed, other worlds.")
@click.option("--workers", type=int, metavar="N", help="Processes to use; by default one for each core.")
@click.option(
    "--plot", type=click.Path(path_type=Path), metavar="FILE", help="Draw the comparison; .png, .svg or .pdf."
)
@click.option("--list", "listing", is_flag=True, help="List worlds and policies and do nothing else.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line instead of a table.")
def command(**options: Any) -> None:
    """Compare policies on a synthetic world: same worlds, same budget, only what a crawler would see.

    Names that end in -known are told the true change rates; all others learn them. Intervals are 95 %.

    \b
    Examples:
      recrawl simulate --world web --budget 10%
      recrawl simulate --world ncis --policy recrawl,recrawl-deaf,round-robin --plot signals.png
    """
    run(SimulateRequest(**options))


@dataclass(frozen=True, slots=True)
class SimulateRequest:
    """The command line of `recrawl simulate`, as typed."""

    world: str
    policies: tuple[str, ...]
    budget: str
    pages: int
    days: float
    warm_up: str
    repetitions: int
    seed: int
    workers: int | None
    plot: Path | None
    listing: bool
    as_json: bool


def run(request: SimulateRequest) -> None:
    """Check the request, run the worlds, and tell."""
    if request.listing:
        _list(request.as_json)
        return
    check_plot(request.plot)
    comparison = _compare(request)
    best = by_rank(comparison, PAGE_MEASURES[0])[0]
    title = f"{request.world}: {request.pages:,} pages, {request.days:g} days, budget {request.budget}"
    if request.plot is not None:
        draw_comparison(request.plot, title, comparison, PAGE_MEASURES)
    if request.as_json:
        print_json(
            {
                "world": request.world,
                "pages": request.pages,
                "days": request.days,
                "budget_per_day": _budget(request),
                "repetitions": request.repetitions,
                "seed": request.seed,
                "best": best,
                "policies": policies_document(comparison, best),
                "plot": request.plot,
            }
        )
        return
    after = [f"wrote {request.plot}"] if request.plot is not None else []
    print_comparison(title, comparison, PAGE_MEASURES, *after)


def _compare(request: SimulateRequest) -> Comparison:
    from recrawl.simulation.compare import Trial, compare
    from recrawl.simulation.contenders import make_contender
    from recrawl.simulation.worlds.registry import build_world, summary_of

    summary_of(request.world)  # refuses a name that is none
    if not 0 < request.days <= _MOST_DAYS:
        raise InvalidInput(f"is {request.days:g}, but must be above 0 and at most {_MOST_DAYS:,.0f}", field="days")
    pages = check_count(request.pages, "pages", _MOST_PAGES)
    trial = Trial(
        make_world=partial(build_world, request.world, pages, request.days),
        competitors=[make_contender(name) for name in names_of(request.policies, _USUAL)],
        budget=_budget(request),
        start=check_share(request.warm_up, "warm-up") * request.days,
        repetitions=check_count(request.repetitions, "repetitions"),
        seed=check_seed(request.seed),
    )
    with progress("Simulating") as report:
        return compare(trial, check_workers(request.workers), report)


def _budget(request: SimulateRequest) -> float:
    budget = parse_budget(request.budget).per_day(request.pages)
    if not budget > 0:
        raise InvalidInput(f"is {request.budget!r}: nothing can be crawled; give more than 0", field="budget")
    return budget


def _list(as_json: bool) -> None:
    from recrawl.cli.terminal import show
    from recrawl.simulation.contenders import CONTENDERS
    from recrawl.simulation.worlds.registry import summary_of, world_names

    worlds = {name: summary_of(name) for name in world_names()}
    if as_json:
        print_json({"worlds": worlds, "policies": CONTENDERS})
        return
    from rich.table import Table

    for title, entries in (("Worlds", worlds), ("Policies", CONTENDERS)):
        table = Table(title=title, box=None, show_header=False, title_justify="left")
        for name, summary in entries.items():
            table.add_row(name, summary)
        show(table)
