"""Imports by address: fetched through the guarded transport, with leave of robots.txt and in the pace of the settings.

A sitemap index is walked to its sitemaps; files are parsed in a process of their own, within a deadline. Requests are
counted, for they are the budget's.
"""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

from recrawl.errors import InvalidInput
from recrawl.tracker.imports.items import LONGEST_DOCUMENT_BYTES, Hints, Item, Unusable
from recrawl.tracker.imports.registry import FORMATS, LOOKED_AT_BYTES, tell_format
from recrawl.tracker.imports.sitemap_file import sitemap_items
from recrawl.tracker.settings import Settings
from recrawl.web.address import Address, address_or_raise, read_address
from recrawl.web.fetch_limits import FetchSettings
from recrawl.web.fetch_result import FetchResult
from recrawl.web.fetch_steps import GRANTED, Fault, FetchJob, NeedRobots, NeedTurn, Turn
from recrawl.web.refusal import Refused
from recrawl.web.robots import RobotsEntry
from recrawl.web.sitemap_walk import SitemapWalk
from recrawl.web.sitemap_worker import ParseWorkers
from recrawl.web.transport import Transport
from recrawl.web.transport_robots import RobotsMemory
from recrawl.web.user_agent import user_agent


@dataclass(slots=True)
class Spent:
    """What fetching has cost."""

    requests: int = 0
    wire_bytes: int = 0


@dataclass(slots=True)
class _PacedHosts:
    """Robots rules from memory, and a turn for each request in the pace of the settings."""

    robots_memory: RobotsMemory
    min_gap_s: float
    next_at: dict[str, float] = field(default_factory=dict)

    async def robots(self, need: NeedRobots) -> RobotsEntry | Fault:
        return await self.robots_memory.robots(need)

    async def turn(self, need: NeedTurn) -> Turn:
        now = asyncio.get_running_loop().time()
        turn_at = max(now, self.next_at.get(need.address.host, 0.0))
        self.next_at[need.address.host] = turn_at + max(self.min_gap_s, need.crawl_delay_s or 0.0)
        await asyncio.sleep(turn_at - now)
        return GRANTED

    async def close(self) -> None:
        await self.robots_memory.close()


def open_transport(settings: Settings, spent: Spent) -> Transport:
    """A transport that keeps to the settings and counts what it sends."""
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
    )

    async def fetch_robots(job: FetchJob) -> FetchResult:
        result = await transport.fetch(job)
        _count(result, spent)
        return result

    hosts = _PacedHosts(RobotsMemory(agent.token, fetch_robots, time.time), settings.min_gap_s)
    transport = Transport(carried, keeper=hosts, most_fetches=1)
    return transport


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
    address = address_or_raise(url, field="URL")
    async with open_transport(settings, spent) as transport:
        result = await _fetch(transport, address, spent)
        if isinstance(result, Unusable):
            yield result
            return
        form = form or tell_format(address.url, result.body[:LOOKED_AT_BYTES])
        if form != "sitemap":
            for item in FORMATS[form].read(io.BytesIO(result.body), hints):
                yield item
            return
        async for item in _walk(transport, result, hints, spent):
            yield item


async def _walk(transport: Transport, first: FetchResult, hints: Hints, spent: Spent) -> AsyncIterator[Item]:
    walk, rows, foreign = SitemapWalk([first.final.url]), 0, 0
    with ParseWorkers() as workers:
        while (url := walk.next_file()) is not None:
            address = read_address(url)
            assert not isinstance(address, Refused), "sitemaps give addresses that were read"
            result = first if url == first.final.url else await _fetch(transport, address, spent)
            if isinstance(result, Unusable):
                yield result
                continue
            sitemap = await asyncio.to_thread(workers.sitemap, result.body, result.final.url, hints.now)
            entries = walk.found(url, sitemap)
            foreign += sum(entry.foreign for entry in sitemap.entries)
            for item in sitemap_items(replace(sitemap, entries=entries), rows):
                yield item
            rows += len(entries)
    for problem in walk.problems:
        yield Unusable(0, problem)
    if foreign:
        yield Unusable(0, f"{foreign} addresses of other hosts are left out")


async def _fetch(transport: Transport, address: Address, spent: Spent) -> FetchResult | Unusable:
    result = await transport.fetch(FetchJob(address, channel="sitemap"))
    _count(result, spent)
    if result.has_page:
        return result
    return Unusable(0, f"{address.url} cannot be had ({result.outcome}): {result.reason}")


def _count(result: FetchResult, spent: Spent) -> None:
    spent.requests += result.requests
    spent.wire_bytes += result.wire_bytes
