"""The world of news: what the paper tells of its graph holds, and the arrays are what they say."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from recrawl.errors import InvalidInput
from recrawl.lab.worlds.news import SOURCES_A_SITE, NewsWorld, news_world

WORLD = news_world(sites=20, days=14.0, seed=3)


def same(one: NewsWorld, other: NewsWorld) -> bool:
    """Whether two worlds are equal to the bit."""
    return all(np.array_equal(getattr(one, field.name), getattr(other, field.name)) for field in fields(NewsWorld))


def test_the_same_seed_gives_the_same_world_and_another_another() -> None:
    """To the bit."""
    assert same(news_world(3, 5.0, 1), news_world(3, 5.0, 1))
    assert not same(news_world(3, 5.0, 1), news_world(3, 5.0, 2))


def test_the_counts_are_the_papers() -> None:
    """Pages, links a page and the share of pages that are ever hit, in proportion to sites and days."""
    assert WORLD.sources == 20 * SOURCES_A_SITE
    assert WORLD.pages == pytest.approx(415_000 * 20 / 150 * 14 / 21, rel=0.03)
    assert len(WORLD.link_page) / WORLD.pages == pytest.approx(2.4e6 / 415_000, rel=0.02)
    assert 0.1 < (WORLD.hits() > 0).mean() < 0.3


def test_links_of_a_source_are_in_order_of_birth_and_lead_to_pages_of_one_site() -> None:
    """Each page belongs to the 20 sources of its site, and none links to it twice."""
    site = np.full(WORLD.pages, -1)
    for source in range(WORLD.sources):
        pages = WORLD.link_page[WORLD.link_start[source] : WORLD.link_start[source + 1]]
        assert (np.diff(pages) > 0).all()  # pages are in order of birth
        assert np.isin(site[pages], (-1, source // SOURCES_A_SITE)).all()
        site[pages] = source // SOURCES_A_SITE
    assert (site >= 0).all()
    assert (np.diff(WORLD.births) >= 0).all()


def test_hits_follow_birth_in_order_and_fade() -> None:
    """Most within a few days."""
    page = np.repeat(np.arange(WORLD.pages), WORLD.hits())
    age = WORLD.hit_time - WORLD.births[page]
    assert (age >= 0).all()
    assert (np.diff(WORLD.hit_time)[np.diff(page) == 0] >= 0).all()
    assert np.mean(age < 7.0) > 0.95


def test_births_follow_the_day() -> None:
    """More pages appear in its first half."""
    assert np.mean(WORLD.births % 1.0 < 0.5) == pytest.approx(0.5 + 0.5 / np.pi, abs=0.02)


@pytest.mark.parametrize(("sites", "days"), [(0, 1.0), (1, 0.0), (1, float("inf"))])
def test_an_empty_world_is_refused(sites: int, days: float) -> None:
    """With a sentence."""
    with pytest.raises(InvalidInput, match="give at least one site"):
        news_world(sites, days, 1)
