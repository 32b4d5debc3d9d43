"""The hosts of a tracker: whose turn is when, what their robots.txt says, whether they are well.

One book for all fetches, so that the gap between two requests to a host holds whoever asks: pages, robots.txt,
redirects, second looks. It answers the transport (`HostKeeper`). What it knows is written with leases and results, and
read again after a restart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from recrawl.store.rows import HostRow
from recrawl.tracker.health import HostHealth
from recrawl.tracker.host_memory import robots_from_bytes, robots_to_bytes
from recrawl.tracker.settings import HostRule, Settings
from recrawl.web.address import Address
from recrawl.web.backoff import BackoffRules, backoff_s, seeded_uniform, spread_until
from recrawl.web.canonical import host_key
from recrawl.web.fetch_steps import Fault, NeedRobots, NeedTurn, Turn
from recrawl.web.hostnames import matches_name
from recrawl.web.robots import RobotsEntry
from recrawl.web.transport_robots import RobotsMemory

_HOST_BACKOFF = BackoffRules(first_s=30.0, longest_s=6 * 3600.0)
_SPREAD_S = 5.0


@dataclass(slots=True)
class HostState:
    """A host while the tracker runs.

    Args:
        name: under which its requests are paced.
        number: under which the scheduler knows it.
        min_gap_s: between the end of a request and the next.
        floor_s: what the settings ask for, at least.
        next_at: no request before.
        blocked_until: no request before, as it asked.
        failures: requests in a row that it would not or could not answer.
        degraded_since: when it fell ill.
        robots: entries by origin.
        health: its last answers.
        robots_renewed: whether `robots` is not stored yet.
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

    def row(self) -> HostRow:
        """The row to be stored; what robots.txt says is in it when it is new, else the store keeps what it has."""
        renewed, self.robots_renewed = self.robots_renewed, False
        return HostRow(
            self.name,
            self.min_gap_s,
            self.next_at or None,
            self.blocked_until or None,
            self.failures,
            self.degraded_since,
            robots_to_bytes(self.robots) if renewed else None,
            max((entry.expires_at for entry in self.robots.values()), default=None),
        )


class HostBook:
    """All hosts by name, and who may ask them when.

    Args:
        settings: gaps and rules.
        now: Unix seconds.
        on_pace: told of a host whose gap or block has changed, so that the scheduler knows too.
    """

    def __init__(self, settings: Settings, now: Callable[[], float], on_pace: Callable[[HostState], None]) -> None:
        self._settings = settings
        self._now = now
        self._on_pace = on_pace
        self._states: dict[str, HostState] = {}
        self._robots: RobotsMemory | None = None
        self._touched: set[str] = set()

    def use(self, robots: RobotsMemory) -> None:
        """Ask for robots.txt through this memory."""
        self._robots = robots

    def __iter__(self) -> Iterator[HostState]:
        return iter(self._states.values())

    def of(self, name: str) -> HostState:
        """The state of a host by name."""
        state = self._states.get(name)
        if state is None:
            rule = self._rule(name)
            floor_s = self._settings.min_gap_s if rule is None or rule.min_gap_s is None else rule.min_gap_s
            state = HostState(name, len(self._states), floor_s, floor_s)
            self._states[name] = state
        return state

    def name_of(self, address: Address) -> str:
        """Under which name an address is paced."""
        return host_key(address, self._settings.pace_by)

    def max_in_flight(self, name: str) -> int:
        """Pages of a host that may be fetched at once."""
        rule = self._rule(name)
        return self._settings.max_in_flight if rule is None or rule.max_in_flight is None else rule.max_in_flight

    def load(self, rows: Iterable[HostRow], interrupted: Iterable[str]) -> None:
        """Go on from what was stored; hosts with a fetch that was cut short are left alone for a gap from now."""
        now = self._now()
        for row in rows:
            state = self.of(row.name)
            state.min_gap_s = max(row.min_gap_s, state.floor_s)
            state.next_at = row.next_at or 0.0
            state.blocked_until = row.blocked_until or 0.0
            state.failures = row.failures
            state.degraded_since = row.degraded_since
            state.health.degraded = row.degraded_since is not None
            state.robots = robots_from_bytes(row.robots)
            if self._robots is not None:
                for origin, entry in state.robots.items():
                    self._robots.remember(origin, entry)
        for name in interrupted:
            state = self.of(name)
            state.next_at = max(state.next_at, now + state.min_gap_s)

    def touched(self) -> list[HostRow]:
        """Hosts that were asked since the last call, to be stored: also those that only redirects led to."""
        names, self._touched = self._touched, set()
        return [self.of(name).row() for name in sorted(names)]

    async def robots(self, need: NeedRobots) -> RobotsEntry | Fault:
        """The rules of an origin; fetched if need be, and remembered with its host."""
        assert self._robots is not None
        answer = await self._robots.robots(need)
        if isinstance(answer, RobotsEntry):
            state = self.of(self.name_of(need.address))
            if state.robots.get(need.address.origin) is not answer:
                state.robots[need.address.origin] = answer
                state.robots_renewed = True
                self.ended(state)
        return answer

    async def turn(self, need: NeedTurn) -> Turn:
        """Wait for the turn of a host; refused if it is too far away."""
        state = self.of(self.name_of(need.address))
        self._pace(state, need.crawl_delay_s)
        now = self._now()
        if need.hop:  # what led here has ended just now
            self.ended(state)
        start = max(now, state.next_at, state.blocked_until)
        if start - now > self._settings.longest_turn_s:
            return Turn(False, f"{state.name} is to be left alone for {start - now:.0f} s more")
        state.next_at = start + state.min_gap_s
        self._touched.add(state.name)
        while (wait_s := start - self._now()) > 0:  # timers may ring a little early
            await asyncio.sleep(wait_s)
        return Turn(True)

    async def close(self) -> None:
        """End what is under way."""
        if self._robots is not None:
            await self._robots.close()

    def ended(self, state: HostState) -> None:
        """A request ended: the gap counts from here, so that the host sees it whole."""
        state.next_at = max(state.next_at, self._now() + state.min_gap_s)

    def left_alone(self, state: HostState, asked_s: float | None) -> float:
        """The host asks for quiet, or answers with nothing else: the seconds for which it gets it, with a spread."""
        state.failures += 1
        uniform = seeded_uniform(state.number, state.name, state.failures)
        wait_s = backoff_s(state.failures, uniform, _HOST_BACKOFF) if asked_s is None else asked_s
        until = spread_until(self._now() + wait_s, uniform, _SPREAD_S)
        state.blocked_until = max(state.blocked_until, until)
        return state.blocked_until - self._now()

    def _pace(self, state: HostState, crawl_delay_s: float | None) -> None:
        gap_s = max(state.floor_s, crawl_delay_s or 0.0)
        if gap_s != state.min_gap_s:
            state.min_gap_s = gap_s
            self._on_pace(state)

    def _rule(self, name: str) -> HostRule | None:
        return next((rule for rule in self._settings.hosts if matches_name(name, rule.pattern)), None)
