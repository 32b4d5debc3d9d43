"""Sampling by site (Cho and Ntoulas 2002): no history, only samples.

A cycle spends half a crawl for each known page. First some pages of each site are crawled, drawn by seed: ten, or
fewer where there are many sites, so that samples take at most half of the cycle. The rest goes greedily to the sites
with the largest share of changed samples, oldest copies first. A site is a host; without hosts it is the first folder
of the page's name; without names all pages are one site.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from recrawl.lab.peers.kinds import PLANNED
from recrawl.lab.peers.replanning import start_evenly
from recrawl.lab.simulation.crawl_log import CrawlLog
from recrawl.lab.simulation.due_queue_run import Run
from recrawl.lab.simulation.world import Ints, World
from recrawl.pages import Floats

_CYCLE = 0.5  # crawls per page
_SAMPLE = 10


@dataclass(frozen=True, slots=True)
class ChoNtoulas:
    """Crawls samples of all sites, then the sites whose samples changed most."""

    name: str = "cho-ntoulas"

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:
        """Crawl a world from 0 to its horizon, at most `budget` crawls a day. O(n log n) a cycle."""
        run = start_evenly(world, budget, seed, PLANNED)
        run.queue.planned[:] = math.inf
        random = np.random.Generator(np.random.PCG64([seed, 2]))
        site = sites_of(world)
        share = np.zeros(int(site.max(initial=-1)) + 1)
        going = True
        while going:
            known = np.flatnonzero(run.known())
            cycle = max(1, int(_CYCLE * len(known)))
            sample = draw_sample(site[known], cycle, random)
            since = run.made
            going = _crawl_in_order(run, known[sample])
            if not going or not len(known):
                continue
            update_shares(share, site, run, since)
            rest = np.setdiff1d(known, run.crawls.page[since : run.made])
            order = np.lexsort((rest, run.queue.last[rest], -share[site[rest]]))
            going = _crawl_in_order(run, rest[order[: max(cycle - len(sample), 1)]])
        return run.log()


def sites_of(world: World) -> Ints:
    """The number of each page's site."""
    if world.hosts is not None:
        return np.asarray(world.hosts.number, dtype=np.int64)
    if world.page_names is not None:
        folders = [name.lstrip("/").partition("/")[0] for name in world.page_names]
        return np.unique(np.array(folders, dtype=np.str_), return_inverse=True)[1].astype(np.int64)
    return np.zeros(len(world), dtype=np.int64)


def draw_sample(site: Ints, cycle: int, random: np.random.Generator) -> Ints:
    """Positions of a few pages of each site, in random order; at most half a cycle. O(n log n)."""
    chance = random.random(len(site))
    order = np.lexsort((chance, site))
    first = np.flatnonzero(np.diff(site[order], prepend=-1))
    rank = np.arange(len(site)) - np.repeat(first, np.diff(np.append(first, len(site))))
    most = max(1, cycle // 2)
    each = min(max(most // max(len(first), 1), 1), _SAMPLE)
    drawn = order[rank < each]
    return drawn[np.argsort(random.random(len(drawn)))][:most]


def update_shares(share: Floats, site: Ints, run: Run, since: int) -> None:
    """The share of pages that had changed among those crawled since then; sites without any keep theirs."""
    pages = run.crawls.page[since : run.made]
    crawled = np.bincount(site[pages], minlength=len(share))
    changed = np.bincount(site[pages], weights=run.crawls.changed[since : run.made], minlength=len(share))
    np.divide(changed, crawled, out=share, where=crawled > 0)


def _crawl_in_order(run: Run, pages: Ints) -> bool:
    due = np.full(len(run.queue.last), math.inf)
    due[pages] = run.now + np.arange(len(pages))  # only their order counts
    run.replan(due)
    return run.serve(run.made + max(len(pages), 1))
