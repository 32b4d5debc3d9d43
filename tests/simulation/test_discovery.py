"""Crawling news: compiled policies crawl what plain ones do, and what they gain is counted truly."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from recrawl.errors import InvalidInput
from recrawl.lab.simulation.discovery_schedule import source_schedule
from recrawl.lab.simulation.news import NEWS_POLICIES, NewsRun, crawl_at_birth, quality, run_news
from recrawl.lab.simulation.news_kernels import SEEN, new_crawler
from recrawl.lab.simulation.news_learner import SourceLearner
from recrawl.lab.simulation.scenarios import NEWS_SUMMARIES, NewsTrial
from recrawl.lab.worlds.news import NewsWorld, news_world
from recrawl.pages import Floats
from recrawl.values.laws import new_page_value_kernel, source_market_value_kernel

WORLD = news_world(sites=2, days=6.0, seed=5)
BUDGET = 150.0


class SlowCrawler:
    """The policies in plain Python: lists and loops, the compiled ones' estimates."""

    def __init__(self, world: NewsWorld, policy: str, budget: float, seed: int) -> None:
        self.world, self.policy, self.budget = world, policy, budget
        self.links = [
            world.link_page[world.link_start[s] : world.link_start[s + 1]].tolist() for s in range(world.sources)
        ]
        self.memory = new_crawler(world, 0, seed)  # for its order, and to hand links to the learner
        self.order = self.memory.order.tolist()
        self.known: set[int] = set()
        self.shown = [0] * world.sources
        self.last = [0.0] * world.sources
        self.waiting: list[tuple[int, int]] = []  # page and the source it was found on, newest last
        self.looked = 0
        self.price = 0.01
        self.learner = SourceLearner(world)
        self.log: list[int] = []
        self.crawls: list[tuple[int, float, int]] = []

    def look(self, source: int, now: float) -> None:
        there = [page for page in self.links[source] if self.world.births[page] <= now]
        fresh = range(max(self.shown[source], len(there) - int(self.world.shown[source])), len(there))
        new = [there[i] for i in fresh if there[i] not in self.known]
        for i in fresh:
            self.memory.seen[self.memory.counts[SEEN]] = self.world.link_start[source] + i
            self.memory.counts[SEEN] += 1
        self.known.update(new)
        self.waiting += [(page, source) for page in new]
        self.shown[source], self.last[source] = len(there), now
        self.log.append(source)
        self.crawls.append((source, now, len(new) if self.policy == "market" else len(fresh)))

    def take_newest(self) -> None:
        self.log.append(self.world.sources + self.waiting.pop()[0])

    def step(self, slot: int, now: float, first_of_stretch: bool) -> None:
        sources = self.world.sources
        if self.policy == "market" and (first_of_stretch or slot % max(1, int(self.budget / 720)) == 0):
            self.value_sources(now)
        if self.policy == "bfs":
            if self.waiting:
                self.take_newest()
            else:
                self.look(self.order[self.looked % sources], now)
                self.looked += 1
        elif self.looked < sources and not (self.waiting and self.pages_go_first(slot)):
            source = self.order[self.looked]
            self.look(source, now)
            self.looked += 1
            self.values = getattr(self, "values", [0.0] * sources)
            self.values[source] = 0.0
        elif self.policy == "market":
            self.sell(now)
        else:
            self.by_schedule(slot, now)

    def pages_go_first(self, slot: int) -> bool:
        return self.policy in ("echo-greedy", "echo-newpages") or (self.policy == "fixed-quota" and slot % 2 == 1)

    def by_schedule(self, slot: int, now: float) -> None:
        behind = [pace * (now - last) for pace, last in zip(self.pace.tolist(), self.last, strict=True)]
        most = behind.index(max(behind))
        due = behind[most] >= 1
        longest = self.last.index(min(self.last))
        if self.policy in ("echo-greedy", "echo-newpages"):
            choice = None if self.waiting else most
        elif self.policy == "fixed-quota":
            choice = (None if slot % 2 else most) if self.waiting else most if due else longest
        else:
            choice = most if due else None if self.waiting else longest
        if choice is None:
            self.take_newest()
        else:
            self.look(choice, now)

    def value_sources(self, now: float) -> None:
        learner = self.learner
        elapsed = now - np.array(self.last)
        self.values = np.vectorize(source_market_value_kernel)(
            learner.profit, learner.new_page_rates(), learner.decay, elapsed, self.price
        ).tolist()

    def sell(self, now: float) -> None:
        worth = [
            (
                float(
                    new_page_value_kernel(self.learner.profit[s], self.learner.decay[s], now - self.world.births[page])
                ),
                page,
                s,
            )
            for page, s in self.waiting
        ]
        best_page = max(worth, key=lambda each: (each[0], each[1]), default=(-1.0, 0, 0))
        best_source = self.values.index(max(self.values))
        value = max(best_page[0], self.values[best_source])
        worth_it = value >= self.price
        self.price *= math.exp(0.05 * (0.1 if worth_it else 0.1 - 1.0))
        if worth_it and best_page[0] == value:
            self.waiting.remove(best_page[1:])
            self.log.append(self.world.sources + best_page[1])
        else:
            source = best_source if worth_it else self.last.index(min(self.last))
            self.look(source, now)
            self.values[source] = 0.0

    def solve(self) -> None:
        learner, rates = self.learner, self.learner.new_page_rates()
        if self.policy == "echo-greedy":
            self.pace: Floats = rates * learner.mean_hits
        elif self.policy == "frequency":
            self.pace = source_schedule(np.ones(len(rates)), rates, np.ones(len(rates)), self.budget, True)
        elif self.policy == "fixed-quota":
            self.pace = source_schedule(learner.profit, rates, learner.decay, self.budget / 2, False)
        else:
            self.pace = source_schedule(learner.profit, rates, learner.decay, self.budget, True)

    def run(self) -> list[int]:
        slots = int(self.world.horizon * self.budget)
        slot = 0
        self.solve()
        for half_hour in range(1, int(self.world.horizon * 48) + 1):
            first = slot
            while slot < slots and (slot + 1) / self.budget <= half_hour / 48:
                self.step(slot, (slot + 1) / self.budget, slot == first)
                slot += 1
            for crawl in self.crawls:
                self.learner.see_crawls(*(np.array([part]) for part in crawl))
            self.crawls = []
            if half_hour % 2 == 0:
                self.learner.push(self.memory, half_hour / 48, fit=True)
            self.solve()
        return self.log


