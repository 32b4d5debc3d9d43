"""What a running tracker writes down of itself every few seconds, for `recrawl status`: a fact of the store."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from recrawl.tracker.tracker import Tracker

FACT = "status"
STALE_AFTER_S = 20.0


class StatusNote(msgspec.Struct):
    """A tracker as it was at a moment; times are Unix seconds, budget and price by day.

    `hosts_heard` sent signals, `hosts_believed` some that are listened to; `wishes` wait to be fetched now.
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


def note_of(tracker: Tracker, since: float) -> StatusNote:
    """What there is to note of a tracker. O(hosts that sent signals)."""
    desk = tracker.desk
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
    )


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
