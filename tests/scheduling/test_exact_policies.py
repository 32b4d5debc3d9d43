"""The exact argmax takes what looking at every page, one by one, finds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from small_tables import all_slots, crawl_steadily, set_limits, settle, table_of

from recrawl.planning.solve import plan
from recrawl.scheduling.policies.argmax import Argmax
from recrawl.scheduling.table.pages import PageTable
from recrawl.scheduling.table.records import FRESHNESS, HARMONIC, IDLE, IN_FLIGHT, NO_COPY, ONCE, QUEUED


def slow_worth(gain: float, decay: float, law: int, elapsed: float) -> float:
    x = decay * elapsed
    if law == HARMONIC:
        return gain / decay * (x - 1 + math.exp(-x))
    return gain / decay * (1 - (1 + x) * math.exp(-x))


def slow_argmax(table: PageTable, now: float) -> int:
    """The waiting page of largest value, the first of equals, by a plain loop."""
    best, most = -1, 0.0
    for slot in range(table.used):
        page = table.pages[slot]
        if page["state"] == QUEUED:
            worth = slow_worth(page["gain"], page["decay"], page["law"], now - page["last"])
            if worth > most * (1 + 1e-12):
                best, most = slot, worth
    return best


def mixed_table(pages: int, seed: int) -> PageTable:
    random = np.random.default_rng(seed)
    law = random.choice([FRESHNESS, HARMONIC], pages)
    return table_of(random.random(pages), random.random(pages) + 0.01, law)


@pytest.mark.parametrize("seed", range(3))
def test_every_crawl_is_the_one_that_a_plain_loop_finds(seed: int) -> None:
    table = mixed_table(40, seed)
    policy = Argmax(table, 5.0, 0)
    policy.place(all_slots(table), 0.0)
    for step in range(1, 200):
        now = step / 5.0
        expected = slow_argmax(table, now)
        taken = policy.choose(now, 1, 1.0)
        assert taken.slots.tolist() == [expected]
        page = table.pages[expected]
        assert taken.values[0] == pytest.approx(
            slow_worth(page["gain"], page["decay"], page["law"], now - page["last"]), rel=1e-9
        )
        assert page["state"] == IN_FLIGHT
        settle(table, policy, taken.slots, now)


def test_a_batch_is_the_best_pages_in_order() -> None:
    table = mixed_table(500, 4)
    policy = Argmax(table, 5.0, 0)
    policy.place(all_slots(table), 0.0)
    worth = table.values(all_slots(table), 9.0)
    taken = policy.choose(9.0, 120, 1e9)
    assert taken.slots.tolist() == np.argsort(-worth, kind="stable")[:120].tolist()
    assert (np.diff(taken.values) <= 0).all()


def test_equal_pages_are_taken_by_slot() -> None:
    table = table_of(np.ones(300), 1.0)
    policy = Argmax(table, 1.0, 0)
    policy.place(all_slots(table), 0.0)
    assert policy.choose(1.0, 100, 1e9).slots.tolist() == list(range(100))


def test_nothing_is_crawled_for_nothing() -> None:
    """Not a page without importance, nor one that never changes, nor one just crawled."""
    table = table_of([0.0, 1.0, 1.0, 1.0], [1.0, 0.0, 1.0, 1.0], last=[0.0, 0.0, 5.0, 0.0])
    policy = Argmax(table, 1.0, 0)
    policy.place(all_slots(table), 0.0)
    assert policy.choose(5.0, 10, 1e9).slots.tolist() == [3]
    assert policy.choose(5.0, 10, 1e9).slots.tolist() == []


def test_a_page_whose_longest_interval_has_passed_goes_first() -> None:
    table = table_of([9.0, 1e-9, 9.0], 1.0, last=[0.0, 5.0, 1.0])
    set_limits(table, [1], max_interval=2.0)
    policy = Argmax(table, 1.0, 0)
    policy.place(all_slots(table), 0.0)
    assert policy.choose(6.5, 1, 1.0).slots.tolist() == [0]
    assert policy.choose(7.0, 2, 2.0).slots.tolist() == [1, 2]
    assert policy.price() > 1e-3, "what is crawled because it must be says nothing of the price"


def test_pages_that_may_not_be_taken_yet_do_not_stand_before_others() -> None:
    """However many of the best are not to be taken yet, the best of the others are found."""
    table = table_of(np.arange(1000, 0, -1.0), 1.0)
    table.pages["not_before"][:900] = 10.0
    policy = Argmax(table, 1.0, 0)
    policy.place(all_slots(table), 0.0)
    assert policy.choose(5.0, 5, 5.0).slots.tolist() == [900, 901, 902, 903, 904]


def test_costs_are_counted_against_the_tokens() -> None:
    table = table_of([3.0, 2.0, 1.0], 1.0)
    set_limits(table, [0, 1, 2], cost=[1.0, 0.5, 0.5])
    policy = Argmax(table, 1.0, 0)
    policy.place(all_slots(table), 0.0)
    assert policy.choose(1.0, 3, 1.5).slots.tolist() == [0, 1]


def test_a_dear_page_is_not_passed_over_for_cheaper_ones() -> None:
    """Even if it is the last of those looked at first."""
    table = table_of(np.arange(300, 0, -1.0), 1.0)
    set_limits(table, all_slots(table), cost=0.5)
    set_limits(table, [1], cost=0.9)
    policy = Argmax(table, 1.0, 0)
    policy.place(all_slots(table), 0.0)
    assert policy.choose(1.0, 9, 0.75).slots.tolist() == [0]
    assert policy.choose(1.0, 9, 0.95).slots.tolist() == [1]


def test_a_withdrawn_page_is_not_chosen() -> None:
    table = table_of([2.0, 1.0], 1.0)
    policy = Argmax(table, 1.0, 0)
    policy.place(all_slots(table), 0.0)
    policy.withdraw(np.array([0]), 0.5)
    assert table.pages["state"].tolist()[:1] == [IDLE]
    assert policy.choose(1.0, 5, 5.0).slots.tolist() == [1]


def test_new_pages_and_pages_without_a_copy_compete_at_their_value() -> None:
    table = table_of([1.0, 1.0, 2.0], [1.0, 1.0, 0.1], law=[FRESHNESS, FRESHNESS, ONCE], last=0.0)
    table.pages["flags"][1] = NO_COPY
    policy = Argmax(table, 1.0, 0)
    policy.place(all_slots(table), 0.0)
    taken = policy.choose(1.0, 3, 3.0)
    assert taken.slots.tolist() == [2, 1, 0]
    missed = 1.3450165493830403  # as stale as after one missed change when it was added, at 0
    assert taken.values == pytest.approx([2.0 * math.exp(-0.1), missed + math.exp(-missed - 1.0), 1 - 2 * math.exp(-1)])


@pytest.mark.parametrize("law", [FRESHNESS, HARMONIC])
def test_the_price_settles_at_that_of_the_plan(law: int) -> None:
    random = np.random.default_rng(3)
    table = table_of(random.random(300), random.random(300), law, last=-10 * random.random(300))
    policy = Argmax(table, 30.0, 0)
    policy.place(all_slots(table), 0.0)
    crawl_steadily(table, policy, 30.0, 3000)
    best = plan(
        {"importance": table.pages["gain"][:300], "change_rate": table.pages["decay"][:300]},
        30.0,
        "harmonic" if law == HARMONIC else "freshness",
    )
    assert policy.price() == pytest.approx(best.price, rel=0.03)
