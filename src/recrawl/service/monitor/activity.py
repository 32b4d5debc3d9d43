"""What happened lately: the last fetches and changes, how late changes are found, and how hosts are. No IO.

Fetches and changes are the last few thousand, so that memory is bounded and the figures follow what happens.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from recrawl.outcomes import Outcome
from recrawl.scheduling.estimates import HostSums
from recrawl.store.rows import Change, Observation
from recrawl.tracker.hosts import HostState
from recrawl.tracker.tracker import Tracker

KEPT = 4000
_KEPT_CHANGES = 20_000
_NO_SIGNAL = ("schedule", "found by ")  # how triggers begin that are no kind of signal
_MOST_KINDS = 20
_MOVERS_S = 3600.0
_MOVERS_LONGER_S = 86_400.0
_ENOUGH_MOVERS = 5


class Fetch(NamedTuple):
    """What is remembered of a fetch."""

    at: float
    outcome: Outcome
    verdict: str | None
    trigger: str
    gap_s: float | None


class Score(NamedTuple):
    """How a kind of signal did: crawls that it caused, how many found a change, and of all changes how many it told."""

    kind: str
    crawls: int
    precision: float
    recall: float


class Mover(NamedTuple):
    """A page that changed often lately."""

    page_id: int
    url: str
    changes: int
    last_at: float


@dataclass(slots=True)
class Recent:
    """The last fetches and changes."""

    fetches: deque[Fetch] = field(default_factory=lambda: deque(maxlen=KEPT))
    changed: deque[tuple[float, int, str]] = field(default_factory=lambda: deque(maxlen=_KEPT_CHANGES))
    last_success_at: float | None = None

    def take(self, seen: Iterable[Observation]) -> None:
        """Take in fetches."""
        for each in seen:
            self.fetches.append(Fetch(each.at, each.outcome, each.verdict, each.trigger, each.gap_s))
            if each.verdict is not None:
                self.last_success_at = max(self.last_success_at or 0.0, each.at)

    def hear(self, changes: Sequence[Change]) -> int:
        """Take in events; how many of them are changes of pages."""
        found = [each.event for each in changes if each.event.kind == "changed" and each.event.page_id is not None]
        self.changed.extend((event.detected_at, event.page_id or 0, event.url) for event in found)
        return len(found)

    @property
    def wasted(self) -> float | None:
        """Share of fetches with a verdict that brought nothing new."""
        said = [each.verdict for each in self.fetches if each.verdict is not None]
        return sum(verdict in ("unchanged", "noise") for verdict in said) / len(said) if said else None

    def delays(self, shares: Sequence[float]) -> list[float | None]:
        """How late changes were found, at these shares of them: half the time since the page was seen before.

        The change happened at some time since then; of a page that changes seldom, at each with the same chance.
        """
        waits = sorted(each.gap_s / 2 for each in self.fetches if each.verdict == "changed" and each.gap_s is not None)
        if not waits:
            return [None for _ in shares]
        return [waits[min(int(share * len(waits)), len(waits) - 1)] for share in shares]

    def scores(self) -> list[Score]:
        """How each kind of signal did that caused crawls."""
        caused: Counter[str] = Counter()
        told: Counter[str] = Counter()
        changes = 0
        for each in self.fetches:
            if each.verdict in ("unchanged", "noise", "changed"):
                changes += each.verdict == "changed"
                if not each.trigger.startswith(_NO_SIGNAL):
                    caused[each.trigger] += 1
                    told[each.trigger] += each.verdict == "changed"
        return [
            Score(kind, count, told[kind] / count, told[kind] / changes if changes else 0.0)
            for kind, count in sorted(caused.most_common(_MOST_KINDS))
        ]

    def movers(self, now: float, most: int = 10) -> list[Mover]:
        """The pages that changed most in the last hour, or in the last day if few changed twice in the hour."""
        found: list[Mover] = []
        for within_s in (_MOVERS_S, _MOVERS_LONGER_S):
            counts: Counter[int] = Counter()
            last: dict[int, tuple[float, str]] = {}
            for at, page_id, url in self.changed:
                if at >= now - within_s:
                    counts[page_id] += 1
                    last[page_id] = (at, url)
            ranked = sorted(counts, key=lambda page: (-counts[page], -last[page][0]))
            found = [Mover(page, last[page][1], counts[page], last[page][0]) for page in ranked[:most]]
            if sum(each.changes > 1 for each in found) >= _ENOUGH_MOVERS:
                break
        return found


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
