"""Runs on a graph of news, as Table 1 of ECHO measures them (Lefortier et al. 2013, section 5.3.3).

Each graph is a function of its task alone, so that graphs run in several processes and come out the same. Smaller
graphs have the same laws, and crawls in proportion to their sites.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from recrawl.lab.simulation.news import NewsRun, crawl_at_birth, quality, run_news
from recrawl.lab.worlds.news import PAPER_SITES, news_world
from recrawl.pages import Floats

DAYS = 21.0
WINDOW = 7.0
SECONDS = 86_400.0
_MOMENTS_A_DAY = 720  # every two minutes
_ALMOST_NEVER = 1


class GraphTask(NamedTuple):
    """One graph, the policies that crawl it, and the crawls per second for each if it had the paper's size."""

    sites: int
    seed: int
    policies: tuple[str, ...]
    rates: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class GraphOutcome:
    """What came out, by policy and rate; quality in hits per second if the graph had the paper's size.

    Attributes:
        quality: the mean, in the last week, of what was captured per second in the week before.
        spread: its standard deviation over that time.
        on_sources: the share of the crawls in the last week that went to sources.
        idle: the share of sources crawled at most once in the last week.
        bound: the quality if every page is crawled at birth.
    """

    quality: Floats
    spread: Floats
    on_sources: Floats
    idle: Floats
    bound: float


def run_graph(task: GraphTask) -> GraphOutcome:
    """Run every policy at every rate on one graph."""
    world = news_world(task.sites, DAYS, task.seed)
    size = task.sites / PAPER_SITES
    shape = len(task.policies), len(task.rates)
    bound = measured(crawl_at_birth(world))[0] / size
    out = GraphOutcome(np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape), bound)
    for p, policy in enumerate(task.policies):
        for r, rate in enumerate(task.rates):
            run = run_news(world, policy, rate * SECONDS * size, task.seed)
            mean, spread = measured(run)
            out.quality[p, r], out.spread[p, r] = mean / size, spread / size
            out.on_sources[p, r] = run.source_crawls / (run.source_crawls + run.page_crawls)
            out.idle[p, r] = (run.crawls_by_source() <= _ALMOST_NEVER).mean()
    return out


def measured(run: NewsRun) -> tuple[float, float]:
    """Mean and standard deviation over the last week of the hits captured per second in the week before."""
    end = run.world.horizon
    moments = end - np.arange(int(WINDOW * _MOMENTS_A_DAY)) / _MOMENTS_A_DAY
    values = quality(run, WINDOW, moments) / SECONDS
    return float(values.mean()), float(values.std())
