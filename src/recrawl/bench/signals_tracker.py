"""A tracker with its service under a flood of pings, for the group `signals`; a process of its own on one core.

    python -m recrawl.bench.signals_tracker PORT PAGES CRAWLS_A_SECOND CORE

It tracks pages of the page server at this port. When all have a copy it prints a line with the address of its service
and a key for IndexNow. From then on each line that it reads is answered by a line: `count` by how many fetches have
ended, anything else by what waits in the store, and then it ends.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from recrawl._event_loop import run
from recrawl.bench.page_server import HOSTS, page_url
from recrawl.bench.web_cores import pin_to
from recrawl.service.auth.access import Access
from recrawl.service.listening import Listening
from recrawl.service.server import service
from recrawl.tracker.process import run_tracker
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.tracker import Tracker
from recrawl.web.fetch.egress import egress_policy

SITES = 16
"""Hosts that the pages live on; each has as many."""

_DAY_S = 86_400.0


def urls_of(port: int, site: int, pages: int) -> list[str]:
    """Addresses of a site's share of so many pages.

    >>> urls_of(80, 1, 32)
    ['http://127.0.1.2:80/news/1/page.html', 'http://127.0.1.2:80/news/65/page.html']
    """
    return [page_url(port, site + HOSTS * number) for number in range(pages // SITES)]


class _Control:
    """Speaks with whoever started the process."""

    def __init__(self, pages: int) -> None:
        self._pages = pages
        self._address: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def told(self, address: str, _link: str) -> None:
        """The service listens."""
        self._address.set_result(address)

    async def __call__(self, tracker: Tracker) -> None:
        """Beside the tracker, until the input says stop or ends."""
        ended = tracker.usage.ended
        while ended["fetched"] < self._pages:
            await asyncio.sleep(0.05)
        key, _ = await Access(tracker.store, Listening(), time.time).make(["signal"], "bench")
        _say({"address": await self._address, "key": key})
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(None, sys.stdin.readline) == "count\n":
            _say({"fetched": ended["fetched"], "cpu_s": time.process_time()})
        await tracker.signals.flush()
        pending = Counter(each.page_id for each in await tracker.store.pending_signals())
        _say({"entries": pending.total(), "pages": len(pending)})
        tracker.stop()


def _say(document: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


async def _track(port: int, pages: int, crawls_a_second: float) -> None:
    settings = Settings(
        budget_per_day=crawls_a_second * _DAY_S,
        contact="https://example.org/bench",
        min_gap_s=0.0,
        min_interval_s=0.0,
        max_in_flight=64,
        egress=egress_policy(allow={"bench": f"127.0.1.0/24:{port}"}),
    )
    with TemporaryDirectory(prefix="recrawl-bench-") as folder:
        control = _Control(pages)
        beside = service(Listening(port=0), told=control.told)
        wanted = [url for site in range(SITES) for url in urls_of(port, site, pages)]
        await run_tracker(
            replace(settings, store=str(Path(folder) / "data")), lambda _: None, [beside, control], wanted
        )


if __name__ == "__main__":
    pin_to(int(sys.argv[4]))
    run(_track(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
