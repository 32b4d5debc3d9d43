"""recrawl's side of the group `web`: fetch pages, read them, digest them; a process of its own on one core.

    python -m recrawl.bench.web_crawl 40001 20000    prints what it took as one line of JSON

Each page goes all the way that a crawl takes short of the store: robots rules, the turn of its host, the gate, a
request through the transport with all its bounds, text, links as addresses, metadata, all digests. A page that does
not come whole ends the run.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import takewhile
from typing import NamedTuple

from recrawl._event_loop import run
from recrawl.bench.measure import CannotRun
from recrawl.bench.memory import held_bytes
from recrawl.bench.page_server import HOSTS, LINKS, PAGE_BYTES, page_url
from recrawl.bench.web_cores import pin_to
from recrawl.web.change.digests import Digests, digest_page
from recrawl.web.content.links import addresses_of_links
from recrawl.web.content.page import read_page
from recrawl.web.fetch.egress import egress_policy
from recrawl.web.fetch.protocol import GRANTED, FetchJob, FetchResult, Slot, WaitForSlot
from recrawl.web.fetch.robots_cache import RobotsMemory
from recrawl.web.fetch.settings import FetchSettings, user_agent
from recrawl.web.fetch.transport import Transport
from recrawl.web.url.address import Address, address_or_raise

AT_ONCE = 64
LONGEST_S = 150.0
_WARM_UP_ROUNDS = 10  # pages of each host before the clock runs: connections, robots rules, compiled code


class Crawled(NamedTuple):
    """What a run took: pages, CPU and clock seconds, and memory held at a fifth of the run and at its end."""

    pages: int
    cpu_s: float
    clock_s: float
    bytes_early: int
    bytes_late: int


class PacedHosts(RobotsMemory):
    """Robots rules, and for every host the moment from which it may be asked again."""

    def __init__(self, settings: FetchSettings, fetch: Callable[[FetchJob], Awaitable[FetchResult]]) -> None:
        super().__init__(settings.user_agent.token, fetch, time.time)
        self._free_at: dict[str, float] = {}

    async def turn(self, need: WaitForSlot) -> Slot:
        """Grant the request and note it; the pages of this web ask for no pause."""
        host, now = need.address.host, time.monotonic()
        self._free_at[host] = max(self._free_at.get(host, 0.0), now) + (need.crawl_delay_s or 0.0)
        return GRANTED


def make_transport(port: int) -> Transport:
    """A transport that may dial the page server, by settings any user could write."""
    settings = FetchSettings(
        user_agent("https://example.org/bench"), egress=egress_policy(allow={"bench": f"127.0.1.0/24:{port}"})
    )

    async def fetch(job: FetchJob) -> FetchResult:
        return await transport.fetch(job)

    transport = Transport(settings, keeper=PacedHosts(settings, fetch))
    return transport


def addresses(port: int, pages: int) -> Iterator[Address]:
    """The pages of a run, host by host in turn."""
    for number in range(pages):
        yield address_or_raise(page_url(port, number), field="page")


def digested(result: FetchResult) -> Digests:
    """Read a page as a tracker would: text, links as addresses, metadata, digests.

    Raises:
        ValueError: if the page or some of its links are missing.
    """
    if not result.has_page or len(result.body) != PAGE_BYTES:
        raise ValueError(f"{result.address.url} did not come whole: {result.reason}")
    page = read_page(result.body, result.header(b"content-type").decode("latin-1"), with_links=True)
    if len(addresses_of_links(page.links, result.final, page.metadata.base)) != LINKS:
        raise ValueError(f"{result.address.url} has lost links")
    return digest_page(result.body, page)


async def crawl(port: int, pages: int, longest_s: float = LONGEST_S) -> Crawled:
    """Fetch, read and digest so many pages, `AT_ONCE` at a time, after some that are not timed.

    No page is begun after `longest_s`; the result says how many came.
    """
    async with make_transport(port) as transport:
        await _read_all(transport, addresses(port, _WARM_UP_ROUNDS * HOSTS))
        cpu_s, clock_s = time.process_time(), time.monotonic()
        done, held = await _read_all(transport, _until(clock_s + longest_s, addresses(port, pages)))
        cpu_s, clock_s = time.process_time() - cpu_s, time.monotonic() - clock_s
    return Crawled(done, cpu_s, clock_s, held[len(held) // 5], held[-1])


async def _read_all(transport: Transport, pages: Iterator[Address]) -> tuple[int, list[int]]:
    """Read pages; how many, and the memory that was held at every hundredth of them and at the end."""
    done, held = 0, list[int]()

    async def work() -> None:
        nonlocal done
        for address in pages:
            digested(await transport.fetch(FetchJob(address)))
            done += 1
            if done % 100 == 0:
                held.append(_held())

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return done, [*held, _held()]


def _until(deadline: float, pages: Iterator[Address]) -> Iterator[Address]:
    return takewhile(lambda _: time.monotonic() < deadline, pages)


def _held() -> int:
    try:
        return held_bytes("VmRSS")
    except (CannotRun, OSError):
        return 0  # not every system tells


def _main(port: str, pages: str, core: str = "-1") -> None:
    pin_to(int(core))
    sys.stdout.write(json.dumps(run(crawl(int(port), int(pages)), freeze=True)._asdict()) + "\n")


if __name__ == "__main__":
    _main(*sys.argv[1:])
