"""The scheduler against schedules made from a plan, at a small scale."""

from __future__ import annotations

import pytest

from recrawl.lab.papers import beyond_scheduler
from recrawl.lab.papers.claims import load_claims
from recrawl.lab.papers.experiment import Experiment
from recrawl.lab.worlds.laws import uniform

_SMALL = beyond_scheduler.Setup(pages=300, repetitions=2, burn_in=5.0, horizon=20.0)


@pytest.fixture(scope="module")
def small() -> Experiment:
    return beyond_scheduler.compare(_SMALL)


def test_it_has_one_finding_for_each_of_its_claims(small: Experiment) -> None:
    wanted = [claim.id for claim in load_claims().values() if claim.experiment == "beyond.scheduler"]
    assert [finding.claim for finding in small.findings] == wanted


def test_two_runs_are_the_same_to_the_bit(small: Experiment) -> None:
    again = beyond_scheduler.compare(_SMALL)
    assert (again.findings, again.table) == (small.findings, small.table)


def test_nothing_is_fresher_than_the_optimum_and_the_scheduler_is_near_it() -> None:
    setup = beyond_scheduler.Setup(pages=300, burn_in=10.0, horizon=60.0)
    fresh = beyond_scheduler.freshness_in(uniform(setup.pages, setup.horizon, 7), setup)
    assert fresh["scheduler"] == pytest.approx(fresh["optimum"], rel=3e-3)
    assert fresh["EDF"] < fresh["LDS"] < fresh["optimum"] * 1.001


def test_ratios_are_of_the_freshness_in_the_table(small: Experiment) -> None:
    rows = {row[0]: float(row[1]) for row in small.table.rows}
    edf, lds = small.findings
    assert edf.value == rows["scheduler over EDF"] == pytest.approx(rows["scheduler"] / rows["EDF"], rel=1e-3)
    assert lds.value == rows["scheduler over LDS"] == pytest.approx(rows["scheduler"] / rows["LDS"], rel=1e-3)
    assert small.draw is not None
    assert len(small.draw().axes) == 1
