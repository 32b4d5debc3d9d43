"""What others know of pages: signals, wishes, hits of access logs, and files to import.

Signals and hits add no page; a signal raises the odds of a crawl, and the price decides. Imports and hits follow the
same rules as on the command line, row by row.
"""

from __future__ import annotations

import io
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
from litestar import Router, post
from litestar.params import FromQuery, JSONBody, QueryParameter

from recrawl.service.api.json_body import JsonBody
from recrawl.service.api.schemas import Done, Url, Urls, done
from recrawl.service.context import InService
from recrawl.service.errors import ApiError, Asked
from recrawl.tracker.commands.commands import CountHits, FetchNow, Signal
from recrawl.tracker.commands.hits import LogReader
from recrawl.tracker.importers.formats import FORMATS, LOOKED_AT_BYTES, tell_format
from recrawl.tracker.importers.importer import Defaults, Importer
from recrawl.tracker.importers.rows import Hints, Item
from recrawl.tracker.kinds import OURS
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.signals.access_log import LogCounts, LogRules, site_of
from recrawl.tracker.signals.hits_file import read_hits
from recrawl.web.push.webhook import KIND_PATTERN, is_kind

MOST_BYTES = 16 << 20
MOST_WISHED = 1000


class Heard(msgspec.Struct, forbid_unknown_fields=True):
    """Pages that are said to have changed, and how that is known."""

    urls: Urls
    kind: Annotated[str, msgspec.Meta(pattern=KIND_PATTERN)] = "manual"


class Wished(msgspec.Struct, forbid_unknown_fields=True):
    """Pages that are wanted now."""

    urls: Annotated[list[Url], msgspec.Meta(min_length=1, max_length=MOST_WISHED)]


@post("/signals", opt={"scope": "signal"}, dto=JsonBody[Heard], return_dto=None, status_code=200,
      request_max_body_size=MOST_BYTES)  # fmt: skip
async def signal(data: JSONBody[Heard], service: InService) -> Done:
    """Say that pages have changed; those that are not tracked are refused."""
    if not is_kind(data.kind):  # the pattern of the schema lets a line break at the end pass
        raise ApiError(422, f"{data.kind!r} is no name of a kind: leave out the line break", "kind")
    if data.kind in OURS:
        raise ApiError(422, f"{data.kind!r} is told by the tracker itself: use another name", "kind")
    return done(await service.run(Signal(data.urls, data.kind)))


@post("/fetch-now", opt={"scope": "write"}, dto=JsonBody[Wished], return_dto=None, status_code=200)
async def fetch_now(data: JSONBody[Wished], service: InService) -> Done:
    """Fetch pages as soon as their hosts allow, whatever they are worth; the budget pays."""
    return done(await service.run(FetchNow(data.urls)))


class RefusedRow(msgspec.Struct):
    """A row that cannot be used; None for the file as a whole."""

    row: int | None
    reason: str


class ImportDone(msgspec.Struct):
    """rows = added + known + same + refused; the first twenty refusals."""

    rows: int
    added: int
    known: int
    same: int
    refused: int
    paused: int
    refusals: list[RefusedRow]


@post("/import", opt={"scope": "write"}, status_code=200, request_max_body_size=MOST_BYTES)
async def import_pages(
    request: Asked,
    service: InService,
    form: Annotated[str | None, QueryParameter(name="format", description="; ".join(FORMATS))] = None,
    group: FromQuery[str | None] = None,
    importance: FromQuery[float | None] = None,
    dry_run: FromQuery[bool] = False,
) -> ImportDone:
    """Track the pages of a file: the body, as it is."""
    settings = service.settings
    if form is not None and form not in FORMATS:
        raise ApiError(422, f"is {form!r}, but must be one of {', '.join(FORMATS)}", "format")
    if group is not None and group not in {each.name for each in settings.groups}:
        raise ApiError(422, f"is {group[:100]!r}, which is no group of the settings", "group")

    importer = Importer(service.run, settings, Defaults(importance, group), dry_run=dry_run)
    await importer.take("body", _items(plain(await request.body()), form, settings, service.now()))
    done = importer.done
    refusals = [RefusedRow(row or None, reason) for _, row, reason in done.refusals]
    return ImportDone(done.rows, done.added, done.known, done.same, done.refused, done.paused, refusals)


def plain(body: bytes) -> bytes:
    """A body that is not compressed."""
    if body.startswith(b"\x1f\x8b"):
        raise ApiError(415, "compressed bodies are not read: send it as it is")
    return body


async def _items(body: bytes, form: str | None, settings: Settings, now: float) -> AsyncIterator[Item]:
    hints = Hints(frozenset(group.name for group in settings.groups), now)
    chosen = form or tell_format("body", body[:LOOKED_AT_BYTES])
    stream: Any = io.BytesIO(body)
    for item in FORMATS[chosen].read(stream, hints):
        yield item


class HitsCounted(msgspec.Struct):
    """What became of the lines: hits that were counted, of how many sources; of other pages; from before; refused."""

    lines: int
    counted: float
    named: float
    unknown: float
    earlier: float
    skipped: int
    refused: dict[str, int]
    sources: int


@post("/hits", opt={"scope": "write"}, status_code=200, request_max_body_size=MOST_BYTES)
async def count_hits(
    request: Asked,
    service: InService,
    host: FromQuery[str | None] = None,
    robots: FromQuery[bool] = False,
) -> HitsCounted:
    """Count the hits of a log: common or combined format, or CSV with `url`, `time` and `hits`. Twice is once."""
    rules = service.settings.address_rules
    site = None if host is None else site_of(host[:300], "host", rules)
    counts, reader = LogCounts(), LogReader(service.store)
    stream: Any = io.BytesIO(plain(await request.body()))
    await reader.read(read_hits(stream, LogRules(time.time(), site, not robots, rules), counts))
    counted = await reader.counts()
    if counted:
        await service.run(CountHits(counted))
    report = reader.report
    return HitsCounted(
        counts.lines,
        report.counted,
        report.named,
        report.unknown,
        report.earlier,
        counts.skipped.total(),
        dict(counts.refused),
        report.sources,
    )


ROUTES = Router("/api/v1", tags=["signals"], route_handlers=[signal, fetch_now, count_hits])
IMPORTS = Router("/api/v1", tags=["pages"], route_handlers=[import_pages])
