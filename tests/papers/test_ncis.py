"""The experiments of the NCIS paper answer every claim, and say the same whatever the number of processes."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.lab.papers import ncis
from recrawl.lab.papers.claims import load_claims
from recrawl.lab.papers.experiment import (
    Experiment,
    Finding,
    Scale,
    largest_distance,
    least_ratio,
    ratio_of_means,
    without_sign,
)
from recrawl.lab.papers.ncis import changing_bandwidth, estimators
from recrawl.lab.papers.ncis_runs import NOISY_POLICIES, UniformTask, WebTask, corrupted_signals, run_uniform, run_web
from recrawl.lab.parallel import workers

QUICK = Scale(quick=True)


def check(experiment: Experiment) -> dict[str, Finding]:
    """Every claim of the experiment has one finding, its value within its interval; the table is whole; it draws."""
    wanted = [claim.id for claim in load_claims().values() if claim.experiment == experiment.name]
    assert [finding.claim for finding in experiment.findings] == wanted
    assert all(finding.low <= finding.value <= finding.high for finding in experiment.findings)
    assert all(len(row) == len(experiment.table.columns) for row in experiment.table.rows)
    assert experiment.notes
    assert experiment.draw is not None
    assert experiment.draw().axes
    return {finding.claim: finding for finding in experiment.findings}


@pytest.fixture(scope="module")
def runs() -> ncis.Runs:
    """A few pages, crawled twice by every policy."""
    pages = (100, 150)
    found = [[run_uniform(UniformTask(number, repetition)) for repetition in range(2)] for number in pages]
    return ncis.Runs(pages, {name: np.array([[one[name] for one in row] for row in found]) for name in found[0][0]})


def test_without_signals_greedy_and_low_discrepancy_come_to_the_optimum(runs: ncis.Runs) -> None:
    """Both accuracies are integrals over their crawls, and the optimum is a formula: they agree to 0.2 %."""
    findings = check(ncis._without_signals(runs))
    assert all(finding.value < 2e-3 for finding in findings.values())


def test_signals_free_of_noise_help(runs: ncis.Runs) -> None:
    """Half of the changes announced are worth some ten percent at 100 pages."""
    assert check(ncis._without_noise(runs))["ncis.fig3.cis_above_greedy"].value > 1.05


def test_noisy_signals_help_whoever_weighs_them(runs: ncis.Runs) -> None:
    """GREEDY-NCIS is best of all, its approximations next to it, and every policy has a row at each size."""
    experiment = ncis._with_noise(runs)
    findings = check(experiment)
    assert all(finding.value > 0.99 for finding in findings.values())
    assert findings["ncis.fig4.ncis_not_below_greedy"].value > 1.05
    assert len(experiment.table.rows) == 2 * (len(NOISY_POLICIES) + 2)


def test_delay_costs_and_the_rule_wins_some_back(runs: ncis.Runs) -> None:
    """Between no delay and a delay that is not minded; announced changes and weights of signals say the same."""
    check(ncis._with_delay(runs))
    seen, late, quiet = (runs.accuracy[name] for name in ("ncis-seen", "ncis-delayed", "ncis-quiet"))
    assert (late < quiet).all()
    assert (quiet < seen).all()
    assert seen.mean() == pytest.approx(runs.accuracy["greedy-ncis"].mean(), rel=2e-3)


def test_a_change_of_bandwidth_is_followed() -> None:
    """More bandwidth, more accuracy; in the last half of each phase as if it had always been so."""
    with workers(1) as run:
        experiment = changing_bandwidth(QUICK, run)
    assert check(experiment)["ncis.fig9.change_absorbed"].value < 0.01
    first, second, third = (float(row[3]) for row in experiment.table.rows)
    assert first == pytest.approx(third, rel=0.02)
    assert second > 1.1 * first


def test_counting_is_biased_and_the_likelihood_is_not() -> None:
    """The bias of the likelihood is a few percent of that of counting, at most."""
    with workers(1) as run:
        findings = check(estimators(QUICK, run))
    assert all(finding.value < 0.05 for finding in findings.values())


def test_corrupted_beliefs_are_measured_at_every_share() -> None:
    """Claims of figure 5, on fewer pages."""
    with workers(1) as run:
        check(corrupted_signals(QUICK, run))


def test_results_do_not_depend_on_the_number_of_processes() -> None:
    """The same numbers to the bit, in the order of the tasks."""
    tasks = [WebTask(200, repetition) for repetition in range(3)]
    with workers(1) as alone, workers(2) as together:
        assert alone(run_web, tasks) == together(run_web, tasks)


def test_findings_take_the_worst_setting_and_keep_its_interval() -> None:
    """The least ratio, the farthest ratio whatever its side, a ratio of means with its spread."""
    one, two = np.array([1.0, 1.2]), np.array([0.9, 0.7])
    ones = np.ones(2)
    least = least_ratio("x", [(one, ones), (two, ones)])
    assert least.value == pytest.approx(0.8)
    assert least.low < 0.7 < 0.9 < least.high
    assert largest_distance("x", [(one, ones), (two, ones)]).value == pytest.approx(0.2)
    share = ratio_of_means("x", one, 2 * one)
    assert (share.value, share.low, share.high) == pytest.approx((0.5, 0.5, 0.5))
    assert without_sign(Finding("x", -0.3, -0.4, -0.2)) == Finding("x", 0.3, 0.2, 0.4)
