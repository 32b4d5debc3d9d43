"""Signals and hits: what others know of pages. Neither adds a page; a signal raises the odds, the price decides."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Router, post
from litestar.params import JSONBody

from recrawl.service.api.json_body import JsonBody
from recrawl.service.api.schemas import Done, Url, Urls, done
from recrawl.service.context import InHand, InTracker
from recrawl.service.errors import Refusal
from recrawl.tracker.commands.commands import FetchNow, Signal
from recrawl.tracker.kinds import OURS
from recrawl.web.push.webhook import KIND_PATTERN, is_kind

_BYTES = 16 << 20
MOST_WISHED = 1000


class Heard(msgspec.Struct, forbid_unknown_fields=True):
    """Pages that are said to have changed, and how that is known."""

    urls: Urls
    kind: Annotated[str, msgspec.Meta(pattern=KIND_PATTERN)] = "manual"


class Wished(msgspec.Struct, forbid_unknown_fields=True):
    """Pages that are wanted now."""

    urls: Annotated[list[Url], msgspec.Meta(min_length=1, max_length=MOST_WISHED)]


@post("/signals", opt={"scope": "signal"}, dto=JsonBody[Heard], return_dto=None, status_code=200,
      request_max_body_size=_BYTES)  # fmt: skip
async def signal(data: JSONBody[Heard], hand: InHand, tracker: InTracker) -> Done:
    """Say that pages have changed; those that are not tracked are refused."""
    if not is_kind(data.kind):  # the pattern of the schema lets a line break at the end pass
        raise Refusal(422, f"{data.kind!r} is no name of a kind: leave out the line break", "kind")
    if data.kind in OURS:
        raise Refusal(422, f"{data.kind!r} is told by the tracker itself: use another name", "kind")
    return done(await hand.do(Signal(data.urls, data.kind), tracker.clock.now()))


@post("/fetch-now", opt={"scope": "write"}, dto=JsonBody[Wished], return_dto=None, status_code=200)
async def fetch_now(data: JSONBody[Wished], hand: InHand, tracker: InTracker) -> Done:
    """Fetch pages as soon as their hosts allow, whatever they are worth; the budget pays."""
    return done(await hand.do(FetchNow(data.urls), tracker.clock.now()))


ROUTES = Router("/api/v1", tags=["signals"], route_handlers=[signal, fetch_now])
