"""News repeated: policies on graphs of sources and new pages, for `compare`. Nothing is compiled until one crawls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches

from recrawl.errors import InvalidInput
from recrawl.lab.simulation.compare import seeds_of

NEWS_SUMMARIES = {
    "market": "whatever is worth most, a source or a new page, if it is worth the price",
    "echo-newpages": "all new pages first, then the source most behind its interval (ECHO, Lefortier et al. 2013)",
    "echo-schedule": "sources whose interval has passed, then new pages, newest first (ECHO)",
    "echo-greedy": "the source with most hits waiting, after it all its new pages (ECHO)",
    "fixed-quota": "half of the crawls for sources on ECHO's schedule, half for new pages, newest first",
    "frequency": "as echo-schedule, but all sources are worth the same",
    "bfs": "sources in a fixed order, after each all its new pages",
}
"""Policies of `discovery.py`, each with a line that says what it is."""

_MOST_SITE_DAYS = 20_000  # sites times days; the paper has 3,150


@dataclass(frozen=True, slots=True, kw_only=True)
class NewsTrial:
    """What is repeated; see `compare.Repeated`.

    Attributes:
        names: of the policies.
        sites: each has 20 sources.
        days: how long pages appear.
        budget: crawls a day, of sources and new pages together.
        learning: share of the days that is not measured.
        repetitions: how often.
        seed: the first seed.
    """

    names: tuple[str, ...]
    sites: int
    days: float
    budget: float
    learning: float
    repetitions: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in NEWS_SUMMARIES:
                near = get_close_matches(name.lower(), NEWS_SUMMARIES, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]!r}?" if near else f"use {', '.join(NEWS_SUMMARIES)}"
                raise InvalidInput(f"is {name!r}, but news has none of that name; {hint}", field="policy")
        if self.sites * self.days > _MOST_SITE_DAYS:
            problem = f"{self.sites:,} sites over {self.days:g} days are more than fit: give fewer pages or days"
            raise InvalidInput(problem)

    def repeat(self, number: int) -> list[dict[str, float]]:
        """One graph: the numbers of each policy."""
        from recrawl.lab.simulation.discovery import NewsRun, run_news
        from recrawl.lab.worlds.news import news_world

        world_seed, crawl_seed = seeds_of(self.seed, number)
        world = news_world(self.sites, self.days, world_seed)
        runs: list[NewsRun] = [
            replace(run_news(world, name, self.budget, crawl_seed), learning=self.learning) for name in self.names
        ]
        return [
            {
                "hits_captured": run.share_of_bound,
                "hits_per_day": run.hits_per_day,
                "delay": run.delay,
                "pages_crawled": run.pages_crawled,
                "on_sources": run.source_crawls / max(run.source_crawls + run.page_crawls, 1),
                "crawls": float(run.source_crawls + run.page_crawls),
            }
            for run in runs
        ]
