"""What sources are believed to be worth follows from audits of their own kinds of signals."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
from followed_site import FOLLOWING, sources_of
from small_site import Site
from tracker_ground import Ground, running

from recrawl.store.rows import SourceRow
from recrawl.tracker.discovery.memory import NOTHING, Memory
from recrawl.tracker.discovery.reading import from_links
from recrawl.tracker.discovery.source import Source
from recrawl.tracker.signals.trust import Audit

HOST = "a.site.test"


def audit(ground: Ground, kind: int, times: int, *, tells: bool) -> None:
    """Let a host be audited so often after signals of a kind, which were all true, or none of them."""
    trust, number = ground.signals.trust, ground.host(HOST).number
    kinds = ["neighbour", "sitemap", "feed", "websub"]
    trust.listen(np.array([number]), kinds, kind)
    row = trust.row_of(number)
    assert row is not None
    for turn in range(2 * times):
        heard = np.zeros(len(kinds), dtype=np.int64)
        heard[kind] = turn % 2
        changed = turn % 2 == 1 if tells else turn % 4 < 2
        trust.note(Audit(row, 1.0, changed, heard, np.full(len(kinds), 0.5)))
    trust.relearn()


def test_a_kind_that_was_never_heard_is_not_called_useless(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site() as site, running(site, tmp_path, FOLLOWING) as ground:
            sources = sources_of(ground)
            audit(ground, 0, 20, tells=False)
            assert sources.precision(HOST, "sitemap") is None
            audit(ground, 1, 20, tells=False)
            assert sources.precision(HOST, "sitemap") == 0.0

    asyncio.run(story())


def test_a_feed_whose_hub_tells_the_truth_is_worth_that(tmp_path: Path) -> None:
    """Polls of a feed told nothing, and what its hub pushed was true: the better kind counts."""

    async def story() -> None:
        async with Site() as site, running(site, tmp_path, FOLLOWING) as ground:
            sources = sources_of(ground)
            audit(ground, 2, 20, tells=False)
            source = Source(SourceRow(1, "feed", "user", added_at=0.0), site.url("/news.rss"), HOST)
            sources._trust(source)
            assert source.precision == 0.0
            audit(ground, 3, 40, tells=True)
            sources._trust(source)
            assert source.precision > 0.5

    asyncio.run(story())


def test_of_links_out_of_scope_nothing_is_kept(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site() as site, running(site, tmp_path, FOLLOWING) as ground:
            sources = sources_of(ground)
            row = SourceRow(1, "hub", "user", added_at=0.0)
            source = Source(row, site.url("/"), HOST, Memory(root=site.url("/").split("/")[2]))
            hosts = len(ground.hosts)
            links = [f"http://h{number}.other{number}.example/page" for number in range(50)]
            taken = await sources._intake.take_in(source, from_links(links, NOTHING))
            assert not taken.found
            assert taken.refused == {"out-of-scope": 50}
            assert len(ground.hosts) == hosts

    asyncio.run(story())
