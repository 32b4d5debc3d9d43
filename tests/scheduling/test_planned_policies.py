"""Policies that follow a plan crawl at its rates, lose no crawl and plan again only when they must."""

from __future__ import annotations

import numpy as np
import pytest
from small_tables import all_slots, crawl_steadily, set_limits, settle, table_of

from recrawl.planning.solve import plan
from recrawl.scheduling.policies.planned import EarliestDeadline, LowDiscrepancy, Planned, PoissonSchedule
from recrawl.scheduling.table.pages import PageTable
from recrawl.scheduling.table.records import FRESHNESS, HARMONIC, IDLE, ONCE, WINDOW

KINDS = [EarliestDeadline, LowDiscrepancy, PoissonSchedule]


def some_table(law: int = FRESHNESS, pages: int = 20) -> PageTable:
    random = np.random.default_rng(6)
    return table_of(0.1 + random.random(pages), 0.1 + random.random(pages), law)


def placed(kind: type[Planned], table: PageTable, budget: float = 10.0) -> Planned:
    policy = kind(table, budget, 3)
    policy.place(all_slots(table), 0.0)
    return policy


@pytest.mark.parametrize(
    ("kind", "law", "solver", "objective"),
    [
        (EarliestDeadline, FRESHNESS, "azar", "freshness"),
        (EarliestDeadline, HARMONIC, "azar", "freshness"),
        (LowDiscrepancy, FRESHNESS, "even", "freshness"),
        (LowDiscrepancy, HARMONIC, "even", "harmonic"),
        (PoissonSchedule, FRESHNESS, "azar", "freshness"),
        (PoissonSchedule, HARMONIC, "lambdacrawl", "harmonic"),
    ],
)
def test_pages_are_crawled_at_the_rates_of_the_plan(kind: type[Planned], law: int, solver: str, objective: str) -> None:
    table = some_table(law)
    columns = {"importance": table.pages["gain"][:20].copy(), "change_rate": table.pages["decay"][:20].copy()}
    best = plan(columns, 10.0, objective, solver)  # type: ignore[arg-type]
    policy = placed(kind, table)
    policy.choose(0.0, 1, 1.0)
    assert policy.price() == pytest.approx(best.price)
    chosen, _ = crawl_steadily(table, policy, 10.0, 8000)
    counted = np.bincount(chosen, minlength=20)
    assert len(chosen) == 8000, "no budget is left over"
    noise = 4 * np.sqrt(best.rates.max() / 800) if kind is PoissonSchedule else 1 / 800
    assert counted / 800 == pytest.approx(best.rates, abs=noise)


@pytest.mark.parametrize("kind", [EarliestDeadline, LowDiscrepancy])
def test_crawls_of_a_page_are_evenly_spread(kind: type[Planned]) -> None:
    """No page is ever a whole crawl ahead of its rate, nor late."""
    table = some_table()
    policy = placed(kind, table)
    chosen, _ = crawl_steadily(table, policy, 10.0, 3000)
    rates = np.bincount(chosen, minlength=20) / len(chosen)
    for page in np.flatnonzero(rates > 0.01):
        gaps = np.diff(np.flatnonzero(chosen == page))
        assert gaps.max() < 2 / rates[page] + 2


