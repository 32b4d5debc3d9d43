"""Learned against known rates, at a small scale."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.lab.papers import beyond_learned
from recrawl.lab.papers.claims import load_claims
from recrawl.lab.papers.experiment import Experiment
from recrawl.lab.worlds.laws import poisson_world

_SMALL = beyond_learned.Setup(pages=60, repetitions=2, horizon=20.0)


@pytest.fixture(scope="module")
def small() -> Experiment:
    return beyond_learned.compare(_SMALL)


def test_it_has_one_finding_for_each_of_its_claims(small: Experiment) -> None:
    wanted = [claim.id for claim in load_claims().values() if claim.experiment == "beyond.learned"]
    assert [finding.claim for finding in small.findings] == wanted


def test_two_runs_are_the_same_to_the_bit(small: Experiment) -> None:
    again = beyond_learned.compare(_SMALL)
    assert (again.findings, again.table, again.notes) == (small.findings, small.table, small.notes)


def test_the_scheduler_as_it_comes_is_judged_in_the_worse_population(small: Experiment) -> None:
    plain = [row for row in small.table.rows if row[2] == "learned"]
    freshness, harmonic = small.findings
    assert freshness.value == min(float(row[5]) for row in plain if row[1] == "freshness")
    assert harmonic.value == max(float(row[5]) for row in plain if row[1] == "harmonic")
    assert small.draw is not None
    assert len(small.draw().axes) == 2


def test_crawls_see_a_change_where_one_happened_since_the_crawl_before() -> None:
    world = poisson_world("uniform", 12, 15.0, 4)
    log = beyond_learned.run_scheduler(world, "harmonic", "known", None, beyond_learned.Setup(pages=12, horizon=15.0))
    page = np.concatenate([np.arange(12), log.page])
    time = np.concatenate([np.zeros(12), log.time])
    seen = beyond_learned.changed_since(world, page, time)
    last: dict[int, float] = {}
    for one, now, flag in zip(page.tolist(), time.tolist(), seen.tolist(), strict=True):
        changes = world.changes.times[world.changes.offsets[one] : world.changes.offsets[one + 1]]
        assert flag == bool(one in last and ((changes > last[one]) & (changes <= now)).any())
        last[one] = now
    assert 0 < seen.sum() < len(seen)


def test_a_prior_fitted_elsewhere_lies_where_the_rates_are() -> None:
    setup = beyond_learned.Setup(pages=300, horizon=60.0)
    prior = beyond_learned.prior_from(poisson_world("uniform", 300, 60.0, 1), setup)
    here = (prior.grid.rates > 0.05) & (prior.grid.rates < 2.0)
    assert prior.weights[..., here].sum() / prior.weights.sum() > 0.85
