"""Sources of a tracker when something breaks: it is said, nothing is forgotten, and no write undoes another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from followed_site import FOLLOWING
from tracker_ground import SHORT
from tracker_harness import TrackerHarness, logged, serving

from patience import patience, ticks
from recrawl.errors import StoreBusy
from recrawl.store.rows import NewPage
from recrawl.store.store import Store
from recrawl.tracker.commands.commands import SourceHits
from recrawl.tracker.commands.hits import count
from recrawl.tracker.discovery.discovery import Discovery
from recrawl.tracker.discovery.memory import from_bytes, unpack_listed
from recrawl.tracker.discovery.reading import Named
from recrawl.tracker.discovery.source import Source
from recrawl.tracker.discovery.value import BINS, pack_counts, unpack_counts
from recrawl.tracker.remote_workers import WorkResult
from recrawl.tracker.settings.settings import SignalRules
from recrawl.tracker.visit import Visit
from recrawl.web.fetch.protocol import FetchResult
from recrawl.web.push.websub import HubLinks
from recrawl.web.url.address import address_or_raise

SETTINGS = replace(FOLLOWING, signals=SignalRules(callback="https://me.example.com/"))
MAIN = b'<a href="/one">one</a><p>a main page</p>'
MORE = b'<a href="/one">one</a><a href="/two">two</a><p>a main page</p>'


class Faulty:
    """A store some of whose methods raise."""

    def __init__(self, store: Store, faults: dict[str, Exception]) -> None:
        self._store = store
        self.faults = faults

    def __getattr__(self, name: str) -> Any:
        if name not in self.faults:
            return getattr(self._store, name)
        return self._raise

    async def _raise(self, *_: object, **__: object) -> None:
        raise next(iter(self.faults.values()))


@asynccontextmanager
async def followed(folder: Path, said: list[str]) -> AsyncIterator[tuple[TrackerHarness, Discovery, Source]]:
    """A tracker whose fetches are the test's, with a main page that is a source; nothing else is fetched."""
    async with patience(), serving(replace(SETTINGS, store=str(folder)), timing=SHORT) as tracker:
        await tracker.add_pages([NewPage("https://a.example/", "a.example")])
        (offer,) = await tracker.lease_some(1)
        await tracker.complete([WorkResult(offer.token, "ok", MAIN, "text/html")])
        with logged(said):
            yield tracker, tracker.sources, tracker.source("https://a.example/")


async def tend(sources: Discovery) -> None:
    """Look after sources; the first call may wait for one that the tracker made before."""
    for _ in range(2):
        await sources.tend(at_once=True)


def test_what_breaks_beside_the_tracker_is_said_and_holds_up_nothing_else(tmp_path: Path) -> None:
    said: list[str] = []

    async def story() -> None:
        async with followed(tmp_path, said) as (tracker, sources, _):
            faulty = Faulty(tracker.store, {"list_pages": ValueError("odd rows")})
            sources.store = cast(Store, faulty)
            await tend(sources)
            assert "looking for pages that are hubs ended in an error that should not be" in said[-1]
            assert "odd rows" in said[-1]
            faulty.faults = {"list_pages": StoreBusy("others write")}
            await tend(sources)
            assert said[-1] == "looking for pages that are hubs waits for the store: others write"
            faulty.faults, before = {}, len(said)
            await tend(sources)
            assert len(said) == before

    asyncio.run(story())


def test_a_subscription_that_could_not_be_written_is_written_the_next_time(tmp_path: Path) -> None:
    said: list[str] = []

    async def story() -> None:
        async with followed(tmp_path, said) as (tracker, sources, source):
            hub, topic = (address_or_raise(f"http://127.0.0.1:9/{name}", field="url") for name in ("hub", "topic"))
            sources.subscriptions.found(source, HubLinks((hub,), topic))
            faulty = Faulty(tracker.store, {"save_sources": StoreBusy("others write")})
            sources.store = cast(Store, faulty)
            await tend(sources)
            assert said[-1] == "renewing subscriptions waits for the store: others write"
            assert not from_bytes(await tracker.store.source_memory(source.row.page_id)).subscription
            faulty.faults = {}
            await tend(sources)
            assert from_bytes(await tracker.store.source_memory(source.row.page_id)).subscription

    asyncio.run(story())


