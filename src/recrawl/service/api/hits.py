"""Hits: access logs as the body of a request, read as `recrawl hits` does: how much new pages are asked for."""

from __future__ import annotations

import io
import time
from typing import Any

import msgspec
from litestar import Router, post
from litestar.params import FromQuery

from recrawl.service.api.imports import MOST_BYTES, plain
from recrawl.service.context import InHand, InTracker
from recrawl.service.errors import Asked
from recrawl.tracker.commands.commands import CountHits
from recrawl.tracker.commands.hits import LogReader
from recrawl.tracker.signals.access_log import LogCounts, LogRules, site_of
from recrawl.tracker.signals.hits_file import read_hits


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
    tracker: InTracker,
    hand: InHand,
    host: FromQuery[str | None] = None,
    robots: FromQuery[bool] = False,
) -> HitsCounted:
    """Count the hits of a log: common or combined format, or CSV with `url`, `time` and `hits`. Twice is once."""
    rules = tracker.settings.address_rules
    site = None if host is None else site_of(host[:300], "host", rules)
    counts, reader = LogCounts(), LogReader(tracker.store)
    stream: Any = io.BytesIO(plain(await request.body()))
    await reader.read(read_hits(stream, LogRules(time.time(), site, not robots, rules), counts))
    counted = await reader.counts()
    if counted:
        await hand.do(CountHits(counted), tracker.clock.now())
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


ROUTES = Router("/api/v1", tags=["signals"], route_handlers=[count_hits])
