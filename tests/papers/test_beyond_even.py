"""Evenly spaced crawls against random ones: the numbers that were known beforehand, and a slow computation."""

from __future__ import annotations

import math

import mpmath
import pytest

from recrawl.lab.papers.beyond import draw_pages, even_against_random, freshness_plans, harmonic_plans
from recrawl.lab.papers.claims import load_claims
from recrawl.lab.papers.experiment import Scale


def test_it_has_one_finding_for_each_of_its_claims_and_they_hold() -> None:
    claims = load_claims()
    experiment = even_against_random(Scale(quick=True))
    assert [finding.claim for finding in experiment.findings] == [
        claim.id for claim in claims.values() if claim.experiment == "beyond.even"
    ]
    assert all(claims[finding.claim].holds(finding) for finding in experiment.findings)
    assert even_against_random(Scale(quick=False)).findings == experiment.findings


def test_harmonic_costs_are_the_known_ones() -> None:
    costs = [round(plan.costs.harmonic, 2) for plan in harmonic_plans().values()]
    assert costs == [2793.93, 1946.06, 1926.71]


def test_freshness_is_the_known_one() -> None:
    plans = freshness_plans()
    assert {name: round(plan.freshness, 4) for name, plan in plans.items()} == {
        "Azar": 0.7518, "its rates, even": 0.8000, "even optimum": 0.8042, "harmonic plan": 0.7803,
        "uniform": 0.6420, "by change rate": 0.2404,
    }  # fmt: skip
    assert plans["Azar"].starved == pytest.approx(0.3, abs=0.005)
    assert plans["harmonic plan"].starved == 0


def test_costs_agree_with_formulas_evaluated_one_by_one() -> None:
    pages, plans = draw_pages(), list(harmonic_plans().values())
    random = even = 0.0
    for importance, change_rate, theirs, ours in zip(
        pages["importance"], pages["change_rate"], plans[0].rates, plans[2].rates, strict=True
    ):
        random += importance * math.log1p(change_rate / theirs)
        x = float(change_rate / ours)
        ein = float(mpmath.euler + mpmath.log(x) + mpmath.e1(x))
        even += importance * (ein - (x - 1 + math.exp(-x)) / x)
    assert plans[0].costs.harmonic == pytest.approx(random, rel=1e-9)
    assert plans[2].costs.harmonic == pytest.approx(even, rel=1e-6)


def test_its_figure_has_both_comparisons() -> None:
    draw = even_against_random(Scale(quick=True)).draw
    assert draw is not None
    assert len(draw().axes) == 2
