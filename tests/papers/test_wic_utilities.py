"""WIC: utilities from instant to instant, the greedy's guarantee, and the index for pages that change alike."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.errors import InvalidInput
from recrawl.lab.papers.wic import stationary_gain, stationary_index
from recrawl.lab.papers.wic_guarantee import Captures, WicUtilities
from recrawl.pages import Floats

KINDS = [
    Captures(),
    Captures(urgency=0.7),
    Captures(urgency=0.0),
    Captures(window=0),
    Captures(window=2),
    Captures(window=3, urgency=0.6),
    Captures(changes_kept=1),
    Captures(changes_kept=1, urgency=0.8),
    Captures(changes_kept=1, window=2),
    Captures(changes_kept=1, window=3, urgency=0.5),
    Captures(changes_kept=2),
    Captures(changes_kept=3, urgency=0.9),
    Captures(changes_kept=2, window=3, urgency=0.9),
]


def chance_of_fewer(changes: int, chances: list[float]) -> float:
    """Return the probability that fewer than `changes` of independent events happen, by adding up all cases."""
    total = 0.0
    for outcome in itertools.product((0, 1), repeat=len(chances)):
        if sum(outcome) < changes:
            total += math.prod(p if happened else 1 - p for happened, p in zip(outcome, chances, strict=True))
    return total


def defined_utility(chances: list[float], kind: Captures) -> float:
    """U(i, j) per unit importance as the paper defines it; the chances are those of instants i+1 … j."""
    total = 0.0
    for k, chance in enumerate(chances):
        age = len(chances) - 1 - k
        if kind.window is not None and age > kind.window:
            continue
        life = 1.0 if kind.changes_kept is None else chance_of_fewer(kind.changes_kept, chances[k + 1 :])
        total += kind.urgency**age * chance * life
    return total


@pytest.mark.parametrize("kind", KINDS)
def test_utilities_are_those_of_the_definition_after_any_crawls(kind: Captures) -> None:
    random = np.random.default_rng(5)
    instants, pages = 9, 4
    chances = random.choice([0.0, 0.2, 0.5, 0.9, 1.0], (instants, pages))
    importance = np.array([1.0, 0.5, 2.0, 0.0])
    utilities = WicUtilities(importance, kind)
    last = [0] * pages
    for instant in range(instants):
        utilities.advance(chances[instant])
        defined = [
            importance[page] * defined_utility(chances[last[page] : instant + 1, page].tolist(), kind)
            for page in range(pages)
        ]
        assert utilities.utilities == pytest.approx(defined, abs=1e-14)
        crawled = np.flatnonzero(random.random(pages) < 0.25)
        utilities.captured(crawled)
        assert not utilities.utilities[crawled].any()
        for page in crawled:
            last[page] = instant + 1


def total_of(chances: Floats, importance: Floats, kind: Captures, schedule: tuple[tuple[int, ...], ...]) -> float:
    utilities = WicUtilities(importance, kind)
    total = 0.0
    for instant, crawled in zip(chances, schedule, strict=True):
        utilities.advance(instant)
        total += float(utilities.utilities[list(crawled)].sum())
        utilities.captured(list(crawled))
    return total


def best_total(chances: Floats, importance: Floats, kind: Captures, capacity: int) -> float:
    """The best of all schedules, by trying each."""
    choices = list(itertools.combinations(range(len(importance)), capacity))
    return max(
        total_of(chances, importance, kind, schedule) for schedule in itertools.product(choices, repeat=len(chances))
    )


def greedy_total(chances: Floats, importance: Floats, kind: Captures, capacity: int) -> float:
    utilities = WicUtilities(importance, kind)
    total = 0.0
    for instant in chances:
        utilities.advance(instant)
        chosen = utilities.best(capacity)
        total += float(utilities.utilities[chosen].sum())
        utilities.captured(chosen)
    return total


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(KINDS),
    st.integers(1, 2),
)
def test_the_greedy_keeps_its_guarantee_against_every_schedule(seed: int, kind: Captures, capacity: int) -> None:
    random = np.random.default_rng(seed)
    chances = random.choice([0.0, 0.1, 0.4, 0.8, 1.0], (4, 3))
    importance = random.random(3)
    best = best_total(chances, importance, kind, capacity)
    greedy = greedy_total(chances, importance, kind, capacity)
    assert best * kind.guarantee() - 1e-12 <= greedy <= best + 1e-12


def test_the_greedy_can_be_worse_than_the_best() -> None:
    """It takes 0.5 at once from a page that would have yielded 1 an instant later."""
    chances = np.array([[0.5, 0.49], [0.5, 0.0]])
    assert greedy_total(chances, np.ones(2), Captures(), 1) == pytest.approx(1.0)
    assert best_total(chances, np.ones(2), Captures(), 1) == pytest.approx(1.49)


def test_a_window_of_no_instants_makes_the_greedy_the_best() -> None:
    assert Captures(window=0).guarantee() == Captures(urgency=0.0).guarantee() == 1.0


@pytest.mark.parametrize(("urgency_window", "total"), [(0, 12 * 0.6), (None, 12 * 0.6 + (2 * 12 - 3) * 0.2)])
def test_the_example_of_the_paper(urgency_window: int | None, total: float) -> None:
    """Three pages that append, one of which changes more often: timeliness alone, and completeness alone."""
    pages, instants, often, seldom = 3, 12, 0.6, 0.2
    chances = np.tile([often] + [seldom] * (pages - 1), (instants, 1))
    kind = Captures(window=urgency_window)
    if urgency_window == 0:
        assert greedy_total(chances, np.ones(pages), kind, 1) == pytest.approx(total)
        return
    last = instants - pages
    schedule = (*[(0,)] * last, (1,), (2,), (0,))
    assert total_of(chances, np.ones(pages), kind, schedule) == pytest.approx(total)
    assert greedy_total(chances, np.ones(pages), kind, 1) <= total


def test_ties_go_to_the_first_page_and_nothing_is_crawled_for_nothing() -> None:
    utilities = WicUtilities([1.0, 1.0, 1.0])
    utilities.advance([0.5, 0.5, 0.0])
    assert utilities.best(1).tolist() == [0]
    assert utilities.best(3).tolist() == [0, 1]
    assert utilities.best(0).tolist() == []


def test_bad_probabilities_are_named() -> None:
    utilities = WicUtilities([1.0, 1.0])
    with pytest.raises(InvalidInput, match=r"probabilities\[1\] is 1.5"):
        utilities.advance([0.5, 1.5])
    with pytest.raises(InvalidInput, match="probabilities\\[0\\] is nan"):
        utilities.advance([math.nan, 0.5])
    with pytest.raises(InvalidInput, match="one number for each of the 2 pages"):
        utilities.advance([0.5])
    assert not utilities.utilities.any()


@pytest.mark.parametrize(
    ("kind", "field"),
    [(Captures(changes_kept=0), "changes_kept"), (Captures(window=-1), "window"), (Captures(urgency=1.5), "urgency")],
)
def test_bad_captures_are_named(kind: Captures, field: str) -> None:
    with pytest.raises(InvalidInput) as error:
        WicUtilities([1.0], kind)
    assert error.value.field == field


@pytest.mark.parametrize("urgency", [0.0, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("overwrites", [False, True])
@pytest.mark.parametrize("probability", [0.0, 1e-9, 0.4, 1.0])
def test_gain_and_index_are_those_of_their_sums(urgency: float, overwrites: bool, probability: float) -> None:
    q = urgency * (1 - probability) if overwrites else urgency
    for m in range(12):
        gains = [2.0 * probability * math.fsum(q**k for k in range(n)) for n in (m, m + 1)]
        slow = 2.0 * probability * math.fsum(q**k - q**m for k in range(m))
        assert stationary_gain(2.0, probability, m, urgency, overwrites) == pytest.approx(gains[0], rel=1e-13)
        index = float(stationary_index(2.0, probability, m, urgency, overwrites))
        assert index == pytest.approx(slow, rel=1e-6 if 1 - q < 1e-6 else 1e-12)
        assert index == pytest.approx(gains[0] - m * (gains[1] - gains[0]), abs=1e-12)


def test_the_index_keeps_its_digits_where_nothing_is_urgent() -> None:
    """For q near 1 it is μπ(1−q)m(m+1)/2, which a difference of gains would lose."""
    lost = 2.0**-40
    assert stationary_index(1.0, 1.0, 5, urgency=1 - lost) == pytest.approx(lost * 15, rel=1e-10)


def long_run_gain(rule: str, seed: int) -> float:
    """Gain per instant of crawling two of thirty pages in each, by the largest u or the largest V."""
    random = np.random.default_rng(seed)
    importance, chance = random.random(30), random.random(30) * 0.5
    age = np.zeros(30)
    total = 0.0
    for instant in range(3000):
        age += 1
        gain = stationary_gain(importance, chance, age, 0.95, True)
        rank = gain if rule == "greedy" else stationary_index(importance, chance, age, 0.95, True)
        chosen = np.argsort(-rank, kind="stable")[:2]
        if instant >= 500:
            total += float(gain[chosen].sum())
        age[chosen] = 0
    return total / 2500


@pytest.mark.parametrize("seed", [1, 2])
def test_the_index_gathers_more_in_the_long_run_than_the_greedy(seed: int) -> None:
    assert long_run_gain("index", seed) > 1.02 * long_run_gain("greedy", seed)
