"""The robots rules of many origins in memory: fetched once, by one, kept as long as RFC 9309 allows.

Serves as the keeper of a transport whose caller paces hosts itself: every turn is granted.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from recrawl.web.conditional import NO_VALIDATORS
from recrawl.web.fetch.protocol import GRANTED, Fault, FetchJob, FetchResult, NeedRobots, Slot, WaitForSlot
from recrawl.web.robots.entry import (
    RobotsAnswer,
    RobotsCopy,
    RobotsEntry,
    confirm,
    renew,
    robots_address,
    robots_answer,
    unreachable,
)
from recrawl.web.url.address import Address

MOST_ORIGINS = 100_000
MOST_CHARACTERS = 64 << 20
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


def robots_job(page: Address, known: RobotsEntry | None, now: float) -> FetchJob:
    """The fetch of the robots.txt of a page's origin, with the validators of the copy at hand."""
    validators = NO_VALIDATORS if known is None else known.validators(now)
    where = None if known is None or known.copy is None else known.copy.address
    return FetchJob(robots_address(page), validators, channel="robots", validated_at=where)


def robots_entry(known: RobotsEntry | None, result: FetchResult, token: str, now: float) -> RobotsEntry:
    """The entry after the fetch that `robots_job` describes."""
    if known is not None and result.outcome == "not-modified":
        return confirm(known, now, _max_age_s(result))
    copy = RobotsCopy(result.validators, result.final, now) if result.has_page and result.validators else None
    return renew(known, robots_answer_of(result, token), now, _max_age_s(result), copy)


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
    """Entries by origin, bounded in number and in text, the least used forgotten first.

    Args:
        token: the product token of the crawler.
        fetch: fetches one thing.
        wall: seconds since 1970.
        most_origins: entries that are kept.
        most_characters: text of all entries that are kept.

    `on_forgotten` is called with the origin of each entry that had to make room, for who holds on to entries as well.
    """

    def __init__(
        self,
        token: str,
        fetch: Callable[[FetchJob], Awaitable[FetchResult]],
        wall: Callable[[], float],
        most_origins: int = MOST_ORIGINS,
        most_characters: int = MOST_CHARACTERS,
    ) -> None:
        self._token = token
        self._fetch = fetch
        self._wall = wall
        self._most_origins = most_origins
        self._most_characters = most_characters
        self.on_forgotten: Callable[[str], None] = lambda _: None
        self._characters = 0
        self._entries: OrderedDict[str, tuple[RobotsEntry, Fault | None]] = OrderedDict()
        self._under_way: dict[str, asyncio.Task[RobotsEntry | Fault]] = {}

    def __contains__(self, origin: str) -> bool:
        return origin in self._entries

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
        # A cancelled waiter must not cancel the shared fetch.
        return await asyncio.shield(task)

    def remember(self, origin: str, entry: RobotsEntry) -> None:
        """Take an entry that was kept elsewhere, such as over a restart; one that is known here is newer."""
        if origin not in self._entries:
            self._keep(origin, entry, None)

    async def turn(self, need: WaitForSlot) -> Slot:  # noqa: ARG002  # the caller paces
        """Grant every request."""
        return GRANTED

    async def close(self) -> None:
        """Give up the fetches under way."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _renew(self, page: Address, known: RobotsEntry | None) -> RobotsEntry | Fault:
        result = await self._fetch(robots_job(page, known, self._wall()))
        entry = robots_entry(known, result, self._token, self._wall())
        # Rules that are still remembered hold while the host is away.
        fault = host_fault_of(result) if entry.answer.kind == "unreachable" else None
        self._keep(page.origin, entry, fault)
        return fault or entry

    def _keep(self, origin: str, entry: RobotsEntry, fault: Fault | None) -> None:
        replaced = self._entries.pop(origin, None)
        self._characters += _size(entry) - (0 if replaced is None else _size(replaced[0]))
        self._entries[origin] = entry, fault
        while len(self._entries) > self._most_origins or self._characters > self._most_characters:
            least_used, (forgotten, _) = self._entries.popitem(last=False)
            self._characters -= _size(forgotten)
            self.on_forgotten(least_used)


def _size(entry: RobotsEntry) -> int:
    return len(entry.answer.rules) + sum(len(address.url) for address in entry.answer.sitemaps)
