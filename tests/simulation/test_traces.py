"""The learning scheduler on real change histories.

That of this project is in the repository (`tools/own_history.py` makes it). Two public ones are not: RECRAWL_TRACES
names the folder that holds them, and what is claimed about them is tested only then.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np
import pytest
from real_histories import OWN, every_history, opened

from recrawl.lab.simulation.compare import Comparison, Mean, Trial, compare
from recrawl.lab.simulation.measures import measure
from recrawl.lab.simulation.policy import Competitor
from recrawl.lab.simulation.scenarios import make_contender
from recrawl.lab.simulation.scheduler_run import SchedulerCompetitor, Settings
from recrawl.lab.worlds.signals import announce
from recrawl.lab.worlds.trace import SameWorld, trace_world
from recrawl.lab.worlds.world import World

Importance = Literal["uniform", "given"]
WARM_UP, SHARE, SEEDS = 0.3, 0.02, 3
OWN_VISITS = 20.0
"""Crawls of each page while the own history lasts, which is short and has a budget in proportion."""
PEERS = ("nutch-adaptive", "stormcrawler-adaptive", "cho-interval", "miniflux-entry-frequency")
RIVALS = ("round-robin", *PEERS, *(f"{name}-scaled" for name in PEERS))


def ours(name: str = "recrawl", **settings: object) -> Competitor:
    """The scheduler for freshness, a few more crawls at a time than usual, so that the test is short."""
    return SchedulerCompetitor(name, Settings(objective="freshness", batch=16, **settings))  # type: ignore[arg-type]


@cache
def history(name: str, importance: Importance = "uniform") -> World:
    """A trace, its pages as important as it says or all alike."""
    return trace_world(opened(name), importance=importance)


@cache
def budget_of(name: str) -> float:
    """Crawls a day: a share of the pages; one that is created again is the same page here."""
    whole = opened(name)
    return len(whole) * (OWN_VISITS / whole.days if name == OWN else SHARE)


@cache
def compared(name: str, importance: Importance = "uniform") -> Comparison:
    """Everybody at the smallest budget, each crawler starting at a few times."""
    world, budget = history(name, importance), budget_of(name)
    return compare(
        Trial(
            make_world=SameWorld(world, len(opened(name)) / budget),
            competitors=[ours(), *(make_contender(rival) for rival in (*RIVALS, "argmax-mle"))],
            budget=budget,
            start=WARM_UP * world.horizon,
            repetitions=SEEDS,
        )
    )


def more_than(name: str, importance: Importance, rival: str) -> Mean:
    """Freshness that ours has more, in the same world."""
    return compared(name, importance).difference("recrawl", rival, "freshness")


@pytest.mark.parametrize("rival", RIVALS)
@pytest.mark.parametrize("importance", ["uniform", "given"])
@every_history
def test_learned_freshness_is_above_round_robin_and_rules_of_other_crawlers(
    name: str, importance: Importance, rival: str
) -> None:
    """By more than chance; where all pages of a short history matter alike, equal turns are hard to beat."""
    if (name, importance, rival) == (OWN, "uniform", "round-robin"):
        assert more_than(name, importance, rival).high > 0
        return
    assert more_than(name, importance, rival).low > 0


@pytest.mark.parametrize("importance", ["uniform", "given"])
@every_history
def test_it_equals_plain_likelihood_with_an_exact_search(name: str, importance: Importance) -> None:
    """It is not below by more than chance."""
    assert more_than(name, importance, "argmax-mle").high > 0


@every_history
def test_noisy_signals_bring_three_fifths_of_what_perfect_ones_would(name: str) -> None:
    """Their quality is learned, that of perfect ones is told."""
    world = history(name)
    noisy, perfect = (announce(world, recall, share, kind="map", seed=1) for recall, share in ((0.7, 0.6), (1.0, 1.0)))

    def fresh(world: World, hearing: str) -> float:
        log = ours(hearing=hearing).crawl(world, budget_of(name), 0)
        return measure(world, log, WARM_UP * world.horizon).freshness

    none = float(np.mean(compared(name).samples["recrawl"]["freshness"]))
    assert fresh(noisy, "learned") - none > 0.6 * (fresh(perfect, "known") - none)
