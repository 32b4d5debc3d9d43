"""Sites with news hubs among many that have none: a graph of sources for `news.py`, shaped like the living web.

A site has a main page and five lists of sections. One site in three is a hub: its articles come with a daily rhythm,
its main page links to all of them and each list to those of its section, for six hours. Interest in an article is gone
within hours: it fades at about 8 a day. Hubs differ in articles a day (mean 24), in hits of an article (mean 60), both
lognormal, and in how fast interest fades; articles of a hub differ by a factor that is exponential. The other sites
publish an article every few days that hardly anybody reads. Times are days from 0. Nothing here does IO.
"""

from __future__ import annotations

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.lab.simulation.world import Ints
from recrawl.lab.worlds.drawing import stream
from recrawl.lab.worlds.news import NewsWorld
from recrawl.pages import Floats

SECTIONS = 5
SOURCES = 1 + SECTIONS
"""Of a site."""

_HUBS = 3  # one site in so many
_ARTICLES, _ARTICLE_SPREAD = 24.0, 0.7
_HITS, _HIT_SPREAD = 60.0, 1.0
_DECAY, _DECAY_SPREAD = 8.0, 0.4
_SELDOM, _FEW = 0.3, 2.0  # articles a day of other sites, and hits of one
_LINKED = 0.25  # days
_LEAST_SHOWN = 5
_RHYTHM = 0.5


def hubs(sites: int, days: float, seed: int) -> NewsWorld:
    """Draw a graph. O(links + hits, sorted).

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
    decay = _spread(random, sites, _DECAY, _DECAY_SPREAD)
    births, site = _births(random, rate, days)
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


def _births(random: np.random.Generator, rate: Floats, days: float) -> tuple[Floats, Ints]:
    """When articles appear, in order, and the site of each; kept by chance where the rhythm is below its peak."""
    site = np.repeat(np.arange(len(rate)), random.poisson(rate * days * (1.0 + _RHYTHM)))
    time = random.uniform(0.0, days, len(site))
    kept = random.random(len(site)) * (1.0 + _RHYTHM) < 1.0 + _RHYTHM * np.sin(2.0 * np.pi * time)
    order = np.argsort(time[kept], kind="stable")
    return time[kept][order], site[kept][order]
