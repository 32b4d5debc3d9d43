"""The policies of the NCIS paper: argmax by the value function that each believes in."""

from __future__ import annotations

import numpy as np
import pytest
from small_tables import all_slots, set_limits, set_signals, settle, table_of

from recrawl.errors import InvalidInput
from recrawl.pages import Floats
from recrawl.scheduling.policies.argmax import Ranked
from recrawl.scheduling.policies.registry import make_policy
from recrawl.scheduling.table.pages import PageTable
from recrawl.scheduling.table.records import FRESHNESS, NO_COPY, NOISY_FRESHNESS, ONCE, SOURCE
from recrawl.values import (
    freshness_value,
    noisy_freshness_value,
    selective_freshness_value,
    trusting_freshness_value,
)

NAMES = ["greedy", "greedy-cis", "greedy-cis+", "greedy-ncis", "ncis-approx-1", "ncis-approx-2", "ncis-approx-40"]


def ranked(name: str, table: PageTable) -> Ranked:
    policy = make_policy(name, table, 1.0, 0)
    assert isinstance(policy, Ranked)
    policy.place(all_slots(table), 0.0)
    return policy


def listening_table() -> PageTable:
    random = np.random.default_rng(8)
    table = table_of(random.random(60), 0.05 + random.random(60), NOISY_FRESHNESS)
    recall, precision = random.random(60), 0.05 + 0.95 * random.random(60)
    set_signals(table, slice(0, 60), recall, precision, random.poisson(1.0, 60))
    return table


def paper_value(name: str, table: PageTable, slot: int, elapsed: float) -> float:
    """The value of one page, straight from the formulas."""
    page, signal = table.pages[slot], table.signals[slot]
    importance, change_rate, recall = float(page["gain"]), float(page["decay"]), float(signal["recall"])
    precision, heard = float(signal["precision"]), int(page["signals"])
    noise = recall * change_rate * (1 - precision) / precision
    if name == "greedy":
        value = freshness_value(importance, change_rate, elapsed)
    elif name == "greedy-cis":
        value = trusting_freshness_value(importance, change_rate, recall, elapsed, heard)
    elif name == "greedy-cis+":
        trusted = precision > 0.7 and recall > 0.6
        value = (
            trusting_freshness_value(importance, change_rate, recall, elapsed, heard)
            if trusted
            else freshness_value(importance, change_rate, elapsed)
        )
        assert value == selective_freshness_value(importance, change_rate, recall, noise, elapsed, heard)
    else:
        terms = None if name == "greedy-ncis" else int(name.rpartition("-")[2])
        value = noisy_freshness_value(importance, change_rate, recall, noise, elapsed, heard, terms)
    return float(value)


@pytest.mark.parametrize("name", NAMES)
def test_pages_are_taken_by_the_value_of_the_paper(name: str) -> None:
    table = listening_table()
    expected = np.array([paper_value(name, table, slot, 1.5) for slot in range(60)])
    taken = ranked(name, table).choose(1.5, 20, 20.0)
    assert taken.values == pytest.approx(np.sort(expected)[::-1][:20], rel=1e-12)
    assert taken.values == pytest.approx(expected[taken.slots], rel=1e-12)


def test_many_terms_are_all_terms() -> None:
    table = listening_table()
    many, exact = (ranked(name, table).worth(all_slots(table), 1.5) for name in ("ncis-approx-40", "greedy-ncis"))
    assert many == pytest.approx(exact, rel=1e-9)


