"""ECHO's Table 1 at a small size: every claim has its number, the same each time, measured as it says."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.lab.papers.claims import load_claims
from recrawl.lab.papers.echo import POLICIES, RATES, GraphTask, Size, measured, run_graph, table1
from recrawl.lab.simulation.news import NewsRun, run_news
from recrawl.lab.worlds.news import news_world

TINY = Size(sites=1, graphs=2)


def test_every_claim_has_one_number_and_the_figure_can_be_drawn() -> None:
    """In the order of the claims."""
    made = table1(TINY)
    claims = [claim.id for claim in load_claims().values() if claim.paper == "echo"]
    assert [finding.claim for finding in made.findings] == claims
    assert {claim.experiment for claim in load_claims().values() if claim.paper == "echo"} == {made.name}
    assert all(np.isfinite(finding[1:]).all() for finding in made.findings)
    assert {len(row) for row in made.table.rows} == {len(made.table.columns)}
    assert len(made.table.rows) == len(POLICIES) * len(RATES) + 1
    assert made.draw is not None
    assert len(made.draw().axes) == 2


def test_quality_is_measured_every_two_minutes_of_the_last_week() -> None:
    """Against a plain mean over windows."""
    world = news_world(1, 21.0, 1)
    run = run_news(world, "bfs", 100.0, 1)
    values = []
    for step in range(7 * 720):
        end = 21.0 - step / 720
        inside = (run.times > end - 7.0) & (run.times <= end)
        values.append(run.gains[inside].sum() / (7 * 86_400))
    assert measured(run) == pytest.approx((np.mean(values), np.std(values)))


def test_a_steady_gain_has_no_spread() -> None:
    """One hit in every slot is as much in every window."""
    world = news_world(1, 21.0, 1)
    times = np.arange(1, 21 * 720 + 1) / 720
    run = NewsRun(world, times, np.zeros(len(times), dtype=np.int32), np.ones(len(times), dtype=np.int64))
    mean, spread = measured(run)
    assert mean == pytest.approx(720 / 86_400, rel=1e-3)
    assert spread < 1e-3 * mean


def test_a_graph_is_run_alike_in_any_process() -> None:
    """Its outcome hangs on the task alone."""
    task = GraphTask(1, 3, ("bfs", "echo-greedy"), (0.1,))
    assert np.array_equal(run_graph(task).quality, run_graph(task).quality)
