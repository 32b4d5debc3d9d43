"""The learning scheduler on real change histories; the folder that holds them is named by RECRAWL_TRACES."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from recrawl.simulation.compare import Comparison, Mean, Trial, compare
from recrawl.simulation.competitor import Competitor
from recrawl.simulation.contenders import make_contender
from recrawl.simulation.measures import measure
from recrawl.simulation.replay import SameWorld
from recrawl.simulation.scheduler_run import SchedulerCompetitor
from recrawl.simulation.scheduler_run_settings import Settings
from recrawl.simulation.world import World
from recrawl.simulation.worlds.signalling import announce
from recrawl.simulation.worlds.trace import trace_world
from recrawl.tables.history_file import open_history

Importance = Literal["uniform", "given"]
NAMES = ("k8s", "hass")
WARM_UP, SHARE, SEEDS = 0.3, 0.02, 3
PEERS = ("nutch-adaptive", "stormcrawler-adaptive", "cho-interval", "miniflux-entry-frequency")
RIVALS = ("round-robin", *PEERS, *(f"{name}-scaled" for name in PEERS))
FOLDER = os.environ.get("RECRAWL_TRACES", "")

pytestmark = pytest.mark.skipif(not FOLDER, reason="set RECRAWL_TRACES to a folder with traces to run these")


def ours(name: str = "recrawl", **settings: object) -> Competitor:
    """The scheduler for freshness, a few more crawls at a time than usual, so that the test is short."""
    return SchedulerCompetitor(name, Settings(objective="freshness", batch=16, **settings))  # type: ignore[arg-type]


@cache
def history(name: str, importance: Importance = "uniform") -> World:
    """A trace, its pages as important as it says or all alike."""
    return trace_world(open_history(Path(FOLDER) / name), importance=importance)


@cache
def budget_of(name: str) -> float:
    """Crawls a day: a share of the pages; one that is created again is the same page here."""
    return SHARE * len(open_history(Path(FOLDER) / name))


@cache
def compared(name: str, importance: Importance = "uniform") -> Comparison:
    """Everybody at the smallest budget, each crawler starting at a few times."""
    world, budget = history(name, importance), budget_of(name)
    return compare(
        Trial(
            make_world=SameWorld(world, 1 / SHARE),
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
@pytest.mark.parametrize("name", NAMES)
def test_learned_freshness_is_above_round_robin_and_rules_of_other_crawlers(
    name: str, importance: Importance, rival: str
) -> None:
    """By more than chance."""
    assert more_than(name, importance, rival).low > 0


@pytest.mark.parametrize("importance", ["uniform", "given"])
@pytest.mark.parametrize("name", NAMES)
def test_it_equals_plain_likelihood_with_an_exact_search(name: str, importance: Importance) -> None:
    """It is not below by more than chance."""
    assert more_than(name, importance, "argmax-mle").high > 0


@pytest.mark.parametrize("name", NAMES)
def test_noisy_signals_bring_three_fifths_of_what_perfect_ones_would(name: str) -> None:
    """Their quality is learned, that of perfect ones is told."""
    world = history(name)
    noisy, perfect = (announce(world, recall, share, kind="map", seed=1) for recall, share in ((0.7, 0.6), (1.0, 1.0)))

    def fresh(world: World, hearing: str) -> float:
        log = ours(hearing=hearing).crawl(world, budget_of(name), 0)
        return measure(world, log, WARM_UP * world.horizon).freshness

    none = float(np.mean(compared(name).samples["recrawl"]["freshness"]))
    assert fresh(noisy, "learned") - none > 0.6 * (fresh(perfect, "known") - none)
