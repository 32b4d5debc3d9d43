"""Signals in the market: who hears, what it is worth, and the same choices as the exact argmax."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from invariants import check

import recrawl
from recrawl import Signal, Tuning
from recrawl.pages import Floats
from recrawl.values import noisy_freshness_value, noisy_harmonic_value

OBJECTIVES = pytest.mark.parametrize("objective", ["freshness", "harmonic"])


def listening(objective: Any, policy: str = "price", pages: int = 200, seed: int = 1, **tuning: Any) -> Any:
    """A scheduler whose pages all listen to a feed, half of them to pings too."""
    random = np.random.default_rng(seed)
    scheduler = recrawl.Scheduler(budget=20.0, objective=objective, policy=policy, tuning=Tuning(**tuning))
    recall = random.choice([0.0, 0.3, 0.6], pages)
    pinged = np.where(np.arange(pages) % 2 == 0, 0.0, random.choice([0.1, 0.35], pages))
    trust = {"feed": Signal(recall, random.choice([0.2, 0.8], pages)), "ping": Signal(pinged, 0.5)}
    importance, rate = random.random(pages) + 0.1, random.random(pages) + 0.05
    ids = scheduler.add(importance=importance, change_rate=rate, last_crawled=0.0, signals=trust)
    return scheduler, ids


def run(scheduler: recrawl.Scheduler, ids: Any, steps: int) -> tuple[list[int], Floats]:
    """Take one page at a time, with the same random signals for the same number of steps."""
    random = np.random.default_rng(9)
    taken: list[int] = []
    values: list[float] = []
    for step in range(1, steps + 1):
        now = step / 20.0
        for kind in ("feed", "ping"):
            scheduler.signal(random.choice(ids, random.poisson(2.0)), now, kind=kind)
        batch = scheduler.take(now, 1)
        scheduler.crawled(batch.ids, now)
        taken.extend(batch.ids.tolist())
        values.extend(batch.values.tolist())
    return taken, np.array(values)


@OBJECTIVES
def test_the_market_sells_what_the_exact_argmax_would_choose(objective: Any) -> None:
    """The same calls to both: nearly all crawls are the same, and the others are of nearly the same worth."""
    steps = 1500
    scheduler, ids = listening(objective)
    exact, _ = listening(objective, policy="argmax")
    taken, values = run(scheduler, ids, steps)
    best, best_values = run(exact, ids, steps)
    check(scheduler)
    assert len(taken) == len(best) == steps
    count, exact_count = np.bincount(taken, minlength=200), np.bincount(best, minlength=200)
    same = np.minimum(count, exact_count).sum() / steps
    assert same >= 0.97
    assert values[200:].mean() == pytest.approx(best_values[200:].mean(), rel=0.01)


@OBJECTIVES
def test_values_are_those_of_theory(objective: Any) -> None:
    """One kind of signal: the value of a batch is that of the noisy value functions at the time and count."""
    scheduler = recrawl.Scheduler(budget=1000.0, objective=objective, burst=10.0)
    rate, recall, precision = 0.7, 0.6, 0.5
    trust = {"feed": Signal(recall, precision)}
    ids = scheduler.add(importance=np.full(5, 2.0), change_rate=rate, last_crawled=0.0, signals=trust)
    scheduler.take(0.0, 0)
    for page in range(5):
        scheduler.signal(np.repeat(ids[page], page), 0.5, kind="feed")
    batch = scheduler.take(0.8, 5)
    assert batch.ids.tolist() == ids[::-1].tolist()
    false_rate = recall * rate * (1 - precision) / precision
    value: Any = noisy_freshness_value if objective == "freshness" else noisy_harmonic_value
    expected = value(2.0, rate, recall, false_rate, 0.8, np.arange(5)[::-1].astype(float))
    assert batch.values == pytest.approx(expected, rel=2e-3)


def test_a_signal_moves_a_page_ahead_at_once() -> None:
    scheduler, ids = listening("harmonic", pages=400)
    run(scheduler, ids, 400)
    waiting = [page for page in ids.tolist() if scheduler._table.signals["precision"][page] > 0.7]
    page = max(waiting, key=lambda each: scheduler._table.pages["last"][each])
    assert scheduler.signal(np.repeat(page, 60), 20.01, kind="feed") == 60
    assert page in [each for step in range(1, 6) for each in scheduler.take(20.0 + step / 20, 1).ids.tolist()]


def test_who_hears_a_signal() -> None:
    """Not pages without a copy, nor those crawled within the delay, nor those that do not listen to its kind."""
    scheduler = recrawl.Scheduler(budget=10.0, tuning=Tuning(signal_delay=0.5))
    trust = {"feed": Signal(0.5, 0.5)}
    deaf = scheduler.add(importance=[1.0], change_rate=1.0, last_crawled=-9.0, signals={"ping": Signal(0.5, 0.5)})
    blank = scheduler.add(importance=[1.0], change_rate=1.0, signals=trust)
    fresh = scheduler.add(importance=[1.0], change_rate=1.0, last_crawled=-0.2, signals=trust)
    ready = scheduler.add(importance=[1.0], change_rate=1.0, last_crawled=-0.6, signals=trust)
    plain = scheduler.add(importance=[1.0], change_rate=1.0, last_crawled=-9.0)
    everyone = np.concatenate([deaf, blank, fresh, ready, plain])
    assert [scheduler.signal([page], 0.0, kind="feed") for page in everyone] == [0, 0, 0, 1, 0]
    assert scheduler.signal(fresh, 0.35, kind="feed") == 1
    assert scheduler._table.pages["signals"][fresh[0]] == 1
    assert (scheduler.counts.signals_heard, scheduler.counts.signals_ignored) == (2, 4)


def test_a_crawl_forgets_the_signals_before_it_and_a_failure_does_not() -> None:
    scheduler = recrawl.Scheduler(budget=100.0, burst=2.0)
    trust = {"feed": Signal(0.5, 0.5)}
    ids = scheduler.add(importance=[1.0, 1.0], change_rate=1.0, last_crawled=0.0, signals=trust)
    scheduler.signal(np.repeat(ids, 3), 1.0, kind="feed")
    assert len(scheduler.take(1.0, 2).ids) == 2
    scheduler.signal(ids, 1.1, kind="feed")
    scheduler.crawled(ids[:1], 1.2)
    scheduler.failed(ids[1:], 1.2)
    assert scheduler._table.pages["signals"][ids].tolist() == [0.0, 4.0]


def test_evidence_of_several_kinds_adds_up() -> None:
    """Freshness: signals of two kinds move a page by the sum of their weights, ln(γ/ν) of each."""
    scheduler = recrawl.Scheduler(budget=100.0, objective="freshness")
    trust = {"feed": Signal(0.4, 0.8), "ping": Signal(0.3, 0.25)}
    page = scheduler.add(importance=[1.0], change_rate=1.0, last_crawled=0.0, signals=trust)
    scheduler.take(0.0, 0)
    scheduler.signal(np.repeat(page, 2), 1.0, kind="feed")
    scheduler.signal(np.repeat(page, 3), 1.0, kind="ping")
    table = scheduler._table
    mean = float(table.signals["precision"][page[0]])
    evidence = float(table.pages["signals"][page[0]]) * -np.log1p(-mean)
    assert evidence == pytest.approx(2 * -np.log(0.2) + 3 * -np.log(0.75), rel=1e-5)


def test_a_sure_signal_among_doubtful_ones_is_sure() -> None:
    """Of a kind that is always right one signal is enough, whatever the others are worth."""
    scheduler = recrawl.Scheduler(budget=100.0, objective="freshness")
    trust = {"sure": Signal(0.3, 1.0), "weak": Signal(0.3, 0.05)}
    page = scheduler.add(importance=[3.0], change_rate=2.0, last_crawled=0.0, signals=trust)
    scheduler.take(0.0, 0)
    scheduler.signal(page, 0.1, kind="sure")
    assert scheduler.take(0.1, 1).values[0] == pytest.approx(3.0 / 2.0, rel=1e-6)


def test_what_is_no_longer_listened_to_is_forgotten() -> None:
    """A page that stops listening and starts again has heard nothing."""
    scheduler = recrawl.Scheduler(budget=100.0)
    trust = {"feed": Signal(0.5, 0.5)}
    page = scheduler.add(importance=[1.0], change_rate=1.0, last_crawled=0.0, signals=trust)
    scheduler.signal(np.repeat(page, 3), 1.0, kind="feed")
    scheduler.update(page, objective="captures", importance=1.0, change_rate=1.0, decay=1.0)
    assert scheduler.signal(page, 1.1, kind="feed") == 0
    scheduler.update(page, objective="harmonic", importance=1.0, change_rate=1.0, signals=trust)
    assert scheduler._table.pages["signals"][page[0]] == 0
    check(scheduler)


def test_a_page_that_is_due_beyond_single_precision_waits_for_ever() -> None:
    """Its threshold of signals is infinite."""
    scheduler = recrawl.Scheduler(budget=1.0, objective="freshness")
    scheduler.add(importance=np.ones(3), change_rate=1.0, last_crawled=0.0)
    never = scheduler.add(importance=1e-60, change_rate=1e-60, last_crawled=0.0, signals={"feed": Signal(0.2, 0.5)})
    for now in range(1, 9):
        taken = scheduler.take(float(now), 1).ids
        assert len(taken) == 1
        assert taken[0] not in never
        scheduler.crawled(taken, float(now))
