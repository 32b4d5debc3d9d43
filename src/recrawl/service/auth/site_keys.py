"""Keys of sites: who pings by IndexNow proves to own a site by a file on it, which is fetched and remembered.

The check costs a request, so it is made beside the answer, for sites with tracked pages only, a few at a time; five
keys of a site at once, and one in ten minutes from then on, so that nobody can make us ask a site for keys without end.
Right keys are believed for a day, wrong ones not asked about again for ten minutes. What was pinged meanwhile is
signalled when the key proves right.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress

from recrawl.errors import RecrawlError
from recrawl.service.auth.quota import Buckets, Quota
from recrawl.tracker.tracker import Tracker
from recrawl.web.fetch.protocol import FetchJob
from recrawl.web.push.indexnow import Ping, holds_key
from recrawl.web.url.canonical import host_key

GOOD_S = 86_400.0
BAD_S = 600.0
MOST_CHECKS = 20
MOST_REMEMBERED = 10_000
BY_SITE = Quota(5, 1 / 600)
_UNKNOWN_YET = frozenset({"deferred", "network-error", "server-error", "rate-limited"})
Proof = tuple[str, str]


class SiteKeys:
    """What is known of the keys of sites.

    Args:
        tracker: fetches the files.
        heard: is given a ping whose key proved right.
    """

    def __init__(self, tracker: Tracker, heard: Callable[[Ping], Awaitable[object]]) -> None:
        self._tracker = tracker
        self.heard = heard
        self._known: OrderedDict[Proof, tuple[bool, float]] = OrderedDict()  # whether it is right, until when
        self._asked = Buckets(BY_SITE)
        self._checks: dict[Proof, asyncio.Task[None]] = {}

    def is_right(self, ping: Ping, now: float) -> bool | None:
        """Whether a key is the site's own; None if that is not known."""
        right, until = self._known.get(_proof(ping), (None, 0.0))
        return right if now < until else None

    async def check(self, ping: Ping, now: float) -> bool:
        """Have a key checked, if it belongs to a site with tracked pages; False if there are too many."""
        proof = _proof(ping)
        if proof in self._checks or not await self._is_tracked(ping):
            return True
        if len(self._checks) >= MOST_CHECKS or self._asked.wait_s(ping.key_address.host, now) > 0:
            return False
        task = asyncio.ensure_future(self._check(ping, now))
        self._checks[proof] = task
        task.add_done_callback(lambda _: self._checks.pop(proof, None))
        return True

    async def checked(self) -> None:
        """Wait until no check is under way."""
        while self._checks:
            await asyncio.wait(list(self._checks.values()))

    def close(self) -> None:
        """Give up what is under way."""
        for task in list(self._checks.values()):
            task.cancel()

    async def _check(self, ping: Ping, now: float) -> None:
        with suppress(RecrawlError):  # a tracker that fetches nothing, or a store in trouble: it may ping again
            result = await self._tracker.fetch_beside(FetchJob(ping.key_address))
            if result.outcome in _UNKNOWN_YET:
                return
            right = result.outcome in ("ok", "moved") and holds_key(result.body, ping.key)
            right = right and result.final.host == ping.key_address.host
            self._known[_proof(ping)] = (right, now + (GOOD_S if right else BAD_S))
            while len(self._known) > MOST_REMEMBERED:
                self._known.popitem(last=False)
            if right:
                await self.heard(ping)

    async def _is_tracked(self, ping: Ping) -> bool:
        host = host_key(ping.key_address, self._tracker.settings.pace_by)
        return bool(await self._tracker.store.list_pages(limit=1, host=host))


def _proof(ping: Ping) -> Proof:
    return ping.key_address.url, ping.key
