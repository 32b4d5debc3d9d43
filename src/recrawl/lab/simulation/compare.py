"""Competitors side by side: the same worlds again and again, means with intervals, differences pair by pair.

Repetition i has a world and a seed of its own that depend on the first seed and on i alone, and all competitors meet
the same world. So differences are paired, and the answer is the same whatever the number of workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import NamedTuple, Protocol

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.lab.simulation.compare_student import student_95
from recrawl.lab.simulation.competitor import Competitor
from recrawl.lab.simulation.world import World

MakeWorld = Callable[[int], World]
"""Makes the world of a seed. For several workers it must be a function or object that can be sent to them."""
Progress = Callable[[int, int], None]
"""Is told how many repetitions are done, and of how many."""


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
