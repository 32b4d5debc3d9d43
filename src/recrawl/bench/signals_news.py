"""Measures of the group `signals` for news: what the scheduler captures of short-lived pages, learning on the way.

The scheduler sells its crawls to sources (objective `news`) and found pages (`once`) at one price. On sites with hubs
(`lab/worlds/hubs.py`), where clicks die within hours, it is held against a crawler without limits, which has
every page as it appears, and against polling all sources in turn. On a graph after ECHO's data (`worlds/news.py`,
Lefortier et al. 2013) it is held against ECHO itself.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from recrawl.bench.measure import Bound, Measure, Reading
from recrawl.lab.parallel import workers
from recrawl.pages import Floats

if TYPE_CHECKING:
    from recrawl.lab.simulation.news import NewsRun
    from recrawl.lab.worlds.news import NewsWorld

Graph = Literal["hubs", "echo"]
OURS, IN_TURN, LOOP, ECHO = "recrawl", "bfs", "market", "echo-newpages"
_MINUTES = 1440.0
_LEARNING = 2.0 / 3.0  # of the days
_LAST = 0.5  # days: pages born later have no fair chance


class Sizes(NamedTuple):
    """How large graphs are, how long they are crawled, and how often that is repeated."""

    sites: int
    days: float
    crawls_a_day: float
    seeds: int
    processes: int = 2
    batch: int = 2


HUBS = Sizes(sites=60, days=12.0, crawls_a_day=2_340.0, seeds=4)
PAPER = Sizes(sites=30, days=12.0, crawls_a_day=1_728.0, seeds=3)
"""A fifth of the paper's graph, at a fifth of its middle rate."""


class Task(NamedTuple):
    """One graph, crawled in all ways."""

    graph: Graph
    sizes: Sizes
    seed: int


class Outcome(NamedTuple):
    """By policy, the share of all hits that was captured, and delays of pages, with the hits that they weigh."""

    share: dict[str, float]
    delay: dict[str, Floats]
    hits: Floats


def news_measures(hubs: Sizes = HUBS, paper: Sizes = PAPER) -> tuple[Measure, ...]:
    """The measures, in the order they run; those on one graph share the same runs, and the first one pays."""
    work, theirs = _Work("hubs", hubs), _Work("echo", paper)
    return (
        Measure("news_in_turn", "share of hits", "no limit", Bound("value", limit=0.65), work.read_in_turn),
        Measure("news_captured", "share of hits", "no limit", Bound("value", floor=0.9), work.read_captured),
        Measure("news_delay", "minutes", "polling all in turn", Bound("ratio", floor=3), work.read_delay),
        Measure("news_echo_graph", "share of hits", "ECHO", Bound("ratio", floor=1), theirs.read_against_echo),
    )


class _Work:
    """Runs that the measures on one kind of graph share."""

    def __init__(self, graph: Graph, sizes: Sizes) -> None:
        self._graph: Graph = graph
        self._sizes = sizes

    @cached_property
    def _outcomes(self) -> list[Outcome]:
        with workers(self._sizes.processes) as share:
            return share(run_task, [Task(self._graph, self._sizes, seed) for seed in range(self._sizes.seeds)])

    def _share(self, policy: str) -> float:
        return float(np.mean([outcome.share[policy] for outcome in self._outcomes]))

    def _by_graph(self, policy: str) -> str:
        return ", ".join(f"{outcome.share[policy]:.3f}" for outcome in self._outcomes)

    def read_in_turn(self) -> Reading:
        """What going through all sources in turn captures: breadth-first, at the rate of the next measure."""
        return Reading(self._share(IN_TURN), None, f"by graph {self._by_graph(IN_TURN)}")

    def read_captured(self) -> Reading:
        """What the scheduler captures."""
        shown = f"by graph {self._by_graph(OURS)}; the market as a bare loop {self._share(LOOP):.3f}"
        return Reading(self._share(OURS), None, f"{shown}, ECHO {self._share(ECHO):.3f}")

    def read_delay(self) -> Reading:
        """The median over hits of the time from the birth of their page to its crawl."""
        hits = np.concatenate([outcome.hits for outcome in self._outcomes])
        ours, theirs = (
            weighted_median(np.concatenate([outcome.delay[policy] for outcome in self._outcomes]), hits) * _MINUTES
            for policy in (OURS, IN_TURN)
        )
        return Reading(ours, theirs / ours, f"{theirs:.0f} minutes")

    def read_against_echo(self) -> Reading:
        """What the scheduler captures, against ECHO-newpages."""
        ours, echo = self._share(OURS), self._share(ECHO)
        return Reading(
            ours, ours / echo, f"{echo:.3f}; in turn {self._share(IN_TURN):.3f}, loop {self._share(LOOP):.3f}"
        )


def run_task(task: Task) -> Outcome:
    """Crawl one graph by all policies at the same rate; pages born after the time of learning count."""
    from recrawl.lab.simulation.news import run_news
    from recrawl.lab.simulation.news_market import MarketRun

    sizes, seed = task.sizes, task.seed
    world = draw_graph(task)
    runs = {policy: run_news(world, policy, sizes.crawls_a_day, seed) for policy in (IN_TURN, LOOP, ECHO)}
    ours = MarketRun(world, None, sizes.crawls_a_day, seed, sizes.batch).crawl().news
    assert ours is not None
    runs[OURS] = ours
    counted = (world.births > _LEARNING * world.horizon) & (world.births < world.horizon - _LAST)
    return Outcome(
        {policy: captured(run)[counted].sum() / world.hits()[counted].sum() for policy, run in runs.items()},
        {policy: delays(run)[counted] for policy, run in runs.items()},
        world.hits()[counted].astype(np.float64),
    )


def draw_graph(task: Task) -> NewsWorld:
    """The graph of a task."""
    from recrawl.lab.worlds.news import hubs, news_world

    draw = hubs if task.graph == "hubs" else news_world
    return draw(task.sizes.sites, task.sizes.days, task.seed)


def captured(run: NewsRun) -> Floats:
    """Hits of each page that fell after its crawl."""
    world = run.world
    gains: Floats = np.zeros(world.pages)
    pages = run.crawled >= world.sources
    gains[run.crawled[pages] - world.sources] = run.gains[pages]
    return gains


def delays(run: NewsRun) -> Floats:
    """The time from the birth of each page to its crawl; of one that was not crawled, to the end."""
    world = run.world
    late: Floats = world.horizon - world.births
    pages = run.crawled >= world.sources
    number = run.crawled[pages] - world.sources
    late[number] = run.times[pages] - world.births[number]
    return late


def weighted_median(values: Floats, weights: Floats) -> float:
    """The value that half of the weight does not exceed.

    >>> weighted_median(np.array([1.0, 2.0, 9.0]), np.array([1.0, 1.0, 3.0]))
    9.0
    """
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, total[-1] / 2)])
