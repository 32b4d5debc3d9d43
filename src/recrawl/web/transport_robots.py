"""The robots rules of many origins in memory: fetched once, by one, kept as long as RFC 9309 allows.

Serves as the keeper of a transport whose caller paces hosts itself: every turn is granted.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from recrawl.web.address import Address
from recrawl.web.fetch_result import FetchResult
from recrawl.web.fetch_steps import GRANTED, Fault, FetchJob, NeedRobots, NeedTurn, Turn
from recrawl.web.robots import RobotsAnswer, RobotsEntry, renewed, robots_address, robots_answer, unreachable

_MOST_ORIGINS = 100_000
# Faults of the host, not of its robots.txt: a page there ends in the same fault.
_HOST_FAULTS = frozenset(
    {"dns-missing", "dns-failed", "connect-refused", "connect-timeout", "unreachable", "tls", "refused"}
)


def robots_answer_of(result: FetchResult, token: str) -> RobotsAnswer:
    """What the fetch of a robots.txt says.

    More than five redirects and redirects to nowhere mean that there are no rules, as for 4xx (RFC 9309, 2.3.1.2);
    every other fault means that nobody knows.
    """
    if result.has_page:
        return robots_answer(200, result.body, token, result.final)
    if result.fault == "redirect":
        return RobotsAnswer("unavailable", f"robots.txt cannot be reached: {result.reason}")
    if result.status is None or result.status < 400:
        return unreachable(f"robots.txt cannot be read: {result.reason}")
    return robots_answer(result.status, b"", token, result.final)


def _max_age_s(result: FetchResult) -> float | None:
    says = result.header(b"cache-control").lower()
    says_anything = any(word in says for word in (b"max-age", b"no-cache", b"no-store"))
    return result.fresh_for_s if says_anything else None


def host_fault_of(result: FetchResult) -> Fault | None:
    """The fault of the host that the fetch of its robots.txt met; None if it is reached, whatever it says."""
    if result.fault is None or result.fault not in _HOST_FAULTS or result.hops:
        return None
    return Fault(result.fault, result.reason)


class RobotsMemory:
    """Entries by origin, at most 100,000, the least used forgotten first.

    Args:
        token: the product token of the crawler.
        fetch: fetches one thing.
        wall: seconds since 1970.
    """

    def __init__(
        self, token: str, fetch: Callable[[FetchJob], Awaitable[FetchResult]], wall: Callable[[], float]
    ) -> None:
        self._token = token
        self._fetch = fetch
        self._wall = wall
        self._entries: OrderedDict[str, tuple[RobotsEntry, Fault | None]] = OrderedDict()
        self._under_way: dict[str, asyncio.Task[RobotsEntry | Fault]] = {}

    async def robots(self, need: NeedRobots) -> RobotsEntry | Fault:
        """The rules for a page, or why its host cannot be reached; one fetch for all who ask at once."""
        page, origin = need.address, need.address.origin
        known, fault = self._entries.get(origin, (None, None))
        if known is not None and self._wall() < known.expires_at:
            self._entries.move_to_end(origin)
            return fault or known
        task = self._under_way.get(origin)
        if task is None:
            task = asyncio.create_task(self._renew(page, known))
            self._under_way[origin] = task
            task.add_done_callback(lambda _: self._under_way.pop(origin, None))
        # One who gives up does not take the answer from the others.
        return await asyncio.shield(task)

    async def turn(self, need: NeedTurn) -> Turn:  # noqa: ARG002  # the caller paces
        """Grant every request."""
        return GRANTED

    async def close(self) -> None:
        """Give up the fetches under way."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _renew(self, page: Address, known: RobotsEntry | None) -> RobotsEntry | Fault:
        result = await self._fetch(FetchJob(robots_address(page), channel="robots"))
        entry = renewed(known, robots_answer_of(result, self._token), self._wall(), _max_age_s(result))
        # Rules that are still remembered hold while the host is away.
        fault = host_fault_of(result) if entry.answer.kind == "unreachable" else None
        self._entries[page.origin] = entry, fault
        while len(self._entries) > _MOST_ORIGINS:
            self._entries.popitem(last=False)
        return fault or entry
