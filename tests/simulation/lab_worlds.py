"""Small worlds for tests of the laboratory, with births, removals and signals."""

from __future__ import annotations

import numpy as np

from recrawl.lab.worlds.world import Hosts, SignalQuality, Signals, World, group_events


def churning_world(pages: int = 60, horizon: float = 40.0, seed: int = 1, moving: float = 0.3) -> World:
    """Poisson changes; some pages are born late, some go early, one kind of signal."""
    random = np.random.default_rng(seed)
    rate = 10 ** random.uniform(-1.5, 0.5, pages)
    born = np.where(random.random(pages) < moving, random.uniform(0, horizon, pages), 0.0)
    removed = np.where(random.random(pages) < moving, random.uniform(0, horizon, pages), np.inf)
    removed = np.where(removed <= born, np.inf, removed)
    life = np.minimum(removed, horizon) - born
    page = np.repeat(np.arange(pages), random.poisson(rate * life))
    time = born[page] + random.random(len(page)) * life[page]
    announced = random.random(len(page)) < 0.7
    vain = np.repeat(np.arange(pages), random.poisson(0.3 * rate * life))
    vain_time = born[vain] + random.random(len(vain)) * life[vain]
    told = np.concatenate([page[announced], vain]), np.concatenate([time[announced], vain_time])
    quality = SignalQuality(np.full(pages, 0.7), np.full(pages, 0.7))
    return World(
        name="churning",
        horizon=horizon,
        importance=np.exp(random.normal(0, 1, pages)),
        changes=group_events(page, time, pages),
        change_rate=rate,
        poisson=True,
        born=born,
        removed=removed,
        signals={"feed": Signals(group_events(*told, pages), quality)},
        hosts=Hosts(np.arange(pages) % 3, ("a.example", "b.example", "c.example")),
        page_names=tuple(f"docs/{number % 2}/page{number}.md" for number in range(pages)),
    )


def steady_world(pages: int = 200, horizon: float = 50.0, seed: int = 1) -> World:
    """All pages there from the start and for good, no signals."""
    world = churning_world(pages, horizon, seed, moving=0.0)
    return World(
        name="steady",
        horizon=horizon,
        importance=world.importance,
        changes=world.changes,
        change_rate=world.change_rate,
        poisson=True,
        born=world.born,
        removed=world.removed,
    )
