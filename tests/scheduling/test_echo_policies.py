"""ECHO's three modes: what they crawl first, and when they solve for intervals again."""

from __future__ import annotations

import numpy as np
import pytest
from small_tables import all_slots, set_limits, settle, table_of

import recrawl
from recrawl.pages import Floats
from recrawl.scheduling.policies.echo import GreedySources, NewPagesFirst, OnSchedule, SourcesAndNewPages
from recrawl.scheduling.table.pages import PageTable
from recrawl.scheduling.table.records import FRESHNESS, IDLE, ONCE, SOURCE

MODES = [NewPagesFirst, OnSchedule, GreedySources]

PROFIT = np.array([5.0, 1.0, 3.0])
RATE = np.array([0.2, 0.6, 0.1])
DECAY = np.array([0.3, 0.5, 0.1])


def sources_and_pages(found: list[float]) -> PageTable:
    """Three sources, and a new page of profit 1 found at each of these times."""
    count = len(found)
    table = table_of(
        np.append(PROFIT * RATE, np.ones(count)),
        np.append(DECAY, np.full(count, 0.2)),
        [SOURCE] * 3 + [ONCE] * count,
        np.append(np.zeros(3), found),
    )
    set_limits(table, [0, 1, 2], profit=PROFIT)
    return table


def placed(mode: type[SourcesAndNewPages], table: PageTable, budget: float = 3.0) -> SourcesAndNewPages:
    policy = mode(table, budget, 0)
    policy.place(all_slots(table), 0.0)
    return policy


def intervals(budget: float = 3.0) -> Floats:
    columns = {"profit": PROFIT, "new_page_rate": RATE, "decay": DECAY}
    return np.asarray(1 / recrawl.plan(columns, budget, objective="news", solver="echo-paper").rates)


def order(policy: SourcesAndNewPages, now: float) -> list[int]:
    return [int(slot) for slot in policy.choose(now, 99, 99.0).slots]


def test_newpages_crawls_new_pages_by_value_and_then_the_source_most_behind() -> None:
    table = sources_and_pages([1.0, 3.0, 2.0])
    behind = 4.0 / intervals()
    assert order(placed(NewPagesFirst, table), 4.0) == [4, 5, 3, *np.argsort(-behind).tolist()]


def test_schedule_crawls_sources_that_are_due_and_then_the_newest_pages() -> None:
    due_at = intervals()
    table = sources_and_pages([0.0, 0.1, 0.05])
    now = float(np.sort(due_at)[1]) * 1.001
    due = np.flatnonzero(due_at <= now)
    assert len(due) == 2
    expected = due[np.argsort(due_at[due])].tolist()
    policy = placed(OnSchedule, table)
    assert order(policy, now) == [*expected, 4, 5, 3]
    assert order(policy, now) == [], "a source that is not due waits even if nothing else does"


def test_greedy_crawls_new_pages_and_then_the_source_with_most_profit_gathered() -> None:
    table = sources_and_pages([1.0])
    table.pages["last"][:3] = [3.5, 0.0, 0.0]
    gathered = PROFIT * RATE * np.array([0.5, 4.0, 4.0])
    assert order(placed(GreedySources, table), 4.0) == [3, *np.argsort(-gathered).tolist()]


@pytest.mark.parametrize("mode", MODES)
def test_pages_of_other_laws_are_ignored(mode: type[SourcesAndNewPages]) -> None:
    table = table_of([9.0, 9.0], 1.0, [FRESHNESS, ONCE])
    assert order(placed(mode, table), 5.0) == [1]


