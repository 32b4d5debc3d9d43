"""The lazy argmax crawls what the full argmax crawls, for every value function."""

from __future__ import annotations

import math
from typing import NamedTuple, get_args

import numpy as np
import pytest

from recrawl.errors import InvalidInput
from recrawl.lab.simulation.lazy_argmax import crawl_by_argmax
from recrawl.lab.simulation.ncis_values import NcisPolicy, beliefs, level_below, page_of, worth_of
from recrawl.lab.worlds.world import Events, group_events, no_events
from recrawl.pages import Floats
from recrawl.values import (
    freshness_value,
    noisy_freshness_value,
    selective_freshness_value,
    trusting_freshness_value,
)

POLICIES: tuple[NcisPolicy, ...] = get_args(NcisPolicy)


class Small(NamedTuple):
    """Pages with signals."""

    importance: Floats
    change_rate: Floats
    recall: Floats
    false_signal_rate: Floats


def draw(pages: int, horizon: float, seed: int) -> tuple[Small, Events]:
    random = np.random.Generator(np.random.PCG64([seed, pages]))
    importance, change_rate = random.random((2, pages))
    recall, false = random.beta(0.25, 0.25, pages), random.uniform(0.1, 0.6, pages)
    # Every kind of page: all changes announced, no false signals, none at all, and useless ones.
    recall[0::7], false[1::7], recall[2::7], recall[3::14] = 1.0, 0.0, 0.0, 1e-9
    small = Small(importance, change_rate, recall, false)
    number = random.poisson((recall * change_rate + false) * horizon)
    page = np.repeat(np.arange(pages), number)
    return small, group_events(page, random.random(len(page)) * horizon, pages)


def public_value(policy: NcisPolicy, small: Small, elapsed: Floats, heard: Floats) -> Floats:
    """The value functions of the library, which know nothing of levels and bounds."""
    with np.errstate(invalid="ignore"):
        if policy == "greedy":
            values = freshness_value(small.importance, small.change_rate, elapsed)
        elif policy == "greedy-cis":
            values = trusting_freshness_value(small.importance, small.change_rate, small.recall, elapsed, heard)
        elif policy == "greedy-cis+":
            values = selective_freshness_value(*small, elapsed, heard)
        else:
            terms = None if policy == "greedy-ncis" else int(policy[-1])
            values = noisy_freshness_value(*small, elapsed, heard, terms)
    return np.asarray(values)


def full_argmax(policy: NcisPolicy, small: Small, signals: Events, slots: Floats, quiet: float = 0.0) -> list[int]:
    """Value all pages at every slot, by the public functions; signals one by one in order of time."""
    pages = len(small.importance)
    owner = np.repeat(np.arange(pages), np.diff(signals.offsets))
    order = np.argsort(signals.times, kind="stable")
    arrivals = list(zip(signals.times[order].tolist(), owner[order].tolist(), strict=True))
    last, heard = np.full(pages, -math.inf), np.zeros(pages)
    chosen, next_arrival = [], 0
    for now in slots.tolist():
        while next_arrival < len(arrivals) and arrivals[next_arrival][0] <= now:
            time, page = arrivals[next_arrival]
            heard[page] += time > last[page] + quiet
            next_arrival += 1
        has_copy = np.isfinite(last)
        values = public_value(policy, small, np.where(has_copy, now - last, 1.0), heard)
        values = np.where(has_copy, values, small.importance / small.change_rate)
        best = int(np.argmax(values))
        chosen.append(best)
        last[best], heard[best] = now, 0.0
    return chosen


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("pages", "slots"), [(1, 30), (13, 400), (120, 2500), (1000, 4000)])
def test_crawls_are_those_of_the_full_argmax(policy: NcisPolicy, pages: int, slots: int) -> None:
    """Crawl by crawl, from the empty cache on, in worlds with every kind of page."""
    times = np.arange(1, slots + 1) / 100.0 * max(1.0, 60 / pages)
    small, signals = draw(pages, float(times[-1]), 5)
    log = crawl_by_argmax(beliefs(policy, *small), signals, times)
    assert log.page.tolist() == full_argmax(policy, small, signals, times)


