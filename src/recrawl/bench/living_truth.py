"""A calm living web for measures of `signals`: pages that last, when they changed, and when they were crawled.

Times are days from the start of the crawl. Nothing here does IO.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from recrawl.bench.living_run import DAY_S, OPENED_DAYS, Fetches

if TYPE_CHECKING:
    from recrawl.lab.livingweb.world import LivingWorld
    from recrawl.lab.worlds.world import CrawlLog, World
    from recrawl.pages import Floats

_CALM = {"trouble": "calm", "robots": "allow", "feed": "none", "hub": False, "etag": "true", "modified": "true"}


def calm_world(pages: int, hosts: int, seed: int, **more: Any) -> LivingWorld:
    """A web without troubles and noise, in which one page is like the other but for its changes.

    Args:
        pages: how many it has; some come, go or move.
        hosts: they live on, of different sizes.
        seed: another seed, another web.
        more: fields of `WorldSettings`.
    """
    from recrawl.lab.livingweb.world import LivingWorld
    from recrawl.lab.livingweb.world_settings import WorldSettings

    shared = {**_CALM, "max_age_s": None}
    return LivingWorld(
        WorldSettings(pages=pages, hosts=hosts, seed=seed, noise_share=0.0, kilobytes=2.0, every_host=shared, **more)
    )


def lasting_pages(world: LivingWorld, days: float) -> list[int]:
    """Pages that are there, at the same address, all the time."""
    end = (OPENED_DAYS + days) * DAY_S
    columns = world.pages
    return [
        page
        for page in range(len(world))
        if columns.born[page] <= 0 and columns.gone[page] > end and columns.moved[page] > end
    ]


def truth_of(world: LivingWorld, pages: list[int], days: float, importance: Floats | None = None) -> World:
    """When these pages changed, and how often they do; all are equally important if nothing else is said."""
    from recrawl.lab.livingweb.world import MASS_EDITS_PER_DAY
    from recrawl.lab.worlds.world import World, group_events

    start = world.epoch + OPENED_DAYS * DAY_S
    times = [world.changes(page, start, start + days * DAY_S) for page in pages]
    number = np.repeat(np.arange(len(pages)), [len(each) for each in times])
    changes = (np.array([at for each in times for at in each]) - start) / DAY_S
    return World(
        name="living",
        horizon=days,
        importance=np.ones(len(pages)) if importance is None else importance,
        changes=group_events(number, changes, len(pages)),
        change_rate=np.array([world.pages.rate[page] for page in pages]) + MASS_EDITS_PER_DAY,
        born=np.full(len(pages), 0.0),
        removed=np.full(len(pages), np.inf),
    )


def log_of(fetches: Fetches, urls: list[str]) -> CrawlLog:
    """Fetches of these pages, in order of time."""
    from recrawl.lab.worlds.world import CrawlLog

    number = {url: place for place, url in enumerate(urls)}
    rows = [(at, number[url]) for at, url in fetches if url in number]
    page = np.array([place for _, place in rows], dtype=np.int32)
    return CrawlLog(page, np.array([at for at, _ in rows], dtype=np.float64))
