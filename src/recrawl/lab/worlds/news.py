"""A dynamic graph of content sources and short-lived new pages, after the data of ECHO (Lefortier et al. 2013).

The paper's graph and clicks are not public. What it tells is kept: 3,000 sources on 150 sites, 415,000 new pages in
three weeks, 2.4 million links to them, a fifth of the pages ever clicked, 0.72 hits a second, hits that fade
exponentially and almost all fall in the first week. The rest are our laws, fixed before any policy was run on them:

- A site has a main page and 19 sections. New pages a day of sites are lognormal (σ 1.5), and so are their hits a day,
  independently: a page of a busy site is worth less. Each graph has the same quantiles, paired by chance.
- A page belongs to a section, drawn with weights 1, 1/2, 1/3, …; pages of a section are worth more or less than those
  of the site by a lognormal factor (σ 1), and each page by a gamma factor of shape 0.2: most pages get no hit at all.
- Its section links to it from birth, the main page with probability ½, each other section with one that makes 5.8
  links a page. A source shows its latest 20 to 60 links, so those of a busy source vanish soon.
- Births follow a daily rhythm (amplitude ½). Interest fades at a rate that is lognormal over sites, median 0.7 a day
  (σ 0.4).

Times are in days from 0; no source shows anything at time 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.lab.worlds.laws import stream
from recrawl.lab.worlds.world import Ints
from recrawl.pages import Floats

PAPER_SITES = 150
SOURCES_A_SITE = 20

_PAGES_A_DAY = 415_000 / 21 / PAPER_SITES
_HITS_A_DAY = 0.72 * 86_400 / PAPER_SITES
_LINKS_A_PAGE = 2.4e6 / 415_000
_SITE_SPREAD, _SECTION_SPREAD, _PAGE_SHAPE = 1.5, 1.0, 0.2
_ON_MAIN_PAGE = 0.5
_ELSEWHERE = (_LINKS_A_PAGE - 1.0 - _ON_MAIN_PAGE) / (SOURCES_A_SITE - 2)
_FEWEST_SHOWN, _MOST_SHOWN = 20, 60
_RHYTHM = 0.5
_NEWS_DECAY, _NEWS_DECAY_SPREAD = 0.7, 0.4


SECTIONS = 5
SOURCES = 1 + SECTIONS
"""Of a site."""

_HUBS = 3  # one site in so many
_ARTICLES, _ARTICLE_SPREAD = 24.0, 0.7
_HITS, _HIT_SPREAD = 60.0, 1.0
_HUBS_DECAY, _HUBS_DECAY_SPREAD = 8.0, 0.4
_SELDOM, _FEW = 0.3, 2.0  # articles a day of other sites, and hits of one
_LINKED = 0.25  # days
_LEAST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class NewsWorld:
    """Sources, the new pages that they link to, and the hits on these.

    Attributes:
        horizon: days in which pages appear; hits go on after it.
        births: when each page appears, in order.
        link_start: where the links of each source begin in `link_page`, and the end.
        link_page: the page of each link, by source and birth; the link appears when the page does.
        shown: how many of its latest links each source shows.
        hit_start: where the hits of each page begin in `hit_time`, and the end.
        hit_time: when each hit falls, by page and time.
    """

    horizon: float
    births: Floats
    link_start: NDArray[np.int64]
    link_page: NDArray[np.int32]
    shown: NDArray[np.int64]
    hit_start: NDArray[np.int64]
    hit_time: Floats

    @property
    def sources(self) -> int:
        """How many sources there are."""
        return len(self.shown)

    @property
    def pages(self) -> int:
        """How many new pages appear."""
        return len(self.births)

    def hits(self) -> NDArray[np.int64]:
        """All hits of each page."""
        return np.diff(self.hit_start)


def news_world(sites: int, days: float, seed: int) -> NewsWorld:
    """Draw a graph; 150 sites and 21 days are the paper's size. O(links + hits, sorted).

    >>> world = news_world(sites=2, days=3.0, seed=1)
    >>> world.sources, world.pages > 100, bool((world.hits() > 0).mean() < 0.5)
    (40, True, True)
    """
    if sites < 1 or not 0.0 < days < math.inf:
        raise InvalidInput(f"{sites} sites over {days} days are none: give at least one site and some time")
    random = np.random.Generator(np.random.PCG64([seed, sites, 13]))
    page_rate = _lognormal(sites, _SITE_SPREAD, _PAGES_A_DAY, random)
    hit_rate = _lognormal(sites, _SITE_SPREAD, _HITS_A_DAY, random)
    decay = _lognormal(sites, _NEWS_DECAY_SPREAD, _NEWS_DECAY * math.exp(_NEWS_DECAY_SPREAD**2 / 2), random)
    births, site = _news_births(page_rate, days, random)
    section = _sections(len(births), random)
    link_start, link_page = _links(site, section, sites, random)
    worth = np.exp(_SECTION_SPREAD * random.standard_normal((sites, SOURCES_A_SITE)) - _SECTION_SPREAD**2 / 2)
    expected = (hit_rate / page_rate)[site] * worth[site, section]
    expected *= random.gamma(_PAGE_SHAPE, 1.0 / _PAGE_SHAPE, len(births))
    count = random.poisson(expected)
    hit_page = np.repeat(np.arange(len(births)), count)
    hit_time = births[hit_page] + random.exponential(1.0, len(hit_page)) / decay[site[hit_page]]
    shown = random.integers(_FEWEST_SHOWN, _MOST_SHOWN + 1, sites * SOURCES_A_SITE)
    return NewsWorld(
        horizon=days,
        births=births,
        link_start=link_start,
        link_page=link_page,
        shown=shown,
        hit_start=np.concatenate(([0], np.cumsum(count))),
        hit_time=hit_time[np.lexsort((hit_time, hit_page))],
    )


def _lognormal(number: int, spread: float, mean: float, random: np.random.Generator) -> Floats:
    """Quantiles of a lognormal law in random order, with exactly this mean."""
    normal = NormalDist()
    at = np.array([normal.inv_cdf((i + 0.5) / number) for i in range(number)])
    values = random.permutation(np.exp(spread * at))
    scaled: Floats = values * (mean / values.mean())
    return scaled


def _news_births(rate: Floats, days: float, random: np.random.Generator) -> tuple[Floats, NDArray[np.int64]]:
    """When pages appear, in order, and the site of each; kept by chance where the rhythm is below its peak."""
    count = random.poisson(rate * days * (1.0 + _RHYTHM))
    site = np.repeat(np.arange(len(rate)), count)
    time = random.uniform(0.0, days, len(site))
    kept = random.random(len(site)) * (1.0 + _RHYTHM) < 1.0 + _RHYTHM * np.sin(2.0 * np.pi * time)
    time, site = time[kept], site[kept]
    order = np.argsort(time, kind="stable")
    return time[order], site[order]


def _sections(pages: int, random: np.random.Generator) -> NDArray[np.int64]:
    """The section of each page, from 1 on; 0 is the main page."""
    weights = 1.0 / np.arange(1, SOURCES_A_SITE)
    sections: NDArray[np.int64] = 1 + np.searchsorted(
        np.cumsum(weights / weights.sum())[:-1], random.random(pages), "right"
    )
    return sections


def _links(
    site: NDArray[np.int64], section: NDArray[np.int64], sites: int, random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Links by source, in order of birth."""
    chance = np.full(SOURCES_A_SITE, _ELSEWHERE, dtype=np.float32)
    chance[0] = _ON_MAIN_PAGE
    linked = random.random((len(site), SOURCES_A_SITE), dtype=np.float32) < chance
    linked[np.arange(len(site)), section] = True
    page, place = np.nonzero(linked)
    source = (site[page] * SOURCES_A_SITE + place).astype(np.int32)
    order = np.argsort(source, kind="stable")
    count = np.bincount(source, minlength=sites * SOURCES_A_SITE)
    return np.concatenate(([0], np.cumsum(count))), page[order].astype(np.int32)


