"""Schedules follow the plan's rates."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import recrawl
from recrawl.pages import Floats
from recrawl.planning.schedules import schedule


def rates_of(kind: str) -> Floats:
    random = np.random.default_rng(1)
    if kind == "one big page":
        small = random.random(500)
        return np.concatenate([[0.5], 0.5 * small / small.sum()])
    if kind == "equal":
        return np.full(7, 1 / 7)
    rates = random.pareto(0.8, 60)
    return np.asarray(rates / rates.sum())


@pytest.mark.parametrize("kind", ["one big page", "equal", "heavy tail"])
@pytest.mark.parametrize("name", ["edf", "low-discrepancy"])
def test_on_every_prefix_no_page_is_a_whole_crawl_ahead_and_none_is_late(kind: str, name: str) -> None:
    rates = rates_of(kind)
    crawls = np.zeros(len(rates))
    for slot, (time, page) in enumerate(itertools.islice(schedule(rates, name), 9000), start=1):  # type: ignore[arg-type]
        crawls[page] += 1
        assert time == pytest.approx(slot)
        assert (crawls - rates * slot).max() < 1
        assert (rates * slot - crawls).max() < 1 + 1e-9


def slow_twin(rates: Floats, slots: int) -> list[int]:
    """Earliest deadline first, by looking at every page in every slot."""
    crawls = np.zeros(len(rates))
    chosen = []
    for slot in range(1, slots + 1):
        released = crawls / rates < slot
        deadline = np.where(released, (crawls + 1) / rates, np.inf)
        page = int(np.argmin(deadline)) if released.any() else int(np.argmin(crawls / rates))
        crawls[page] += 1
        chosen.append(page)
    return chosen


@pytest.mark.parametrize("kind", ["one big page", "heavy tail"])
def test_the_queue_chooses_what_looking_at_every_page_would(kind: str) -> None:
    rates = rates_of(kind)
    assert [page for _, page in itertools.islice(schedule(rates, "edf"), 5000)] == slow_twin(rates, 5000)


def test_a_plan_schedules_at_its_own_speed_and_leaves_starved_pages_out() -> None:
    pages = {"importance": [5.0, 1.0, 1e-6], "change_rate": [1.0, 1.0, 50.0]}
    plan = recrawl.plan(pages, 8.0, objective="freshness")
    assert plan.rates[2] == 0
    crawls = list(itertools.islice(plan.schedule("edf"), 800))
    assert crawls[-1][0] == pytest.approx(100.0)
    counted = np.bincount([page for _, page in crawls], minlength=3)
    assert counted / 100 == pytest.approx(plan.rates, abs=0.011)


def test_random_times_have_the_right_rates_and_repeat_with_the_seed() -> None:
    plan = recrawl.plan({"importance": [5.0, 1.0], "change_rate": [1.0, 2.0]}, 10.0, solver="azar")
    crawls = list(itertools.islice(plan.schedule("poisson", seed=3), 20_000))
    assert crawls == list(itertools.islice(plan.schedule("poisson", seed=3), 20_000))
    assert crawls != list(itertools.islice(plan.schedule("poisson", seed=4), 20_000))
    times = np.array([time for time, _ in crawls])
    assert len(times) / times[-1] == pytest.approx(10.0, rel=0.03)
    share = np.mean([page == 0 for _, page in crawls])
    assert share == pytest.approx(plan.rates[0] / 10.0, abs=0.015)
    gaps = np.diff(times)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.03)


def test_announced_pages_wait_for_their_announcements() -> None:
    pages = {"importance": [1.0, 1.0], "change_rate": [1.0, 1.0], "recall": [1, 0], "precision": [1, 1]}
    plan = recrawl.plan(pages, 1.0, solver="lambdacrawl")
    assert {page for _, page in itertools.islice(plan.schedule("edf"), 100)} == {1}


def test_nothing_to_crawl_is_an_empty_schedule() -> None:
    assert list(recrawl.plan({"importance": [1.0], "change_rate": [1.0]}, 0.0).schedule()) == []


def test_unknown_schedules_are_refused() -> None:
    with pytest.raises(recrawl.InvalidInput, match="schedule is 'fifo', but must be one of edf"):
        schedule(np.ones(2), "fifo")  # type: ignore[arg-type]
