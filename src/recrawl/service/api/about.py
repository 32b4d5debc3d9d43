"""How it is: status, hosts, sources, sinks, settings, what the budget buys."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Annotated, Any

import msgspec
from litestar import Router, get
from litestar.params import FromQuery, QueryParameter

from recrawl.errors import InvalidInput
from recrawl.service.api.schemas import MOST_LISTED
from recrawl.service.api.settings_shown import shown_settings
from recrawl.service.context import InTracker, InWatch
from recrawl.service.errors import Refusal
from recrawl.store.rows import HostRow
from recrawl.tracker.clock import iso
from recrawl.tracker.commands.status import SinkState, read_sinks, status_of
from recrawl.tracker.discovery.listing import book_of, some_sources
from recrawl.units import parse_budget


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
async def status(tracker: InTracker) -> dict[str, Any]:
    """As `recrawl status --json`."""
    return await status_of(tracker.store, tracker.clock.now())


@get("/hosts", opt={"scope": "read"})
async def hosts(
    tracker: InTracker,
    after: FromQuery[str] = "",
    limit: Annotated[int, QueryParameter(ge=1, le=MOST_LISTED)] = 100,
) -> HostList:
    """Hosts by name."""
    rows = await tracker.store.list_hosts(after, limit + 1)
    chosen = rows[:limit]
    return HostList([_host(row) for row in chosen], chosen[-1].name if len(rows) > limit else None)


@get("/sources", opt={"scope": "read"})
async def sources(
    tracker: InTracker,
    after: Annotated[int, QueryParameter(ge=0, le=2**63 - 1)] = 0,
    limit: Annotated[int, QueryParameter(ge=1, le=MOST_LISTED)] = 100,
) -> SourceList:
    """Hubs, sitemaps and feeds that are read for new pages and signals: as `recrawl sources --json`."""
    rows = sorted(await tracker.store.sources(), key=lambda row: row.page_id)
    start = bisect_right(rows, after, key=lambda row: row.page_id)
    chosen = rows[start : start + limit]
    book = await book_of(tracker.store, tracker)
    facts = await some_sources(tracker.store, tracker, book, [row.page_id for row in chosen])
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
async def sinks(tracker: InTracker, limit: Annotated[int, QueryParameter(ge=0, le=MOST_LISTED)] = 10) -> SinkList:
    """Where sinks are, and the newest `limit` events that each could not take."""
    found = await read_sinks(tracker.store, await tracker.store.last_cursor(), limit)
    return SinkList([_sink(each) for each in found])


@get("/settings", opt={"scope": "read"})
async def settings(tracker: InTracker) -> dict[str, Any]:
    """The settings as they hold; secrets are not shown."""
    return shown_settings(tracker.settings)


@get("/what-if", opt={"scope": "read"})
async def what_if(watch: InWatch) -> WhatIf:
    """What budgets from an eighth to eight times as much would buy; worked out at most twice a minute."""
    return WhatIf([BudgetPoint(*point) for point in await watch.curve()])


@get("/plan", opt={"scope": "read"})
async def plan(watch: InWatch, budget: FromQuery[str | None] = None) -> PlanAnswer:
    """What a budget buys, by default the present one; written as `2/s` or `5000/day`."""
    asked = None if budget is None else _budget(budget)
    vitals = await watch.vitals()
    points = [BudgetPoint(*point) for point in await watch.curve()]
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
        raise Refusal(422, error.problem, "budget") from None
    if crawls is None:
        raise Refusal(422, "must be crawls in a time, such as 2/s or 5000/day", "budget")
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


ROUTES = Router("/api/v1", tags=["about"], route_handlers=[status, hosts, sources, sinks, settings, what_if, plan])
