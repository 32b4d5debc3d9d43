"""Crawls settled one by one and together: the same is learned, and the same happens next."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from invariants import check, picture
from slow_learner import believe_slowly, learn_slowly

from recrawl import Scheduler, Signal
from recrawl.learning.filter_state import Memory
from recrawl.scheduling.columns import PageObjective
from recrawl.scheduling.learner import TAIL, Crawls, Tables, learn, write_beliefs
from recrawl.scheduling.types import Tuning

FEED, MAP = Signal(0.7, 0.6), Signal(0.3, 1.0)


def learning(pages: int = 40, host: bool = False, memory: Memory | None = None) -> Scheduler:
    """Pages of all kinds that learn, and some that do not; half of them may be taken at once."""
    tuning = Tuning(signal_delay=0.01) if memory is None else Tuning(memory=memory)
    made = Scheduler(budget=pages / 2, burst=float(3 * pages), tuning=tuning)
    random = np.random.default_rng(3)
    names: Any = {"host": [f"host {number % 4}" for number in range(pages)]} if host else {}
    if host:
        made.set_host("host 0", min_gap=1e-6)
        made.set_host("host 1", max_in_flight=pages)
    objectives: tuple[PageObjective, ...] = ("freshness", "harmonic")
    for objective in objectives:
        for signals in (None, {"feed": FEED}, {"feed": FEED, "map": MAP}):
            for copied in (0.0, None):
                importance = 0.1 + random.random(pages)
                heard: Any = {} if signals is None else {"signals": signals}
                made.add(importance=importance, objective=objective, last_crawled=copied, **heard, **names)
    made.add(importance=1.0 + random.random(pages), change_rate=1.0, last_crawled=0.0, min_interval=0.2, **names)
    made.add(profit=np.ones(pages), decay=0.1, objective="once", **names)
    return made


def lived(made: Scheduler, days: int, one_by_one: bool) -> list[tuple[int, ...]]:
    """Days of signals and crawls, each settled with others or alone; the pages taken."""
    random, taken = np.random.default_rng(8), []
    for day in range(1, days + 1):
        listening = np.flatnonzero(made._table.pages["flags"][: made._table.used] & 8)
        for kind in ("feed", "map"):
            made.signal(made._table.ids_of(random.choice(listening, 100)), day - 0.5, kind=kind)
        ids = made.take(float(day), 60).ids
        taken.append(tuple(ids.tolist()))
        changed = random.random(len(ids)) < 0.5
        if one_by_one:
            for page, flag in zip(ids.tolist(), changed.tolist(), strict=True):
                made.crawled([page], float(day), changed=[flag])
        else:
            made.crawled(ids, float(day), changed=changed)
    return taken


@pytest.mark.parametrize("memory", [None, Memory(half_life=5.0), Memory(notices_turns=False)])
def test_one_page_at_a_time_equals_all_at_once(memory: Memory | None) -> None:
    """Byte for byte: pages, what is believed of them, lists and prices."""
    together, alone = learning(memory=memory), learning(memory=memory)
    assert lived(together, 25, one_by_one=False) == lived(alone, 25, one_by_one=True)
    assert picture(together) == picture(alone)
    check(alone)


@pytest.mark.compiled
def test_one_page_at_a_time_equals_all_at_once_with_hosts() -> None:
    """The same is taken and learned; hosts may have been told of their next page in another order."""
    together, alone = learning(host=True), learning(host=True)
    assert lived(together, 25, one_by_one=False) == lived(alone, 25, one_by_one=True)
    assert picture(together)["beliefs"] == picture(alone)["beliefs"]
    check(alone)


def ledger_of(made: Scheduler) -> Tables:
    table = made._table
    arrays = (table.pages, table.signals, table.beliefs)
    return Tables(*(array.copy() for array in arrays))


def crawls_of(made: Scheduler, seed: int) -> Crawls:
    """Crawls of all pages in some order, with gaps of all lengths, some without a crawl before them."""
    random = np.random.default_rng(seed)
    slots = random.permutation(made._table.used)
    gaps: Any = 10.0 ** random.uniform(-3, 3, len(slots))
    gaps[random.random(len(slots)) < 0.1] = np.nan
    gaps[random.random(len(slots)) < 0.1] = 0.0
    heard = np.where(
        random.random(len(slots)) < 0.5, random.integers(0, 30, len(slots)), 2.5 * random.random(len(slots))
    )
    return Crawls(slots, gaps, heard, random.random(len(slots)) < 0.5)


def test_what_crawls_teach_is_what_the_slow_twin_says() -> None:
    made = learning()
    lived(made, 5, one_by_one=False)
    law = made._get_learner()._law
    fast, slow = ledger_of(made), ledger_of(made)
    for seed in range(20):
        crawls = crawls_of(made, seed)
        learn(fast, law, crawls)
        learn_slowly(slow, law, crawls)
        np.testing.assert_array_equal(fast.beliefs, slow.beliefs)
        np.testing.assert_allclose(fast.pages["decay"], slow.pages["decay"], rtol=1e-12)
        np.testing.assert_allclose(fast.pages["belief"], slow.pages["belief"], rtol=1e-6)


def test_what_is_believed_is_what_the_slow_twin_says() -> None:
    made = learning()
    lived(made, 5, one_by_one=False)
    fast, slow = ledger_of(made), ledger_of(made)
    slots = np.flatnonzero(fast.pages["flags"][: made._table.used] & 2)
    write_beliefs(fast.pages, fast.beliefs, made._get_learner()._law, slots, TAIL)
    believe_slowly(slow, made._get_learner()._law, slots)
    np.testing.assert_allclose(fast.pages["decay"], slow.pages["decay"], rtol=1e-12)
    np.testing.assert_allclose(fast.pages["belief"], slow.pages["belief"], rtol=1e-6)
