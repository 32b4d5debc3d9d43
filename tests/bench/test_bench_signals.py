"""The group `signals`: small runs of each measure read what they should.

How fresh and how fast a tracker is in real time is for the bench to say: here the measures run, and report.
"""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.bench import (
    signals_flood,
    signals_living,
    signals_living_mixed,
    signals_living_news,
    signals_living_trust,
    signals_mixed,
    signals_news,
    signals_trust,
)
from recrawl.bench.living_run import DAY_S, OPENED_DAYS
from recrawl.bench.living_telling import said_in, telling
from recrawl.bench.living_truth import calm_world, lasting_pages, truth_of
from recrawl.bench.measure import Measure, Result, run
from recrawl.bench.signals import measures
from recrawl.bench.trust_readings import WAYS, Ears, TrustReadings
from recrawl.lab.livingweb.articles import articles_between
from recrawl.lab.livingweb.world import LivingWorld
from recrawl.lab.simulation.measures import measure
from recrawl.lab.worlds.signals import KIND, PRECISION, RECALL
from recrawl.lab.worlds.world import CrawlLog

TRUST = signals_trust.Sizes(pages=400, warm_up=4.0, measured=2.0, seeds=1, processes=1, batch=8)
HUBS = signals_news.Sizes(sites=6, days=3.0, crawls_a_day=300.0, seeds=1, processes=1)
PAPER = signals_news.Sizes(sites=2, days=3.0, crawls_a_day=200.0, seeds=1, processes=1)
MIXED = signals_mixed.Sizes(sites=3, pages=60, days=2.0, crawls_a_day=150.0, seeds=1, processes=1, parts=2)


def _read(found: tuple[Measure, ...]) -> dict[str, Result]:
    results = {measure.name: run(measure) for measure in found}
    assert {name: result.reason for name, result in results.items() if result.reason} == {}
    return results


def _values(found: tuple[Measure, ...]) -> dict[str, float]:
    return {name: result.reading.value for name, result in _read(found).items() if result.reading is not None}


def test_names_are_told_apart() -> None:
    names = [measure.name for measure in measures()]
    assert len(set(names)) == len(names)


def test_listening_to_honest_hosts_pays_and_believing_everyone_costs() -> None:
    """In a small world too: what is learned lies between nothing and the optimum, and above believing all."""
    found = _values(signals_trust.trust_measures(TRUST))
    assert -8 < found["honest_freshness"] < -3  # too small a world to learn in a few days what the optimum knows
    assert found["mixture_over_trust_none"] > 2
    assert found["mixture_over_trust_all"] > 3
    assert -2 < found["useless_loss"] < 0


def test_news_are_captured_sooner_by_the_market_than_in_turn() -> None:
    found = _values(signals_news.news_measures(HUBS, PAPER))
    assert 0.7 < found["news_in_turn"] < found["news_captured"] - 0.1
    assert found["news_captured"] < 1
    assert 10 < found["news_delay"] < 40
    assert 0.3 < found["news_echo_graph"] < 0.5


def test_delays_are_counted_to_the_end_for_pages_that_are_never_crawled() -> None:
    task = signals_news.Task("hubs", HUBS, 0)
    world = signals_news.draw_graph(task)
    from recrawl.lab.simulation.news import crawl_at_birth

    run_of_all = crawl_at_birth(world)
    assert signals_news.delays(run_of_all).max() == 0
    none = signals_news.delays(
        type(run_of_all)(world, np.empty(0), np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64))
    )
    assert np.array_equal(none, world.horizon - world.births)


def test_one_market_and_a_split_are_counted_in_one_currency() -> None:
    results = _read(signals_mixed.mixed_measures(MIXED))
    reading = results["mixed_market"].reading
    assert reading is not None
    outcome = signals_mixed.run_task(signals_mixed.Task(MIXED, 0))
    market, (split,) = outcome.market, outcome.splits
    assert min(market.fresh, market.hits, split.fresh, split.hits) > 0
    assert reading.value == pytest.approx(market.fresh + market.hits)
    assert reading.ratio == pytest.approx((market.fresh + market.hits) / (split.fresh + split.hits))


