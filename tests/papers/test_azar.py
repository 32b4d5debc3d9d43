"""Azar et al. 2018, figure 1: the experiment at a small scale, and its numbers worked out the slow way."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from recrawl.lab.papers import azar
from recrawl.lab.papers.claims import load_claims
from recrawl.lab.papers.experiment import Experiment
from recrawl.lab.worlds.laws import draw_population

_SMALL = azar.Setup(pages=60, budgets=(6.0, 30.0), repetitions=2, burn_in=40.0, horizon=120.0)


@pytest.fixture(scope="module")
def small() -> Experiment:
    return azar.figure_1(_SMALL)


def test_it_has_one_finding_for_each_of_its_claims(small: Experiment) -> None:
    wanted = [claim.id for claim in load_claims().values() if claim.experiment == "azar.fig1"]
    assert [finding.claim for finding in small.findings] == wanted


def test_two_runs_are_the_same_to_the_bit(small: Experiment) -> None:
    again = azar.figure_1(_SMALL)
    assert (again.findings, again.table, again.notes) == (small.findings, small.table, small.notes)


def test_no_policy_beats_the_optimum_and_the_exact_rates_come_close(small: Experiment) -> None:
    ratios = {row[:3]: float(row[4]) for row in small.table.rows}
    assert all(0 < ratio <= 1 + 2e-3 for ratio in ratios.values())
    assert min(ratio for (_, _, policy), ratio in ratios.items() if policy == "exact rates, EDF") > 0.96
    found = {finding.claim: finding for finding in small.findings}
    assert found["azar.fig1.uniform"].value == max(ratio for key, ratio in ratios.items() if key[2] == "uniform")


def test_freshness_of_a_log_agrees_with_adding_up_copies_one_by_one() -> None:
    importance, change_rate = draw_population("zipf", 40, 3)
    setup = azar.Setup(pages=40, burn_in=10.0, horizon=35.0)
    log = azar.deadline_log(azar.policy_rates("edf", importance, change_rate, 7.0), setup.horizon)
    fresh = 0.0
    for page in range(40):
        crawls = [float(t) for t, p in zip(log.time, log.page, strict=True) if p == page]
        for last, following in pairwise([*crawls, math.inf]):
            start, end = max(last, setup.burn_in), min(following, setup.horizon)
            if end > start:
                rate = change_rate[page]
                part = (math.exp(-rate * (start - last)) - math.exp(-rate * (end - last))) / rate
                fresh += importance[page] * part
    expected = fresh / (importance.sum() * (setup.horizon - setup.burn_in))
    assert azar.freshness_of("edf", importance, change_rate, 7.0, setup) == pytest.approx(expected, rel=1e-10)


def test_exact_rates_satisfy_the_papers_formula() -> None:
    importance, change_rate = draw_population("uniform", 200, 1)
    rates = azar.policy_rates("edf", importance, change_rate, 20.0)
    kept = rates > 0
    root = np.sqrt(importance * change_rate)[kept].sum() / (20.0 + change_rate[kept].sum())
    wanted = np.sqrt(importance * change_rate)[kept] / root - change_rate[kept]
    np.testing.assert_allclose(rates[kept], wanted, rtol=1e-8)
    assert ((importance / change_rate)[~kept] <= root**2 * (1 + 1e-9)).all()


def test_the_change_directed_policy_does_not_look_at_importance() -> None:
    importance, change_rate = draw_population("zipf", 50, 0)
    one = azar.policy_rates("change_directed", importance, change_rate, 5.0)
    other = azar.policy_rates("change_directed", importance[::-1].copy(), change_rate, 5.0)
    assert (one == other).all()
    assert one.sum() == pytest.approx(5.0)


def test_its_figure_has_a_panel_for_each_law(small: Experiment) -> None:
    assert small.draw is not None
    assert [axis.get_title(loc="left") for axis in small.draw().axes] == [
        "Importance Zipf(2) up to 10,000", "Importance uniform in (0, 1)",
    ]  # fmt: skip


def test_the_quick_scale_keeps_the_set_up() -> None:
    assert (azar.QUICK.pages, azar.QUICK.budgets) == (azar.Setup().pages, azar.Setup().budgets)