@pytest.mark.parametrize("policy", [name for name in NEWS_POLICIES if name != "market"])
def test_the_compiled_policy_crawls_what_a_plain_one_does(policy: str) -> None:
    """Crawl by crawl."""
    assert run_news(WORLD, policy, BUDGET, 7).crawled.tolist() == SlowCrawler(WORLD, policy, BUDGET, 7).run()


def test_the_compiled_market_sells_as_a_plain_one_does() -> None:
    """Crawl by crawl, with all values reckoned anew in every slot at this budget."""
    assert run_news(WORLD, "market", BUDGET, 7).crawled.tolist() == SlowCrawler(WORLD, "market", BUDGET, 7).run()


@pytest.mark.parametrize("policy", NEWS_POLICIES)
def test_the_same_seed_gives_the_same_run_and_no_page_is_crawled_twice(policy: str) -> None:
    """Every slot is used, and pages only after a source showed them."""
    one, other = (run_news(WORLD, policy, BUDGET, 2) for _ in range(2))
    assert np.array_equal(one.crawled, other.crawled)
    pages = one.crawled[one.crawled >= WORLD.sources] - WORLD.sources
    assert len(one.crawled) == 6 * BUDGET
    assert (one.crawled >= 0).all()
    assert len(np.unique(pages)) == len(pages)
    assert (WORLD.births[pages] <= one.times[one.crawled >= WORLD.sources]).all()


def test_gains_are_the_hits_still_to_come() -> None:
    """Counted one by one."""
    run = run_news(WORLD, "echo-newpages", BUDGET, 1)
    for code, time, gain in zip(run.crawled.tolist(), run.times.tolist(), run.gains.tolist(), strict=True):
        page = code - WORLD.sources
        hits = WORLD.hit_time[WORLD.hit_start[page] : WORLD.hit_start[page + 1]] if page >= 0 else np.empty(0)
        assert gain == sum(hit > time for hit in hits)


