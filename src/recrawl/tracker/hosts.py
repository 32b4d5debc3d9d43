"""The hosts of a tracker: whose turn is when, what their robots.txt says, whether they and the network are well.

One book for all fetches, so that the gap between two requests to a host holds for every request: pages, robots.txt,
redirects, second looks. It answers the transport (`HostPolicy`). What it knows is written with leases and results, and
read again after a restart.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from recrawl.outcomes import FaultKind, Outcome
from recrawl.store.rows import HostRow
from recrawl.tracker.clock import TrackerClock
from recrawl.tracker.settings.settings import HostRule, Settings
from recrawl.web.fetch.protocol import Fault, FetchResult, NeedRobots, Slot, WaitForSlot
from recrawl.web.fetch.retry import BackoffRules, backoff_s, seeded_uniform, spread_until
from recrawl.web.fetch.robots_cache import RobotsMemory
from recrawl.web.robots.entry import RobotsEntry
from recrawl.web.url.address import Address
from recrawl.web.url.canonical import host_key
from recrawl.web.url.hostname import matches_name

HealthTurn = Literal["fell-ill", "recovered"]

_WELL: frozenset[Outcome] = frozenset({"ok", "moved", "not-modified"})
_NOT_ASKED: frozenset[Outcome] = frozenset({"deferred", "refused", "opted-out", "robots-denied"})
_UNREACHED: frozenset[FaultKind] = frozenset(
    {"dns-failed", "connect-refused", "connect-timeout", "unreachable", "tls", "timeout"}
)
SEEN = 20
"""Pages of a host whose last answers are looked at."""
_LEAST = 4
_ILL, _WELL_AGAIN = 0.5, 0.2
_HOSTS_SEEN = 12
_LEAST_HOSTS = 4


@dataclass(slots=True)
class HostHealth:
    """The last answer for each of the pages of one host that were asked last, of those that it had served before."""

    failed: OrderedDict[int, bool] = field(default_factory=OrderedDict)
    degraded: bool = False

    def hear(self, page: int, outcome: Outcome, *, known_good: bool) -> HealthTurn | None:
        """Count one answer; whether the host fell ill or recovered by it.

        Args:
            page: which page.
            outcome: of the fetch.
            known_good: whether the page had come before. Pages that never came tell nothing of the host, but one that
                comes does.
        """
        if not self._note(page, outcome, known_good=known_good):
            return None
        share = sum(self.failed.values()) / len(self.failed)
        if not self.degraded and len(self.failed) >= _LEAST and share >= _ILL:
            self.degraded = True
            return "fell-ill"
        if self.degraded and share <= _WELL_AGAIN:
            self.degraded = False
            return "recovered"
        return None

    def restore(self, answers: Iterable[tuple[int, Outcome, bool]]) -> None:
        """Go on after a restart with a host that is degraded, so that it needs what it needed before to recover.

        Args:
            answers: page, last outcome, and whether the page had come before, the oldest first.
        """
        for page, outcome, known_good in answers:
            self._note(page, outcome, known_good=known_good)
        self.degraded = True

    def _note(self, page: int, outcome: Outcome, *, known_good: bool) -> bool:
        """Note one answer; whether it says something of the host."""
        well = outcome in _WELL
        if outcome in _NOT_ASKED or (not well and not known_good):
            return False
        self.failed[page] = not well
        self.failed.move_to_end(page)
        while len(self.failed) > SEEN:
            self.failed.popitem(last=False)
        return True


@dataclass(slots=True)
class NetworkHealth:
    """Whether hosts can be reached at all: the last answer of each of the hosts asked last."""

    unreached: OrderedDict[str, bool] = field(default_factory=OrderedDict)
    down: bool = False

    def hear(self, host: str, outcome: Outcome, fault: FaultKind | None, *, known_good: bool) -> HealthTurn | None:
        """Count one answer; whether the network went down or came back by it.

        Args:
            host: whose.
            outcome: of the fetch.
            fault: of a network error.
            known_good: whether the page had come before: hosts that were never reached say nothing of the network.
        """
        if outcome in _NOT_ASKED or (outcome == "network-error" and not known_good):
            return None
        lost = outcome == "network-error" and fault in _UNREACHED
        self.unreached[host] = lost
        self.unreached.move_to_end(host)
        while len(self.unreached) > _HOSTS_SEEN:
            self.unreached.popitem(last=False)
        if self.down and not lost:
            self.down = False
            self.unreached.clear()
            return "recovered"
        share = sum(self.unreached.values()) / len(self.unreached)
        if not self.down and len(self.unreached) >= _LEAST_HOSTS and share > 0.8:
            self.down = True
            return "fell-ill"
        return None


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(dict[str, RobotsEntry])


def robots_to_bytes(entries: dict[str, RobotsEntry]) -> bytes | None:
    """The bytes to keep; None if nothing was asked."""
    return _ENCODER.encode(entries) if entries else None


def robots_from_bytes(kept: bytes | None) -> dict[str, RobotsEntry]:
    """What `robots_to_bytes` gave; what cannot be read is asked again."""
    if kept is None:
        return {}
    try:
        return _DECODER.decode(kept)
    except msgspec.MsgspecError:
        return {}


_HOST_BACKOFF = BackoffRules(first_s=30.0, longest_s=6 * 3600.0)
_SPREAD_S = 5.0
_SERVED_S = 0.02
_LONGEST_ILL_S = 86_400.0
MOST_PASSING = 10_000
"""Hosts without tracked pages that are remembered."""
_LOOKED_AT = 16  # of them at a time, when there are too many
_NO_NUMBER = -1


@dataclass(slots=True)
class HostState:
    """A host while the tracker runs.

    Args:
        name: under which its requests are paced.
        number: under which the scheduler knows it; -1 while no page of it is tracked.
        min_gap_s: between the end of a request and the next.
        floor_s: what the settings ask for, at least.
        next_at: no request before.
        blocked_until: no request before, as it asked.
        failures: requests in a row that it would not or could not answer.
        degraded_since: when it fell ill.
        robots: entries by origin, as long as the memory of robots.txt keeps them.
        health: its last answers.
        robots_renewed: whether `robots` is not stored yet.
        open: requests under way, and leases of outside fetchers.
    """

    name: str
    number: int
    min_gap_s: float
    floor_s: float
    next_at: float = 0.0
    blocked_until: float = 0.0
    failures: int = 0
    degraded_since: float | None = None
    robots: dict[str, RobotsEntry] = field(default_factory=dict)
    health: HostHealth = field(default_factory=HostHealth)
    robots_renewed: bool = False
    open: int = 0

    def is_ill(self, now: float) -> bool:
        """Whether failures of its pages are not held against them; not for ever: half a site may be gone for good."""
        return self.health.degraded and now - (self.degraded_since or now) < _LONGEST_ILL_S

    def row(self, *, robots: bool = False) -> HostRow:
        """The row to be stored; without what robots.txt says the store keeps what it has of it."""
        return HostRow(
            self.name,
            self.min_gap_s,
            self.next_at or None,
            self.blocked_until or None,
            self.failures,
            self.degraded_since,
            robots_to_bytes(self.robots) if robots else None,
            max((entry.expires_at for entry in self.robots.values()), default=None),
        )


class HostBook:
    """All hosts by name, and who may ask them when.

    Hosts with tracked pages stay. Of other hosts, to which redirects led, 10,000 are kept, and those that are
    asked now, are to be left alone or are not stored yet.

    Args:
        settings: gaps and rules.
        clock: of the tracker.
        on_pace: called with a host that has pages when its gap or block changes, to tell the scheduler.
    """

    def __init__(self, settings: Settings, clock: TrackerClock, on_pace: Callable[[HostState], None]) -> None:
        self._settings = settings
        self._now = clock.now
        self.now, self.sleep = clock.now, clock.sleep
        self._on_pace = on_pace
        self._states: dict[str, HostState] = {}
        self._passing: OrderedDict[str, None] = OrderedDict()  # those without pages, the least used first
        self._numbered = 0
        self._robots: RobotsMemory | None = None
        self._origins: dict[str, HostState] = {}  # whose robots.txt is remembered
        self._changed: dict[str, int] = {}  # hosts that are not stored as they are: the number of their last change
        self._changes = 0
        self._rules: dict[str, HostRule | None] = {}
        self._asking: dict[asyncio.Task[Any], tuple[HostState, float]] = {}  # and since when, by the first hop
        self._crashed_at: float | None = None

    def use(self, robots: RobotsMemory) -> None:
        """Ask for robots.txt through this memory."""
        self._robots = robots
        robots.on_forgotten = self._forget_robots

    def __iter__(self) -> Iterator[HostState]:
        return iter(self._states.values())

    def __len__(self) -> int:
        return len(self._states)

    def of(self, name: str) -> HostState:
        """The state of a host whose pages are tracked."""
        state = self._states.get(name) or self._new(name)
        if state.number == _NO_NUMBER:
            state.number = self._numbered
            self._numbered += 1
            self._passing.pop(name, None)
        return state

    def passing(self, name: str) -> HostState:
        """The state of a host that is asked, whether pages of it are tracked or not."""
        state = self._states.get(name)
        if state is None:
            state = self._new(name)
            self._make_room()
        elif name in self._passing:
            self._passing.move_to_end(name)
        return state

    def find(self, name: str) -> HostState | None:
        """The state of a host, if it is known."""
        return self._states.get(name)

    def robots_of(self, address: Address) -> RobotsEntry | None:
        """What is remembered of the robots.txt of an address; it may have run out."""
        state = self._states.get(self.name_of(address))
        return None if state is None else state.robots.get(address.origin)

    def _new(self, name: str) -> HostState:
        rule = self._rule(name)
        floor_s = self._settings.min_gap_s if rule is None or rule.min_gap_s is None else rule.min_gap_s
        state = HostState(name, _NO_NUMBER, floor_s, floor_s, next_at=self._quiet_until(floor_s))
        self._states[name] = state
        self._passing[name] = None
        return state

    def _make_room(self) -> None:
        """Forget hosts without pages that were not asked for long. O(1)."""
        for _ in range(min(_LOOKED_AT, len(self._passing) - MOST_PASSING)):
            name, _ = self._passing.popitem(last=False)
            state = self._states[name]
            if state.open or name in self._changed or max(state.next_at, state.blocked_until) > self._now():
                self._passing[name] = None  # looked at again when the others were
                continue
            del self._states[name]
            self._rules.pop(name, None)
            for origin in state.robots:
                self._origins.pop(origin, None)

    def name_of(self, address: Address) -> str:
        """Under which name an address is paced."""
        return host_key(address, self._settings.pace_by)

    def max_in_flight(self, name: str) -> int:
        """Pages of a host that may be fetched at once."""
        rule = self._rule(name)
        return self._settings.max_in_flight if rule is None or rule.max_in_flight is None else rule.max_in_flight

    def load(self, rows: Iterable[HostRow], interrupted: Iterable[str]) -> None:
        """Go on from what was stored.

        After a crash every host is left alone for a gap from now: redirects may have led to any of them.
        """
        interrupted = list(interrupted)
        self._crashed_at = self._now() if interrupted else None
        for row in rows:  # which of them have pages is not known yet: none is forgotten here
            state = self._states.get(row.name) or self._new(row.name)
            state.min_gap_s = max(row.min_gap_s, state.floor_s)
            state.next_at = max(row.next_at or 0.0, self._quiet_until(state.min_gap_s))
            state.blocked_until = row.blocked_until or 0.0
            state.failures = row.failures
            state.degraded_since = row.degraded_since
            state.health.degraded = row.degraded_since is not None
            state.robots = robots_from_bytes(row.robots)
            if self._robots is not None:
                for origin, entry in list(state.robots.items()):
                    self._origins[origin] = state
                    self._robots.remember(origin, entry)
        for name in interrupted:
            self.of(name)

    def _quiet_until(self, gap_s: float) -> float:
        return 0.0 if self._crashed_at is None else self._crashed_at + gap_s

    def marks(self, names: Iterable[str] | None = None) -> dict[str, int]:
        """Return marks for `saved` of hosts whose rows are about to be written; by default of all that have changed."""
        return {name: self._changed.get(name, 0) for name in (sorted(self._changed) if names is None else names)}

    def rows(self, names: Iterable[str]) -> list[HostRow]:
        """Build the rows of hosts, with what their robots.txt says if that is not stored yet."""
        states = [self._states[name] for name in names]
        return [state.row(robots=state.robots_renewed) for state in states]

    def saved(self, marks: Mapping[str, int], *, robots: bool) -> None:
        """Note that rows are stored as they were when they were marked; what changed since is written again.

        Args:
            marks: given before the rows were built.
            robots: whether the rows had what robots.txt says.
        """
        for name, mark in marks.items():
            state = self._states.get(name)
            if state is not None and self._changed.get(name, 0) == mark:
                state.robots_renewed &= not robots
                if not state.robots_renewed:
                    self._changed.pop(name, None)

    def _touch(self, state: HostState) -> None:
        """Note that a host is not stored as it is."""
        self._changes += 1
        self._changed[state.name] = self._changes

    async def robots(self, need: NeedRobots) -> RobotsEntry | Fault:
        """The rules of an origin; fetched if need be, and remembered with its host."""
        assert self._robots is not None
        answer = await self._robots.robots(need)
        origin = need.address.origin
        if isinstance(answer, RobotsEntry) and origin in self._robots:
            state = self.passing(self.name_of(need.address))
            if state.robots.get(origin) is not answer:
                state.robots[origin] = answer
                state.robots_renewed = True
                self._origins[origin] = state
                self._touch(state)
        return answer

    def _forget_robots(self, origin: str) -> None:
        state = self._origins.pop(origin, None)
        if state is not None:
            state.robots.pop(origin, None)

    async def turn(self, need: WaitForSlot) -> Slot:
        """Wait for the turn of a host; refused if it is too far away. Holds until `done`, or the next turn of the task.

        What may change while one waits is looked at again: the host may ask for quiet, or others may still be served.
        """
        led_here_at = self.done()  # a redirect, or robots.txt, has ended just now
        name = self.name_of(need.address)
        limit, asked_at = self.max_in_flight(name), self._now()
        while True:
            state = self.passing(name)  # it may have been forgotten while one waited
            self._pace(state, need.crawl_delay_s)
            now = self._now()
            start = max(state.next_at, state.blocked_until)
            if start <= now and state.open < limit:
                break
            if max(start, now) - asked_at > self._settings.longest_turn_s:
                return Slot(False, f"{state.name} is to be left alone for {max(start - now, 0.0):.0f} s more")
            await self.sleep(start - now if start > now else _SERVED_S)
        state.next_at = now + state.min_gap_s
        state.open += 1
        self._touch(state)
        task = asyncio.current_task()
        assert task is not None
        self._asking[task] = state, led_here_at if need.hop and led_here_at is not None else now
        return Slot(True)

    def done(self) -> float | None:
        """The request of this task has ended: the gap to the next counts from here, so that the host sees it whole.

        Returns:
            When the turn of its first hop came, None if it had none: what an answer shows is not older.
        """
        task = asyncio.current_task()
        asked = None if task is None else self._asking.pop(task, None)
        if asked is None:
            return None
        state, began_at = asked
        state.open -= 1
        self.ended(state)
        return began_at

    def heard(self, result: FetchResult) -> None:
        """A fetch ended, of whatever kind: its request is over, and a host that asks for quiet gets it."""
        self.done()
        if result.outcome == "rate-limited":
            state = self.passing(self.name_of(result.final))
            self._leave_alone(state, result.retry_after_s)
            self._tell_pace(state)

    async def close(self) -> None:
        """End what is under way."""
        if self._robots is not None:
            await self._robots.close()

    def may_ask(self, name: str, at: float | None = None) -> bool:
        """Whether a host may be asked now: its gap is over, it wants no quiet, and not too many ask.

        Args:
            name: of the host.
            at: the time from which a lease will count, if that is a moment ago.
        """
        state = self.of(name)
        now = self._now() if at is None else at
        return self.free_at(name) <= now and state.open < self.max_in_flight(name)

    def free_at(self, name: str) -> float:
        """When the gap of a host and the quiet that it asked for are over. O(1)."""
        state = self.of(name)
        return max(state.next_at, state.blocked_until)

    def lend(self, name: str) -> None:
        """A page of a host is leased to an outside fetcher: from now until `returned` it may be asked at any moment."""
        state = self.of(name)
        state.open += 1
        self.ended(state)

    def returned(self, name: str) -> None:
        """A lease of an outside fetcher has ended: the gap counts from here."""
        state = self.of(name)
        state.open -= 1
        self.ended(state)

    def postpone(self, name: str) -> float:
        """Let the scheduler know that a host may not be asked yet; when it may be."""
        self._on_pace(self.of(name))
        return self.free_at(name)

    def ended(self, state: HostState) -> None:
        """A request to a host ended just now."""
        state.next_at = max(state.next_at, self._now() + state.min_gap_s)
        self._touch(state)

    def _leave_alone(self, state: HostState, asked_s: float | None) -> None:
        """Give a host the quiet it asked for, or longer each time where it does not say, with a spread."""
        state.failures += 1
        uniform = seeded_uniform(0, state.name, state.failures)
        wait_s = backoff_s(state.failures, uniform, _HOST_BACKOFF) if asked_s is None else asked_s
        until = spread_until(self._now() + wait_s, uniform, _SPREAD_S)
        state.blocked_until = max(state.blocked_until, until)
        self._touch(state)

    def _pace(self, state: HostState, crawl_delay_s: float | None) -> None:
        gap_s = max(state.floor_s, crawl_delay_s or 0.0)
        if gap_s != state.min_gap_s:
            state.min_gap_s = gap_s
            self._tell_pace(state)

    def _tell_pace(self, state: HostState) -> None:
        if state.number != _NO_NUMBER:  # the scheduler has pages of it
            self._on_pace(state)

    def _rule(self, name: str) -> HostRule | None:
        if not self._settings.hosts:
            return None
        if name not in self._rules:
            fitting = (rule for rule in self._settings.hosts if matches_name(name, rule.pattern))
            self._rules[name] = next(fitting, None)
        return self._rules[name]
