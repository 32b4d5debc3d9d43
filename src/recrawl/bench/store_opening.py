"""How long a tracker takes from opening a large store to its first lease, in a process of its own.

    recrawl.bench.store_opening  FOLDER

Every page of the store was crawled before: it has a time, and what was learned of it. Imports do not count, loading
compiled kernels does.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from recrawl._event_loop import run
from recrawl.store.rows import NewPage
from recrawl.store.store import open_store
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.tracker import open_tracker

_HOSTS = 10_000
_BATCH = 20_000
_SETTINGS = Settings(budget_per_day=8_640_000.0, contact="https://example.com/bot")


async def build(folder: Path, pages: int) -> None:
    """Fill a store: pages through the front door, what was learned of one of them given to all."""
    where = str(folder)
    store = await open_store(where, owner=True)
    for start in range(0, pages, _BATCH):
        await store.add_pages([_page(number) for number in range(start, min(start + _BATCH, pages))])
    await store.close()
    store = await open_store(where, owner=True)
    tracker = await open_tracker(replace(_SETTINGS, store=where), store, lambda _: None)
    belief = tracker.schedule.scheduler.beliefs([tracker.schedule.index.entry(1) or 0]).tobytes()
    await store.close()
    now = time.time()
    with closing(sqlite3.connect(folder / "recrawl.db")) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(
            "UPDATE pages SET fetched_at = :now - (id * 7919 % 864000), "
            "attempted_at = :now - (id * 7919 % 864000), outcome = 'ok', visits = 1, belief = :belief",
            {"now": now, "belief": belief},
        )


def _page(number: int) -> NewPage:
    host = f"h{number % _HOSTS}.example"
    return NewPage(f"http://{host}/{number}", host, importance=1.0 + number % 97)


async def first_lease(folder: Path) -> dict[str, Any]:
    """Seconds of CPU and clock until a page is leased."""
    cpu_s, clock_s = time.process_time(), time.perf_counter()
    store = await open_store(str(folder), owner=True)
    tracker = await open_tracker(replace(_SETTINGS, store=str(folder)), store, lambda _: None)
    while not await tracker.dispatcher.take(1, "bench"):
        await asyncio.sleep(0.01)
    cpu_s, clock_s = time.process_time() - cpu_s, time.perf_counter() - clock_s
    pages = len(tracker.schedule.scheduler)
    await store.close()
    return {"pages": pages, "cpu_s": cpu_s, "clock_s": clock_s}


if __name__ == "__main__":
    print(json.dumps(run(first_lease(Path(sys.argv[1])))))  # noqa: T201 - read by who started it