def test_pings_are_absorbed_with_one_entry_a_page() -> None:
    """A flood in small: everything that was sent was heard, and a page that was named often waits once."""
    sizes = signals_flood.Sizes(pages=200, crawls_a_second=100.0, urls_a_second=1_000.0, stretch_s=0.5, turns=1)
    found = signals_flood.run_flood(sizes)
    assert found.entries == found.pages
    assert 0 < found.pages <= sizes.pages
    assert 0 < found.absorbed < 1.5 * sizes.urls_a_second  # lists are sent at a pace, and the first one at once


def test_a_tracker_on_a_living_web_is_measured_against_its_truth() -> None:
    sizes = signals_living.Sizes(pages=40, hosts=6, warm_up_days=1.0, measured_days=1.0, processes=1)
    world = signals_living.make_world(sizes)
    pages = lasting_pages(world, 2.0)
    truth = truth_of(world, pages, 2.0)
    start = world.epoch + 4 * 86_400
    assert len(truth.changes.times) == sum(len(world.changes(page, start, start + 2 * 86_400)) for page in pages)
    for slower in (1, 10, 100):  # two days of the web last 3 s, in which a busy machine may not come to crawl
        found = signals_living.run_task(
            signals_living.Task(sizes._replace(speedup=sizes.speedup / slower), listens=True)
        )
        if found.crawls > len(pages) / 2:
            break
    nothing = CrawlLog(np.empty(0, dtype=np.int32), np.empty(0))
    assert measure(truth, nothing, start=sizes.warm_up_days).freshness <= found.freshness < 1
    assert len(pages) / 2 < found.crawls < 2 * sizes.crawls_a_day * len(pages) * 2


def test_honest_sites_tell_of_changes_and_useless_ones_at_random() -> None:
    """Nine changes in ten are announced and nine announcements in ten are true; the shares are those of pages."""
    world = calm_world(600, 30, 5, laws="poisson", decades=1.0)
    pages = lasting_pages(world, 50.0)
    truth = truth_of(world, pages, 50.0)
    hosts = np.array([world.pages.host[page] for page in pages])
    told = telling(truth, hosts, (0.3, 0.3), 1)
    said, quality = said_in(told), told.signals[KIND].quality
    assert quality is not None
    honest = quality.recall > 0
    assert abs(honest.mean() - 0.3) < 0.1
    assert (np.diff(said.times) >= 0).all()
    of_honest = honest[said.page]
    changes = {
        (page, at)
        for page in range(len(pages))
        for at in truth.changes.times[truth.changes.offsets[page] : truth.changes.offsets[page + 1]].tolist()
    }
    true = np.array([each in changes for each in zip(said.page.tolist(), said.times.tolist(), strict=True)])
    of_changes = honest[np.repeat(np.arange(len(pages)), np.diff(truth.changes.offsets))].sum()
    assert abs(true.sum() / of_changes - RECALL) < 0.03
    assert abs(true[of_honest].mean() - PRECISION) < 0.03
    assert not true[~of_honest].any()
    assert (~of_honest).any()
    assert len(said_in(telling(truth, hosts, (0.0, 0.0), 1)).times) == 0


@pytest.mark.parametrize("ears", ["none", "learned", "all"])
def test_a_tracker_on_a_living_web_is_told_of_changes_over_http(ears: Ears) -> None:
    sizes = signals_living_trust.Sizes(pages=60, hosts=6, warm_up=0.5, measured=0.5, speedup=100_000.0)
    found = signals_living_trust.run_task(signals_living_trust.Task(sizes, 1, ("mixture", ears)))
    _, crawls, told = (int(part.split()[0]) for part in found.size.split(", "))
    assert (told == 0) == (ears == "none")
    assert crawls > 0
    assert 0 < found.freshness < 1
    assert found.optima[1] < found.optima[0] < 1


