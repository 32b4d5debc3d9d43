"""Each page of the dashboard as a function from what it shows to HTML. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from recrawl.service.dashboard.data import (
    Event,
    Events,
    HostLine,
    PageFacts,
    PageList,
    SourceLine,
    SourceProblems,
)
from recrawl.service.dashboard.rendering import render
from recrawl.service.monitor.activity import HostClass
from recrawl.service.monitor.monitor import SinkLag, Vitals
from recrawl.service.monitor.timeline import SPANS, Sample, Span, Timeline
from recrawl.store.columns import StoreCounts
from recrawl.store.rows import CHANGE_KINDS, PageState
from recrawl.tracker.commands.status import MOST_COUNTED, SinkState, usable_line
from recrawl.version import __version__

PLACES = (
    ("overview", "/", "o"),
    ("changes", "/changes", "c"),
    ("pages", "/pages", "p"),
    ("hosts", "/hosts", "h"),
    ("sources", "/sources", "s"),
    ("settings", "/settings", "e"),
)
"""Name, address and key of what the navigation leads to."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What is around every page.

    Args:
        title: of the window.
        active: which place of the navigation it belongs to.
        now: Unix seconds, by the clock of the tracker.
        csrf: of the session, with which it may be ended; "" if there is none.
        pace: how many times as fast as a real clock that of the tracker runs; spans and rates are by the real one.
    """

    title: str
    active: str
    now: float
    csrf: str = ""
    pace: float = 1.0
    places: tuple[tuple[str, str, str], ...] = PLACES
    version: str = __version__


class Clocks(NamedTuple):
    """The time now by the tracker's clock and by a real one, and how many times as fast the first runs."""

    tracker: float
    real: float
    pace: float


Series = dict[str, list[float | None]]
_BOTH = ("freshness", "fresh_pages")


def overview(frame: Frame, vitals: Vitals, timeline: Timeline, latest: Sequence[Event], objective: str) -> str:
    """How it is, and how it has been."""
    trend, over = _trend(vitals, timeline.before("hour"))
    names = ["recrawl, estimated", *vitals.references] if vitals.references else ["by importance", "by page"]
    return render(
        "overview.html",
        frame=frame,
        vitals=vitals,
        freshness_chart=" ".join(["freshness", *reference_keys(vitals.references)] if vitals.references else _BOTH),
        freshness_names="|".join(names),
        latest=latest,
        objective=objective,
        host_count=np.count_nonzero(vitals.estimates.hosts.pages),
        trend=trend,
        trend_over=over,
        spans=[(span, timeline.covers_s(span)) for span in (SPANS if timeline.pace == 1 else SPANS[:2])],
        fetches_per_day=_by_day(vitals.crawls_per_minute),
        usable=usable_line(vitals.budget_usable, vitals.min_interval_s),
        changes_per_day=_by_day(vitals.changes_per_minute),
        ends=_ends(vitals.tallies),
    )


def reference_keys(names: Iterable[str]) -> list[str]:
    """The keys of references in what charts are drawn from, in order."""
    return [f"reference_{number}" for number, _ in enumerate(names)]


def series(timeline: Timeline, references: Mapping[str, Timeline], span: Span, clocks: Clocks) -> Series:
    """What was measured over time, column by column, by a real clock; None for what is not known.

    Args:
        timeline: of the tracker.
        references: by name; each has the last samples of the timeline, or fewer.
        span: which of them.
        clocks: that of the tracker, and the real one.
    """
    samples = [_by_real_clock(each, clocks) for each in timeline.samples(span)]
    columns: Series = {name: [_known(getattr(each, name)) for each in samples] for name in Sample._fields}
    for key, line in zip(reference_keys(references), references.values(), strict=True):
        values = [_known(each.freshness) for each in line.samples(span)][-len(samples) :]
        columns[key] = [*[None] * (len(samples) - len(values)), *values]
    return columns


def _by_real_clock(sample: Sample, clocks: Clocks) -> Sample:
    pace = clocks.pace
    return sample._replace(
        at=clocks.real - (clocks.tracker - sample.at) / pace,
        age_p50_s=sample.age_p50_s / pace,
        age_p90_s=sample.age_p90_s / pace,
        crawls=sample.crawls * pace,
        changes=sample.changes * pace,
    )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _by_day(per_minute: float | None) -> float | None:
    return None if per_minute is None else 1440.0 * per_minute


