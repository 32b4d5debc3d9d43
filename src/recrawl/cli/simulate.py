"""`recrawl simulate`: which policy serves a synthetic world best, on the same budget and the same worlds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recrawl.cli.laboratory import (
    by_rank,
    check_count,
    check_crawls,
    check_plot,
    check_seed,
    check_share,
    check_workers,
    draw_comparison,
    in_words,
    names_of,
    policies_document,
    print_comparison,
)
from recrawl.cli.terminal import print_json, progress
from recrawl.errors import InvalidInput

if TYPE_CHECKING:
    from recrawl.cli.simulate_kinds import Kind, Size
    from recrawl.simulation.compare import Comparison

_MOST_DAYS = 36_500.0


@click.command("simulate", short_help="Compare policies on a synthetic world.")
@click.option("--world", default="web", show_default=True, metavar="NAME", help="Law of the world; see --list.")
@click.option(
    "--policy", "policies", multiple=True, metavar="NAME", help="A policy; repeat it or use commas. See --list."
)
@click.option("--budget", metavar="B", help="2000/day, 2/s, or 20% of the pages; usually that, by the world.")
@click.option("--pages", type=int, metavar="N", help="Pages of the world, or sources of news; usually 1,000.")
@click.option("--days", type=float, metavar="D", help="Length of the world; usually 60.")
@click.option("--warm-up", metavar="S", help="Share of the days that is not measured; usually 30%.")
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

    Names that end in -known are told the true change rates; all others learn them. Intervals are 95 %. The worlds
    news and auctions have policies, measures and usual sizes of their own.

    \b
    Examples:
      recrawl simulate --world web --budget 10%
      recrawl simulate --world ncis --policy recrawl,recrawl-deaf,round-robin --plot signals.png
      recrawl simulate --world news --budget 500% --plot news.png
    """
    run(SimulateRequest(**options))


@dataclass(frozen=True, slots=True)
class SimulateRequest:
    """The command line of `recrawl simulate`, as typed."""

    world: str
    policies: tuple[str, ...]
    budget: str | None
    pages: int | None
    days: float | None
    warm_up: str | None
    repetitions: int
    seed: int
    workers: int | None
    plot: Path | None
    listing: bool
    as_json: bool


def run(request: SimulateRequest) -> None:
    """Check the request, run the worlds, and tell."""
    from recrawl.cli.simulate_kinds import kind_of

    if request.listing:
        _list(request.as_json)
        return
    check_plot(request.plot)
    kind = kind_of(request.world)
    size = _size(request, kind)
    comparison = _compare(request, kind, size)
    best = by_rank(comparison, kind.columns[0])[0]
    title = f"{size.world}: {in_words(size.pages, size.days, kind.called)}, budget {size.budget}"
    if request.plot is not None:
        draw_comparison(request.plot, title, comparison, kind.columns)
    if request.as_json:
        print_json(
            {
                "world": size.world,
                "pages": size.pages,
                "days": size.days,
                "budget_per_day": size.crawls_per_day,
                "repetitions": request.repetitions,
                "seed": request.seed,
                "best": best,
                "policies": policies_document(comparison, best),
                "plot": request.plot,
            }
        )
        return
    after = [f"wrote {request.plot}"] if request.plot is not None else []
    print_comparison(title, comparison, kind.columns, *after)


def _size(request: SimulateRequest, kind: Kind) -> Size:
    """What was asked for; what was not is as usual."""
    from recrawl.cli.simulate_kinds import Size

    days = kind.days if request.days is None else request.days
    if not 0 < days <= _MOST_DAYS:
        raise InvalidInput(f"is {days:g}, but must be above 0 and at most {_MOST_DAYS:,.0f}", field="days")
    return Size(
        request.world,
        kind.pages if request.pages is None else request.pages,
        days,
        request.budget or kind.budget,
        check_share(request.warm_up or kind.warm_up, "warm-up"),
    )


def _compare(request: SimulateRequest, kind: Kind, size: Size) -> Comparison:
    from recrawl.cli.simulate_kinds import Repetitions
    from recrawl.simulation.compare import compare

    names = names_of(request.policies, kind.usual_policies)
    number = check_count(request.repetitions, "repetitions")
    trial = kind.try_out(size, Repetitions(names, number, check_seed(request.seed)))
    check_crawls(size.crawls_per_day, size.days)
    with progress("Simulating") as report:
        return compare(trial, check_workers(request.workers), report)


def _list(as_json: bool) -> None:
    from recrawl.cli.simulate_kinds import policies, worlds
    from recrawl.cli.terminal import show

    by_kind = policies()
    if as_json:
        own = {f"{kind}_policies": entries for kind, entries in by_kind.items() if kind != "pages"}
        print_json({"worlds": worlds(), "policies": by_kind["pages"], **own})
        return
    from rich.table import Table

    titles = {"pages": "Policies", "news": "Policies of the world news", "auctions": "Policies of the world auctions"}
    for title, entries in (("Worlds", worlds()), *((titles[kind], entries) for kind, entries in by_kind.items())):
        table = Table(title=title, box=None, show_header=False, title_justify="left")
        for name, summary in entries.items():
            table.add_row(name, summary)
        show(table)
