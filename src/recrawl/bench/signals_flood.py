"""Measures of the group `signals` for pings: IndexNow lists over HTTP while a tracker crawls.

A tracker and its service are one process on one core, the pages come from a process on the other, which also sends the
lists. Quiet stretches and floods take turns, and crawls of both are counted.
"""

from __future__ import annotations

import http.client
import json
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from recrawl.bench.child import Child, child
from recrawl.bench.measure import Bound, CannotRun, Measure, Reading
from recrawl.bench.web_cores import cores
from recrawl.bench.web_processes import page_server

_PING_S = 10.0
_LONGEST_S = 120.0


class Sizes(NamedTuple):
    """How many pages are tracked, how fast they are crawled and pinged, and for how long."""

    pages: int = 4_000
    crawls_a_second: float = 300.0
    urls_a_second: float = 11_000.0
    stretch_s: float = 5.0
    turns: int = 3


class Outcome(NamedTuple):
    """Crawls a second in quiet stretches and in floods, addresses a second that were taken, and what waits."""

    quiet: float
    flooded: float
    absorbed: float
    entries: int
    pages: int


def flood_measures(sizes: Sizes | None = None) -> tuple[Measure, ...]:
    """The measures, in the order they run; all share the same run, and the first one pays."""
    work = _Work(sizes or Sizes())
    return (
        Measure("ping_addresses", "addresses/s", "none", Bound("value", floor=10_000), work.read_absorbed),
        Measure("ping_slowdown", "%", "no pings", Bound("value", limit=10), work.read_slowdown),
        Measure("ping_pending", "entries/page", "none", Bound("value", limit=1), work.read_pending),
    )


class _Work:
    """The run that the measures share."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes

    @cached_property
    def _outcome(self) -> Outcome:
        return run_flood(self._sizes)

    def read_absorbed(self) -> Reading:
        """Addresses in lists that were answered with 200, for each second."""
        return Reading(self._outcome.absorbed, None, f"{self._sizes.pages:,} pages, lists of one site each")

    def read_slowdown(self) -> Reading:
        """How much less is crawled while lists come in."""
        quiet, flooded = self._outcome.quiet, self._outcome.flooded
        return Reading(100 * (1 - flooded / quiet), None, f"{quiet:.1f} crawls/s, then {flooded:.1f}")

    def read_pending(self) -> Reading:
        """Entries that wait in the store for each page that has any."""
        found = self._outcome
        return Reading(found.entries / max(found.pages, 1), None, f"{found.pages:,} pages have some")


def run_flood(sizes: Sizes) -> Outcome:
    """Let a tracker crawl, in turns left alone and flooded."""
    from recrawl.bench.signals_tracker import SITES, urls_of

    with page_server() as served, _tracker(served.port, sizes) as child:
        first = child.hear()
        lists = [_list(urls_of(served.port, site, sizes.pages), first["key"]) for site in range(SITES)]
        length = sizes.pages // SITES
        crawls, seconds, pinged = [0, 0], [0.0, 0.0], 0
        for turn in range(2 * sizes.turns):
            before, began = child.ask("count")["fetched"], time.perf_counter()
            if turn % 2:
                pinged += length * _send(first, lists, sizes.urls_a_second / length, sizes.stretch_s)
            else:
                time.sleep(sizes.stretch_s)
            crawls[turn % 2] += child.ask("count")["fetched"] - before
            seconds[turn % 2] += time.perf_counter() - began
        last = child.ask("stop")
    return Outcome(crawls[0] / seconds[0], crawls[1] / seconds[1], pinged / seconds[1], last["entries"], last["pages"])


def _list(urls: Sequence[str], key: str) -> bytes:
    return json.dumps({"host": urlsplit(urls[0]).netloc, "key": key, "urlList": urls}).encode()


def _send(service: dict[str, Any], lists: Sequence[bytes], per_s: float, seconds: float) -> int:
    """Send lists in turn at a steady pace; how many were heard."""
    connection = http.client.HTTPConnection(urlsplit(service["address"]).netloc, timeout=_PING_S)
    # A client that names itself may ask more often than a stranger.
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {service['key']}"}
    began, sent = time.perf_counter(), 0
    try:
        while (now := time.perf_counter() - began) < seconds:
            if now < sent / per_s:
                time.sleep(sent / per_s - now)
            connection.request("POST", "/ping", lists[sent % len(lists)], headers)
            answer = connection.getresponse()
            said = answer.read()
            if answer.status != 200:
                raise CannotRun(f"a list was answered with {answer.status}: {said[:200].decode('utf-8', 'replace')}")
            sent += 1
    finally:
        connection.close()
    return sent


def _tracker(port: int, sizes: Sizes) -> AbstractContextManager[Child]:
    module = "recrawl.bench.signals_tracker"
    command = [sys.executable, "-m", module, str(port), str(sizes.pages), str(sizes.crawls_a_second), str(cores()[0])]
    return child("the tracker", command, _LONGEST_S)
