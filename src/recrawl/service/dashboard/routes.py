"""The addresses of the dashboard. All of them read; signing in, quotas and headers are the application's.

| address | shows |
|---|---|
| `/` | overview |
| `/changes`, `/changes/{cursor}`, `/changes.csv` | the change stream, one event, the same for spreadsheets |
| `/pages`, `/pages/{id}`, `/pages/{id}/text` | pages, one page, the text of a version |
| `/hosts`, `/sources`, `/settings` | the tables of these names |
| `/series`, `/curve`, `/live` | numbers for the charts, and when to ask for them again |
| `/metrics` | the same for Prometheus |
| `/api` | the routes of the API |
| `/static/…` | style, script, icons |
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any

from litestar import Response, Router, get
from litestar.enums import MediaType
from litestar.params import FromPath, FromQuery, PathParameter, QueryParameter
from litestar.response import Redirect, ServerSentEvent, ServerSentEventMessage

from recrawl.service.auth.access import Caller
from recrawl.service.auth.guard import PUBLIC, who
from recrawl.service.context import InService, Service
from recrawl.service.dashboard import data, views
from recrawl.service.dashboard.data import HostOrder, SourceOrder, host_lines, source_lines, source_problems
from recrawl.service.dashboard.rendering import STATIC
from recrawl.service.errors import ApiError, Asked
from recrawl.service.monitor.activity import HOST_CLASSES
from recrawl.service.monitor.metrics import CONTENT_TYPE, exposition
from recrawl.service.monitor.timeline import Span
from recrawl.tracker.clock import iso
from recrawl.tracker.commands.doctor import effective, versions, warnings_of
from recrawl.tracker.commands.explain import explained, sentences
from recrawl.tracker.commands.export import csv_line
from recrawl.tracker.commands.status import read_sinks
from recrawl.tracker.settings.file import Chosen

_CSV_EVENTS = 1000
_TICK_S = 3.0
_PLAIN = {"Content-Security-Policy": "default-src 'none'; sandbox", "X-Content-Type-Options": "nosniff"}
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d\.\d{3}Z")

Html = Response[str]
Number = Annotated[int | None, QueryParameter(ge=0, le=2**62)]
Words = Annotated[str, QueryParameter(max_length=2000)]
PageId = Annotated[int, PathParameter(ge=0, le=2**62)]
HostKind = Annotated[str, QueryParameter(name="class", max_length=20)]


def _html(page: str, status: int = 200) -> Html:
    return Response(page, status_code=status, media_type=MediaType.HTML)


def _frame(request: Asked, service: Service, title: str, active: str) -> views.Frame:
    clock = service.tracker.clock
    caller = request.scope.get("auth")
    session = caller.session if isinstance(caller, Caller) else None
    return views.Frame(title, active, clock.now(), "" if session is None else session.csrf, clock.pace)


@get("/")
async def overview(request: Asked, service: InService) -> Html:
    """How it is, and how it has been."""
    vitals = await service.watch.vitals()
    latest = await data.read_events(service.store, shown=10)
    frame = _frame(request, service, "Overview", "overview")
    return _html(views.overview(frame, vitals, service.watch.timeline, latest.events, service.settings.objective))


@get("/changes")
async def changes(request: Asked, service: InService, kind: Words = "", before: Number = None) -> Html:
    """The change stream."""
    found = await data.read_events(service.store, kind, before)
    shown = data.Events(
        await data.with_diffs(service.store, found.events), found.kind, found.before, found.older, found.last
    )
    return _html(views.changes(_frame(request, service, "Changes", "changes"), shown))


@get("/changes/{cursor:int}")
async def change(request: Asked, service: InService, cursor: PageId) -> Html:
    """One event."""
    found = await service.store.changes(cursor - 1, 1)
    if not found or found[0].cursor != cursor:
        raise ApiError(404, "there is no such event")
    (shown,) = await data.with_diffs(service.store, [data.event_of(found[0])], most=1)
    frame = _frame(request, service, f"Event {cursor}", "changes")
    return _html(views.change(frame, shown, service.settings.retention.versions))


@get("/changes.csv", media_type="text/csv")
async def changes_csv(service: InService, kind: Words = "", before: Number = None) -> Response[str]:
    """The last thousand events for spreadsheets, which run none of it as a formula."""
    found = await data.read_events(service.store, kind, before, shown=_CSV_EVENTS)
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
    service: InService,
    q: Words = "",
    host: Words = "",
    group: Words = "",
    after: Number = None,
) -> Html:
    """Pages that were searched for."""
    found = await data.list_of_pages(service.store, service.settings, q, host, group, after or 0)
    counts = (await service.watch.vitals()).counts.pages
    groups = [each.name for each in service.settings.groups]
    return _html(views.pages(_frame(request, service, "Pages", "pages"), found, counts, groups))


@get("/pages/{page_id:int}")
async def page(request: Asked, service: InService, page_id: PageId) -> Html:
    """One page."""
    store, now = service.store, service.now()
    rows = await store.read_pages([page_id])
    if not rows:
        raise ApiError(404, "there is no such page")
    said = service.tracker.schedule.explain(page_id, now)
    facts = await explained(store, rows[0], service.settings, said, service.tracker.signals, now)
    told = [_TIME.sub(r"\1 \2 UTC", line) for line in sentences({**facts, "last_visits": []})[1:]]
    shown = data.PageFacts(
        rows[0], facts, told, await data.events_of_page(store, page_id), await store.versions(page_id)
    )
    return _html(views.page(_frame(request, service, rows[0].url, "pages"), shown))


@get("/pages/{page_id:int}/text")
async def page_text(service: InService, page_id: PageId, version: Number = None) -> Response[bytes]:
    """The text of a version, as plain text that no browser takes for anything else."""
    text = await data.text_of(service.store, page_id, version)
    if text is None:
        raise ApiError(404, "this text is not kept")
    return Response(text, media_type="text/plain", headers=_PLAIN)


@get("/hosts")
async def hosts(request: Asked, service: InService, kind: HostKind = "", q: Words = "") -> Html:
    """Hosts, those in trouble first."""
    vitals = await service.watch.vitals()
    states = request.app.state.setdefault("host_order", HostOrder()).of(service.tracker, vitals)
    chosen = kind if kind in HOST_CLASSES else ""
    lines, hidden = host_lines(service.tracker, vitals, states, chosen, q)
    frame = _frame(request, service, "Hosts", "hosts")
    return _html(views.hosts(frame, lines, vitals.hosts.classes, (chosen, q), hidden))


@get("/sources")
async def sources(request: Asked, service: InService) -> Html:
    """Sources by what they yield."""
    book = service.tracker.discovery.book if service.tracker.discovery.enabled else None
    lines, hidden = await source_lines(service.store, request.app.state.setdefault("source_order", SourceOrder()), book)
    frame = _frame(request, service, "Sources", "sources")
    return _html(views.sources(frame, lines, source_problems(book), hidden))


@get("/settings")
async def settings(request: Asked, service: InService) -> Html:
    """Settings as they hold, and versions."""
    vitals, found = await service.watch.vitals(), versions()
    frame = _frame(request, service, "Settings", "settings")
    shown = effective(Chosen(service.settings, service.watch.origins))
    store = (service.store.name, vitals.counts, await service.store.count_paused())
    sinks = (vitals.sinks, await read_sinks(service.store, vitals.counts.last_cursor))
    return _html(views.settings(frame, shown, (found, warnings_of(found)), store, sinks))


@get("/series")
async def series(service: InService, span: FromQuery[Span] = "minutes") -> views.Series:
    """What was measured over time, column by column; null for what is not known."""
    clock = service.tracker.clock
    clocks = views.Clocks(clock.now(), time.time(), clock.pace)
    return views.series(service.watch.timeline, service.watch.reference_lines, span, clocks)


@get("/curve")
async def curve(service: InService) -> list[dict[str, float]]:
    """What other budgets would buy."""
    pace = service.tracker.clock.pace
    return [point._replace(budget=point.budget * pace)._asdict() for point in await service.watch.curve()]


@get("/live")
async def live(request: Asked, service: InService) -> ServerSentEvent:
    """Says `tick` when there is something to measure, and `change` with the cursor when something changed."""
    service.feed.page_slots.check(request.auth.name)
    return ServerSentEvent(_news(request, service, await service.store.last_cursor()))


async def _news(request: Asked, service: Service, cursor: int) -> AsyncIterator[ServerSentEventMessage]:
    async def is_known() -> bool:
        return await who(request, service.access) is not None

    clock, feed = asyncio.get_running_loop().time, service.feed
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


@get("/api", media_type=MediaType.HTML, sync_to_thread=False)
def api(request: Asked) -> Html:
    """The API for people: one page made from the OpenAPI document, without a script and without the internet."""
    return _html(views.api(request.app.openapi_schema.to_schema()))


@get("/metrics")
async def metrics(service: InService) -> Response[str]:
    """For Prometheus."""
    return Response(exposition(await service.watch.vitals()), media_type=CONTENT_TYPE)


@get("/static/{name:str}", opt={"scope": PUBLIC}, sync_to_thread=False)
def static(name: FromPath[str]) -> Response[bytes]:
    """Style, script and icons."""
    found = STATIC.get(name)
    if found is None:
        raise ApiError(404, "there is no such file")
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}
    return Response(found.content, media_type=found.media_type, headers=headers)


def _refused(_request: Asked, error: ApiError) -> Response[Any]:
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
    exception_handlers={ApiError: _refused},
)
_PARTS = Router(
    "/", route_handlers=[changes_csv, page_text, series, curve, live, api, metrics], opt={"scope": "read"},
    include_in_schema=False,
)  # fmt: skip
ROUTES = [_PAGES, _PARTS, static]
"""To be given to the application; each says the scope that it needs."""
