"""What a crawler of news learns: the histograms are those of the learning room, and schedules those of the planner."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.lab.simulation.discovery_schedule import source_schedule
from recrawl.lab.simulation.news_kernels import SEEN, Crawler, new_crawler
from recrawl.lab.simulation.news_learner import BINS, SourceLearner
from recrawl.lab.worlds.news import news_world
from recrawl.learning.hit_histograms import HitHistograms
from recrawl.pages import Pages
from recrawl.planning import echo

WORLD = news_world(sites=2, days=9.0, seed=4)
NOW = 8.0


def crawler_that_saw(share: float) -> Crawler:
    """A crawler that has seen some of the links by now."""
    crawler = new_crawler(WORLD, 0, 1)
    there = np.flatnonzero(WORLD.births[WORLD.link_page] <= NOW)
    seen = there[np.random.default_rng(2).random(len(there)) < share]
    crawler.seen[: len(seen)] = seen
    crawler.counts[SEEN] = len(seen)
    return crawler


def seen_pages(crawler: Crawler, source: int) -> list[int]:
    """The pages that a source was seen to link to."""
    seen = crawler.seen[: crawler.counts[SEEN]]
    own = seen[(seen >= WORLD.link_start[source]) & (seen < WORLD.link_start[source + 1])]
    return sorted(WORLD.link_page[own].tolist())


def hits_of(page: int, until: float) -> np.ndarray:
    """When a page was hit, until a time."""
    hits = WORLD.hit_time[WORLD.hit_start[page] : WORLD.hit_start[page + 1]]
    return hits[hits <= until]


def test_histograms_are_those_of_the_learning_room() -> None:
    """Hits and pages watched by age, of every source, with pages older than all bins among them."""
    crawler, learner = crawler_that_saw(0.6), SourceLearner(WORLD)
    learner.push(crawler, NOW, fit=True)
    hits, watched = learner.histograms(np.arange(WORLD.sources), NOW)
    room = HitHistograms(WORLD.sources, 0.0, bins=BINS)
    room.advance(NOW)
    for source in range(WORLD.sources):
        pages = seen_pages(crawler, source)
        room.add_pages([source] * len(pages), WORLD.births[pages])
        for page in pages:
            times = hits_of(page, NOW)
            room.add_hits([source] * len(times), times - WORLD.births[page], np.ones(len(times)))
    assert np.array_equal(hits, room.hits())
    assert watched == pytest.approx(room.watched(), abs=1e-3)


def test_mean_hits_are_counted_however_they_are_pushed() -> None:
    """At once or in two pushes, links known before the hits or after."""
    crawler = crawler_that_saw(0.6)
    at_once, bit_by_bit = SourceLearner(WORLD), SourceLearner(WORLD)
    at_once.push(crawler, NOW, fit=False)
    early = crawler._replace(counts=np.array([crawler.counts[SEEN] // 2, 0, 0]))
    bit_by_bit.push(early, 0.5 * NOW, fit=False)
    bit_by_bit.push(crawler, NOW, fit=False)
    for source in range(WORLD.sources):
        pages = seen_pages(crawler, source)
        hits = sum(len(hits_of(page, NOW)) for page in pages)
        assert at_once.mean_hits[source] == pytest.approx(hits / max(len(pages), 1) + 0.01 / (len(pages) + 1))
    assert np.array_equal(at_once.mean_hits, bit_by_bit.mean_hits)


def test_a_source_of_which_nothing_is_known_has_the_papers_default() -> None:
    """Pessimistic, never 0; pages without hits make it smaller."""
    learner = SourceLearner(WORLD)
    learner.push(new_crawler(WORLD, 0, 1), NOW, fit=True)
    assert (learner.profit == 0.01).all()
    crawler = crawler_that_saw(0.6)
    learner.push(crawler, NOW, fit=True)
    assert (learner.profit > 0).all()
    barren = [s for s in range(WORLD.sources) if not sum(len(hits_of(page, NOW)) for page in seen_pages(crawler, s))]
    assert all(learner.profit[s] == 0.01 / (len(seen_pages(crawler, s)) + 1) for s in barren)


@pytest.mark.parametrize("budget", [5.0, 80.0, 2000.0])
def test_the_schedule_is_the_planners(budget: float) -> None:
    """The paper's rule, to what bisection leaves; but for the one source at the margin."""
    random = np.random.default_rng(8)
    profit, new, decay = (
        np.exp(random.normal(0, 2, 200)),
        np.exp(random.normal(0, 1.5, 200)),
        random.uniform(0.3, 3, 200),
    )
    rates = source_schedule(profit, new, decay, budget, True)
    planned = echo.solve(Pages(importance=profit, change_rate=new, decay=decay), budget, paper_rule=True).rates
    off = np.abs(rates - planned) > 1e-6 * planned.max()
    assert off.sum() <= 1


def test_a_quota_is_spent_on_sources_alone() -> None:
    """The cost of pages is not in it, and all kept sources have the same value of one more crawl."""
    random = np.random.default_rng(9)
    profit, new, decay = (
        np.exp(random.normal(0, 2, 300)),
        np.exp(random.normal(0, 1.5, 300)),
        random.uniform(0.3, 3, 300),
    )
    rates = source_schedule(profit, new, decay, 100.0, False)
    assert rates.sum() == pytest.approx(100.0, rel=1e-8)
    kept = rates > 0
    x = decay[kept] / rates[kept]
    price = profit[kept] / -np.expm1(-decay[kept] / new[kept]) * (1 - (1 + x) * np.exp(-x))
    assert price == pytest.approx(np.full(kept.sum(), price[0]), rel=1e-6)
