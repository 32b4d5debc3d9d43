"""A state machine over all calls of the scheduler, with random workers, hosts, failures, signals and clocks.

After each call the raw arrays are walked (`invariants.py`), and a plain model of what was promised is held against what
was taken: no page twice, no host faster than its limits, no budget overspent, no page before its time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from invariants import check

from recrawl import InvalidInput, Scheduler, Signal, Tuning
from recrawl.scheduling.table.records import IN_FLIGHT

HOSTS = ("a", "b", "c")
KINDS = ("feed", "map", "ping")
amounts = st.one_of(st.just(0.0), st.floats(0.01, 100.0), st.sampled_from([1e-60, 1e-9, 1e9, 1e60]))
usual = st.floats(0.05, 5.0)
sizes = st.integers(1, 6)
shares = st.sampled_from([0.0, 0.2, 0.45, 1.0])
precisions = st.sampled_from([0.05, 0.5, 0.9, 1.0])


class Model:
    """What was promised, kept in the plainest way."""

    def __init__(self, budget: float, burst: float) -> None:
        self.flying: set[int] = set()
        self.cost: dict[int, float] = {}
        self.host: dict[int, str | None] = {}
        self.least: dict[int, float] = {}  # shortest interval
        self.not_before: dict[int, float] = {}
        self.limits: dict[str, dict[str, float]] = {}
        self.last_start: dict[str, float] = {}
        self.capped: dict[str, list[float]] = {}  # starts at a host since its cap was set
        self.held: dict[int, float] = {}  # until when failures keep a page back
        self.once: set[int] = set()
        self.rate, self.burst, self.tokens, self.filled = budget, burst, burst, 0.0
        self.came = 0.0  # tokens so far, whether or not there was room for them
        self.came_before: dict[int, float] = {}  # a page was taken
        self.removed_in_flight = 0

    def limit(self, host: str, name: str, default: float) -> float:
        return self.limits.get(host, {}).get(name, default)

    def fill(self, now: float) -> None:
        self.tokens = min(self.burst, self.tokens + self.rate * (now - self.filled))
        self.came += self.rate * (now - self.filled)
        self.filled = now

    def take(self, page: int, now: float) -> None:
        assert page in self.cost, "a page was taken that is not there"
        assert page not in self.flying, "a page was taken twice"
        cost = self.cost[page]
        rounding = 1e-5 * max(1.0, cost)
        assert cost <= self.tokens + rounding or self.tokens >= self.burst - rounding, "the budget is overspent"
        self.tokens -= cost
        self.came_before[page] = self.came
        assert now >= self.not_before[page] - 1e-6 * (1 + abs(now)), "a page was taken before its time"
        self.flying.add(page)
        host = self.host[page]
        if host is not None:
            self._take_at(host, now)

    def _take_at(self, host: str, now: float) -> None:
        gap = now - self.last_start.get(host, -math.inf)
        assert gap >= self.limit(host, "min_gap", 0.0) - 1e-9 * (1 + abs(now)), "a host was crawled too soon"
        assert now >= self.limit(host, "blocked_until", -math.inf), "a blocked host was crawled"
        self.last_start[host] = now
        starts = self.capped.setdefault(host, [])
        starts.append(now)
        cap = self.limit(host, "rate_cap", math.inf)
        for k in range(1, len(starts) + 1 if cap < math.inf else 0):
            allowed = cap * (now - starts[-k])
            assert k <= allowed + max(self.burst, 1.0) + 1e-6, "a host is crawled above its cap"
        flying = sum(self.host[page] == host for page in self.flying)
        assert flying <= self.limit(host, "max_in_flight", math.inf), "a host has too many crawls in flight"

    def forget(self, page: int) -> None:
        for kept in (self.cost, self.host, self.least, self.not_before, self.held):
            kept.pop(page)
        self.flying.discard(page)
        self.once.discard(page)


class Calls(RuleBasedStateMachine):
    """Any calls in any order."""

    scheduler: Scheduler
    model: Model

    @initialize(
        objective=st.sampled_from(["freshness", "harmonic"]),
        budget=st.sampled_from([0.0, 0.5, 4.0, 1000.0]),
        burst=st.sampled_from([0.5, 1.0, 3.0, 20.0]),
        delay=st.sampled_from([0.0, 0.3]),
        start=st.sampled_from([0.0, -7.5, 1.7e9]),
    )
    def open(self, objective: Any, budget: float, burst: float, delay: float, start: float) -> None:
        tuning = Tuning(signal_delay=delay, longest_retry=1000.0)
        self.scheduler = Scheduler(budget=budget, objective=objective, now=start, burst=burst, tuning=tuning)
        self.model = Model(budget, burst)
        self.model.filled = start

    # Pages come and go

    def _added(self, ids: Any, columns: dict[str, Any]) -> None:
        has_copy = columns.get("last_crawled") is not None
        for page in ids.tolist():
            assert page not in self.model.cost
            self.model.cost[page] = columns.get("cost", 1.0)
            self.model.host[page] = columns.get("host")
            least = columns.get("min_interval", 0.0)
            self.model.least[page] = least
            self.model.held[page] = -math.inf
            self.model.not_before[page] = columns["last_crawled"] + least if has_copy else -math.inf
            if columns.get("objective") == "once":
                self.model.once.add(page)

    def _common(self, data: st.DataObject) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        host = data.draw(st.sampled_from([None, *HOSTS]), label="host")
        if host is not None:
            columns["host"] = host
        if data.draw(st.booleans(), label="has a copy"):
            columns["last_crawled"] = self.scheduler.now - data.draw(st.sampled_from([0.0, 0.5, 30.0]))
        if data.draw(st.integers(0, 3)) == 0:
            columns["cost"] = data.draw(st.sampled_from([0.25, 2.0, 30.0]), label="cost")
        if data.draw(st.integers(0, 3)) == 0:
            columns["min_interval"] = data.draw(st.sampled_from([0.1, 1.0 / 3.0, 7.0]), label="min_interval")
            columns["max_interval"] = columns["min_interval"] * data.draw(st.sampled_from([1.0, 3.0, math.inf]))
        return columns

    @rule(data=st.data(), count=sizes, importance=amounts, rate=st.one_of(st.none(), amounts), listens=st.booleans())
    def add_refreshed(self, data: st.DataObject, count: int, importance: float, rate: Any, listens: bool) -> None:
        columns = self._common(data)
        columns["importance"] = importance * np.linspace(1.0, 0.5, count)
        columns["change_rate"] = rate
        columns["objective"] = data.draw(st.sampled_from([None, "freshness", "harmonic"]))
        if importance == 1e-60:
            columns["importance"] = np.full(count, importance)
        if listens:
            columns["signals"] = self._trust(data)
        self._added(self.scheduler.add(**columns), columns)

    def _trust(self, data: st.DataObject) -> dict[str, Signal]:
        kinds = data.draw(st.lists(st.sampled_from(KINDS), max_size=2, unique=True), label="kinds")
        return {kind: Signal(recall=data.draw(shares) / len(kinds), precision=data.draw(precisions)) for kind in kinds}

    @rule(data=st.data(), count=sizes, importance=amounts, decay=usual, life=st.sampled_from(["append", "window"]))
    def add_captured(self, data: st.DataObject, count: int, importance: float, decay: float, life: str) -> None:
        columns = self._common(data) | {"objective": "captures", "decay": decay, "life": life, "window": 1.5}
        columns |= {"importance": np.full(count, importance), "change_rate": 0.5}
        self._added(self.scheduler.add(**columns), columns)

    @rule(data=st.data(), count=sizes, profit=usual, rate=usual, decay=usual)
    def add_source(self, data: st.DataObject, count: int, profit: float, rate: float, decay: float) -> None:
        columns = self._common(data) | {"objective": "news", "new_page_rate": rate, "decay": decay}
        columns["profit"] = profit * np.linspace(1.0, 0.01, count)
        self._added(self.scheduler.add(**columns), columns)

    @rule(data=st.data(), count=sizes, profit=usual, decay=usual)
    def add_once(self, data: st.DataObject, count: int, profit: float, decay: float) -> None:
        columns = self._common(data) | {"objective": "once", "profit": np.full(count, profit), "decay": decay}
        self._added(self.scheduler.add(**columns), columns)

    def _some(self, data: st.DataObject, pool: Any) -> list[int]:
        return data.draw(st.lists(st.sampled_from(sorted(pool)), min_size=1, max_size=8, unique=True), label="ids")

    @precondition(lambda self: self.model.cost)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        ids = self._some(data, self.model.cost)
        self.scheduler.remove(ids)
        for page in ids:
            self.model.removed_in_flight += page in self.model.flying
            self.model.forget(page)

    @precondition(lambda self: self.model.cost)
    @rule(data=st.data(), importance=amounts, rate=amounts)
    def update_worth(self, data: st.DataObject, importance: float, rate: float) -> None:
        """Pages become ones to refresh, whatever they were."""
        ids = self._some(data, self.model.cost)
        columns: dict[str, Any] = {"objective": "harmonic", "importance": importance, "change_rate": rate}
        columns |= {"cost": 1.0, "min_interval": 0.0, "max_interval": math.inf}
        for page in ids:
            self.scheduler.update(page, **columns)
            self.model.cost[page] = 1.0
            self.model.not_before[page] = min(self.model.not_before[page], self.model.held[page])
            self.model.least[page] = 0.0
            self.model.once.discard(page)

    @precondition(lambda self: self.model.cost)
    @rule(
        data=st.data(), what=st.sampled_from(["host", "cost", "min_interval", "signals", "importance", "change_rate"])
    )
    def update_one_thing(self, data: st.DataObject, what: str) -> None:
        page = self._some(data, self.model.cost)[0]
        options: dict[str, Any] = {
            "host": st.sampled_from(HOSTS),
            "cost": st.sampled_from([0.1, 1.0, 3.0]),
            "min_interval": st.sampled_from([0.0, 0.7]),
            "signals": st.just({"feed": Signal(0.5, 0.5)}),
            "importance": amounts,
            "change_rate": st.one_of(st.none(), amounts),
        }
        value = data.draw(options[what], label=what)
        try:
            self.scheduler.update(page, **{what: value})
        except InvalidInput:
            return  # says nothing of such a page
        if what == "host":
            self.model.host[page] = value
        elif what == "cost":
            self.model.cost[page] = value
        elif what == "min_interval":
            self.model.least[page] = value
            slot = page & 0xFFFFFFFF
            copy = not self.scheduler._table.pages["flags"][slot] & 1
            since = float(self.scheduler._table.pages["last"][slot]) + value if copy else -math.inf
            self.model.not_before[page] = max(since, self.model.held[page])

    # Crawls

    @rule(step=st.sampled_from([0.0, 0.01, 0.3, 2.0, 50.0]), n=st.sampled_from([0, 1, 2, 10, 1000]))
    def take(self, step: float, n: int) -> None:
        now = self.scheduler.now + step
        batch = self.scheduler.take(now, n)
        self.model.fill(now)
        assert len(batch.ids) <= n
        assert np.isfinite(batch.values).all()
        assert (batch.values >= 0).all()
        for page in batch.ids.tolist():
            self.model.take(page, now)

    @rule(step=st.sampled_from([1e4, 1e7, 1e9]), n=st.integers(0, 3))
    def take_much_later(self, step: float, n: int) -> None:
        self.take(step, n)

    @precondition(lambda self: self.model.flying)
    @rule(data=st.data(), step=st.sampled_from([0.0, 0.2, 9.0]), told=st.booleans())
    def crawled(self, data: st.DataObject, step: float, told: bool) -> None:
        ids = self._some(data, self.model.flying)
        now = self.scheduler.now + step
        changed = [bool(page % 2) for page in ids] if told else None
        self.scheduler.crawled(ids, now, changed=changed)
        for page in ids:
            self.model.flying.discard(page)
            self.model.not_before[page] = now + self.model.least[page]
            self.model.held[page] = -math.inf
            if page in self.model.once:
                self.model.forget(page)

    @precondition(lambda self: self.model.cost.keys() - self.model.flying)
    @rule(data=st.data(), step=st.sampled_from([0.0, 0.2, 9.0]), told=st.booleans())
    def seen(self, data: st.DataObject, step: float, told: bool) -> None:
        ids = self._some(data, self.model.cost.keys() - self.model.flying)
        now = self.scheduler.now + step
        self.scheduler.seen(ids, now, changed=[bool(page % 2) for page in ids] if told else None)
        for page in ids:
            self.model.not_before[page] = now + self.model.least[page]
            self.model.held[page] = -math.inf
            if page in self.model.once:
                self.model.forget(page)

    @precondition(lambda self: self.model.flying)
    @rule(data=st.data(), step=st.sampled_from([0.0, 0.2]), wait=st.sampled_from([None, 0.0, 0.4, 100.0]))
    def failed(self, data: st.DataObject, step: float, wait: float | None) -> None:
        ids = self._some(data, self.model.flying)
        now = self.scheduler.now + step
        self.scheduler.failed(ids, now, retry_after=wait)
        for page in ids:
            self.model.flying.discard(page)
            if wait is None:
                continue
            self.model.held[page] = max(self.model.held[page], now + wait)
            self.model.not_before[page] = max(self.model.not_before[page], now + wait)
            host = self.model.host[page]
            if host is not None:
                until = max(self.model.limit(host, "blocked_until", -math.inf), now + wait)
                self.model.limits.setdefault(host, {})["blocked_until"] = until

    @precondition(lambda self: self.model.flying)
    @rule(data=st.data(), step=st.sampled_from([0.0, 0.2]))
    def release(self, data: st.DataObject, step: float) -> None:
        ids = self._some(data, self.model.flying)
        now = self.scheduler.now + step
        self.scheduler.release(ids, now)
        self.model.fill(self.scheduler.now)
        for page in ids:
            self.model.flying.discard(page)
            back = self.model.cost[page] - (self.model.came - self.model.came_before[page])
            self.model.tokens = min(self.model.burst, self.model.tokens + max(back, 0.0))

    # Signals, limits and time

    @precondition(lambda self: self.model.cost)
    @rule(data=st.data(), kind=st.sampled_from(KINDS), storm=st.sampled_from([1, 1, 1, 3, 1000]))
    def signal(self, data: st.DataObject, kind: str, storm: int) -> None:
        ids = self._some(data, self.model.cost)
        try:
            heard = self.scheduler.signal(ids * storm, self.scheduler.now + 0.05, kind=kind)
        except InvalidInput:
            assert kind not in self.scheduler._kinds.names
            return
        assert 0 <= heard <= len(ids) * storm

    @rule(budget=st.sampled_from([0.0, 1e-3, 0.5, 4.0, 30.0, 1e6]), step=st.sampled_from([0.0, 1.0]))
    def set_budget(self, budget: float, step: float) -> None:
        now = self.scheduler.now + step
        self.scheduler.set_budget(budget, now)
        self.model.fill(now)
        self.model.rate = budget

    @rule(
        host=st.sampled_from(HOSTS),
        name=st.sampled_from(["min_gap", "max_in_flight", "rate_cap", "blocked_until"]),
        choice=st.integers(0, 3),
    )
    def set_host(self, host: str, name: str, choice: int) -> None:
        now = self.scheduler.now
        options = {
            "min_gap": (0.0, 0.05, 1.0, 20.0),
            "max_in_flight": (1, 2, 3, 100),
            "rate_cap": (0.0, 0.1, 5.0, math.inf),
            "blocked_until": (now - 1.0, now, now + 0.5, now + 60.0),
        }
        value: Any = options[name][choice]
        self.scheduler.set_host(host, **{name: value})
        self.model.limits.setdefault(host, {})[name] = value
        if name == "rate_cap":
            self.model.capped[host] = []

    @rule(back=st.sampled_from([1e-9, 1.0, 1e9]))
    def clock_goes_back(self, back: float) -> None:
        now, count = self.scheduler.now, self.scheduler.counts.clock_went_back
        batch = self.scheduler.take(now - back, 1)
        self.model.fill(now)
        for page in batch.ids.tolist():
            self.model.take(page, now)
        assert self.scheduler.now == now
        assert self.scheduler.counts.clock_went_back == count + (now - back < now)

    @rule()
    def restart(self) -> None:
        """A restored scheduler is as the other, and goes on in its place."""
        snapshot = self.scheduler.snapshot()
        self.scheduler = Scheduler.restore(snapshot)
        assert self.scheduler.snapshot() == snapshot

    @invariant()
    def everything_is_as_it_must_be(self) -> None:
        if not hasattr(self, "scheduler"):
            return
        check(self.scheduler, self.model.flying)
        counts = self.scheduler.counts
        settled = counts.crawled + counts.failed + counts.released
        assert counts.taken == settled + len(self.model.flying) + self.model.removed_in_flight
        assert len(self.scheduler) == len(self.model.cost)
        rounding = 1e-15 * self.model.came  # of the plain sum that the model keeps
        assert abs(self.model.tokens - self._tokens()) < 1e-4 * max(1.0, abs(self.model.tokens)) + rounding

    def _tokens(self) -> float:
        bucket = self.scheduler._bucket
        return min(bucket.burst, bucket.tokens + bucket.rate * (self.model.filled - bucket.filled))

    def teardown(self) -> None:
        """Once all limits are gone, every page that is worth a crawl is taken."""
        if hasattr(self, "scheduler"):
            nothing_is_lost(self.scheduler, self.model.flying)


def nothing_is_lost(scheduler: Scheduler, flying: set[int]) -> None:
    """Lift all limits and take until nothing comes: what is left is not worth a crawl."""
    scheduler.release(sorted(flying), scheduler.now)
    for host in HOSTS:
        scheduler.set_host(host, min_gap=0.0, max_in_flight=1_000_000, rate_cap=math.inf, blocked_until=-1e9)
    scheduler.set_budget(1e6, scheduler.now + 3000.0)
    for _ in range(200 + 20 * len(scheduler)):
        scheduler.take(scheduler.now + 1.0, 1_000_000)
    waiting = np.flatnonzero(~np.isin(scheduler._table.pages["state"][: scheduler._table.used], (0, IN_FLIGHT)))
    worth = scheduler._table.values(waiting, scheduler.now, scheduler.price)
    lost = scheduler._table.pages[waiting[worth > 1e-200]]
    assert not len(lost), f"pages worth a crawl are never taken: {lost}"
    check(scheduler)


TestCalls = Calls.TestCase
TestCalls.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
