"""Pings: IndexNow by POST and GET. The key is a token with the scope `signal` and nothing more, or the site's own key.

A token is known at once (200). A site's own key is looked for on the site, as the protocol has it: until that is done
the answer is 202, and what was pinged is heard if the key proves right.

A ping says that pages may have changed. It adds none, and pages that are not tracked are left out in silence, so that
nobody learns from the answer what is.
"""

from __future__ import annotations

from typing import Any

from litestar import Response, Router, get, post

from recrawl.service.auth.access import Access
from recrawl.service.auth.guard import OWN, count_failure
from recrawl.service.auth.quota import retry_after
from recrawl.service.auth.site_keys import SiteKeys
from recrawl.service.auth.tokens import TOKEN_PREFIX
from recrawl.service.context import InAccess, InHand, InTracker
from recrawl.service.errors import Asked, Refusal
from recrawl.tracker.commands.commands import CommandHandler, Signal
from recrawl.tracker.tracker import Tracker
from recrawl.web.push.indexnow import MOST_BYTES, Ping, PingProblem, read_ping, read_ping_query

KIND = "indexnow"


@post(["/ping", "/indexnow"], opt={"scope": OWN}, status_code=200, request_max_body_size=MOST_BYTES, tags=["signals"])
async def ping(request: Asked, access: InAccess, hand: InHand, tracker: InTracker) -> Response[None]:
    """IndexNow: `{"host", "key", "urlList"}`; 200 if it was heard, 403 for a wrong key, 422 for other sites' pages."""
    return await _heard(request, access, hand, tracker, read_ping(await request.body(), tracker.settings.address_rules))


@get(["/ping", "/indexnow"], opt={"scope": OWN}, tags=["signals"])
async def ping_one(request: Asked, access: InAccess, hand: InHand, tracker: InTracker) -> Response[None]:
    """IndexNow for one address: `?url=…&key=…`."""
    query = request.scope["query_string"].decode("latin-1")
    return await _heard(request, access, hand, tracker, read_ping_query(query, tracker.settings.address_rules))


async def _heard(
    request: Asked, access: Access, hand: CommandHandler, tracker: Tracker, read: Ping | PingProblem
) -> Response[Any]:
    if isinstance(read, PingProblem):
        raise Refusal(read.status, read.sentence, read.field)
    if not read.key.startswith(TOKEN_PREFIX):
        return Response(None, status_code=await _by_site_key(request, access, read))
    caller = await access.by_token(read.key)
    if caller is None:
        count_failure(request, access)
        raise Refusal(403, "the key is wrong or revoked", "key")
    if caller.scopes != {"signal"}:
        raise Refusal(403, "a key travels in addresses: make a token that has the scope signal alone", "key")
    _check_quota(access, caller.name)
    await hear(hand, tracker, read)
    return Response(None, status_code=200)


async def _by_site_key(request: Asked, access: Access, read: Ping) -> int:
    """The status for a ping with a key of its site."""
    keys: SiteKeys = request.app.state["site_keys"]
    _check_quota(access, f"site-{read.host}")
    right = keys.is_right(read, access.now())
    if right is False:
        count_failure(request, access)
        raise Refusal(403, "the site does not hold that key", "key")
    if right:
        await keys.heard(read)
        return 200
    if not await keys.check(read, access.now()):
        raise Refusal(429, "too many keys are being checked: wait a little", headers={"Retry-After": "60"})
    return 202


def _check_quota(access: Access, name: str) -> None:
    wait_s = access.known.wait_s(name, access.now())
    if wait_s > 0:
        raise Refusal(429, "too many pings: wait a little", headers={"Retry-After": retry_after(wait_s)})


async def hear(hand: CommandHandler, tracker: Tracker, ping: Ping) -> None:
    """Signal what was pinged."""
    await hand.do(Signal(list(ping.urls.urls), KIND), tracker.clock.now())


ROUTES = Router("/", route_handlers=[ping, ping_one])