@pytest.mark.parametrize("mode", MODES)
def test_a_source_that_yields_nothing_breaks_nothing(mode: type[SourcesAndNewPages]) -> None:
    """Without profit, new pages or decay of interest."""
    table = table_of([0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 1.0], SOURCE)
    set_limits(table, [0, 1, 2, 3], profit=[0.0, 1.0, 1.0, 1.0])
    policy = placed(mode, table)
    assert policy.choose(100.0, 1, 1.0).slots.tolist() in ([3], [2])
    assert 0 <= policy.price() < np.inf


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("budget", [0.0, 2.0])
def test_no_sources_and_no_budget_are_nothing_to_solve(mode: type[SourcesAndNewPages], budget: float) -> None:
    for table in (table_of([], []), sources_and_pages([])):
        policy = placed(mode, table, budget)
        policy.choose(1.0, 9, 9.0)
        assert 0 <= policy.price() < np.inf


def test_sources_are_crawled_at_the_intervals_of_the_solution() -> None:
    """With budget enough to be on time, every source is crawled once per interval."""
    table = sources_and_pages([])
    policy = placed(OnSchedule, table)
    times: list[list[float]] = [[], [], []]
    for step in range(1, 8_001):
        now = step / 200
        taken = policy.choose(now, 9, 9.0).slots
        settle(table, policy, taken, now)
        for slot in taken:
            times[slot].append(now)
    for slot in range(3):
        assert np.diff(times[slot]) == pytest.approx(intervals()[slot], abs=2 / 200)
    assert policy.price() > 0


def test_intervals_are_solved_again_only_when_sources_or_the_budget_changed() -> None:
    table = sources_and_pages([0.5, 0.6])
    policy = placed(NewPagesFirst, table)
    policy.choose(0.5, 0, 1.0)
    solved = policy._solved
    for step in range(1, 30):
        now = 1 + step / 3
        settle(table, policy, policy.choose(now, 1, 1.0).slots, now)
    more = table.allocate(40)
    table.pages["law"][more] = ONCE
    policy.place(more, 11.0)
    policy.choose(11.0, 0, 1.0)
    assert policy._solved is solved, "crawled sources and new pages are no news"
    table.pages["gain"][0] *= 2
    policy.place(np.array([0]), 11.0)
    policy.choose(11.0, 0, 1.0)
    changed = policy._solved
    assert changed is not solved
    policy.choose(11.0, 0, 1.0)
    assert policy._solved is changed
    policy.withdraw(np.array([1]), 11.0)
    policy.choose(11.0, 0, 1.0)
    fewer = policy._solved
    assert fewer.slots.tolist() == [0, 2]
    policy.budget = 4.0
    policy.choose(11.0, 0, 1.0)
    assert policy._solved.budget == 4.0


def world_profit(mode: type[SourcesAndNewPages], budget: float) -> float:
    """Profit still to come at the moment each page is crawled, per unit time, in a small world of sources."""
    random = np.random.default_rng(1)
    profit, rate, decay = 0.1 + random.random(12), random.random(12), np.full(12, 0.2)
    table = table_of(profit * rate, decay, SOURCE)
    set_limits(table, slice(0, 12), profit=profit)
    policy = placed(mode, table, budget)
    total, steps = 0.0, 3000
    for step in range(1, steps + 1):
        now = step / budget
        taken = policy.choose(now, 1, 1.0).slots
        for slot in taken.tolist():
            page = table.pages[slot]
            if page["law"] == ONCE:
                total += page["gain"] * np.exp(-page["decay"] * (now - page["last"]))
                table.pages["state"][slot] = IDLE
                table.free(np.array([slot]))
                continue
            new = table.allocate(random.poisson(rate[slot] * (now - page["last"])))
            for name, value in (("gain", profit[slot]), ("decay", 0.2), ("law", ONCE), ("last", now)):
                table.pages[name][new] = value
            policy.place(new, now)
            settle(table, policy, np.array([slot]), now)
    return total / (steps / budget)


def test_all_modes_gather_most_of_what_there_is_when_the_budget_is_ample() -> None:
    random = np.random.default_rng(1)
    profit, rate = 0.1 + random.random(12), random.random(12)
    most = float(profit @ rate)
    for mode in MODES:
        assert world_profit(mode, 40.0) > 0.75 * most
    assert world_profit(NewPagesFirst, 6.0) > 0.4 * most
