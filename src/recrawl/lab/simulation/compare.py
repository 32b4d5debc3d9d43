"""Competitors side by side: the same worlds again and again, means with intervals, differences pair by pair.

Repetition i has a world and a seed of its own that depend on the first seed and on i alone, and all competitors meet
the same world. So differences are paired, and the answer is the same whatever the number of workers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from typing import Literal, NamedTuple, Protocol

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.lab.simulation.policy import Competitor
from recrawl.lab.worlds.world import World

_NORMAL_95 = 1.959963984540054
_EXACT = (12.706204736432095, 4.302652729696142, 3.182446305284263, 2.7764451051977987)


Score = Literal["freshness", "harmonic_cost"]

_LEAST_SHARE = 1 / 1024

MakeWorld = Callable[[int], World]
"""Makes the world of a seed. For several workers it must be a function or object that can be sent to them."""
Progress = Callable[[int, int], None]
"""Is told how many repetitions are done, and of how many."""


def student_95(freedom: int) -> float:
    """The 97.5 % point for so many degrees of freedom: exact up to 4, then to 0.1 % by expansion around the normal.

    >>> round(student_95(9), 3), round(student_95(99), 3)
    (2.262, 1.984)
    """
    if freedom < 1:
        return math.inf
    if freedom <= len(_EXACT):
        return _EXACT[freedom - 1]
    z, n = _NORMAL_95, float(freedom)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / n ** (power + 1) for power, term in enumerate(terms))


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


class Repeated(Protocol):
    """What can be repeated, each time with seeds of its own: a `Trial`, or crawls of another kind of world."""

    @property
    def repetitions(self) -> int:
        """How often."""
        ...

    @property
    def names(self) -> Sequence[str]:
        """Who competes."""
        ...

    def repeat(self, number: int) -> list[dict[str, float]]:
        """One repetition: the numbers of each competitor, by measure."""
        ...


class Mean(NamedTuple):
    """A mean over repetitions and its 95 % interval by Student's t; with one repetition all three are equal."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What is repeated.

    Attributes:
        make_world: draws the world of a seed, or gives the same each time, as of a trace.
        competitors: who crawls it.
        budget: crawls a day.
        start: where measuring begins; what is before is warm-up.
        end: where it ends; None: the horizon.
        expected: take expectations given the crawl times (see `measures.py`); for crawlers that hear no signals.
        repetitions: how often.
        seed: the first seed.
    """

    make_world: MakeWorld
    competitors: Sequence[Competitor]
    budget: float
    start: float = 0.0
    end: float | None = None
    expected: bool = False
    repetitions: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        names = self.names
        if not names:
            raise InvalidInput("is empty: name at least one", field="competitors")
        if len(set(names)) < len(names):
            raise InvalidInput(f"holds a name twice: {', '.join(names)}", field="competitors")
        if self.repetitions < 1:
            raise InvalidInput(f"is {self.repetitions!r}, but must be at least 1", field="repetitions")

    @property
    def names(self) -> list[str]:
        """Who crawls."""
        return [competitor.name for competitor in self.competitors]

    def repeat(self, number: int) -> list[dict[str, float]]:
        """One repetition: the numbers of each competitor."""
        from recrawl.lab.simulation.measures import measure

        world_seed, crawl_seed = seeds_of(self.seed, number)
        world = self.make_world(world_seed)
        numbers = []
        for competitor in self.competitors:
            log = competitor.crawl(world, self.budget, crawl_seed)
            numbers.append(measure(world, log, self.start, self.end, expected=self.expected).numbers())
        return numbers


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came out: for each competitor and measure a number for each repetition, in order.

    Attributes:
        samples: by competitor and measure; the measures are those of `Measures.numbers`.
    """

    samples: dict[str, dict[str, tuple[float, ...]]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The competitors, in the order they were given."""
        return tuple(self.samples)

    @property
    def measures(self) -> tuple[str, ...]:
        """What was measured."""
        return tuple(next(iter(self.samples.values())))

    def mean(self, name: str, measure: str) -> Mean:
        """Mean over repetitions."""
        return mean_of(self.samples[name][measure])

    def difference(self, name: str, reference: str, measure: str) -> Mean:
        """Mean of what one has more than the other in the same world."""
        pairs = zip(self.samples[name][measure], self.samples[reference][measure], strict=True)
        return mean_of([mine - other for mine, other in pairs])

    def as_json(self, reference: str | None = None) -> dict[str, dict[str, dict[str, float]]]:
        """Means and intervals for machines, by competitor and measure; differences too if there is a reference."""
        document: dict[str, dict[str, dict[str, float]]] = {}
        for name in self.names:
            document[name] = {}
            for measure in self.measures:
                entry = self.mean(name, measure)._asdict()
                if reference is not None:
                    more = self.difference(name, reference, measure)
                    entry |= {"more": more.value, "more_low": more.low, "more_high": more.high}
                document[name][measure] = entry
        return document


def compare(trial: Repeated, workers: int = 1, progress: Progress | None = None) -> Comparison:
    """Run every competitor on every repetition, on so many processes."""
    rows: list[list[dict[str, float]] | None] = [None] * trial.repetitions
    for done, (number, row) in enumerate(_rows(trial, workers), start=1):
        rows[number] = row
        if progress is not None:
            progress(done, trial.repetitions)
    whole = [row for row in rows if row is not None]
    samples = {
        name: {measure: tuple(row[place][measure] for row in whole) for measure in whole[0][place]}
        for place, name in enumerate(trial.names)
    }
    return Comparison(samples)


def seeds_of(seed: int, number: int) -> tuple[int, int]:
    """Seeds of a repetition's world and of its competitors.

    >>> seeds_of(0, 1) == seeds_of(0, 1) != seeds_of(0, 2)
    True
    """
    words = np.random.SeedSequence([seed, number]).generate_state(2, np.uint32)
    return int(words[0]), int(words[1])


def mean_of(samples: Sequence[float]) -> Mean:
    """Mean and 95 % interval of independent samples.

    >>> mean_of([2.0])
    Mean(value=2.0, low=2.0, high=2.0)
    """
    values = np.asarray(samples, dtype=np.float64)
    mean = float(values.mean())
    if len(values) < 2:
        return Mean(mean, mean, mean)
    half = student_95(len(values) - 1) * float(values.std(ddof=1)) / len(values) ** 0.5
    return Mean(mean, mean - half, mean + half)


def _rows(trial: Repeated, workers: int) -> Iterator[tuple[int, list[dict[str, float]]]]:
    """Repetitions as they end."""
    if workers <= 1 or trial.repetitions == 1:
        for number in range(trial.repetitions):
            yield number, trial.repeat(number)
        return
    count = min(workers, trial.repetitions)
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        numbers = {pool.submit(trial.repeat, number): number for number in range(trial.repetitions)}
        for future in as_completed(numbers):
            yield numbers[future], future.result()
