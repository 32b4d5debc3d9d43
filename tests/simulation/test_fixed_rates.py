from __future__ import annotations

import heapq
from dataclasses import replace

import numpy as np
import pytest
from lab_worlds import churning_world, steady_world

from recrawl.errors import InvalidInput
from recrawl.lab.simulation.due_queue import chance_of
from recrawl.lab.simulation.fixed_rates import FixedRates, RoundRobin
from recrawl.lab.simulation.measures import measure
from recrawl.lab.simulation.policy import Competitor


def test_round_robin_crawls_the_oldest_copy_and_new_pages_first() -> None:
    world = churning_world()
    log = RoundRobin().crawl(world, budget=30.0, seed=1)
    assert log.time == pytest.approx(np.arange(1, len(log) + 1) / 30.0)
    last = np.where(world.born <= 0, 0.0, -np.inf)  # no copy is older than any
    dead = np.zeros(len(world), dtype=bool)
    for page, time in zip(log.page, log.time, strict=True):
        here = (world.born <= time) & ~dead
        assert here[page]
        assert last[page] == last[here].min()
        last[page] = time
        dead[page] = world.removed[page] <= time


def test_round_robin_goes_on_from_where_rounds_stop_being_alike() -> None:
    """Until something happens every round is the first again; then pages born come in and pages gone are left out."""
    world = steady_world(pages=7, horizon=20.0)
    round_of_all = RoundRobin().crawl(world, budget=3.0, seed=1).page
    assert round_of_all.tolist() == (round_of_all[:7].tolist() * 9)[:60]
    removed = np.full(7, np.inf)
    removed[round_of_all[2]] = 12.0
    moved = RoundRobin().crawl(replace(world, removed=removed), budget=3.0, seed=1)
    again = [page for page in round_of_all[:7].tolist() if page != round_of_all[2]]
    gone = int(np.flatnonzero((moved.page == round_of_all[2]) & (moved.time >= 12.0))[0])
    assert moved.page[: gone + 1].tolist() == round_of_all[: gone + 1].tolist()
    assert moved.page[gone + 1 :].tolist() == (again[2:] + again * 9)[: 59 - gone]


@pytest.mark.parametrize("at_random", [False, True])
def test_rates_are_served_as_a_plain_heap_serves_them(at_random: bool) -> None:
    world = churning_world()
    competitor = FixedRates(name="x", by="importance", at_random=at_random)
    log = competitor.crawl(world, budget=30.0, seed=3)
    rates = competitor.rates(world, 30.0)

    def share(page: int, turn: int) -> float:
        chance = chance_of(3, page, turn)
        return -np.log1p(-chance) if at_random else (chance if turn == 0 else 1.0)

    due = [(share(page, 0) / rates[page], page) for page in range(len(world)) if world.born[page] <= 0]
    heapq.heapify(due)
    births = sorted((born, page) for page, born in enumerate(world.born) if born > 0)
    turn = dict.fromkeys(range(len(world)), 0)
    clock = 0.0
    for logged, now in zip(log.page.tolist(), log.time.tolist(), strict=True):
        if births and births[0][0] <= now:
            page = births.pop(0)[1]
        else:
            clock, page = heapq.heappop(due)
        assert logged == page
        if world.removed[page] > now:
            turn[page] += 1
            heapq.heappush(due, (clock + share(page, turn[page]) / rates[page], page))


def test_pages_get_their_share_of_the_budget() -> None:
    world = steady_world()
    log = FixedRates(name="x", by="change_rate").crawl(world, budget=200.0, seed=1)
    assert world.change_rate is not None
    due = world.change_rate / world.change_rate.sum() * len(log)
    assert np.abs(np.bincount(log.page, minlength=len(world)) - due).max() < 2.5


def test_the_plan_is_fresher_than_what_is_not_planned() -> None:
    world = steady_world()
    contenders: list[Competitor] = [
        FixedRates(name="plan", by="plan"),
        FixedRates(name="random", by="plan", solver="azar", at_random=True),
        RoundRobin(),
        FixedRates(name="proportional", by="change_rate"),
    ]
    plan, random, even, proportional = (
        measure(world, each.crawl(world, 60.0, 1), 10.0, expected=True).freshness for each in contenders
    )
    assert plan > random > proportional
    assert plan > even > proportional


def test_the_same_seed_gives_the_same_log() -> None:
    world = churning_world()
    contenders: list[Competitor] = [RoundRobin(), FixedRates(name="x", by="plan", at_random=True)]
    for competitor in contenders:
        one, two, other = (competitor.crawl(world, 30.0, seed) for seed in (1, 1, 2))
        assert (one.page.tobytes(), one.time.tobytes()) == (two.page.tobytes(), two.time.tobytes())
        assert one.page.tobytes() != other.page.tobytes()


def test_no_budget_is_refused() -> None:
    with pytest.raises(InvalidInput, match="budget"):
        RoundRobin().crawl(steady_world(), 0.0, 1)
