"""LambdaCrawl (Kolobov et al. 2019): its experiments at a small scale, and their numbers worked out the slow way."""

from __future__ import annotations

import math

import numpy as np
import pytest

from recrawl.lab.papers import lambdacrawl as learning
from recrawl.lab.papers import lambdacrawl_known as known
from recrawl.lab.papers.claims import load_claims
from recrawl.lab.papers.experiment import Experiment
from recrawl.lab.papers.lambdacrawl_known import as_incomplete, complete_only, draw_pages

_KNOWN = known.Setup(pages=3_000, repetitions=2)
_LEARNING = learning.Setup(pages=1_500, runs=2, epochs=4)


@pytest.fixture(scope="module")
def all_three() -> tuple[Experiment, ...]:
    return known.experiment_1(_KNOWN), known.experiment_2(_KNOWN), learning.experiment_3(_LEARNING)


def test_each_experiment_has_one_finding_for_each_of_its_claims(all_three: tuple[Experiment, ...]) -> None:
    for experiment in all_three:
        wanted = [claim.id for claim in load_claims().values() if claim.experiment == experiment.name]
        assert [finding.claim for finding in experiment.findings] == wanted


def test_two_runs_are_the_same_to_the_bit(all_three: tuple[Experiment, ...]) -> None:
    again = known.experiment_1(_KNOWN), known.experiment_2(_KNOWN), learning.experiment_3(_LEARNING)
    for one, other in zip(all_three, again, strict=True):
        assert (one.findings, one.table, one.notes) == (other.findings, other.table, other.notes)


def test_every_experiment_can_be_drawn(all_three: tuple[Experiment, ...]) -> None:
    panels = [len(experiment.draw().axes) for experiment in all_three if experiment.draw is not None]
    assert panels == [2, 1, 2]


def test_the_population_has_the_shape_that_the_paper_describes() -> None:
    columns = draw_pages(50_000, "important", 0)
    complete = columns["recall"] == 1
    assert complete.mean() == 0.04
    assert columns["importance"][complete].sum() / columns["importance"].sum() == pytest.approx(0.26)
    assert 0.9 < (columns["importance"] < 1_000).mean() < 0.97
    assert 2 < 1 / np.median(columns["change_rate"]) < 7
    share = draw_pages(50_000, "share", 0)
    assert (share["importance"][~complete] == columns["importance"][~complete]).all()
    assert share["importance"][complete].sum() / share["importance"].sum() == pytest.approx(0.04, abs=0.01)


def test_costs_of_lambdacrawl_agree_with_the_papers_propositions() -> None:
    columns = draw_pages(2_000, "important", 1)
    plan = known.plan_policy("LC", columns)
    harmonic = binary = used = 0.0
    for importance, change_rate, complete, rate in zip(
        columns["importance"], columns["change_rate"], columns["recall"], plan.rates, strict=True
    ):
        used += rate
        if complete:
            probability = min(1.0, importance / (plan.price * change_rate))
            assert rate == pytest.approx(probability * change_rate, rel=1e-6)
            harmonic -= importance * math.log(rate / change_rate)
            binary += importance * (1 - rate / change_rate)
        else:
            harmonic -= importance * math.log(rate / (rate + change_rate))
            binary += importance * change_rate / (rate + change_rate)
    assert used == pytest.approx(0.2 * 2_000)
    assert plan.costs.harmonic == pytest.approx(harmonic, rel=1e-9)
    assert plan.costs.binary == pytest.approx(binary, rel=1e-9)
    assert learning.true_cost(plan, columns) == pytest.approx(harmonic / 2_000, rel=1e-9)


def test_policies_but_lambdacrawl_take_complete_pages_as_incomplete() -> None:
    columns = draw_pages(500, "important", 2)
    for policy in ("BLC-0.4", "BLC", "UC", "CC"):
        assert np.isnan(known.plan_policy(policy, columns).probabilities).all()
    assert np.isfinite(known.plan_policy("LC", columns).probabilities[columns["recall"] == 1]).all()


def test_the_gain_of_experiment_2_is_that_of_two_plans(all_three: tuple[Experiment, ...]) -> None:
    gains = []
    for repetition in range(_KNOWN.repetitions):
        columns = complete_only(draw_pages(_KNOWN.pages, "important", repetition))
        told = known.plan_policy("LC", columns).costs.harmonic
        untold = known.plan_policy("LC", as_incomplete(columns)).costs.harmonic
        gains.append(untold / told)
    assert all_three[1].findings[0].value == pytest.approx(np.mean(gains))


def test_a_day_of_crawls_is_recorded_gap_by_gap() -> None:
    columns = draw_pages(400, "share", 0)
    history = learning.History(columns, listens=False, random=np.random.default_rng(5))
    rates = np.full(400, 2.0)
    for _ in range(30):
        history.live_a_day(rates)
    page, gap, changed = history._page, history._gap, history._changed
    assert (gap > 0).all()
    # Gaps of a page add up to the time of its last crawl, and are exponential with mean 1/2.
    totals = np.bincount(page, weights=gap, minlength=400)
    np.testing.assert_allclose(totals, history._last, rtol=1e-9)
    assert gap.mean() == pytest.approx(0.5, rel=0.03)
    expected = -np.expm1(-columns["change_rate"][page] * gap)
    assert changed.sum() == pytest.approx(expected.sum(), abs=4 * math.sqrt((expected * (1 - expected)).sum()))


def test_estimates_solve_the_papers_equation_and_uncrawled_pages_keep_their_rate() -> None:
    columns = draw_pages(300, "share", 3)
    history = learning.History(columns, listens=True, random=np.random.default_rng(6))
    rates = np.where(np.arange(300) < 290, 1.5, 0.0)
    for _ in range(6):
        history.live_a_day(rates)
    believed = history.estimate()
    complete = columns["recall"] == 1
    np.testing.assert_allclose(believed[complete], (history._announced[complete] + 0.5) / 6.5)
    assert (believed[290:][~complete[290:]] == 1.0).all()
    for page in np.flatnonzero(~complete)[:50]:
        rate = believed[page]
        mine = history._page == page
        gaps, changed = history._gap[mine], history._changed[mine]
        if len(gaps) and 0.0005 < rate < 7:
            hits = np.append(gaps[changed], 0.5)
            assert (hits / np.expm1(hits * rate)).sum() == pytest.approx(gaps[~changed].sum() + 0.5, rel=1e-6)


def test_a_learner_starts_from_one_change_a_day_and_comes_nearer_to_its_limit() -> None:
    columns = draw_pages(_LEARNING.pages, "important", 0)
    course = learning.run_learner("LLC", columns, _LEARNING, 0)
    blind = known.plan_policy("LC", {**columns, "change_rate": np.ones(_LEARNING.pages)})
    assert course.harmonic[0] == pytest.approx(learning.true_cost(blind, columns))
    assert len(course.harmonic) == _LEARNING.epochs + 1
    assert course.limit < course.harmonic[-1] < course.harmonic[0]


def test_epochs_to_the_limit_are_counted_from_the_first_plan() -> None:
    def course(*costs: float) -> learning.Course:
        return learning.Course(np.array(costs), limit=100.0)

    assert course(104.0, 103.0).epochs_to_limit() == 0
    assert course(120.0, 110.0, 104.9, 104.0).epochs_to_limit() == 2
    assert course(120.0, 110.0, 106.0).epochs_to_limit() == 3
