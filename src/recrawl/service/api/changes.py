"""The change log: by cursor, in pages, and as a stream of server-sent events.

A cursor counts 1, 2, 3 …; who asks for what is after the last cursor they have handled misses nothing. The stream
takes up where its `Last-Event-ID` says, as browsers send it when they connect again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any

import msgspec
from litestar import Response, Router, get
from litestar.params import FromQuery, QueryParameter
from litestar.response import Stream

from recrawl.service.api.schemas import MOST_LISTED
from recrawl.service.auth.guard import who
from recrawl.service.context import InService, Service
from recrawl.service.errors import ApiError, Asked
from recrawl.store.rows import CHANGE_KINDS, Change
from recrawl.tracker.sinks.event import event_dict, event_json

MOST_LOOKED_AT = 20_000
"""Events that one request looks through for those of some kinds."""
Cursor = Annotated[int, QueryParameter(ge=0, le=2**63 - 1, description="the last cursor that was handled")]


class Changes(msgspec.Struct):
    """Events in their order; `next` goes into `after` for those that follow, `last` is the last there is."""

    changes: list[dict[str, Any]]
    next: int
    last: int


@get("/changes", opt={"scope": "read"})
async def list_changes(
    service: InService,
    after: Cursor = 0,
    limit: Annotated[int, QueryParameter(ge=1, le=MOST_LISTED)] = 100,
    kinds: FromQuery[str | None] = None,
    page: Annotated[int | None, QueryParameter(ge=1, le=2**63 - 1)] = None,
) -> Changes:
    """Events after a cursor: of all kinds or some, separated by commas; of all pages or one."""
    store, wanted = service.store, _kinds(kinds)
    last = await store.last_cursor()
    if kinds is None:
        found = await store.changes(after, limit, page)
        following = found[-1].cursor if found else after
    else:
        end = min(after + MOST_LOOKED_AT, max(last, after))
        found = await store.changes(
            after, limit, page, before=end + 1, kinds=[each for each in CHANGE_KINDS if each in wanted]
        )
        following = found[-1].cursor if len(found) == limit else end
    return Changes([event_dict(each) for each in found], following, max(last, following))


@get("/changes/stream", opt={"scope": "read"}, media_type="text/event-stream")
async def stream_changes(
    request: Asked,
    service: InService,
    after: Annotated[int | None, QueryParameter(ge=0, le=2**63 - 1)] = None,
    kinds: FromQuery[str | None] = None,
) -> Response[Any]:
    """Events as they happen, from a cursor on, or from now on: the event's id is its cursor, its name the kind."""
    wanted = _kinds(kinds)
    service.feed.api_slots.check(request.auth.name)
    cursor = await _start(service, request.headers.get("last-event-id"), after)
    events = _events(request, service, cursor, wanted)
    return Stream(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _start(service: Service, seen: str | None, after: int | None) -> int:
    """Where a stream begins; what the client has seen itself goes first."""
    if seen is not None and seen.isascii() and seen.isdecimal() and len(seen) < 19:
        return int(seen)
    return await service.store.last_cursor() if after is None else after


async def _events(request: Asked, service: Service, cursor: int, kinds: frozenset[str]) -> AsyncIterator[str]:
    """Events in the form of the protocol; ends with the tracker, the token, or after an hour."""

    async def is_known() -> bool:
        return await who(request, service.access) is not None

    feed = service.feed
    with feed.api_slots.taken(request.auth.name) as is_free:
        if not is_free:
            yield "retry: 30000\n: too many streams are open\n\n"
            return
        yield f"retry: 2000\n: recrawl, after cursor {cursor}\n\n"
        async with aclosing(feed.follow(cursor, is_known)) as batches:
            async for found in batches:
                cursor = found[-1].cursor if found else cursor
                yield "".join(_event(each) for each in found if each.event.kind in kinds) or f": at {cursor}\n\n"


def _event(change: Change) -> str:
    return f"id: {change.cursor}\nevent: {change.event.kind}\ndata: {event_json(change)}\n\n"


def _kinds(text: str | None) -> frozenset[str]:
    if text is None:
        return frozenset(CHANGE_KINDS)
    kinds = frozenset(each.strip() for each in text.split(","))
    unknown = sorted(kinds - set(CHANGE_KINDS))
    if unknown:
        raise ApiError(422, f"{unknown[0]!r} is none of {', '.join(CHANGE_KINDS)}", "kinds")
    return kinds


ROUTES = Router("/api/v1", tags=["changes"], route_handlers=[list_changes, stream_changes])