def _trend(vitals: Vitals, before: Sample | None) -> tuple[float | None, float]:
    if before is None or before.at >= vitals.at or before.freshness != before.freshness:
        return None, 0.0
    return vitals.estimates.freshness - before.freshness, vitals.at - before.at


def _ends(tallies: Mapping[str, int], most: int = 8) -> list[tuple[str, int, float]]:
    """Outcomes of fetches with their counts and shares, the most frequent first, rare ones together."""
    counts = {name.partition(":")[2]: count for name, count in tallies.items() if name.startswith("fetched:")}
    total = sum(counts.values())
    ranked = sorted(counts.items(), key=lambda each: -each[1])
    if len(ranked) > most:
        ranked = [*ranked[: most - 1], ("others", sum(count for _, count in ranked[most - 1 :]))]
    return [(name, count, count / total) for name, count in ranked if count]


def changes(frame: Frame, events: Events) -> str:
    """The change stream."""
    return render("changes.html", frame=frame, events=events, kinds=CHANGE_KINDS)


def change(frame: Frame, each: Event, versions_kept: int) -> str:
    """One event."""
    return render("change.html", frame=frame, each=each, versions_kept=versions_kept)


def pages(frame: Frame, found: PageList, counts: Mapping[PageState, int], groups: Sequence[str]) -> str:
    """Pages that were searched for."""
    return render("pages.html", frame=frame, list=found, counts=counts, groups=groups)


def page(frame: Frame, facts: PageFacts) -> str:
    """One page."""
    return render("page.html", frame=frame, facts=facts)


def hosts(
    frame: Frame,
    lines: Sequence[HostLine],
    classes: Mapping[HostClass, int],
    asked: tuple[str, str] = ("", ""),
    hidden: int = 0,
) -> str:
    """Hosts; `asked` is the class and the part of a name that was asked for, `hidden` how many more there are."""
    chosen, query = asked
    return render("hosts.html", frame=frame, hosts=lines, classes=classes, chosen=chosen, query=query, hidden=hidden)


def sources(frame: Frame, lines: Sequence[SourceLine], problems: SourceProblems, hidden: int = 0) -> str:
    """Sources by what they yield, what is wrong with them, and what was not taken."""
    return render("sources.html", frame=frame, sources=lines, problems=problems, hidden=hidden)


def settings(
    frame: Frame,
    effective: Sequence[Mapping[str, Any]],
    doctor: tuple[Mapping[str, str | None], Sequence[str]],
    store: tuple[str, StoreCounts, int],
    sinks: tuple[Sequence[SinkLag], Sequence[SinkState]],
) -> str:
    """Settings as they hold, and what `recrawl doctor` has to say: versions, and warnings on them.

    `store` is its name, what it holds, and how many pages are paused. `sinks` are
    those of the settings, and all that the store knows, with what they could not take.
    """
    versions, warnings = doctor
    name, counts, paused = store
    facts = [*((f"Pages, {state}", count) for state, count in counts.pages.items())]
    facts += [("Paused pages", paused), ("Leases", counts.leases), ("Fetches kept", counts.observations)]
    facts += [("Events", counts.last_cursor), ("Hosts", counts.hosts)]
    return render(
        "settings.html",
        frame=frame,
        settings=effective,
        versions=versions,
        warnings=warnings,
        store=name,
        store_facts=facts,
        sinks=sinks[0],
        dead=[each for each in sinks[1] if each.dead],
        most_counted=MOST_COUNTED,
    )


class Operation(NamedTuple):
    """A route of the API: what it means, the names of its query parameters, and the type of its body."""

    method: str
    path: str
    means: str
    query: Sequence[str]
    body: Sequence[str]


def api(document: Mapping[str, Any]) -> str:
    """The routes of an OpenAPI document, by tag."""
    tags: dict[str, list[Operation]] = {}
    for path, operations in document.get("paths", {}).items():
        for method in ("get", "post", "put", "patch", "delete"):
            operation = operations.get(method)
            if operation is not None:
                tags.setdefault((operation.get("tags") or ["other"])[0], []).append(_operation(method, path, operation))
    return render("api.html", tags=tags)


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> Operation:
    query = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
    schemas = [each.get("schema", {}) for each in operation.get("requestBody", {}).get("content", {}).values()]
    body = [each["$ref"].rpartition("/")[2] for each in schemas if "$ref" in each]
    return Operation(method.upper(), path, str(operation.get("description", "")), query, body)


def failure(frame: Frame, status: int, message: str) -> str:
    """What could not be shown, and why."""
    return render("failure.html", frame=frame, status=status, message=message)
