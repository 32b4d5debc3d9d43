"""A tracker that fetches nothing, with its service, for the group `service`; a process of its own.

    recrawl.bench.service_server  FOLDER  PAGES  SIGHTS

It serves the store in this folder, after it has added so many pages. With a number of sights it also crawls as many of
its pages twice, with new texts the second time, and has sources, so that a dashboard has something to show.
When it listens it prints a line with its address, a token and the id of a page; each line that it reads is answered by
what it took so far; at the end of its input it ends.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import replace

from recrawl._event_loop import run
from recrawl.errors import RecrawlError
from recrawl.service.auth.access import Access
from recrawl.service.listening import Listening
from recrawl.service.server import service
from recrawl.store.rows import NewPage, SourceRow
from recrawl.tracker.commands.commands import CommandHandler, FetchNow
from recrawl.tracker.process import serving
from recrawl.tracker.remote_workers import WorkResult, complete, lease
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.tracker import Tracker

HOSTS = 500
_A_LOT = 1e6  # crawls a second: neither budget nor pace holds anything back
_SETTINGS = Settings(
    budget_per_day=86_400.0 * _A_LOT,
    burst=_A_LOT,
    contact="https://example.com/bot",
    min_gap_s=0.0,
    min_interval_s=0.0,
    max_in_flight=1000,
    lease_s=3600.0,
)
_VISITS = 2
_SOURCES = 10_000
_LINES = 40
_PATIENCE_S = 60.0


def _page(number: int) -> NewPage:
    host = f"h{number % HOSTS}.example"
    return NewPage(f"http://{host}/{number}", host)


async def _serve(folder: str, pages: int, sights: int) -> None:
    async with serving(replace(_SETTINGS, store=folder), lambda _: None) as tracker:
        if pages:
            await tracker.add([_page(number) for number in range(pages)])
        shown = await _see(tracker, sights) if sights else 1
        token, _ = await Access(tracker.store, Listening(), time.time).make(["read", "fetch"], "bench")
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serve = service(Listening(port=0, fixed=True), told=lambda where, _: address.set_result(where), fetches=False)
        serves = asyncio.ensure_future(serve(tracker))
        _say({"address": await address, "token": token, "page": shown})
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(None, sys.stdin.readline):
            _say({"cpu_s": time.process_time()})
        tracker.stop()
        await serves


async def _see(tracker: Tracker, sights: int) -> int:
    """Crawl some pages, and again with new texts; make sources of some. The id of a page with a history."""
    store, hand = tracker.store, CommandHandler(tracker.store, tracker.settings, tracker)
    rows = await store.list_pages(0, sights)
    give_up = time.monotonic() + _PATIENCE_S
    for visit in range(_VISITS):
        await hand.do(FetchNow([row.url for row in rows]), tracker.clock.now())
        left = {row.url for row in rows}
        while left:
            offers = await lease(tracker, len(left), "bench")
            reports = [
                WorkResult(each.token, "ok", _body(each.token, visit), "text/html", status=200) for each in offers
            ]
            await complete(tracker, reports)
            left -= {each.url for each in offers}
            if time.monotonic() > give_up:
                raise RecrawlError(f"{len(left)} of {sights} pages could not be leased")
    some = await store.list_pages(0, _SOURCES)
    await store.add_sources(
        [SourceRow(row.id, "sitemap", polls=9, found=row.id % 7, signals=row.id % 5) for row in some]
    )
    return rows[len(rows) // 2].id


def _body(token: int, visit: int) -> bytes:
    lines = "".join(f"<p>Line {number} of page {token % 7}, as it is and as it was.</p>" for number in range(_LINES))
    news = "And so they lived." if visit else "Once upon a time."
    return f"<html><body><h1>A page</h1>{lines}<p>{news}</p></body></html>".encode()


def _say(document: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    run(_serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
