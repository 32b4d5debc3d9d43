"""Everything that the dashboard can show, with one text in every place where a text can be."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from recrawl.scheduling.estimates import Ages, Estimates, HostSums
from recrawl.service.dashboard import views
from recrawl.service.dashboard.data import (
    Event,
    Events,
    HostLine,
    PageFacts,
    PageList,
    ProblemLine,
    SourceLine,
    SourceProblems,
)
from recrawl.service.dashboard.rendering import render
from recrawl.service.dashboard.views import Frame
from recrawl.service.monitor.activity import HostFigures, HostsNow, Mover, Score, Trouble
from recrawl.service.monitor.monitor import SinkLag, Vitals
from recrawl.service.monitor.timeline import Sample, Timeline
from recrawl.store.columns import StoreCounts
from recrawl.store.rows import DeadLetter, NewChange, PageRow, SinkRow
from recrawl.tracker.commands.status import SinkState
from recrawl.web.change.diff import Hunk, TextDiff

NOW = 1_780_000_000.0
COUNTS = StoreCounts({"active": 7, "removed": 1, "quarantined": 0, "retired": 2}, 2, 300, 40, 5, 3, 9)


def some_vitals(text: str) -> Vitals:
    """A measurement; names of hosts, sinks, signals, outcomes and pages are the text."""
    counts = np.zeros(272, dtype=np.int64)
    counts[100:120] = 3
    estimates = Estimates(
        at=NOW / 86_400, pages=1234, importance=99.0, freshness=0.873, fresh_pages=0.71, believed=0.9,
        luck=0.02, slope=0.2, no_copy=4, missing=0.01, ages=Ages(counts), in_flight=2, on_offer=3, at_hosts=4,
        latest_due_s=12.5, listening=10, recall=0.7, precision=0.6, learned=1200,
        hosts=HostSums(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)),
    )  # fmt: skip
    return Vitals(
        at=NOW,
        estimates=estimates,
        freshness_range=(0.84, 0.91),
        audits=321,
        price=0.0123,
        budget_per_day=172_800.0,
        budget_used=0.97,
        budget_usable=1 / 120,
        min_interval_s=60.0,
        crawls_per_minute=118.0,
        changes_per_minute=12.5,
        wasted=0.4,
        delays_s=(120.0, 900.0),
        found_by_expected=1.1,
        scores=[Score(text, 10, 0.5, 0.25)],
        tallies={"fetched:ok": 90, f"fetched:{text}": 10, "deferred:pacing": 3, "requests": 120, "taken": 103},
        counts=COUNTS,
        sinks=[SinkLag(text, 12, 3, text)],
        hosts=HostsNow(
            {"well": 3, "failing": 1, "quiet": 1, "degraded": 1},
            [Trouble(text, "degraded", NOW - 60, None, 3), Trouble(text, "quiet", None, NOW + 60, 0)],
            estimates.hosts,
        ),
        network_down=True,
        last_success_at=NOW - 3,
        movers=[Mover(7, text, 12, NOW - 30)],
        unwritten=0,
    )


def some_event(text: str, url: str | None = None, *, diff: bool = True) -> Event:
    """A change; its address is the text unless another is given."""
    event = NewChange(
        "changed", NOW - 100, text if url is None else url, page_id=7, last_seen_unchanged_at=NOW - 900,
        old_digest=b"\x01" * 16, new_digest=b"\x02" * 16, trigger=text, detail=json.dumps({"reason": text}),
    )  # fmt: skip
    shown = TextDiff((Hunk(text, text, text, text),), 1, 2, 3) if diff else None
    return Event(40, event, f"reason {text}", shown)


def some_page(text: str, url: str | None = None) -> PageRow:
    """A page that is quarantined for a reason, which is the text."""
    return PageRow(
        id=7, url=text if url is None else url, host=text, group=text, importance=2.5, objective=None,
        min_interval_s=60.0, max_interval_s=3600.0, source=text, added_at=NOW - 9000, state="quarantined", reason=text,
        fetched_at=NOW - 50, changed_at=NOW - 500, outcome="ok", visits=12, changes=3, version=3,
    )  # fmt: skip


def some_explanation(text: str) -> dict[str, Any]:
    """What is said of a page, as the tracker says it."""
    visit = {
        "at": "2026-11-16T10:00:00.000Z", "outcome": text, "verdict": text, "status": 200, "trigger": text,
        "reason": text, "requests": 1, "bytes": 1234,
    }  # fmt: skip
    return {
        "objective": "harmonic", "validators": text,
        "signals": [{"kind": text, "count": 2, "last_at": "2026-11-16T10:00:00.000Z"}],
        "schedule": {
            "state": text, "value": 1.5, "price": 0.5, "due_at": None, "waits_for": text, "until": None,
            "limits": [text], "changes_per_day": 2.0, "changes_per_day_90": [1.0, 3.0], "seconds_until_due": 90.0,
        },
        "last_visits": [visit, {**visit, "verdict": None}],
    }  # fmt: skip


def some_document(text: str) -> dict[str, Any]:
    """An OpenAPI document; its path, tag and texts are the text."""
    parameter = {"name": text, "in": "query"}
    body = {"content": {"application/json": {"schema": {"$ref": f"#/{text}"}}}}
    operation = {"tags": [text], "description": text, "parameters": [parameter], "requestBody": body}
    return {"paths": {text: {"post": operation}}}


def all_pages(text: str, url: str | None = None) -> dict[str, str]:
    """Every template with the text wherever a text may be, by the name of the template."""
    frame = Frame(text, "overview", NOW, text)
    vitals = some_vitals(text)
    timeline = Timeline()
    timeline.add(Sample(NOW - 100, freshness=0.8))
    event = some_event(text, url)
    page = some_page(text, url)
    events = Events([event, some_event(text, url, diff=False)], text, 50, 12, 40)
    facts = PageFacts(page, some_explanation(text), [text], [event], [(3, NOW - 500, b"\x02" * 16)])
    figures = HostFigures(12, 0.5, 1, 0.7)
    host = HostLine(text, "quiet", 2, 1.0, 1, NOW + 60, text, figures, [(text, 0.5, 0.5)])
    source = SourceLine(7, text if url is None else url, text, text, text, text, 3, 5, 2, NOW - 30, text, {text: 3})
    problem = ProblemLine(7, text if url is None else url, text, text, NOW - 40)
    problems = SourceProblems([problem], 4, {text: 3})
    sink = SinkState(SinkRow(text, 3), 12, 10_000, [DeadLetter(text, 3, NOW - 50, text)])
    settings: list[dict[str, Any]] = [
        {"name": text, "value": text, "unit": text, "from": text},
        {"name": "a", "value": [text], "unit": None, "from": "file"},
    ]
    return {
        "overview.html": views.overview(frame, vitals, timeline, [event], text),
        "changes.html": views.changes(frame, events),
        "change.html": views.change(frame, event, 1),
        "pages.html": views.pages(frame, PageList([page], text, text, text, 9, scanned=True), COUNTS.pages, [text]),
        "page.html": views.page(frame, facts),
        "hosts.html": views.hosts(frame, [host], vitals.hosts.classes, (text, text), 3),
        "sources.html": views.sources(frame, [source], problems, 2),
        "settings.html": views.settings(
            frame, settings, ({text: text}, [text]), (text, COUNTS, 1), (vitals.sinks, [sink])
        ),
        "api.html": views.api(some_document(text)),
        "login.html": render("login.html"),
        "failure.html": views.failure(frame, 404, text),
    }
