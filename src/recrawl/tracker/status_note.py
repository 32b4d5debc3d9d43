"""What a running tracker writes down of itself every few seconds, for `recrawl status`: a fact of the store."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from recrawl.tracker.clock import DAY_S
from recrawl.units import format_duration

if TYPE_CHECKING:
    from recrawl.tracker.tracker import Tracker

FACT = "status"
NEWEST = 10
"""Problems and dead letters that are told one by one; of the others the number is told."""
STALE_AFTER_S = 20.0


class SourceProblem(msgspec.Struct):
    """What was wrong with a source when it was last read."""

    url: str
    kind: str
    problem: str
    at: float


class StatusNote(msgspec.Struct):
    """A tracker as it was at a moment; times are Unix seconds, budget and price by day.

    `hosts_heard` sent signals, `hosts_believed` some that are listened to; `wishes` wait to be fetched now. `refused`
    are addresses that discovery did not take, by rule; of `source_problems` the newest are in `newest_problems`.
    `usable` is the share of the budget that the least intervals of pages let be used, `interval_s` the one of most.
    """

    at: float
    since: float
    pid: int
    machine: str
    price: float
    budget_per_day: float
    scheduled: int
    in_flight: int
    running: bool = True
    hosts_heard: int = 0
    hosts_believed: int = 0
    wishes: int = 0
    refused: dict[str, int] = msgspec.field(default_factory=dict)
    source_problems: int = 0
    newest_problems: list[SourceProblem] = msgspec.field(default_factory=list)
    usable: float = 1.0
    interval_s: float = 0.0


def note_of(tracker: Tracker, since: float) -> StatusNote:
    """What there is to note of a tracker. O(hosts that sent signals, and sources with problems)."""
    desk = tracker.desk
    book = None if desk.sources is None else desk.sources.book
    troubled = [] if book is None else book.problems
    return StatusNote(
        at=desk.clock.now(),
        since=since,
        pid=os.getpid(),
        machine=socket.gethostname(),
        price=float(desk.scheduler.price),
        budget_per_day=float(desk.scheduler.budget),
        scheduled=len(desk.scheduler),
        in_flight=len(tracker.flights),
        running=not tracker.stopping,
        hosts_heard=len(desk.hearing.trust.hosts),
        hosts_believed=desk.hearing.trust.believed,
        wishes=len(tracker.taker.wishes),
        refused={} if book is None else book.refused,
        source_problems=len(troubled),
        newest_problems=[
            SourceProblem(each.url, each.row.kind, each.memory.problem, each.memory.problem_at)
            for each in troubled[:NEWEST]
        ],
        usable=usable_share(tracker),
        interval_s=tracker.settings.min_interval_s,
    )


def usable_share(tracker: Tracker) -> float:
    """The share of the budget that the least intervals of pages let be used. O(pages), or until that is all of it."""
    budget = float(tracker.desk.scheduler.budget)
    most = tracker.desk.scheduler.most_rate(budget)
    return most / budget if 0.0 < most < budget else 1.0


def usable_line(share: float, interval_s: float) -> str:
    """What to tell people of a budget that cannot be used; "" if all of it can.

    >>> usable_line(1 / 120, 60.0)
    'each page at most every minute: 0.83 % of the budget can be used'
    >>> usable_line(1.0, 60.0)
    ''
    """
    if share >= 1.0:
        return ""
    every = "minute" if interval_s == 60.0 else format_duration(interval_s / DAY_S)
    bound = f"each page at most every {every}" if interval_s > 0.0 else "pages have a min-interval"
    return f"{bound}: {100.0 * share:.2g} % of the budget can be used"


def to_fact(note: StatusNote) -> dict[str, str]:
    """The fact to save."""
    return {FACT: msgspec.json.encode(note).decode()}


def from_facts(facts: Mapping[str, str]) -> StatusNote | None:
    """The note among the facts of a store; None if there is none that can be read."""
    with suppress(msgspec.MsgspecError, KeyError):
        return msgspec.json.decode(facts[FACT], type=StatusNote)
    return None


def runs(note: StatusNote | None, now: float) -> bool:
    """Whether the tracker of a note still runs, as far as can be told."""
    if note is None or not note.running or abs(now - note.at) > STALE_AFTER_S:
        return False
    return note.machine != socket.gethostname() or _lives(note.pid)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        return True
    return True
