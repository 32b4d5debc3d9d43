"""Kinds of worlds that `recrawl simulate` knows: what is usual in each, its policies, and what is shown of them.

Worlds of pages share policies and measures; `news` and `auctions` have their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from recrawl.cli.laboratory import PAGE_MEASURES, Shown, check_count
from recrawl.errors import InvalidInput
from recrawl.units import parse_budget

if TYPE_CHECKING:
    from recrawl.simulation.compare import Repeated

_MOST_PAGES = 10_000_000
_SOURCES_A_SITE = 20

NEWS_MEASURES = (
    Shown("hits_captured", "hits, %", percent=True, larger_is_better=True),
    Shown("hits_per_day", "hits/day", whole=True),
    Shown("delay", "delay, d", larger_is_better=False),
    Shown("pages_crawled", "pages, %", percent=True),
    Shown("on_sources", "sources, %", percent=True),
    Shown("crawls", "crawls", whole=True),
)
"""What is shown of crawlers of news."""

AUCTION_MEASURES = (
    Shown("completeness", "seen, %", percent=True, larger_is_better=True),
    Shown("timely", "at once, %", percent=True, larger_is_better=True),
    Shown("delay", "delay, min", larger_is_better=False),
    Shown("utility_0.9", "utility 0.9"),
    Shown("changes", "bids", whole=True),
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


class Kind(NamedTuple):
    """A kind of world: who competes if nobody is named, what is usual, what is shown, and how it is tried."""

    usual_policies: Sequence[str]
    pages: int
    days: float
    budget: str
    warm_up: str
    columns: Sequence[Shown]
    try_out: Callable[[Size, Repetitions], Repeated]
    called: str = "pages"


def kind_of(world: str) -> Kind:
    """The kind of a world by its name.

    Raises:
        InvalidInput: if there is none of that name, naming the nearest.
    """
    from recrawl.simulation.worlds.registry import world_names

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
    from recrawl.simulation.worlds.registry import summary_of, world_names

    return {**{name: summary_of(name) for name in world_names()}, **_OWN_SUMMARIES}


def policies() -> dict[str, Mapping[str, str]]:
    """Policies by the kind of world they are for, each with a line."""
    from recrawl.simulation.contenders import CONTENDERS
    from recrawl.simulation.discovery_trial import NEWS_SUMMARIES
    from recrawl.simulation.monitoring_trial import MONITORING_SUMMARIES

    return {"pages": CONTENDERS, "news": NEWS_SUMMARIES, "auctions": MONITORING_SUMMARIES}


def _try_pages(size: Size, wanted: Repetitions) -> Repeated:
    from recrawl.simulation.compare import Trial
    from recrawl.simulation.contenders import make_contender
    from recrawl.simulation.worlds.registry import build_world

    return Trial(
        make_world=partial(build_world, size.world, check_count(size.pages, "pages", _MOST_PAGES), size.days),
        competitors=[make_contender(name) for name in wanted.names],
        budget=size.crawls_per_day,
        start=size.warm_up * size.days,
        repetitions=wanted.number,
        seed=wanted.seed,
    )


def _try_news(size: Size, wanted: Repetitions) -> Repeated:
    from recrawl.simulation.discovery_trial import NewsTrial

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
    from recrawl.simulation.monitoring_trial import AuctionTrial

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


_PAGES = Kind(
    ("recrawl", "recrawl-harmonic", "recrawl-known", "round-robin", "nutch-adaptive", "stormcrawler-adaptive"),
    1_000, 60.0, "20%", "30%", PAGE_MEASURES, _try_pages,
)  # fmt: skip

OWN_KINDS = {
    "news": Kind(
        ("market", "echo-newpages", "echo-schedule", "echo-greedy", "fixed-quota", "frequency", "bfs"),
        400, 12.0, "300%", "60%", NEWS_MEASURES, _try_news, "sources",
    ),
    "auctions": Kind(
        ("wic-1", "wic-0.9", "wic-0.5", "wic-0", "wic-1-known", "round-robin"),
        2_000, 1.0, "150%", "0%", AUCTION_MEASURES, _try_auctions,
    ),
}  # fmt: skip
"""Worlds with policies and measures of their own."""

_OWN_SUMMARIES = {
    "news": "Sites whose sources link to new pages, which are read for a few days (ECHO, Lefortier et al. 2013).",
    "auctions": "Auctions that change with each bid, most of all before they close (WIC, Pandey et al. 2004).",
}
