"""One scheduler over news and pages to refresh: what is crawled, in which order, and that nothing is crawled twice."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.errors import InvalidInput
from recrawl.lab.simulation.news_market import MarketRun
from recrawl.lab.worlds.laws import uniform
from recrawl.lab.worlds.news import SOURCES, hubs
from recrawl.lab.worlds.signals import KIND, Manners, announcing, taken_at_their_word


def test_every_crawl_of_the_budget_goes_somewhere_and_found_pages_are_crawled_once() -> None:
    news, refresh = hubs(6, 2.0, 3), uniform(50, 2.0, 3)
    log = MarketRun(news, refresh, 200.0, 3).crawl()
    assert log.news is not None
    assert len(log.news.times) + len(log.refresh.time) == 400
    pages = log.news.crawled[log.news.crawled >= news.sources]
    assert len(set(pages.tolist())) == len(pages) > 0
    assert (np.diff(log.news.times) >= 0).all()


def test_a_page_is_found_before_it_is_crawled() -> None:
    """A page is crawled after its birth, and after a crawl of a source that shows it."""
    news = hubs(6, 2.0, 3)
    log = MarketRun(news, None, 200.0, 3).crawl()
    assert log.news is not None
    run = log.news
    site_of_source = np.arange(news.sources) // SOURCES
    looked: dict[int, float] = {}
    link_site = {}
    for source in range(news.sources):
        for page in news.link_page[news.link_start[source] : news.link_start[source + 1]].tolist():
            link_site[page] = int(site_of_source[source])
    for code, at in zip(run.crawled.tolist(), run.times.tolist(), strict=True):
        if code < news.sources:
            looked[int(site_of_source[code])] = at
        else:
            page = code - news.sources
            assert news.births[page] <= looked[link_site[page]] <= at


def test_the_same_seed_crawls_the_same() -> None:
    news, refresh = hubs(3, 2.0, 1), uniform(30, 2.0, 1)
    first, again = (MarketRun(news, refresh, 100.0, 1).crawl() for _ in range(2))
    assert first.news is not None
    assert again.news is not None
    assert np.array_equal(first.news.crawled, again.news.crawled)
    assert np.array_equal(first.refresh.page, again.refresh.page)


def test_worlds_of_different_days_are_refused() -> None:
    with pytest.raises(InvalidInput, match="same days"):
        MarketRun(hubs(3, 2.0, 1), uniform(30, 3.0, 1), 100.0, 1)
    with pytest.raises(InvalidInput, match="news or pages"):
        MarketRun(None, None, 100.0, 1)


def test_hubs_have_articles_and_the_others_hardly_any() -> None:
    world = hubs(9, 20.0, 5)
    links = np.diff(world.link_start).reshape(9, SOURCES)
    assert (links[:, 0] == links[:, 1:].sum(axis=1)).all()
    hub = np.arange(9) % 3 == 0
    assert links[hub, 0].mean() > 20 * links[~hub, 0].mean()
    age = world.hit_time - np.repeat(world.births, world.hits())
    assert age.min() >= 0
    assert np.median(age) < 0.15


def test_manners_of_hosts_change_signals_and_nothing_else() -> None:
    honest = announcing(2_000, 20.0, 1, Manners(0.3, 0.0))
    mixture = announcing(2_000, 20.0, 1, Manners(0.3, 0.3))
    assert np.array_equal(honest.changes.times, mixture.changes.times)
    quality = mixture.signals[KIND].quality
    assert quality is not None
    assert (quality.recall > 0).mean() == pytest.approx(0.3)
    counts = np.diff(mixture.signals[KIND].events.offsets)
    useless = (quality.recall == 0) & (counts > 0)
    assert mixture.change_rate is not None
    assert counts[useless].sum() == pytest.approx(20 * mixture.change_rate[useless].sum(), rel=0.1)
    believed = taken_at_their_word(mixture).signals[KIND].quality
    assert believed is not None
    assert (believed.recall > 0).mean() == pytest.approx(0.6)
    with pytest.raises(InvalidInput, match="together at most 1"):
        announcing(100, 5.0, 1, Manners(0.7, 0.4))
