"""The learning scheduler on real change histories; the folder that holds them is named by RECRAWL_TRACES."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recrawl.simulation.fixed_rates import RoundRobin
from recrawl.simulation.measures import measure
from recrawl.simulation.scheduler_run import SchedulerCompetitor
from recrawl.simulation.scheduler_run_settings import Settings
from recrawl.simulation.worlds.trace import trace_world
from recrawl.tables.history_file import open_history

WARM_UP = 0.3
FOLDER = os.environ.get("RECRAWL_TRACES", "")

pytestmark = pytest.mark.skipif(not FOLDER, reason="set RECRAWL_TRACES to a folder with traces to run these")


@pytest.mark.parametrize("name", ["k8s", "hass"])
def test_learned_freshness_is_not_below_round_robin_at_a_small_budget(name: str) -> None:
    world = trace_world(open_history(Path(FOLDER) / name), importance="uniform")
    budget = 0.02 * len(world)
    start = WARM_UP * world.horizon
    ours = SchedulerCompetitor("recrawl", Settings(objective="freshness", batch=8)).crawl(world, budget, 0)
    theirs = RoundRobin().crawl(world, budget, 0)
    assert measure(world, ours, start).freshness >= measure(world, theirs, start).freshness
