"""Pings: IndexNow by POST and GET. The key is a token with the scope `signal` and nothing more, or the site's own key.

A token is known immediately (200). A site proves its own key by a file on it: until that is fetched the answer is 202,
and the ping counts if the key proves right. The check costs a request, so it is made beside the answer, for sites with
tracked pages only, a few together; five keys of a site, and one in ten minutes from then on. Right keys are believed
for a day, wrong ones not asked about again for ten minutes.

A ping says that pages may have changed. It adds none, and pages that are not tracked are left out without a word, so
that the answer tells nothing of what is tracked.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from litestar import Response, Router, get, post

from recrawl.errors import RecrawlError
from recrawl.service.auth.access import Access, Buckets, Quota, retry_after
from recrawl.service.auth.guard import OWN, count_failure
from recrawl.service.auth.tokens import TOKEN_PREFIX
from recrawl.service.context import InService, Service
from recrawl.service.errors import ApiError, Asked
from recrawl.tracker.commands.commands import Signal
from recrawl.tracker.tracker import Tracker
from recrawl.web.fetch.protocol import FetchJob
from recrawl.web.push.indexnow import MOST_BYTES, Ping, PingProblem, holds_key, read_ping, read_ping_query
from recrawl.web.url.canonical import host_key

KIND = "indexnow"
GOOD_S = 86_400.0
BAD_S = 600.0
MOST_CHECKS = 20
MOST_REMEMBERED = 10_000
BY_SITE = Quota(5, 1 / 600)
_UNKNOWN_YET = frozenset({"deferred", "network-error", "server-error", "rate-limited"})
Proof = tuple[str, str]


@post(["/ping", "/indexnow"], opt={"scope": OWN}, status_code=200, request_max_body_size=MOST_BYTES, tags=["signals"])
async def ping(request: Asked, service: InService) -> Response[None]:
    """IndexNow: `{"host", "key", "urlList"}`; 200 if it was heard, 403 for a wrong key, 422 for other sites' pages."""
    return await _heard(request, service, read_ping(await request.body(), service.settings.address_rules))


@get(["/ping", "/indexnow"], opt={"scope": OWN}, tags=["signals"])
async def ping_one(request: Asked, service: InService) -> Response[None]:
    """IndexNow for one address: `?url=…&key=…`."""
    query = request.scope["query_string"].decode("latin-1")
    return await _heard(request, service, read_ping_query(query, service.settings.address_rules))


async def _heard(request: Asked, service: Service, read: Ping | PingProblem) -> Response[Any]:
    access = service.access
    if isinstance(read, PingProblem):
        raise ApiError(read.status, read.sentence, read.field)
    if not read.key.startswith(TOKEN_PREFIX):
        return Response(None, status_code=await _by_site_key(request, access, read))
    caller = await access.by_token(read.key)
    if caller is None:
        count_failure(request, access)
        raise ApiError(403, "the key is wrong or revoked", "key")
    if caller.scopes != {"signal"}:
        raise ApiError(403, "a key travels in addresses: make a token that has the scope signal alone", "key")
    _check_quota(access, caller.name)
    await hear(service, read)
    return Response(None, status_code=200)


async def _by_site_key(request: Asked, access: Access, read: Ping) -> int:
    """The status for a ping with a key of its site."""
    keys: SiteKeys = request.app.state["site_keys"]
    _check_quota(access, f"site-{read.host}")
    right = keys.is_right(read, access.now())
    if right is False:
        count_failure(request, access)
        raise ApiError(403, "the site does not hold that key", "key")
    if right:
        await keys.heard(read)
        return 200
    if not await keys.check(read, access.now()):
        raise ApiError(429, "too many keys are being checked: wait a little", headers={"Retry-After": "60"})
    return 202


def _check_quota(access: Access, name: str) -> None:
    wait_s = access.known.wait_s(name, access.now())
    if wait_s > 0:
        raise ApiError(429, "too many pings: wait a little", headers={"Retry-After": retry_after(wait_s)})


async def hear(service: Service, ping: Ping) -> None:
    """Signal what was pinged."""
    await service.run(Signal(list(ping.urls.urls), KIND))


class SiteKeys:
    """Checks keys of sites and remembers the answers.

    Args:
        tracker: fetches the files.
        heard: gets each ping whose key proves right.
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


ROUTES = Router("/", route_handlers=[ping, ping_one])