def test_one_web_is_crawled_in_all_ways() -> None:
    """What came of each way goes to its own reading."""
    crawls = [signals_living_trust.Crawl(number / 10, (0.9, 0.5), f"size {number}") for number in range(len(WAYS))]
    outcome = signals_living_trust._together(crawls)
    assert outcome.freshness == {way: number / 10 for number, way in enumerate(WAYS)}
    assert outcome[1:] == (0.9, 0.5, "size 1")
    readings = TrustReadings(lambda: [outcome])
    assert readings.read_over_all().value == pytest.approx(-10.0)
    assert readings.read_gain().value == pytest.approx(10.0 - 40.0)


LIVING_NEWS = signals_living_news.Sizes(hosts=6, pages=12, crawls_a_day=200.0, learning_days=1.0, measured_days=1.5)


def articles_at_birth(world: LivingWorld, days: float) -> dict[signals_living_news.Key, float]:
    """All articles of hubs, and when each is published, in days from the start."""
    start = world.epoch + OPENED_DAYS * DAY_S
    return {
        (host, each.number): (each.born - start) / DAY_S
        for host in signals_living_news.hubs_of(world)
        for each in articles_between(world, host, start - OPENED_DAYS * DAY_S, start + days * DAY_S)
    }


def test_who_has_articles_at_birth_captures_every_click_and_who_has_none_captures_nothing() -> None:
    world = signals_living_news.make_world(LIVING_NEWS)
    at_birth = articles_at_birth(world, 3.0)
    assert signals_living_news.judge(world, LIVING_NEWS, at_birth)[:2] == (1.0, 0.0)
    assert signals_living_news.judge(world, LIVING_NEWS, {}).share == 0
    in_turn = signals_living_news.fetched_in_turn(world, LIVING_NEWS)
    assert 0 < signals_living_news.judge(world, LIVING_NEWS, in_turn).share < 1


def test_only_articles_of_hubs_count_as_news_of_the_living_web() -> None:
    small = LIVING_NEWS._replace(speedup=86_400.0)
    world = signals_living_news.make_world(small)
    fetched = signals_living_news.fetched_by_tracker(world, small)
    assert {host for host, _ in fetched} <= set(signals_living_news.hubs_of(world))
    born = articles_at_birth(world, small.days)
    assert all(born[article] <= at <= small.days for article, at in fetched.items())
    at_birth = {article: born[article] for article in fetched}
    captured = signals_living_news.judge(world, small, fetched).share
    assert captured <= signals_living_news.judge(world, small, at_birth).share


@pytest.mark.parametrize("part", ["both", "refreshing", "news"])
def test_a_tracker_is_judged_by_what_it_is_for(part: signals_living_mixed.Part) -> None:
    sizes = signals_living_mixed.Sizes(hosts=6, pages=30, learning_days=1.0, measured_days=1.5, speedup=86_400.0)
    world = signals_living_mixed.make_world(sizes)
    judged = LIVING_NEWS._replace(learning_days=sizes.learning_days, measured_days=sizes.measured_days)
    most = signals_living_news.judge(world, judged, articles_at_birth(world, sizes.days)).captured
    for slower in (1, 10, 100):  # at first the web lasts 3 s, in which a busy machine may come to no article
        found = signals_living_mixed.run_task(
            signals_living_mixed.Task(sizes._replace(speedup=sizes.speedup / slower), part, 300.0)
        )
        if found.hits > 0 or part == "refreshing":
            break
    assert 0 < found.fresh < sum(world.pages.clicks)
    assert found.hits == 0 if part == "refreshing" else 0 < found.hits < most
    if part == "news":  # copies get no fresher than those that are never fetched again
        unseen = signals_living_mixed.Task(sizes._replace(speedup=1e6), part, 1e-3)
        assert found.fresh <= 2 * signals_living_mixed.run_task(unseen).fresh
