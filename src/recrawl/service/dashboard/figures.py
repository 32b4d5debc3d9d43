"""Rows of the tables on hosts and sources, from what the tracker and the store have. Bounded by what is shown."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from recrawl.service.dashboard.rendering import duration
from recrawl.service.dashboard.views import HostLine, ProblemLine, SourceLine, SourceProblems
from recrawl.service.monitor.host_watch import HOST_CLASSES, HostFigures, class_of, figures_of
from recrawl.service.monitor.vitals import Vitals
from recrawl.store.contract import Store
from recrawl.store.rows import SourceRow
from recrawl.tracker.discovery.source import SourceBook
from recrawl.tracker.hosts import HostState
from recrawl.tracker.tracker import Tracker

SHOWN = 200
PROBLEMS_SHOWN = 20
_ORDER_S = 10.0
_LONG_S = 0.01
_KEPT_TIMES = 100.0  # as long as it took to read them


@dataclass(slots=True)
class HostOrder:
    """Hosts with most to tell first, kept for some seconds if none comes: sorting them is O(hosts · log hosts)."""

    made_at: float = float("-inf")
    states: list[HostState] = field(default_factory=list)

    def of(self, tracker: Tracker, vitals: Vitals) -> list[HostState]:
        """The hosts of a tracker: those in trouble, then by how many pages they have."""
        if time.monotonic() - self.made_at > _ORDER_S or len(self.states) != len(tracker.hosts):
            self.states = sorted(
                tracker.hosts,
                key=lambda state: (
                    -HOST_CLASSES.index(class_of(state, vitals.at)),
                    -figures_of(tracker, state, vitals.hosts.sums).pages,
                    state.name,
                ),
            )
            self.made_at = time.monotonic()
        return self.states


def host_lines(
    tracker: Tracker, vitals: Vitals, states: Sequence[HostState], kind: str, query: str
) -> tuple[list[HostLine], int]:
    """Those of a class and with a text in their name, and how many more there are. O(hosts)."""
    wanted = query.strip().lower()
    fitting = [
        state
        for state in states
        if (not kind or class_of(state, vitals.at) == kind) and (not wanted or wanted in state.name)
    ]
    return [_line(tracker, state, vitals) for state in fitting[:SHOWN]], max(len(fitting) - SHOWN, 0)


def _line(tracker: Tracker, state: HostState, vitals: Vitals) -> HostLine:
    now = vitals.at
    figures: HostFigures = figures_of(tracker, state, vitals.hosts.sums)
    return HostLine(
        state.name,
        class_of(state, now),
        state.failures,
        state.min_gap_s,
        tracker.hosts.max_in_flight(state.name),
        state.blocked_until if state.blocked_until > now else None,
        _robots(state, now, tracker.clock.pace),
        figures,
        _trust(tracker, state),
    )


def _robots(state: HostState, now: float, pace: float) -> str:
    """What robots.txt said last, of the origin that was asked last."""
    if not state.robots:
        return "not asked yet"
    entry = max(state.robots.values(), key=lambda each: each.fetched_at)
    said = {"rules": "rules", "unavailable": "none", "unreachable": "unreachable"}[entry.answer.kind]
    delay = "" if entry.answer.crawl_delay_s is None else f", delay {duration(entry.answer.crawl_delay_s, pace)}"
    left = entry.expires_at - now
    return f"{said}{delay}, {f'holds {duration(left, pace)}' if left > 0 else 'to be asked again'}"


def _trust(tracker: Tracker, state: HostState) -> Sequence[tuple[str, float, float]]:
    """Kind, recall and precision of the signals of a host, where they are learned."""
    trust = tracker.signals.trust
    row = trust.row_of(state.number)
    if row is None:
        return ()
    told = zip(trust.kinds, trust.recall[row].tolist(), trust.precision[row].tolist(), strict=False)
    return [(kind, recall, precision) for kind, recall, precision in told if recall > 0]


@dataclass(slots=True)
class SourceOrder:
    """Sources that found most for each poll, kept for a moment where there are many: reading all is O(sources)."""

    good_until: float = float("-inf")
    rows: list[SourceRow] = field(default_factory=list)
    hidden: int = 0

    async def of(self, store: Store) -> tuple[list[SourceRow], int]:
        """Those that are shown, and how many more there are."""
        started = time.monotonic()
        if started >= self.good_until:
            rows = sorted(
                await store.sources(), key=lambda each: (each.state != "active", -each.found / max(each.polls, 1))
            )
            self.rows, self.hidden = rows[:SHOWN], max(len(rows) - SHOWN, 0)
            ended = time.monotonic()
            took_s = ended - started
            self.good_until = ended + (min(_KEPT_TIMES * took_s, _ORDER_S) if took_s > _LONG_S else 0.0)
        return self.rows, self.hidden


async def source_lines(
    store: Store, order: SourceOrder, book: SourceBook | None = None
) -> tuple[list[SourceLine], int]:
    """Sources, those that found most for each poll first, and how many more there are.

    Args:
        store: where they are.
        order: in which they are shown.
        book: of a tracker that reads them, which has what is wrong with them and what was not taken.
    """
    shown, hidden = await order.of(store)
    urls = {page.id: page.url for page in await store.read_pages([row.page_id for row in shown])}
    known = {} if book is None else {row.page_id: book.of_page(row.page_id) for row in shown}
    memories = {number: source.memory for number, source in known.items() if source is not None}
    lines = [
        SourceLine(
            row.page_id,
            urls.get(row.page_id, ""),
            row.kind,
            row.state,
            row.reason,
            row.found_by,
            row.polls,
            row.found,
            row.signals,
            row.useful_at,
            memories[row.page_id].problem if row.page_id in memories else "",
            memories[row.page_id].refused if row.page_id in memories else {},
        )
        for row in shown
    ]
    return lines, hidden


def source_problems(book: SourceBook | None) -> SourceProblems:
    """What is wrong with the sources of a tracker, and what it did not take."""
    if book is None:
        return SourceProblems([], 0, {})
    found = book.problems
    lines = [
        ProblemLine(each.row.page_id, each.url, each.row.kind, each.memory.problem, each.memory.problem_at)
        for each in found[:PROBLEMS_SHOWN]
    ]
    return SourceProblems(lines, len(found), book.refused)
