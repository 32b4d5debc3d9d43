"""Imports by address: fetched through the guarded transport, as robots.txt allows and in the pace of the settings.

A sitemap index is walked to its sitemaps; files are parsed in a process of their own, within a deadline. Requests are
counted, for they are the budget's.
"""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from recrawl.errors import InvalidInput
from recrawl.tracker.importers.formats import FORMATS, LOOKED_AT_BYTES, sitemap_items, tell_format
from recrawl.tracker.importers.rows import LONGEST_DOCUMENT_BYTES, BadRow, Hints, Item
from recrawl.tracker.settings.settings import Settings
from recrawl.web.feeds.sitemap import SitemapWalk
from recrawl.web.fetch.protocol import GRANTED, Fault, FetchJob, FetchResult, NeedRobots, Slot, WaitForSlot
from recrawl.web.fetch.robots_cache import RobotsMemory
from recrawl.web.fetch.settings import FetchSettings, user_agent
from recrawl.web.fetch.transport import Transport
from recrawl.web.refused import Refused
from recrawl.web.robots.entry import RobotsEntry
from recrawl.web.url.address import Address, address_or_raise, read_address
from recrawl.web.workers import ParseWorkers


@dataclass(slots=True)
class Spent:
    """What fetching has cost."""

    requests: int = 0
    wire_bytes: int = 0


class _PacedHosts:
    """Robots rules from memory, and a turn for each request: one at a time, with a gap after its end as in a tracker.

    Args:
        token: the name of this crawler in robots.txt.
        min_gap_s: between the end of a request and the next to the same host.
        spent: counts requests.
    """

    def __init__(self, token: str, min_gap_s: float, spent: Spent) -> None:
        self.transport: Transport  # set by `paced_hosts`: each needs the other
        self._robots = RobotsMemory(token, self.fetch, time.time)
        self._min_gap_s, self._spent = min_gap_s, spent
        self._next_at: dict[str, float] = {}
        self._asked: tuple[str, float] | None = None  # the host of the running request, and the gap after it

    async def fetch(self, job: FetchJob) -> FetchResult:
        """Fetch something and count its requests."""
        result = await self.transport.fetch(job)
        self._end_request()
        self._spent.requests += result.requests
        self._spent.wire_bytes += result.wire_bytes
        return result

    async def robots(self, need: NeedRobots) -> RobotsEntry | Fault:
        return await self._robots.robots(need)

    async def turn(self, need: WaitForSlot) -> Slot:
        self._end_request()  # a redirect led here
        await asyncio.sleep(self._next_at.get(need.address.host, 0.0) - asyncio.get_running_loop().time())
        self._asked = need.address.host, max(self._min_gap_s, need.crawl_delay_s or 0.0)
        return GRANTED

    def _end_request(self) -> None:
        if self._asked is not None:
            (host, gap_s), self._asked = self._asked, None
            self._next_at[host] = asyncio.get_running_loop().time() + gap_s

    async def close(self) -> None:
        await self._robots.close()


def paced_hosts(settings: Settings, spent: Spent) -> _PacedHosts:
    """Make a fetcher that keeps to the settings and counts its requests; its transport is to be opened."""
    if not settings.contact:
        raise InvalidInput(
            "is missing in the settings: whoever is asked must be able to reach you, such as you@example.com",
            field="contact",
        )
    agent = user_agent(settings.contact)
    limits = replace(settings.limits, most_body_bytes=LONGEST_DOCUMENT_BYTES)
    carried = FetchSettings(
        agent,
        limits=limits,
        egress=settings.egress,
        credentials=settings.credentials,
        opted_out=settings.opted_out,
        address_rules=settings.address_rules,
        unverified_tls=settings.unverified_tls,
    )

    hosts = _PacedHosts(agent.token, settings.min_gap_s, spent)
    hosts.transport = Transport(carried, keeper=hosts, most_fetches=1)
    return hosts


async def fetched_items(
    url: str, settings: Settings, hints: Hints, spent: Spent, form: str | None = None
) -> AsyncIterator[Item]:
    """The pages of whatever is at an address.

    Args:
        url: of a sitemap, or of a file in any format of the registry.
        settings: contact, pace, and what may be reached.
        hints: for the parser.
        spent: counts requests.
        form: a format; None to tell it from name and content.
    """
    address = address_or_raise(url, field="URL", rules=settings.address_rules)
    hosts = paced_hosts(settings, spent)
    async with hosts.transport:
        result = await _fetch(hosts, address)
        if isinstance(result, BadRow):
            yield result
            return
        form = form or tell_format(address.url, result.body[:LOOKED_AT_BYTES])
        if form != "sitemap":
            for item in FORMATS[form].read(io.BytesIO(result.body), hints):
                yield item
            return
        async for item in _walk(hosts, result, hints):
            yield item


async def _walk(hosts: _PacedHosts, first: FetchResult, hints: Hints) -> AsyncIterator[Item]:
    walk, rows, foreign = SitemapWalk([first.final.url]), 0, 0
    rules = hosts.transport.settings.address_rules
    with ParseWorkers(rules=rules) as workers:
        while (url := walk.next_file()) is not None:
            address = read_address(url, rules)
            assert not isinstance(address, Refused), "sitemaps give addresses that were read"
            result = first if url == first.final.url else await _fetch(hosts, address)
            if isinstance(result, BadRow):
                yield result
                continue
            sitemap = await asyncio.to_thread(workers.sitemap, result.body, result.final.url, hints.now)
            entries = walk.found(url, sitemap)
            foreign += sum(entry.foreign for entry in sitemap.entries)
            for item in sitemap_items(replace(sitemap, entries=entries), rows):
                yield item
            rows += len(entries)
    for problem in walk.problems:
        yield BadRow(0, problem)
    if foreign:
        yield BadRow(0, f"{foreign} addresses of other hosts are left out")


async def _fetch(hosts: _PacedHosts, address: Address) -> FetchResult | BadRow:
    result = await hosts.fetch(FetchJob(address, channel="sitemap"))
    if result.has_page:
        return result
    return BadRow(0, f"{address.url} cannot be had ({result.outcome}): {result.reason}")