def hubs(sites: int, days: float, seed: int) -> NewsWorld:
    """Sites with news hubs among many that have none: a graph of sources for `news.py`, shaped like the living web.

    A site has a main page and five lists of sections. One site in three is a hub: its articles come with a daily
    rhythm, its main page links to all of them and each list to those of its section, for six hours. Interest in an
    article is gone within hours: it fades at about 8 a day. Hubs differ in articles a day (mean 24), in hits of an
    article (mean 60), both lognormal, and in how fast interest fades; articles of a hub differ by a factor that is
    exponential. The other sites publish an article every few days that hardly anybody reads. Times are days from 0.
    Nothing here does IO.

    Draw a graph. O(links + hits, sorted).

    >>> world = hubs(sites=6, days=4.0, seed=1)
    >>> world.sources, bool(world.pages > 50)
    (36, True)
    """
    if sites < 1 or not 0.0 < days < np.inf:
        raise InvalidInput(f"{sites} sites over {days} days are none: give at least one site and some time")
    random = stream(seed, "hubs")
    hub = np.arange(sites) % _HUBS == 0
    rate = np.where(hub, _spread(random, sites, _ARTICLES, _ARTICLE_SPREAD), _SELDOM)
    worth = np.where(hub, _spread(random, sites, _HITS, _HIT_SPREAD), _FEW)
    decay = _spread(random, sites, _HUBS_DECAY, _HUBS_DECAY_SPREAD)
    births, site = _hubs_births(random, rate, days)
    section = random.integers(1, SOURCES, len(births))
    count = random.poisson(worth[site] * random.standard_exponential(len(births)))
    page = np.repeat(np.arange(len(births)), count)
    hit_time = births[page] + random.standard_exponential(len(page)) / decay[site[page]]
    source = np.concatenate([site * SOURCES, site * SOURCES + section])
    order = np.argsort(source, kind="stable")
    per_source = np.bincount(source, minlength=sites * SOURCES)
    shown = np.maximum(np.rint(_LINKED * np.repeat(rate, SOURCES)), _LEAST_SHOWN)
    return NewsWorld(
        horizon=days,
        births=births,
        link_start=np.concatenate(([0], np.cumsum(per_source))),
        link_page=np.tile(np.arange(len(births), dtype=np.int32), 2)[order],
        shown=shown.astype(np.int64),
        hit_start=np.concatenate(([0], np.cumsum(count))),
        hit_time=hit_time[np.lexsort((hit_time, page))],
    )


def _spread(random: np.random.Generator, sites: int, mean: float, spread: float) -> Floats:
    """Lognormal numbers with this mean."""
    drawn: Floats = mean * np.exp(spread * random.standard_normal(sites) - spread**2 / 2)
    return drawn


def _hubs_births(random: np.random.Generator, rate: Floats, days: float) -> tuple[Floats, Ints]:
    """When articles appear, in order, and the site of each; kept by chance where the rhythm is below its peak."""
    site = np.repeat(np.arange(len(rate)), random.poisson(rate * days * (1.0 + _RHYTHM)))
    time = random.uniform(0.0, days, len(site))
    kept = random.random(len(site)) * (1.0 + _RHYTHM) < 1.0 + _RHYTHM * np.sin(2.0 * np.pi * time)
    order = np.argsort(time[kept], kind="stable")
    return time[kept][order], site[kept][order]
