"""What budget one needs to do as well as another does with theirs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple

from recrawl.lab.simulation.compare import Trial, compare
from recrawl.lab.simulation.competitor import Competitor

Score = Literal["freshness", "harmonic_cost"]

_LEAST_SHARE = 1 / 1024


class EqualBudget(NamedTuple):
    """The budget at which a competitor equals a target, and what it then reaches.

    `reached` is False if even the largest budget tried falls short (`score` is then below the target), or the smallest
    already does better: `budget` is that one then.
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
    most: float | None = None,
) -> EqualBudget:
    """The least budget, up to `most` (None: that of the trial), at which the competitor's mean score equals the target.

    Begins at the budget of the trial, doubles it while it is too little, and then halves the logarithm of the budget
    until it is known to `tolerance`, as a share. The score rises with the budget but for chance, and every step sees
    the same worlds and seeds, so chance hardly moves from step to step; the answer is good to the tolerance and to what
    chance makes of the score. About 10 + log₂(1/tolerance) runs of the trial.
    """
    sign = 1.0 if score == "freshness" else -1.0

    def score_at(budget: float) -> float:
        once = replace(trial, competitors=(competitor,), budget=budget)
        return compare(once, workers).mean(competitor.name, score).value

    def is_short(reached: float) -> bool:
        return sign * reached < sign * target

    begin, end = trial.budget, max(trial.budget, trial.budget if most is None else most)
    low, high, score_of_high = _around(score_at, is_short, begin, end)
    if high is None:
        return EqualBudget(low, score_of_high, False)
    while high > low * (1 + tolerance):
        middle = math.sqrt(low * high)
        score_of_middle = score_at(middle)
        if is_short(score_of_middle):
            low = middle
        else:
            high, score_of_high = middle, score_of_middle
    return EqualBudget(high, score_of_high, True)


def _around(
    score_at: Callable[[float], float], is_short: Callable[[float], bool], begin: float, end: float
) -> tuple[float, float | None, float]:
    """A budget that is too little, one that is enough, at most twice it, and the score of that one.

    Where there is no such pair the second is None, the first is the last that was tried, and the score is its own.
    """
    budget, score = begin, score_at(begin)
    if is_short(score):
        while budget < end:
            low, budget = budget, min(2 * budget, end)
            score = score_at(budget)
            if not is_short(score):
                return low, budget, score
        return budget, None, score
    # Halving from above: small budgets are quick to try, and the answer is seldom far.
    while budget > begin * _LEAST_SHARE:
        less = score_at(0.5 * budget)
        if is_short(less):
            return 0.5 * budget, budget, score
        budget, score = 0.5 * budget, less
    return budget, None, score
