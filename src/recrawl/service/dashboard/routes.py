"""The addresses of the dashboard. All of them read; signing in, quotas and headers are the application's.

| address | shows |
|---|---|
| `/` | overview |
| `/changes`, `/changes/{cursor}`, `/changes.csv` | the change stream, one event, the same for spreadsheets |
| `/pages`, `/pages/{id}`, `/pages/{id}/text` | pages, one page, the text of a version |
| `/hosts`, `/sources`, `/settings` | the tables of these names |
| `/series`, `/curve`, `/live` | numbers for the charts, and when to ask for them again |
| `/metrics` | the same for Prometheus |
| `/static/…` | style, script, icons |
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any
from weakref import WeakKeyDictionary

from litestar import Response, Router, get
from litestar.enums import MediaType
from litestar.params import FromPath, FromQuery, PathParameter, QueryParameter
from litestar.response import Redirect, ServerSentEvent, ServerSentEventMessage

from recrawl.service.auth.access import Access, Caller
from recrawl.service.auth.guard import PUBLIC, who
from recrawl.service.context import InAccess, InFeed, InTracker, InWatch
from recrawl.service.dashboard import data, views
from recrawl.service.dashboard.figures import HostOrder, SourceOrder, host_lines, source_lines, source_problems
from recrawl.service.dashboard.rendering import STATIC
from recrawl.service.errors import Asked, Refusal
from recrawl.service.monitor.change_feed import ChangeFeed
from recrawl.service.monitor.host_watch import HOST_CLASSES
from recrawl.service.monitor.metrics import CONTENT_TYPE, exposition
from recrawl.service.monitor.timeline import Span
from recrawl.tracker.clock import TrackerClock, iso
from recrawl.tracker.commands.doctor import effective, versions, warnings_of
from recrawl.tracker.commands.explain import explained, sentences
from recrawl.tracker.commands.export import csv_line
from recrawl.tracker.commands.status import read_sinks
from recrawl.tracker.settings.file import Chosen
from recrawl.tracker.tracker import Tracker

_CSV_EVENTS = 1000
_TICK_S = 3.0
_PLAIN = {"Content-Security-Policy": "default-src 'none'; sandbox", "X-Content-Type-Options": "nosniff"}
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d\.\d{3}Z")
_HOST_ORDERS: WeakKeyDictionary[Tracker, HostOrder] = WeakKeyDictionary()
_SOURCE_ORDERS: WeakKeyDictionary[Tracker, SourceOrder] = WeakKeyDictionary()

Html = Response[str]
Number = Annotated[int | None, QueryParameter(ge=0, le=2**62)]
Words = Annotated[str, QueryParameter(max_length=2000)]
PageId = Annotated[int, PathParameter(ge=0, le=2**62)]
HostKind = Annotated[str, QueryParameter(name="class", max_length=20)]


def _html(page: str, status: int = 200) -> Html:
    return Response(page, status_code=status, media_type=MediaType.HTML)


def _frame(request: Asked, title: str, active: str, clock: TrackerClock) -> views.Frame:
    caller = request.scope.get("auth")
    session = caller.session if isinstance(caller, Caller) else None
    return views.Frame(title, active, clock.now(), "" if session is None else session.csrf, clock.pace)


@get("/")
async def overview(request: Asked, tracker: InTracker, watch: InWatch) -> Html:
    """How it is, and how it has been."""
    vitals = await watch.vitals()
    latest = await data.read_events(tracker.store, shown=10)
    frame = _frame(request, "Overview", "overview", tracker.clock)
    return _html(views.overview(frame, vitals, watch.timeline, latest.events, tracker.settings.objective))


@get("/changes")
async def changes(request: Asked, tracker: InTracker, kind: Words = "", before: Number = None) -> Html:
    """The change stream."""
    found = await data.read_events(tracker.store, kind, before)
    shown = data.Events(
        await data.with_diffs(tracker.store, found.events), found.kind, found.before, found.older, found.last
    )
    return _html(views.changes(_frame(request, "Changes", "changes", tracker.clock), shown))


@get("/changes/{cursor:int}")
async def change(request: Asked, tracker: InTracker, cursor: PageId) -> Html:
    """One event."""
    found = await tracker.store.changes(cursor - 1, 1)
    if not found or found[0].cursor != cursor:
        raise Refusal(404, "there is no such event")
    (shown,) = await data.with_diffs(tracker.store, [data.event_of(found[0])], most=1)
    frame = _frame(request, f"Event {cursor}", "changes", tracker.clock)
    return _html(views.change(frame, shown, tracker.settings.retention.versions))


@get("/changes.csv", media_type="text/csv")
async def changes_csv(tracker: InTracker, kind: Words = "", before: Number = None) -> Response[str]:
    """The last thousand events for spreadsheets, which run none of it as a formula."""
    found = await data.read_events(tracker.store, kind, before, shown=_CSV_EVENTS)
    lines = ["cursor,kind,url,detected_at,last_seen_unchanged_at,trigger,detail\r\n"]
    for each in found.events:
        event = each.event
        row = {
            "cursor": each.cursor,
            "kind": event.kind,
            "url": event.url,
            "detected_at": iso(event.detected_at),
            "last_seen_unchanged_at": iso(event.last_seen_unchanged_at),
            "trigger": event.trigger,
            "detail": each.said,
        }
        lines.append(csv_line(row, raw=False))
    headers = {"Content-Disposition": 'attachment; filename="changes.csv"'}
    return Response("".join(lines), media_type="text/csv", headers=headers)


@get("/pages")
async def pages(
    request: Asked,
    tracker: InTracker,
    watch: InWatch,
    q: Words = "",
    host: Words = "",
    group: Words = "",
    after: Number = None,
) -> Html:
    """Pages that were searched for."""
    found = await data.list_of_pages(tracker.store, tracker.settings, q, host, group, after or 0)
    counts = (await watch.vitals()).counts.pages
    groups = [each.name for each in tracker.settings.groups]
    return _html(views.pages(_frame(request, "Pages", "pages", tracker.clock), found, counts, groups))


@get("/pages/{page_id:int}")
async def page(request: Asked, tracker: InTracker, page_id: PageId) -> Html:
    """One page."""
    store, now = tracker.store, tracker.clock.now()
    rows = await store.read_pages([page_id])
    if not rows:
        raise Refusal(404, "there is no such page")
    said = tracker.schedule.explain(page_id, now)
    facts = await explained(store, rows[0], tracker.settings, said, tracker.signals, now)
    told = [_TIME.sub(r"\1 \2 UTC", line) for line in sentences({**facts, "last_visits": []})[1:]]
    shown = data.PageFacts(
        rows[0], facts, told, await data.events_of_page(store, page_id), await store.versions(page_id)
    )
    return _html(views.page(_frame(request, rows[0].url, "pages", tracker.clock), shown))


@get("/pages/{page_id:int}/text")
async def page_text(tracker: InTracker, page_id: PageId, version: Number = None) -> Response[bytes]:
    """The text of a version, as plain text that no browser takes for anything else."""
    text = await data.text_of(tracker.store, page_id, version)
    if text is None:
        raise Refusal(404, "this text is not kept")
    return Response(text, media_type="text/plain", headers=_PLAIN)


@get("/hosts")
async def hosts(request: Asked, tracker: InTracker, watch: InWatch, kind: HostKind = "", q: Words = "") -> Html:
    """Hosts, those in trouble first."""
    vitals = await watch.vitals()
    states = _HOST_ORDERS.setdefault(tracker, HostOrder()).of(tracker, vitals)
    chosen = kind if kind in HOST_CLASSES else ""
    lines, hidden = host_lines(tracker, vitals, states, chosen, q)
    frame = _frame(request, "Hosts", "hosts", tracker.clock)
    return _html(views.hosts(frame, lines, vitals.hosts.classes, (chosen, q), hidden))


@get("/sources")
async def sources(request: Asked, tracker: InTracker) -> Html:
    """Sources by what they yield."""
    book = tracker.discovery.book if tracker.discovery.enabled else None
    lines, hidden = await source_lines(tracker.store, _SOURCE_ORDERS.setdefault(tracker, SourceOrder()), book)
    frame = _frame(request, "Sources", "sources", tracker.clock)
    return _html(views.sources(frame, lines, source_problems(book), hidden))


@get("/settings")
async def settings(request: Asked, tracker: InTracker, watch: InWatch) -> Html:
    """Settings as they hold, and versions."""
    vitals, found = await watch.vitals(), versions()
    frame = _frame(request, "Settings", "settings", tracker.clock)
    shown = effective(Chosen(tracker.settings, watch.origins))
    store = (tracker.store.name, vitals.counts, await tracker.store.count_paused())
    sinks = (vitals.sinks, await read_sinks(tracker.store, vitals.counts.last_cursor))
    return _html(views.settings(frame, shown, (found, warnings_of(found)), store, sinks))


@get("/series")
async def series(tracker: InTracker, watch: InWatch, span: FromQuery[Span] = "minutes") -> views.Series:
    """What was measured over time, column by column; null for what is not known."""
    clock = tracker.clock
    clocks = views.Clocks(clock.now(), time.time(), clock.pace)
    return views.series(watch.timeline, watch.reference_lines, span, clocks)


@get("/curve")
async def curve(tracker: InTracker, watch: InWatch) -> list[dict[str, float]]:
    """What other budgets would buy."""
    pace = tracker.clock.pace
    return [point._replace(budget=point.budget * pace)._asdict() for point in await watch.curve()]


@get("/live")
async def live(request: Asked, tracker: InTracker, access: InAccess, feed: InFeed) -> ServerSentEvent:
    """Says `tick` when there is something to measure, and `change` with the cursor when something changed."""
    feed.page_slots.check(request.auth.name)
    return ServerSentEvent(_news(request, feed, access, await tracker.store.last_cursor()))


async def _news(request: Asked, feed: ChangeFeed, access: Access, cursor: int) -> AsyncIterator[ServerSentEventMessage]:
    async def is_known() -> bool:
        return await who(request, access) is not None

    clock = asyncio.get_running_loop().time
    with feed.page_slots.taken(request.auth.name) as is_free:
        if not is_free:
            yield ServerSentEventMessage(comment="too many pages are open", retry=30_000)
            return
        yield ServerSentEventMessage(event="hello", data=str(cursor), retry=3000)
        ticked = clock()
        async with aclosing(feed.follow(cursor, is_known, _TICK_S)) as batches:
            async for found in batches:
                if found:
                    cursor = found[-1].cursor
                    yield ServerSentEventMessage(event="change", id=str(cursor), data=str(cursor))
                if clock() - ticked >= _TICK_S:
                    ticked = clock()
                    yield ServerSentEventMessage(event="tick", data="")


@get("/metrics")
async def metrics(watch: InWatch) -> Response[str]:
    """For Prometheus."""
    return Response(exposition(await watch.vitals()), media_type=CONTENT_TYPE)


@get("/static/{name:str}", opt={"scope": PUBLIC}, sync_to_thread=False)
def static(name: FromPath[str]) -> Response[bytes]:
    """Style, script and icons."""
    found = STATIC.get(name)
    if found is None:
        raise Refusal(404, "there is no such file")
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}
    return Response(found.content, media_type=found.media_type, headers=headers)


def _refused(_request: Asked, error: Refusal) -> Response[Any]:
    """A refusal as a page; who is not signed in is led to where they can."""
    if error.status == 401:
        return Redirect("/login", status_code=303)
    frame = views.Frame(str(error.status), "", 0.0)
    page = views.failure(frame, error.status, error.message)
    return Response(page, status_code=error.status, media_type=MediaType.HTML, headers=error.headers)


_PAGES = Router(
    "/",
    route_handlers=[overview, changes, change, pages, page, hosts, sources, settings],
    opt={"scope": "read"},
    include_in_schema=False,
    exception_handlers={Refusal: _refused},
)
_PARTS = Router(
    "/", route_handlers=[changes_csv, page_text, series, curve, live, metrics], opt={"scope": "read"},
    include_in_schema=False,
)  # fmt: skip
ROUTES = [_PAGES, _PARTS, static]
"""To be given to the application; each says the scope that it needs."""
