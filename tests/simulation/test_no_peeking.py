"""Competitors see nothing of a world before it happens."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from lab_worlds import churning_world

from recrawl.lab.peers.registry import PEERS
from recrawl.lab.simulation.news import NEWS_POLICIES, run_news
from recrawl.lab.simulation.scenarios import CONTENDERS, KNOWN, make_contender
from recrawl.lab.worlds.news import NewsWorld, news_world
from recrawl.lab.worlds.world import Events, Signals, World

_CUT, _BUDGET = 12.0, 25.0
_BLIND = [name for name in CONTENDERS if not name.endswith(KNOWN) and name not in PEERS]


def until(events: Events, time: float) -> Events:
    """The events before a time."""
    kept = events.times < time
    return Events(np.concatenate([[0], np.cumsum(kept)])[events.offsets], events.times[kept])


def cut_off(world: World, time: float) -> World:
    """The same world until a time, after which nothing happens; pages born later come at the end."""
    return replace(
        world,
        changes=until(world.changes, time),
        born=np.where(world.born < time, world.born, world.horizon - 0.5),
        removed=np.where(world.removed < time, world.removed, math.inf),
        signals={
            kind: Signals(until(signals.events, time), signals.quality) for kind, signals in world.signals.items()
        },
        change_rate=np.ones(len(world)),
    )


@pytest.fixture(scope="module")
def full() -> World:
    """Pages that are born, change, go and announce, nearly all of them after the cut too."""
    return churning_world(pages=40, horizon=20.0, seed=8)


@pytest.mark.parametrize("name", _BLIND)
def test_what_will_happen_and_the_true_rates_have_no_effect_on_what_is_crawled(name: str, full: World) -> None:
    """Two worlds that are alike until some time are crawled alike until then."""
    logs = [make_contender(name).crawl(world, _BUDGET, seed=5) for world in (full, cut_off(full, _CUT))]
    one, two = (list(zip(log.page.tolist(), log.time.tolist(), strict=True)) for log in logs)
    early = [crawl for crawl in one if crawl[1] < _CUT]
    assert len(early) > 100
    assert early == two[: len(early)]
    assert one != two  # the cut can be seen at all


def news_until(world: NewsWorld, time: float) -> NewsWorld:
    """The same news until a time, after which nothing is hit and new pages come at the very end."""
    hits = until(Events(world.hit_start, world.hit_time), time)
    last = world.horizon - 0.001 * (1 - np.arange(world.pages) / world.pages)
    births = np.where(world.births < time, world.births, last)
    return replace(world, births=births, hit_start=hits.offsets, hit_time=hits.times)


@pytest.mark.parametrize("policy", NEWS_POLICIES)
def test_pages_and_hits_to_come_have_no_effect_on_where_news_is_looked_for(policy: str) -> None:
    """Two graphs that are alike until some time are crawled alike until then."""
    world, cut = news_world(sites=2, days=6.0, seed=5), 3.4
    one, two = (run_news(each, policy, 150.0, 1) for each in (world, news_until(world, cut)))
    early = one.times < cut
    assert early.sum() > 400
    assert one.crawled[early].tolist() == two.crawled[: early.sum()].tolist()
    assert one.crawled.tolist() != two.crawled.tolist()
