"""Sixteen workers on ten thousand pages: no page is held twice, and the gaps of hosts are kept, over a restart too."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from tracker_ground import FAST, SHORT
from tracker_harness import TrackerHarness, serving

from patience import patience
from recrawl.store.rows import NewPage
from recrawl.tracker.remote_workers import WorkResult

PAGES, HOSTS, WORKERS = 10_000, 500, 16
GAP_S = 0.1
SETTINGS = replace(FAST, budget_per_day=86_400.0 * 1e5, min_gap_s=GAP_S, max_in_flight=1, drain_s=5.0)


def test_no_page_is_held_twice_and_gaps_are_kept(tmp_path: Path) -> None:
    held: dict[str, int] = {}
    tokens: list[int] = []
    fetched: Counter[str] = Counter()
    asked_at: dict[str, list[float]] = defaultdict(list)

    async def worker(tracker: TrackerHarness, name: str, enough: int) -> None:
        while len(fetched) < enough:
            offers = await tracker.lease(40, name)
            for offer in offers:
                assert offer.url not in held, "two workers hold one page"
                held[offer.url] = offer.token
                tokens.append(offer.token)
                asked_at[offer.url.split("/")[2]].append(offer.until - SETTINGS.lease_s)
            await asyncio.sleep(0)
            for offer in offers:
                del held[offer.url]
                fetched[offer.url] += 1
            reports = [WorkResult(offer.token, "not-modified") for offer in offers]
            assert await tracker.complete(reports) == ["applied"] * len(reports)
            await asyncio.sleep(0.005)

    async def story() -> None:
        settings = replace(SETTINGS, store=str(tmp_path / "data"))
        for enough in (PAGES // 2, PAGES):
            async with serving(settings, timing=SHORT) as tracker:
                hosts = [f"h{number % HOSTS}.test" for number in range(PAGES)]
                await tracker.add_pages([NewPage(f"http://{host}/{n}", host) for n, host in enumerate(hosts)])
                async with patience("all pages to be fetched"):
                    await asyncio.gather(*(worker(tracker, f"w{n}", enough) for n in range(WORKERS)))
                counts = await tracker.store.counts()
                assert counts.leases == 0
                assert counts.observations == sum(fetched.values())

    asyncio.run(story())
    assert len(tokens) == len(set(tokens))
    gaps = [later - sooner for times in asked_at.values() for sooner, later in pairwise(times)]
    assert min(gaps) >= GAP_S - 1e-4
