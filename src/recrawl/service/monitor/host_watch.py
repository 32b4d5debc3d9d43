"""How the hosts are: how many are well, and which are not. Reads what the tracker has in memory; no IO."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from recrawl.scheduling.estimates import HostSums
from recrawl.tracker.hosts import HostState
from recrawl.tracker.tracker import Tracker

HostClass = Literal["well", "failing", "quiet", "degraded"]
HOST_CLASSES: tuple[HostClass, ...] = ("well", "failing", "quiet", "degraded")
SHOWN = 20


class Trouble(NamedTuple):
    """A host that is not well: since when it is degraded, until when it is left alone, failures in a row."""

    name: str
    kind: HostClass
    since: float | None
    until: float | None
    failures: int


@dataclass(frozen=True, slots=True)
class HostsNow:
    """Hosts by how they are, those in trouble with most to tell first, and sums over their pages."""

    classes: dict[HostClass, int]
    troubles: Sequence[Trouble]
    sums: HostSums


def class_of(state: HostState, now: float) -> HostClass:
    """How a host is: most of its pages fail, it asked for quiet, its last requests failed, or all is well."""
    if state.degraded_since is not None:
        return "degraded"
    if state.blocked_until > now:
        return "quiet"
    return "failing" if state.failures else "well"


def look_at_hosts(tracker: Tracker, sums: HostSums, now: float) -> HostsNow:
    """All hosts of a tracker. O(hosts)."""
    classes: dict[HostClass, int] = dict.fromkeys(HOST_CLASSES, 0)
    troubles = []
    for state in tracker.hosts:
        kind = class_of(state, now)
        classes[kind] += 1
        if kind != "well":
            until = state.blocked_until if state.blocked_until > now else None
            troubles.append(Trouble(state.name, kind, state.degraded_since, until, state.failures))
    troubles.sort(key=lambda each: (-HOST_CLASSES.index(each.kind), -each.failures, each.name))
    return HostsNow(classes, troubles[:SHOWN], sums)


class HostFigures(NamedTuple):
    """What the scheduler has of a host: pages, the share of their importance that is fresh, crawls now, its price."""

    pages: int
    freshness: float | None
    in_flight: int
    price: float | None


def figures_of(tracker: Tracker, state: HostState, sums: HostSums) -> HostFigures:
    """Of one host. O(1)."""
    number = tracker.schedule.scheduler.host_number(state.number)
    if number is None or number >= len(sums.pages):
        return HostFigures(0, None, state.open, None)
    importance = float(sums.importance[number])
    price = tracker.schedule.scheduler.host_price(state.number)
    return HostFigures(
        int(sums.pages[number]),
        float(sums.fresh[number]) / importance if importance > 0 else None,
        state.open,
        price if price > tracker.schedule.scheduler.price else None,
    )
