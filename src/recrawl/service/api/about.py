"""How it is: status, health, hosts, sources, sinks, settings, what the budget buys."""

from __future__ import annotations

import re
import time
from bisect import bisect_left, bisect_right
from typing import Annotated, Any

import msgspec
from litestar import Response, Router, get
from litestar.params import FromQuery, QueryParameter

from recrawl.errors import InvalidInput
from recrawl.service.api.schemas import MOST_LISTED
from recrawl.service.context import InService
from recrawl.service.errors import ApiError
from recrawl.service.monitor.health import troubles
from recrawl.store.rows import HostRow
from recrawl.tracker.clock import iso
from recrawl.tracker.commands.status import SinkState, read_sinks, status_of
from recrawl.tracker.discovery.listing import book_of, some_sources
from recrawl.tracker.settings.settings import Setting, Settings
from recrawl.tracker.settings.table import LISTS, PLAIN, TABLES
from recrawl.units import parse_budget

MASK = "(set, not shown)"
_PASSWORD = re.compile(r"(?<=://)([^:/@]*):[^/]*@")
_PARAMETER = re.compile(r"(?<=password=)[^&\s]*")
_SECRETS = ("secret", "secrets", "token", "password")
_PATH = re.compile(r"(?<=://)([^/?#@]*@)?([^/?#]*)[/?#].*", re.DOTALL)


class Host(msgspec.Struct):
    """A host: its pace, and whether it is in trouble."""

    host: str
    min_gap_s: float
    next_at: str | None
    blocked_until: str | None
    failures: int
    degraded_since: str | None


class HostList(msgspec.Struct):
    """Hosts by name; `next` goes into `after`."""

    hosts: list[Host]
    next: str | None


class SourceTrust(msgspec.Struct):
    """How far the dates of a source are believed, from crawls that put them to the test (`audits`)."""

    kind: str
    precision: float
    precision_error: float
    recall: float
    recall_error: float
    audits: int
    listened: bool


class Source(msgspec.Struct):
    """A source: what it led to, what that is worth, what it costs.

    `profit` is the requests that a new page is expected to get, which fade at `decay_per_day`; `cost` is in requests.
    `problem` is what was wrong with it when it was last read; `refused` are addresses that it named and that were not
    taken, by rule.
    """

    page: int
    url: str
    kind: str
    state: str
    reason: str | None
    problem: str | None
    problem_at: str | None
    found_by: str
    tracked: bool
    added_at: str | None
    polls: int
    last_polled: str | None
    found: int
    refused: dict[str, int]
    new_pages_per_day: float
    profit: float
    decay_per_day: float
    signals: int
    useful_at: str | None
    trust: SourceTrust | None
    worth_per_day: float
    cost: float
    pushed: bool
    value: float | None
    price: float | None
    due_at: str | None


class SourceList(msgspec.Struct):
    """Sources in the order of their pages; `next` goes into `after`.

    `refused` are addresses that all sources together named and that were not taken, by rule; `problems` is how many
    sources had one when they were last read.
    """

    sources: list[Source]
    next: int | None
    refused: dict[str, int]
    problems: int


class DeadLetter(msgspec.Struct):
    """An event that a sink could not take: its cursor in the change log, when that was, and why."""

    event: int
    at: str | None
    error: str


class Sink(msgspec.Struct):
    """A sink of the settings of now or before: the last event that it took, how many are left, what it could not take.

    `dead_letters` are counted up to 10,000; there may be more.
    """

    sink: str
    cursor: int
    behind: int
    failures: int
    retry_at: str | None
    stopped: str | None
    dead_letters: int
    newest_dead_letters: list[DeadLetter]


class SinkList(msgspec.Struct):
    """Sinks by name."""

    sinks: list[Sink]


class BudgetPoint(msgspec.Struct):
    """What a budget buys in the long run: freshness weighted by importance, and what one more crawl a day adds."""

    budget_per_day: float
    freshness: float
    price: float


class WhatIf(msgspec.Struct):
    """What other budgets would buy, with change rates as they are believed now; empty before there are pages."""

    points: list[BudgetPoint]


class PlanAnswer(msgspec.Struct):
    """What the budget buys, another one, and a tenth more; estimates are of now, plans of the long run."""

    budget_per_day: float
    price: float
    freshness_now: float
    pages: int
    planned: BudgetPoint | None
    tenth_more: BudgetPoint | None


@get("/status", opt={"scope": "read"})
async def status(service: InService) -> dict[str, Any]:
    """As `recrawl status --json`."""
    return await status_of(service.store, service.now())


@get("/hosts", opt={"scope": "read"})
async def hosts(
    service: InService,
    after: FromQuery[str] = "",
    limit: Annotated[int, QueryParameter(ge=1, le=MOST_LISTED)] = 100,
) -> HostList:
    """Hosts by name."""
    rows = await service.store.list_hosts(after, limit + 1)
    chosen = rows[:limit]
    return HostList([_host(row) for row in chosen], chosen[-1].name if len(rows) > limit else None)


