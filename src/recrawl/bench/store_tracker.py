"""What a tracker costs for each fetch, network and parsing aside: CPU time of the whole process.

    recrawl.bench.store_tracker  unchanged|changed  FETCHES

A tracker with the usual settings runs over a SQLite store in a temporary folder. Its transport answers at once; its
budget and pacing hold nothing back. What is in the figure: choosing the page, the lease, pacing, the task of the
fetch, the account of the answer, the settlement, what the scheduler learns, and the commit, in all threads.

`unchanged`: every answer is 304. `changed`: every visit finds a new text of about 5 kB, which was read and compared
before, so that neither counts; packing it, the event and the new version do.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from recrawl._event_loop import run
from recrawl.store.rows import NewPage
from recrawl.store.store import open_store
from recrawl.tracker.clock import TrackerClock
from recrawl.tracker.pipeline.fetch import Fetcher
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.tracker import Tracker
from recrawl.tracker.visit import Visit
from recrawl.web.change.digests import Digests
from recrawl.web.fetch.protocol import FetchJob, FetchResult
from recrawl.web.fetch.transport import Transport
from recrawl.web.url.address import address_or_raise

_PAGES = 5_000
_HOSTS = 500
_WARM_UP = 1_000
_SETTINGS = Settings(
    budget_per_day=86_400.0 * 5_000,
    contact="https://example.com/bot",
    min_gap_s=0.0,
    min_interval_s=0.0,
    max_in_flight=64,
)


class _AnswersAtOnce:
    """A transport without a network: everything is as it was."""

    async def __aenter__(self) -> _AnswersAtOnce:
        return self

    async def __aexit__(self, *_: object) -> None:
        return

    async def fetch(self, job: FetchJob) -> FetchResult:
        await asyncio.sleep(0)
        return FetchResult(job.address, "not-modified", "", job.address, status=304, requests=1, elapsed_s=0.1)


class _Changed(Fetcher):
    """Finds a new text on every visit."""

    visits = 0

    async def fetch(self, visit: Visit) -> None:
        page = visit.page
        self.visits += 1
        await asyncio.sleep(0)
        address = address_or_raise(page.url, field="url")
        digest = self.visits.to_bytes(16, "big")
        text = b"%d words of a page that is never the same twice and speaks of the weather\n" % self.visits * 70
        visit.fetched = FetchResult(address, "ok", "", address, status=200, requests=1, wire_bytes=5000, elapsed_s=0.1)
        first = page.visits == 0
        visit.examined("ok", "first" if first else "changed", "", page.memory)
        visit.digests, visit.text = Digests(digest, digest), text
        visit.published = (None if first else page.text_digest, digest)


class _Tracker(Tracker):
    """A tracker without a network."""

    def _make_transport(self) -> Transport:
        return cast(Transport, _AnswersAtOnce())


def _page(number: int) -> NewPage:
    host = f"h{number % _HOSTS}.example"
    return NewPage(f"http://{host}/{number}", host)


async def _measure(kind: str, fetches: int) -> dict[str, Any]:
    with TemporaryDirectory(prefix="recrawl-bench-") as folder:
        where = str(Path(folder) / "data")
        store = await open_store(where, owner=True)
        tracker = _Tracker(replace(_SETTINGS, store=where), store, TrackerClock(), lambda _: None)
        if kind == "changed":
            tracker.fetcher.__class__ = _Changed
        await tracker.load()
        await tracker.add([_page(number) for number in range(_PAGES)])
        running = asyncio.create_task(tracker.run())
        done = tracker.usage.ended
        while done["fetched"] < _WARM_UP:
            await asyncio.sleep(0.02)
        began, cpu_s, clock_s = done["fetched"], time.process_time(), time.perf_counter()
        while done["fetched"] < began + fetches:
            await asyncio.sleep(0.02)
        cpu_s, clock_s = time.process_time() - cpu_s, time.perf_counter() - clock_s
        ended = done["fetched"] - began
        tracker.stop()
        await running
        await store.close()
        return {"fetches": ended, "cpu_us": 1e6 * cpu_s / ended, "clock_us": 1e6 * clock_s / ended}


if __name__ == "__main__":
    print(json.dumps(run(_measure(sys.argv[1], int(sys.argv[2])))))  # noqa: T201 - read by who started it
