"""`recrawl simulate`: which policy serves a synthetic world best, on the same budget and the same worlds.

Worlds of pages share policies and measures; `news` and `auctions` have their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from recrawl.cli.comparison import (
    PAGE_MEASURES,
    MeasureColumn,
    by_rank,
    check_count,
    check_crawls,
    check_plot,
    check_seed,
    check_workers,
    draw_comparison,
    in_words,
    names_of,
    policies_document,
    print_comparison,
)
from recrawl.cli.options import parse_share
from recrawl.cli.terminal import print_json, progress, show
from recrawl.errors import InvalidInput
from recrawl.units import parse_budget

if TYPE_CHECKING:
    from recrawl.lab.simulation.compare import Repeated

_MOST_DAYS = 36_500.0
_MOST_PAGES = 10_000_000
_SOURCES_A_SITE = 20

NEWS_MEASURES = (
    MeasureColumn("hits_captured", "hits, %", percent=True, larger_is_better=True),
    MeasureColumn("hits_per_day", "hits/day", whole=True),
    MeasureColumn("delay", "delay, d", larger_is_better=False),
    MeasureColumn("pages_crawled", "pages, %", percent=True),
    MeasureColumn("on_sources", "sources, %", percent=True),
    MeasureColumn("crawls", "crawls", whole=True),
)
"""What is shown of crawlers of news."""

AUCTION_MEASURES = (
    MeasureColumn("completeness", "seen, %", percent=True, larger_is_better=True),
    MeasureColumn("timely", "at once, %", percent=True, larger_is_better=True),
    MeasureColumn("delay", "delay, min", larger_is_better=False),
    MeasureColumn("utility_0.9", "utility 0.9"),
    MeasureColumn("changes", "bids", whole=True),
)
"""What is shown of crawlers of auctions."""


class Size(NamedTuple):
    """How large a world is and what is spent on it, as asked for or as is usual."""

    world: str
    pages: int
    days: float
    budget: str
    warm_up: float  # share of the days

    @property
    def crawls_per_day(self) -> float:
        """The budget."""
        budget = parse_budget(self.budget).per_day(self.pages)
        if not budget > 0:
            raise InvalidInput(f"is {self.budget!r}: nothing can be crawled; give more than 0", field="budget")
        return budget


class Repetitions(NamedTuple):
    """Who is tried, how often, and from which seed on."""

    names: tuple[str, ...]
    number: int
    seed: int


class WorldKind(NamedTuple):
    """A kind of world: who competes if nobody is named, what is usual, what is shown, and how it is tried."""

    usual_policies: Sequence[str]
    pages: int
    days: float
    budget: str
    warm_up: str
    columns: Sequence[MeasureColumn]
    try_out: Callable[[Size, Repetitions], Repeated]
    called: str = "pages"


def kind_of(world: str) -> WorldKind:
    """The kind of a world by its name.

    Raises:
        InvalidInput: if there is none of that name, naming the nearest.
    """
    from recrawl.lab.worlds.registry import world_names

    if world in OWN_KINDS:
        return OWN_KINDS[world]
    names = (*world_names(), *OWN_KINDS)
    if world in names:
        return _PAGES
    near = get_close_matches(world.lower(), names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(names)}"
    raise InvalidInput(f"is {world!r}, which is no world that recrawl knows: {hint}", field="world")


def worlds() -> dict[str, str]:
    """Every world, with a line that says what it is."""
    from recrawl.lab.worlds.registry import summary_of, world_names

    return {**{name: summary_of(name) for name in world_names()}, **_OWN_SUMMARIES}


def policies_by_kind() -> dict[str, Mapping[str, str]]:
    """Policies by the kind of world they are for, each with a line."""
    from recrawl.lab.simulation.scenarios import CONTENDERS, MONITORING_SUMMARIES, NEWS_SUMMARIES

    return {"pages": CONTENDERS, "news": NEWS_SUMMARIES, "auctions": MONITORING_SUMMARIES}


def _try_pages(size: Size, wanted: Repetitions) -> Repeated:
    from recrawl.lab.simulation.compare import Trial
    from recrawl.lab.simulation.scenarios import make_contender
    from recrawl.lab.worlds.registry import build_world

    return Trial(
        make_world=partial(build_world, size.world, check_count(size.pages, "pages", _MOST_PAGES), size.days),
        competitors=[make_contender(name) for name in wanted.names],
        budget=size.crawls_per_day,
        start=size.warm_up * size.days,
        repetitions=wanted.number,
        seed=wanted.seed,
    )


def _try_news(size: Size, wanted: Repetitions) -> Repeated:
    from recrawl.lab.simulation.scenarios import NewsTrial

    if check_count(size.pages, "pages", _MOST_PAGES) % _SOURCES_A_SITE:
        problem = f"is {size.pages:,}, but sites have {_SOURCES_A_SITE} sources each: give a multiple of that"
        raise InvalidInput(problem, field="pages")
    return NewsTrial(
        names=wanted.names,
        sites=size.pages // _SOURCES_A_SITE,
        days=size.days,
        budget=size.crawls_per_day,
        learning=size.warm_up,
        repetitions=wanted.number,
        seed=wanted.seed,
    )


def _try_auctions(size: Size, wanted: Repetitions) -> Repeated:
    from recrawl.lab.simulation.scenarios import AuctionTrial

    if size.warm_up > 0:
        raise InvalidInput(
            "is for worlds in which policies learn, and in auctions none does: leave it out", field="warm-up"
        )
    return AuctionTrial(
        names=wanted.names,
        pages=check_count(size.pages, "pages", _MOST_PAGES),
        days=size.days,
        budget=size.crawls_per_day,
        repetitions=wanted.number,
        seed=wanted.seed,
    )


_PAGES = WorldKind(
    ("recrawl", "recrawl-harmonic", "recrawl-known", "round-robin", "nutch-adaptive", "stormcrawler-adaptive"),
    1_000, 60.0, "20%", "30%", PAGE_MEASURES, _try_pages,
)  # fmt: skip

OWN_KINDS = {
    "news": WorldKind(
        ("market", "echo-newpages", "echo-schedule", "echo-greedy", "fixed-quota", "frequency", "bfs"),
        400, 12.0, "300%", "60%", NEWS_MEASURES, _try_news, "sources",
    ),
    "auctions": WorldKind(
        ("wic-1", "wic-0.9", "wic-0.5", "wic-0", "wic-1-known", "round-robin"),
        2_000, 1.0, "150%", "0%", AUCTION_MEASURES, _try_auctions,
    ),
}  # fmt: skip
"""Worlds with policies and measures of their own."""

_OWN_SUMMARIES = {
    "news": "Sites whose sources link to new pages, which are read for a few days (ECHO, Lefortier et al. 2013).",
    "auctions": "Auctions that change with each bid, most of all before they close (WIC, Pandey et al. 2004).",
}


@click.command("simulate")
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
def simulate(
    world: str,
    policies: tuple[str, ...],
    budget: str | None,
    pages: int | None,
    days: float | None,
    warm_up: str | None,
    repetitions: int,
    seed: int,
    workers: int | None,
    plot: Path | None,
    listing: bool,
    as_json: bool,
) -> None:
    """Compare policies on a synthetic world: same worlds, same budget, only what a crawler would see.

    Names that end in -known are told the true change rates; all others learn them. Intervals are 95 %. The worlds
    news and auctions have policies, measures and usual sizes of their own.

    \b
    Examples:
      recrawl simulate --world web --budget 10%
      recrawl simulate --world ncis --policy recrawl,recrawl-deaf,round-robin --plot signals.png
      recrawl simulate --world news --budget 500% --plot news.png
    """
    from recrawl.lab.simulation.compare import compare

    if listing:
        _list(as_json)
        return
    check_plot(plot)
    kind = kind_of(world)
    days = kind.days if days is None else days
    if not 0 < days <= _MOST_DAYS:
        raise InvalidInput(f"is {days:g}, but must be above 0 and at most {_MOST_DAYS:,.0f}", field="days")
    learning = parse_share(warm_up or kind.warm_up, "warm-up", zero=True)
    size = Size(world, kind.pages if pages is None else pages, days, budget or kind.budget, learning)
    names = names_of(policies, kind.usual_policies)
    wanted = Repetitions(names, check_count(repetitions, "repetitions"), check_seed(seed))
    trial = kind.try_out(size, wanted)
    check_crawls(size.crawls_per_day, days)
    with progress("Simulating") as report:
        comparison = compare(trial, check_workers(workers), report)
    best = by_rank(comparison, kind.columns[0])[0]
    title = f"{world}: {in_words(size.pages, days, kind.called)}, budget {size.budget}"
    if plot is not None:
        draw_comparison(plot, title, comparison, kind.columns)
    if as_json:
        print_json(
            {
                "world": world,
                "pages": size.pages,
                "days": days,
                "budget_per_day": size.crawls_per_day,
                "repetitions": repetitions,
                "seed": seed,
                "best": best,
                "policies": policies_document(comparison, best),
                "plot": plot,
            }
        )
    else:
        print_comparison(title, comparison, kind.columns, *([] if plot is None else [f"wrote {plot}"]))


def _list(as_json: bool) -> None:
    by_kind = policies_by_kind()
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