@get("/sources", opt={"scope": "read"})
async def sources(
    service: InService,
    after: Annotated[int, QueryParameter(ge=0, le=2**63 - 1)] = 0,
    limit: Annotated[int, QueryParameter(ge=1, le=MOST_LISTED)] = 100,
) -> SourceList:
    """Hubs, sitemaps and feeds that are read for new pages and signals: as `recrawl sources --json`."""
    rows = sorted(await service.store.sources(), key=lambda row: row.page_id)
    start = bisect_right(rows, after, key=lambda row: row.page_id)
    chosen = rows[start : start + limit]
    book = await book_of(service.store, service.tracker)
    facts = await some_sources(service.store, service.tracker, book, [row.page_id for row in chosen])
    told = [
        msgspec.convert(
            {**facts[row.page_id], "page": row.page_id, "added_at": iso(row.added_at), "useful_at": iso(row.useful_at)},
            Source,
        )
        for row in chosen
        if row.page_id in facts
    ]
    following = chosen[-1].page_id if start + limit < len(rows) else None
    return SourceList(told, following, book.refused, len(book.problems))


@get("/sinks", opt={"scope": "read"})
async def sinks(service: InService, limit: Annotated[int, QueryParameter(ge=0, le=MOST_LISTED)] = 10) -> SinkList:
    """Where sinks are, and the newest `limit` events that each could not take."""
    found = await read_sinks(service.store, await service.store.last_cursor(), limit)
    return SinkList([_sink(each) for each in found])


@get("/settings", opt={"scope": "read"})
async def settings(service: InService) -> dict[str, Any]:
    """The settings as they hold; secrets are not shown."""
    return shown_settings(service.settings)


@get("/what-if", opt={"scope": "read"})
async def what_if(service: InService) -> WhatIf:
    """What budgets from an eighth to eight times as much would buy; worked out at most twice a minute."""
    return WhatIf([BudgetPoint(*point) for point in await service.watch.curve()])


@get("/plan", opt={"scope": "read"})
async def plan(service: InService, budget: FromQuery[str | None] = None) -> PlanAnswer:
    """What a budget buys, by default the present one; written as `2/s` or `5000/day`."""
    asked = None if budget is None else _budget(budget)
    vitals = await service.watch.vitals()
    points = [BudgetPoint(*point) for point in await service.watch.curve()]
    wanted = vitals.budget_per_day if asked is None else asked
    return PlanAnswer(
        vitals.budget_per_day,
        vitals.price,
        vitals.estimates.freshness,
        vitals.estimates.pages,
        at(points, wanted),
        at(points, 1.1 * wanted),
    )


def at(points: list[BudgetPoint], budget: float) -> BudgetPoint | None:
    """The curve between its points; None outside of it."""
    place = bisect_left(points, budget, key=lambda point: point.budget_per_day)
    if place < len(points) and points[place].budget_per_day == budget:
        return points[place]
    if not 0 < place < len(points):
        return None
    low, high = points[place - 1], points[place]
    share = (budget - low.budget_per_day) / (high.budget_per_day - low.budget_per_day)
    freshness = low.freshness + share * (high.freshness - low.freshness)
    return BudgetPoint(budget, freshness, low.price + share * (high.price - low.price))


def _budget(text: str) -> float:
    try:
        crawls = parse_budget(text[:100]).crawls_per_day
    except InvalidInput as error:
        raise ApiError(422, error.problem, "budget") from None
    if crawls is None:
        raise ApiError(422, "must be crawls in a time, such as 2/s or 5000/day", "budget")
    return crawls


def _sink(state: SinkState) -> Sink:
    row = state.row
    newest = [DeadLetter(each.cursor, iso(each.at), each.reason) for each in state.newest]
    return Sink(
        row.name,
        row.cursor,
        state.behind,
        row.failures,
        iso(row.retry_at),
        row.stopped or None,
        state.dead,
        newest,
    )


def _host(row: HostRow) -> Host:
    return Host(
        row.name, row.min_gap_s, iso(row.next_at), iso(row.blocked_until), row.failures, iso(row.degraded_since)
    )


@get("/healthz", opt={"scope": "public"}, include_in_schema=False)
async def healthz(service: InService) -> Response[dict[str, object]]:
    """200 if all is well, 503 and what is not; needs no token, and says nothing of pages."""
    wrong = troubles(service.tracker, service.pulse, time.monotonic())
    return Response({"ok": not wrong, "wrong": wrong}, status_code=503 if wrong else 200)


def shown_settings(settings: Settings) -> dict[str, Any]:
    """All settings that have a name; of headers only for whom there are some."""
    shown: dict[str, Any] = {each.name: _value(each, getattr(settings, each.field)) for each in PLAIN}
    for name, (_, entries) in TABLES.items():
        table = getattr(settings, name, None)
        if table is not None:
            shown[name] = _table(entries, table)
    for name, (_, entries) in LISTS.items():
        shown[name] = [_table(entries, each) for each in getattr(settings, name, ())]
    shown["network"] = {"ports": sorted(settings.egress.ports)}
    return shown


def _table(entries: tuple[Setting, ...], value: object) -> dict[str, Any]:
    return {each.name: _value(each, getattr(value, each.field)) for each in entries}


def _value(setting: Setting, value: Any) -> Any:
    if setting.name in _SECRETS:
        return MASK if value else ""
    if setting.name == "target" and isinstance(value, str):  # addresses of webhooks are often secrets themselves
        return _PATH.sub(r"\2/…", value)
    if isinstance(value, str):
        return _PARAMETER.sub("***", _PASSWORD.sub(r"\1:***@", value))
    if isinstance(value, (tuple, frozenset, set)):
        return [str(each) for each in value]
    return value if isinstance(value, (bool, int, float)) or value is None else str(value)


ROUTES = Router("/api/v1", tags=["about"], route_handlers=[status, hosts, sources, sinks, settings, what_if, plan])