def test_pages_come_in_the_order_of_the_schedule_once_their_time_has_come() -> None:
    table = some_table()
    policy = placed(EarliestDeadline, table)
    assert policy.choose(0.05, 99, 99.0).slots.tolist() == []
    schedule = plan(
        {"importance": table.pages["gain"][:20].copy(), "change_rate": table.pages["decay"][:20].copy()},
        10.0,
        "freshness",
        "azar",
    ).schedule("edf")
    expected = list(dict.fromkeys(page for _, page in (next(schedule) for _ in range(12))))
    assert policy.choose(0.05 + 1.2, 99, 99.0).slots.tolist() == expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_that_cannot_be_crawled_when_its_time_comes_stays_due(kind: type[Planned]) -> None:
    table = some_table(pages=4)
    policy = placed(kind, table)
    policy.choose(0.0, 9, 9.0)
    table.pages["not_before"][:4] = 50.0
    assert policy.choose(20.0, 9, 9.0).slots.tolist() == []
    table.pages["not_before"][:4] = 0.0
    taken = policy.choose(20.0, 9, 9.0).slots
    assert sorted(taken.tolist()) == [0, 1, 2, 3]
    assert policy.choose(20.0, 9, 9.0).slots.tolist() == [], "none is crawled twice for times that passed together"


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_in_flight_is_not_taken_again_but_when_it_is_back(kind: type[Planned]) -> None:
    table = some_table(pages=3)
    policy = placed(kind, table)
    policy.choose(0.0, 9, 9.0)
    first = policy.choose(10.0, 9, 9.0).slots
    assert sorted(first.tolist()) == [0, 1, 2]
    assert policy.choose(20.0, 9, 9.0).slots.tolist() == []
    settle(table, policy, first, 20.0)
    assert sorted(policy.choose(20.0, 9, 9.0).slots.tolist()) == [0, 1, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_that_comes_back_uncrawled_is_due_again(kind: type[Planned]) -> None:
    """Failed or released: its last crawl is what it was."""
    table = table_of([1.0, 1.0, 1.0], 0.5, [FRESHNESS, FRESHNESS, ONCE])
    policy = placed(kind, table)
    policy.choose(0.0, 0, 1.0)
    taken = policy.choose(3.0, 9, 9.0).slots
    assert sorted(taken.tolist()) == [0, 1, 2]
    table.pages["state"][taken] = IDLE
    policy.place(taken, 3.0)
    assert policy.choose(3.0, 9, 9.0).slots.tolist() == taken.tolist()


class Counting(EarliestDeadline):
    """Counts the plans it makes."""

    plans = 0

    def _plan(self, now: float) -> None:
        self.plans += 1
        super()._plan(now)


def test_a_plan_is_made_again_only_when_pages_or_the_budget_changed() -> None:
    table = some_table()
    policy = Counting(table, 10.0, 0)
    policy.place(all_slots(table), 0.0)
    crawl_steadily(table, policy, 10.0, 50)
    assert policy.plans == 1, "crawled pages that come back are no news"
    slots = table.allocate(1)
    table.pages["gain"][slots], table.pages["decay"][slots], table.pages["law"][slots] = 5.0, 1.0, FRESHNESS
    policy.place(slots, 5.0)
    policy.choose(5.1, 1, 1.0)
    assert policy.plans == 2
    policy.withdraw(np.array([20]), 5.2)
    policy.choose(5.3, 1, 1.0)
    policy.choose(5.4, 1, 1.0)
    assert policy.plans == 3
    policy.budget = 20.0
    policy.choose(5.5, 1, 1.0)
    policy.choose(5.6, 1, 1.0)
    assert policy.plans == 4


def test_a_slot_that_was_given_to_another_page_is_a_new_page() -> None:
    table = some_table()
    policy = Counting(table, 10.0, 0)
    policy.place(all_slots(table), 0.0)
    policy.choose(0.0, 1, 1.0)
    table.pages["state"][7] = IDLE
    table.free(np.array([7]))
    slots = table.allocate(1)
    assert slots.tolist() == [7]
    policy.place(slots, 1.0)
    policy.choose(1.0, 1, 1.0)
    assert policy.plans == 2


def test_random_crawls_of_a_page_come_at_exponential_intervals() -> None:
    table = some_table(pages=10)
    policy = placed(PoissonSchedule, table)
    chosen, _ = crawl_steadily(table, policy, 10.0, 20_000)
    page = int(np.argmax(np.bincount(chosen)))
    gaps = np.diff(np.flatnonzero(chosen == page))
    assert gaps.std() / gaps.mean() == pytest.approx(1.0, abs=0.12)


def test_a_page_removed_in_flight_is_planned_for_no_more() -> None:
    table = some_table(pages=3)
    policy = Counting(table, 10.0, 0)
    policy.place(all_slots(table), 0.0)
    policy.choose(0.0, 1, 1.0)
    slot = int(policy.choose(0.1, 1, 1.0).slots[0])
    table.pages["state"][slot] = IDLE
    table.free(np.array([slot]))
    seen = set()
    for step in range(2, 60):
        taken = policy.choose(step / 10, 9, 9.0).slots
        settle(table, policy, taken, step / 10)
        seen.update(taken.tolist())
    assert seen == {0, 1, 2} - {slot}
    assert policy.plans == 2


def test_a_withdrawn_page_is_due_no_more() -> None:
    table = some_table(pages=3)
    policy = placed(EarliestDeadline, table)
    policy.choose(0.0, 9, 9.0)
    policy.choose(5.0, 0, 0.0)
    policy.withdraw(np.array([1]), 5.0)
    assert 1 not in policy.choose(9.0, 9, 9.0).slots.tolist()


def test_a_new_page_is_due_when_it_is_placed() -> None:
    table = table_of([1.0, 1.0, 1.0], 0.5, [FRESHNESS, FRESHNESS, ONCE])
    policy = placed(LowDiscrepancy, table)
    assert policy.choose(0.0, 9, 9.0).slots.tolist() == [2]


def test_limits_of_pages_are_limits_of_their_rates() -> None:
    table = some_table(pages=4)
    set_limits(table, [0], min_interval=2.0)
    set_limits(table, [1], max_interval=0.25)
    policy = placed(LowDiscrepancy, table)
    chosen, _ = crawl_steadily(table, policy, 10.0, 2000)
    counted = np.bincount(chosen, minlength=4) / 200
    assert counted[0] <= 0.5 + 0.01
    assert counted[1] >= 4.0 - 1 / 200


def test_costs_share_the_budget() -> None:
    table = some_table(pages=4)
    set_limits(table, [0, 1, 2, 3], cost=[1.0, 2.0, 0.5, 1.0])
    policy = placed(LowDiscrepancy, table)
    policy.choose(0.0, 1, 1.0)
    rates = np.zeros(4)
    for step in range(1, 4001):
        taken = policy.choose(step / 10, 99, 99.0).slots
        settle(table, policy, taken, step / 10)
        rates[taken] += 1 / 400
    assert rates @ [1.0, 2.0, 0.5, 1.0] == pytest.approx(10.0, rel=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_after_a_long_pause_the_schedule_starts_anew(kind: type[Planned]) -> None:
    """A pause of a million crawls is not caught up with, one by one."""
    table = some_table(pages=5)
    policy = placed(kind, table)
    policy.choose(0.0, 9, 9.0)
    taken = policy.choose(1e9, 99, 99.0).slots
    assert len(taken) == 5
    settle(table, policy, taken, 1e9)
    assert policy.choose(1e9, 99, 99.0).slots.tolist() == []
    assert 5 <= sum(len(policy.choose(1e9 + t / 10, 1, 1.0).slots) for t in range(1, 40)) <= 40


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("budget", [0.0, 5.0])
def test_no_pages_and_no_budget_are_nothing_to_do(kind: type[Planned], budget: float) -> None:
    for table in (table_of([], []), some_table()):
        policy = placed(kind, table, budget)
        if budget == 0 or not table.used:
            assert policy.choose(100.0, 9, 9.0).slots.tolist() == []
        assert policy.price() >= 0


def test_a_window_counts_as_one_change_per_window() -> None:
    table = table_of([1.0, 1.0], [2.0, 0.5], [WINDOW, FRESHNESS])
    policy = placed(LowDiscrepancy, table, budget=1.0)
    chosen, _ = crawl_steadily(table, policy, 1.0, 400)
    assert np.bincount(chosen, minlength=2) == pytest.approx([200, 200], abs=2)