def hits_on(source: Source, until: float) -> SourceHits:
    """Five hits on new pages of a source."""
    hits = np.zeros(BINS)
    hits[0] = 5.0
    return SourceHits(source.row.page_id, 0.0, until, pack_counts(hits), pack_counts(np.ones(BINS)))


async def polled(tracker: TrackerHarness, source: Source) -> Visit:
    """A poll of a source up to the moment at which it is settled; it found one more link."""
    async with patience("the source to be leased"):
        while True:
            for offer in await tracker.lease(1):
                visit = tracker.visit(offer.token)
                if visit.page.id == source.row.page_id:
                    address = address_or_raise(source.url, field="url")
                    visit.fetched = FetchResult(address, "ok", "", address, body=MORE, requests=1)
                    visit.examined("ok", "unchanged", "", visit.page.memory)
                    await tracker.read_source(visit)
                    return visit
                await tracker.complete([WorkResult(offer.token, "missing")])
            await asyncio.sleep(0.01)


def test_hits_that_are_counted_while_a_source_is_polled_are_kept(tmp_path: Path) -> None:
    async def story() -> None:
        async with followed(tmp_path, []) as (tracker, sources, source):
            poll = await polled(tracker, source)
            assert await count(tracker.store, sources, [hits_on(source, 77.0)]) == 1
            assert await tracker.finish(poll)
            kept = from_bytes(await tracker.store.source_memory(source.row.page_id))
            assert kept.hits_until == 77.0
            assert unpack_counts(kept.hits)[0] == 5.0
            assert len(unpack_listed(kept.listed)) == 2, "and what the poll found is kept too"

    asyncio.run(story())


class Slow(Faulty):
    """A store that lets others work after it was asked for what a source remembers."""

    async def source_memory(self, page_id: int) -> bytes | None:
        kept = await self._store.source_memory(page_id)
        await ticks(50, 0.01)
        return kept


def test_a_poll_that_is_written_while_hits_are_counted_is_kept(tmp_path: Path) -> None:
    async def story() -> None:
        async with followed(tmp_path, []) as (tracker, sources, source):
            poll = await polled(tracker, source)
            slow = cast(Store, Slow(tracker.store, {}))
            counting = asyncio.ensure_future(count(slow, sources, [hits_on(source, 77.0)]))
            await ticks(5)
            assert await tracker.finish(poll)
            assert await counting == 1
            kept = from_bytes(await tracker.store.source_memory(source.row.page_id))
            assert kept.hits_until == 77.0
            assert len(unpack_listed(kept.listed)) == 2

    asyncio.run(story())


class Counted(Faulty):
    """A store that counts what it is asked."""

    calls = 0

    def __getattr__(self, name: str) -> Any:
        self.calls += 1
        return getattr(self._store, name)


def test_an_index_of_a_thousand_sitemaps_takes_a_handful_of_store_calls(tmp_path: Path) -> None:
    async def story() -> None:
        async with followed(tmp_path, []) as (tracker, sources, source):
            store = Counted(tracker.store, {})
            sources._explorer.store = cast(Store, store)
            urls = [f"https://a.example/{number}.xml" for number in range(990)]
            named = [Named(address_or_raise(url, field="url"), None) for url in (*urls, urls[0])]
            assert not await sources._indexes.read(source, named, tracker.now())
            assert store.calls <= 5
            made = await tracker.store.find_pages(urls, role="source")
            assert len(made) == len(urls)
            assert {sources.book.of_page(page_id) is not None for page_id in made.values()} == {True}
            assert {row.page_id for row in await tracker.store.sources()} >= set(made.values())

    asyncio.run(story())
