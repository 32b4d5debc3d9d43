"""What budget one needs to do as well as another does with theirs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple

from recrawl.simulation.compare import Trial, compare
from recrawl.simulation.competitor import Competitor

Score = Literal["freshness", "harmonic_cost"]

_LEAST_SHARE = 1 / 1024


class EqualBudget(NamedTuple):
    """The budget at which a competitor equals a target, and what it then reaches.

    `reached` is False if even the largest budget tried falls short, or the smallest already does better: `budget` is
    that one then.
    """

    budget: float
    score: float
    reached: bool


def equal_budget(
    trial: Trial,
    competitor: Competitor,
    target: float,
    score: Score = "freshness",
    tolerance: float = 0.02,
    workers: int = 1,
) -> EqualBudget:
    """The least budget, up to that of the trial, at which the competitor's mean score equals the target.

    Halves the logarithm of the budget until it is known to `tolerance`, as a share. The score rises with the budget
    but for chance, and every step sees the same worlds and seeds, so chance hardly moves from step to step; the answer
    is good to the tolerance and to what chance makes of the score. About 10 + log₂(1/tolerance) runs of the trial.
    """
    sign = 1.0 if score == "freshness" else -1.0

    def score_at(budget: float) -> float:
        once = replace(trial, competitors=(competitor,), budget=budget)
        return compare(once, workers).mean(competitor.name, score).value

    return _halve(score_at, sign, target, trial.budget, tolerance)


def _halve(
    score_at: Callable[[float], float], sign: float, target: float, most: float, tolerance: float
) -> EqualBudget:
    high, high_score = most, score_at(most)
    if sign * high_score < sign * target:
        return EqualBudget(high, high_score, False)
    # Doubling down from above: small budgets are quick to try, and the answer is seldom far.
    low = high
    while True:
        low *= 0.5
        low_score = score_at(low)
        if sign * low_score < sign * target:
            break
        high, high_score = low, low_score
        if low <= most * _LEAST_SHARE:
            return EqualBudget(low, low_score, False)
    while high > low * (1 + tolerance):
        middle = math.sqrt(low * high)
        middle_score = score_at(middle)
        if sign * middle_score < sign * target:
            low = middle
        else:
            high, high_score = middle, middle_score
    return EqualBudget(high, high_score, True)