def test_quality_is_what_a_window_holds() -> None:
    """By direct counting, the end of the window included and its beginning not."""
    run = NewsRun(WORLD, np.array([1.0, 2.0, 3.0, 4.0]), np.zeros(4, dtype=np.int32), np.array([5, 7, 11, 13]))
    assert quality(run, 2.0, np.array([0.5, 2.0, 3.5, 4.0])).tolist() == [0.0, 6.0, 9.0, 12.0]


def test_no_policy_is_above_the_bound_and_all_crawls_are_counted() -> None:
    """Crawling every page at birth captures all of the hits."""
    bound = crawl_at_birth(WORLD)
    assert bound.share_of_bound == 1.0
    assert bound.gains.sum() == len(WORLD.hit_time)
    for policy in NEWS_POLICIES:
        run = run_news(WORLD, policy, BUDGET, 1)
        assert run.gains.sum() <= bound.gains.sum()
        assert run.source_crawls + run.page_crawls == (run.times > 4.0).sum()
        assert run.source_crawls == run.crawls_by_source().sum()
        assert run.hits_per_day > 0


def test_delays_and_shares_are_counted_one_by_one() -> None:
    """Of what was crawled after the part of the time that is for learning; shares are of pages born since then."""
    run = replace(run_news(WORLD, "market", BUDGET, 1), learning=0.5)
    late = [
        time - WORLD.births[code - WORLD.sources]
        for code, time in zip(run.crawled.tolist(), run.times.tolist(), strict=True)
        if time > WORLD.horizon / 2 and code >= WORLD.sources
    ]
    assert run.delay == pytest.approx(np.mean(late))
    born_since = set(np.flatnonzero(WORLD.births > WORLD.horizon / 2).tolist())
    gains = {
        code - WORLD.sources: gain
        for code, gain in zip(run.crawled.tolist(), run.gains.tolist(), strict=True)
        if code - WORLD.sources in born_since
    }
    assert len(gains) < len(late)  # others were born before
    assert run.pages_crawled == len(gains) / len(born_since)
    assert run.share_of_bound == sum(gains.values()) / WORLD.hits()[list(born_since)].sum()


@pytest.mark.parametrize("policy", NEWS_POLICIES)
@pytest.mark.parametrize("learning", [0.1, 0.5, 0.9, 0.99])
def test_shares_are_never_above_one(policy: str, learning: float) -> None:
    """However many pages wait from before: with many crawls they are all crawled in the time that is measured."""
    few = run_news(WORLD, policy, BUDGET, 1)
    waiting = np.flatnonzero(WORLD.births < WORLD.horizon * learning)
    times = np.linspace(WORLD.horizon * learning, WORLD.horizon, len(waiting) + 2)[1:-1]
    late = NewsRun(WORLD, times, (WORLD.sources + waiting).astype(np.int32), np.ones(len(waiting), dtype=np.int64))
    both = replace(
        few,
        times=np.concatenate((few.times, late.times)),
        crawled=np.concatenate((few.crawled, late.crawled)),
        gains=np.concatenate((few.gains, late.gains)),
        learning=learning,
    )
    assert 0.0 <= replace(few, learning=learning).pages_crawled == both.pages_crawled <= 1.0
    assert 0.0 <= replace(few, learning=learning).share_of_bound == both.share_of_bound <= 1.0


def test_trials_of_news_tell_every_policy_and_are_the_same_each_time() -> None:
    """And each policy has a line that says what it is."""
    assert set(NEWS_SUMMARIES) == set(NEWS_POLICIES)
    trial = NewsTrial(names=("bfs", "market"), sites=2, days=6.0, budget=BUDGET, learning=0.5)
    one, other = trial.repeat(1), trial.repeat(1)
    assert one == other
    assert one != trial.repeat(2)
    for numbers in one:
        assert 0 < numbers["hits_captured"] <= 1
        assert numbers["crawls"] == 3 * BUDGET


@pytest.mark.parametrize(
    ("policy", "budget", "sentence"), [("echo-newpage", 10.0, "did you mean"), ("bfs", 0.0, "posi")]
)
def test_bad_input_is_refused(policy: str, budget: float, sentence: str) -> None:
    """With the nearest name, or what a budget must be."""
    with pytest.raises(InvalidInput, match=sentence):
        run_news(WORLD, policy, budget, 1)
