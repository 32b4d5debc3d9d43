"""Clicks of readers as an access log would have them: steady for pages, fading within hours for articles.

Drawn from the seed by host and hour, so that any stretch of the log can be read again.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from recrawl.lab.livingweb.chance import share, stream
from recrawl.lab.livingweb.clock import DAY_S
from recrawl.lab.livingweb.hubs import READABLE_S, Article, articles_between
from recrawl.lab.livingweb.world import LivingWorld

HOUR_S = 3600.0
FADING_S = 3 * HOUR_S
ARTICLE_CLICKS = 60.0


class Click(NamedTuple):
    """One hit of a reader; `at` in Unix seconds."""

    at: float
    host: int
    path: bytes


def clicks(world: LivingWorld, host: int, since: float, until: float) -> list[Click]:
    """Clicks on a host in (since, until], in order. O(hours x pages of the host + clicks)."""
    first, last = int((since - world.epoch) // HOUR_S), int((until - world.epoch) // HOUR_S)
    hits = [hit for hour in range(max(0, first), last + 1) for hit in _page_clicks(world, host, hour)]
    for found in articles_between(world, host, since - READABLE_S, until):
        hits += _article_clicks(world, found)
    return sorted(hit for hit in hits if since < hit.at <= until)


def log_line(world: LivingWorld, click: Click) -> str:
    """A click in the combined log format, with the host in front."""
    when = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(click.at))
    reader = int(share(world.seed, click.host, int(click.at * 1024)) * 254) + 1
    name = world.hosts[click.host].name
    return f'{name} 192.0.2.{reader} - - [{when}] "GET {click.path.decode()} HTTP/1.1" 200 10000 "-" "Mozilla/5.0"'


def article_click_rate(found: Article, now: float) -> float:
    """Expected clicks a day on an article at a time: exponential decay from its birth."""
    if not found.born <= now < found.gone:
        return 0.0
    return ARTICLE_CLICKS / (FADING_S / DAY_S) * float(np.exp(-(now - found.born) / FADING_S))


def _page_clicks(world: LivingWorld, host: int, hour: int) -> list[Click]:
    pages = world.pages_of(host)
    random = stream(world.seed, "clicks", host, hour)
    rates = np.asarray(world.pages.clicks)[pages.start : pages.stop] * (HOUR_S / DAY_S)
    counts = random.poisson(rates)
    where = np.repeat(np.arange(pages.start, pages.stop), counts).tolist()
    when = world.epoch + (hour + random.random(len(where))) * HOUR_S
    return [
        Click(at, *world.address(page, at))
        for at, page in zip(when.tolist(), where, strict=True)
        if world.state(page, at) in ("alive", "moved")
    ]


def _article_clicks(world: LivingWorld, found: Article) -> list[Click]:
    random = stream(world.seed, "article-clicks", found.host, found.number)
    delays = random.exponential(FADING_S, random.poisson(ARTICLE_CLICKS))
    return [Click(found.born + delay, found.host, found.path) for delay in delays.tolist() if delay < READABLE_S]