@pytest.mark.parametrize("policy", ["greedy", "greedy-ncis"])
def test_pages_that_no_one_wants_change_nothing(policy: NcisPolicy) -> None:
    """Among 60,000 pages more candidates are kept than among 1,000, and the crawls are the same."""
    times = np.arange(1, 4001) / 100.0
    small, signals = draw(1000, 40.0, 10)
    idle = 59_000
    fields = (
        np.concatenate([field, np.full(idle, rest)]) for field, rest in zip(small, (1e-9, 1.0, 0.5, 0.1), strict=True)
    )
    many = Small(*fields)
    heard = Events(np.concatenate([signals.offsets, np.full(idle, signals.offsets[-1])]), signals.times)
    log = crawl_by_argmax(beliefs(policy, *many), heard, times)
    assert log.page.tolist() == full_argmax(policy, small, signals, times)


@pytest.mark.parametrize("quiet", [0.05, 0.5])
def test_signals_soon_after_a_crawl_are_dropped_alike(quiet: float) -> None:
    """Also with the rule for delayed signals the crawls are those of the full argmax."""
    times = np.arange(1, 1501) / 100.0
    small, signals = draw(150, 15.0, 6)
    log = crawl_by_argmax(beliefs("greedy-ncis", *small), signals, times, quiet)
    assert log.page.tolist() == full_argmax("greedy-ncis", small, signals, times, quiet)
    assert log.page.tolist() != crawl_by_argmax(beliefs("greedy-ncis", *small), signals, times).page.tolist()


def test_a_budget_that_changes_is_followed_exactly() -> None:
    """Slots need not be evenly spaced: neither a rising nor a falling price loses the argmax."""
    times = np.concatenate([np.arange(1, 801) / 40, 20 + np.arange(1, 1601) / 160, 30 + np.arange(1, 401) / 20])
    small, signals = draw(200, float(times[-1]), 7)
    for policy in ("greedy", "greedy-ncis"):
        log = crawl_by_argmax(beliefs(policy, *small), signals, times)
        assert log.page.tolist() == full_argmax(policy, small, signals, times)


@pytest.mark.parametrize("policy", POLICIES)
def test_values_are_those_of_the_library_and_keep_their_bounds(policy: NcisPolicy) -> None:
    """V to 1e-11; after any further time at most the bound; a level is worth at most what was asked for, and nearly."""
    small, _ = draw(200, 1.0, 8)
    random = np.random.Generator(np.random.PCG64(9))
    elapsed, heard = 10 ** random.uniform(-3, 3, 200), np.floor(10 ** random.uniform(-1, 2, 200))
    belief = beliefs(policy, *small)
    expected = public_value(policy, small, elapsed, heard)
    for i in range(200):
        page = page_of(belief.pages, i)
        worth = worth_of(page, elapsed[i], heard[i], belief.terms)
        assert small.importance[i] * worth.value == pytest.approx(expected[i], rel=1e-11)
        for further in (1e-3, 0.1, 3.0, 40.0):
            later = worth_of(page, elapsed[i] + further, heard[i], belief.terms).value
            assert later <= (worth.value + further * (worth.slope + further * worth.curve)) * (1 + 1e-12)
        if page.silent_rate > 0:
            level = level_below(page, 0.3 / page.change_rate, belief.terms, -1.0)
            reached = 1e6 if math.isinf(level) else level / page.silent_rate
            found = worth_of(page, reached, 0.0, belief.terms).value * page.change_rate
            assert found <= 0.3 * (1 + 1e-12)
            assert found >= 0.3 * (1 - 3e-3) or math.isinf(level)


def test_what_is_out_of_reach_has_no_level() -> None:
    """A value above the limit of the first terms is never reached, though the exact value reaches it."""
    ones = np.ones(1)
    page = page_of(beliefs("greedy-ncis", ones, ones, 0.5 * ones, ones).pages, 0)
    assert math.isinf(level_below(page, 0.6, 1.0, -1.0))
    assert level_below(page, 0.6, math.inf, -1.0) < 10.0
    assert math.isinf(level_below(page, 1.0, math.inf, -1.0))


def test_bad_input_is_refused() -> None:
    """An unknown policy, a page that never changes, slots out of order, signals of other pages."""
    ones, half = np.ones(2), np.full(2, 0.5)
    with pytest.raises(InvalidInput, match="must be one of greedy"):
        beliefs("eager", ones, ones, half, half)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="change_rate"):
        beliefs("greedy", ones, np.array([1.0, 0.0]), half, half)
    belief = beliefs("greedy", ones, ones, half, half)
    with pytest.raises(InvalidInput, match="order"):
        crawl_by_argmax(belief, no_events(2), np.array([2.0, 1.0]))
    with pytest.raises(InvalidInput, match="signals"):
        crawl_by_argmax(belief, no_events(3), np.array([1.0]))
