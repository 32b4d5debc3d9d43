"""Every peer by name: rules of other crawlers and learners of other papers, with their own parameters.

A rule that gives due dates and knows no budget has two names: as it is, and with `-scaled` behind it, with all its
waits multiplied by one factor so that the whole budget is used (`due_queue.py`). Nothing is compiled until a peer
crawls.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.lab.peers.rules import (
    ADUANA,
    BUBING,
    BY_IMPORTANCE,
    BY_RATE,
    BY_SCORE,
    CHANGE_FIRST,
    CHANGEDETECTION,
    CHO_INTERVAL,
    EVEN,
    FIXED,
    HERITRIX,
    HOUR,
    LM_FACTOR,
    MINIFLUX,
    MINUTE,
    MOST_OVERDUE,
    NUTCH,
    STORMCRAWLER,
)
from recrawl.lab.simulation.policy import Competitor
from recrawl.lab.worlds.world import CrawlLog, World


@dataclass(frozen=True, slots=True)
class IntervalPeer:
    """A rule that gives each page its next due date, as a competitor: crawls by the due dates of one rule.

    Attributes:
        name: what reports call it.
        kind: the rule's number (`rules.py`).
        parameters: the rule's own.
        order: which due page goes first, if it is held to the budget as it is.
        scaled: whether all waits are multiplied by one factor so that the whole budget is used.
    """

    name: str
    kind: int
    parameters: tuple[float, ...] = ()
    order: int = MOST_OVERDUE
    scaled: bool = False

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:
        """Crawl a world from 0 to its horizon, at most `budget` crawls a day. O(crawls · log n)."""
        from recrawl.lab.simulation.due_queue import Rule, start_run

        rule = Rule(self.kind, np.array(self.parameters, dtype=np.float64), self.order, self.scaled)
        return start_run(world, rule, budget, seed).finish()


SCALED = "-scaled"


class _Rule(NamedTuple):
    """A rule: what it is, its number, its parameters, which due page it serves first."""

    summary: str
    kind: int
    parameters: tuple[float, ...] = ()
    order: int = MOST_OVERDUE


_NUTCH_LIMITS = (MINUTE, 365.0)
_NUTCH_DATABASE_LIMIT = 90.0

_RULES = {
    "fixed": _Rule("every page once a day, as StormCrawler and Frontera do by default", FIXED, (1.0,)),
    "nutch-default": _Rule("Apache Nutch's default: every 30 days", FIXED, (30.0,), BY_SCORE),
    "nutch-adaptive": _Rule(
        "Apache Nutch's adaptive schedule with its configuration file",
        NUTCH,
        (30.0, 0.4, 0.2, *_NUTCH_LIMITS, 0.3, _NUTCH_DATABASE_LIMIT),
        BY_SCORE,
    ),
    "nutch-adaptive-nosync": _Rule(
        "the same with sync_delta off",
        NUTCH,
        (30.0, 0.4, 0.2, *_NUTCH_LIMITS, 0.0, _NUTCH_DATABASE_LIMIT),
        BY_SCORE,
    ),
    "nutch-adaptive-java": _Rule(
        "Apache Nutch's adaptive schedule without the file",
        NUTCH,
        (30.0, 0.2, 0.2, *_NUTCH_LIMITS, 0.2, _NUTCH_DATABASE_LIMIT),
        BY_SCORE,
    ),
    "nutch-adaptive-java-nosync": _Rule(
        "the same with sync_delta off",
        NUTCH,
        (30.0, 0.2, 0.2, *_NUTCH_LIMITS, 0.0, _NUTCH_DATABASE_LIMIT),
        BY_SCORE,
    ),
    "stormcrawler-adaptive": _Rule(
        "Apache StormCrawler's adaptive scheduler", STORMCRAWLER, (1440.0, 0.5, 0.5, 60.0, 20160.0)
    ),
    "commoncrawl-news": _Rule(
        "Common Crawl's news crawler, for feeds", STORMCRAWLER, (720.0, 0.5, 0.2, 90.0, 129600.0)
    ),
    "heritrix1": _Rule("Heritrix 1's adaptive waits", HERITRIX, (1.0, 1.5, HOUR, 28.0)),
    "aduana": _Rule("Aduana's rate of changes found; scaled it is its virtual clock", ADUANA, (1.0,)),
    "bubing": _Rule("a BUbiNG fork that revisits", BUBING, (5.0, 0.2, 0.2, HOUR, 180.0)),
    "miniflux-entry-frequency": _Rule(
        "Miniflux by the dates of entries in the last week", MINIFLUX, (1.0, 5.0 * MINUTE, 1.0)
    ),
    "lm-factor": _Rule("Squid's share of the time since Last-Modified", LM_FACTOR, (0.2, MINUTE, 3.0)),
    "cho-interval": _Rule("Cho's estimate as the interval", CHO_INTERVAL, (1.0, 5.0, HOUR, 90.0)),
    "changedetection": _Rule("changedetection.io: every 3 hours", CHANGEDETECTION, (3.0 * HOUR, 0.0)),
    "changedetection-jitter": _Rule(
        "changedetection.io: every 3 hours ± 30 minutes", CHANGEDETECTION, (3.0 * HOUR, 0.5 * HOUR)
    ),
}

# Rules whose waits only count relative to each other: they always use the whole budget.
_SHARES = {
    "oldest-first": _Rule("round robin: the oldest copy first", FIXED, (1.0,)),
    "proportional-known": _Rule("in proportion to the true change rates", BY_RATE),
    "importance": _Rule("in proportion to importance", BY_IMPORTANCE),
    "change-first": _Rule("the page most likely to have changed, with Cho's estimate", CHANGE_FIRST),
}

_PLANNERS = {
    "cho-ntoulas": ("samples of each site, then the sites that changed most", "ChoNtoulas", {}),
    "learn-mle": ("maximum likelihood with a prior, optimal plan", "LearnMle", {}),
    "learn-moments": ("method of moments, optimal plan", "LearnMoments", {}),
    "learn-lln": ("law of large numbers, then the optimal plan", "ExploreThenCommit", {}),
    "learn-sa": (
        "stochastic approximation, then the optimal plan",
        "ExploreThenCommit",
        {"approximate": True},
    ),
    "threshold-known": ("optimal plan for the true change rates", "Told", {}),
    "whittle-known": ("Whittle index of content that decays, told how often it comes", "Whittle", {}),
    "exp3": ("a bandit over four strategies", "Exp3", {}),
    "mirror-sync": ("MirrorSync: rates learned without a model of change", "MirrorSync", {}),
}

_UNIFORM = _Rule("all pages at the same rate", EVEN)


def _summaries() -> dict[str, str]:
    summaries = {"uniform": _UNIFORM.summary}
    summaries |= {name: rule.summary for name, rule in _SHARES.items()}
    for name, rule in _RULES.items():
        summaries[name] = rule.summary
        summaries[name + SCALED] = f"{rule.summary}; scaled to the budget"
    return summaries | {name: planner[0] for name, planner in _PLANNERS.items()}


PEERS: dict[str, str] = _summaries()
"""All names, each with a line that says what it is."""


def make_peer(name: str, scaled: bool = False) -> Competitor:
    """Make the peer of this name; `scaled` is the same as `-scaled` behind the name.

    >>> make_peer("nutch-adaptive", scaled=True).name
    'nutch-adaptive-scaled'

    Raises:
        InvalidInput: if there is none, naming the nearest; also for scaling one that keeps to the budget by itself.
    """
    full = name + SCALED if scaled and not name.endswith(SCALED) else name
    if full not in PEERS:
        if name in PEERS:
            raise InvalidInput(f"{name!r} keeps to the budget by itself; leave out scaled", field="peer")
        near = get_close_matches(str(name).lower(), PEERS, n=1, cutoff=0.0)
        raise InvalidInput(f"is {name!r}, but there is none of that name; did you mean {near[0]!r}?", field="peer")
    if full in _PLANNERS:
        _, kind, settings = _PLANNERS[full]
        made: Competitor = _planner(kind)(name=full, **settings)
        return made
    if full == "uniform" or full in _SHARES:
        rule = _SHARES.get(full, _UNIFORM)
        return IntervalPeer(full, rule.kind, rule.parameters, rule.order, full != "uniform")
    rule = _RULES[full.removesuffix(SCALED)]
    return IntervalPeer(full, rule.kind, rule.parameters, rule.order, full.endswith(SCALED))


def _planner(kind: str) -> Any:
    from recrawl.lab.peers import planners

    return getattr(planners, kind)