def test_greedy_ncis_is_the_argmax_of_a_scheduler_with_one_kind_of_signal() -> None:
    table = listening_table()
    ncis, argmax = (ranked(name, table).worth(all_slots(table), 1.5) for name in ("greedy-ncis", "argmax"))
    assert ncis == pytest.approx(argmax, rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_without_signals_all_are_greedy(name: str) -> None:
    random = np.random.default_rng(2)
    table = table_of(random.random(30), random.random(30))
    worth = ranked(name, table).worth(all_slots(table), 2.0)
    assert worth == pytest.approx(freshness_value(table.pages["gain"][:30], table.pages["decay"][:30], 2.0))


@pytest.mark.parametrize("name", NAMES)
def test_a_useless_signal_is_no_signal(name: str) -> None:
    table = table_of([1.0, 1.0], [0.5, 0.5], NOISY_FRESHNESS)
    set_signals(table, [0, 1], recall=[0.0, 0.5], precision=[0.0, 0.0], heard=[3, 3])
    worth = ranked(name, table).worth(all_slots(table), 2.0)
    assert worth == pytest.approx([freshness_value(1.0, 0.5, 2.0)] * 2)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_without_a_copy_is_worth_all_its_freshness(name: str) -> None:
    table = table_of([3.0, 1.0, 0.0], [2.0, 0.0, 0.0])
    table.pages["flags"][:3] = NO_COPY
    worth = ranked(name, table).worth(all_slots(table), 0.1)
    assert worth.tolist() == [1.5, 1e300, 0.0]


@pytest.mark.parametrize("name", NAMES)
def test_sources_and_new_pages_are_worth_what_the_scheduler_says(name: str) -> None:
    table = table_of([2.0, 3.0, 1.0], [0.5, 0.1, 0.4], [SOURCE, ONCE, FRESHNESS])
    set_limits(table, [0], profit=2.0)
    worth = ranked(name, table).worth(all_slots(table), 2.0)
    assert worth == pytest.approx(table.values(all_slots(table), 2.0))


def simulated_freshness(name: str, precision: float, seed: int = 4) -> float:
    """Share of importance that is fresh, on average over crawls of a small world with noisy signals."""
    random = np.random.default_rng(seed)
    pages, budget, crawls = 60, 12.0, 1500
    importance, change_rate = random.random(pages), 0.1 + random.random(pages)
    table = table_of(importance, change_rate, NOISY_FRESHNESS)
    set_signals(table, slice(0, pages), recall=0.8, precision=precision, heard=0.0)
    policy = ranked(name, table)
    false_rate = 0.8 * change_rate * (1 - precision) / precision
    fresh = np.ones(pages, dtype=bool)
    total = 0.0
    for step in range(1, crawls + 1):
        now = step / budget
        changes = random.poisson(change_rate / budget)
        heard = random.binomial(changes, 0.8) + random.poisson(false_rate / budget)
        fresh &= changes == 0
        table.pages["signals"][:pages] += heard
        policy.signalled(np.flatnonzero(heard), now)
        taken = policy.choose(now, 1, 1.0).slots
        settle(table, policy, taken, now)
        fresh[taken] = True
        total += float(importance[fresh].sum())
    return total / crawls / float(importance.sum())


def test_signals_help_and_noise_hurts_only_those_who_believe_all() -> None:
    """The findings of the paper: CIS above GREEDY without noise, NCIS above both with it."""
    clear: dict[str, float] = {name: simulated_freshness(name, 1.0) for name in ("greedy", "greedy-cis", "greedy-ncis")}
    assert clear["greedy-cis"] > clear["greedy"] + 0.02
    assert clear["greedy-ncis"] == pytest.approx(clear["greedy-cis"], abs=1e-9)
    noisy = {name: simulated_freshness(name, 0.4) for name in ("greedy", "greedy-cis", "greedy-ncis")}
    assert noisy["greedy-ncis"] > max(noisy["greedy"], noisy["greedy-cis"])


@pytest.mark.parametrize("name", ["ncis-approx-0", "ncis-approx-", "ncis-approx-x", "ncis-approx--1", "best", "", None])
def test_an_unknown_name_says_which_there_are(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"policy is .* must be one of price, argmax, .*ncis-approx-j") as error:
        make_policy(name, table_of([1.0], 1.0), 1.0, 0)
    assert error.value.field == "policy"


def test_rounded_parts_of_signals_count_as_at_least_one() -> None:
    """Signals of several kinds are counted in signals of average weight, which need not be whole."""
    table = table_of(np.ones(3), 0.5, NOISY_FRESHNESS)
    set_signals(table, [0, 1, 2], recall=0.6, precision=0.6, heard=[0.2, 1.0, 2.4])
    worth: Floats = ranked("greedy-ncis", table).worth(all_slots(table), 1.0)
    assert worth[0] == worth[1] < worth[2]
