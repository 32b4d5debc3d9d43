"""Sources of a tracker when something breaks: it is said, nothing is forgotten, and no write undoes another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from followed_site import FOLLOWING
from tracker_ground import SHORT

from patience import patience
from recrawl.errors import StoreBusy
from recrawl.store.contract import Store
from recrawl.store.rows import NewPage
from recrawl.tracker.discovery.memory import from_bytes
from recrawl.tracker.discovery.rules import SignalRules
from recrawl.tracker.discovery.source import Source
from recrawl.tracker.discovery.sources import Sources
from recrawl.tracker.outside import Report, complete, lease, serving
from recrawl.tracker.tracker import Tracker
from recrawl.web.address import address_or_raise
from recrawl.web.websub import HubLinks

SETTINGS = replace(FOLLOWING, signals=SignalRules(callback="https://me.example.com/"))
MAIN = b'<a href="/one">one</a><p>a main page</p>'


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
async def followed(folder: Path, said: list[str]) -> AsyncIterator[tuple[Tracker, Sources, Source]]:
    """A tracker whose fetches are the test's, with a main page that is a source; nothing else is fetched."""
    async with patience(), serving(replace(SETTINGS, store=str(folder)), said.append, SHORT) as tracker:
        await tracker.add([NewPage("https://a.example/", "a.example")])
        while not (offers := await lease(tracker, 1, "w")):
            await asyncio.sleep(0.01)
        await complete(tracker, [Report(offers[0].token, "ok", MAIN, "text/html")])
        sources = tracker.sources
        assert isinstance(sources, Sources)
        source = sources.book.at("https://a.example/")
        assert source is not None
        yield tracker, sources, source


async def tend(sources: Sources) -> None:
    """Look after sources; the first call may wait for one that the tracker made before."""
    for _ in range(2):
        await sources.tend(at_once=True)


def test_what_breaks_beside_the_tracker_is_said_and_holds_up_nothing_else(tmp_path: Path) -> None:
    said: list[str] = []

    async def story() -> None:
        async with followed(tmp_path, said) as (tracker, sources, _):
            faulty = Faulty(tracker.store, {"list_pages": ValueError("odd rows")})
            sources._store = cast(Store, faulty)
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
            sources._store = cast(Store, faulty)
            await tend(sources)
            assert said[-1] == "renewing subscriptions waits for the store: others write"
            assert not from_bytes(await tracker.store.source_memory(source.row.page_id)).subscription
            faulty.faults = {}
            await tend(sources)
            assert from_bytes(await tracker.store.source_memory(source.row.page_id)).subscription

    asyncio.run(story())
