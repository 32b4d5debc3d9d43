"""Walk the raw arrays of a scheduler with the policy `price` and say what is not as it must be. Slow and plain."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from recrawl.scheduling.market.policy import ByPrice
from recrawl.scheduling.market.queues import COARSE, HOST_CHOICE
from recrawl.scheduling.scheduler import Scheduler
from recrawl.scheduling.table.records import (
    AT_HOST,
    BY_VALUE,
    FREE,
    HELD,
    IDLE,
    IN_FLIGHT,
    LISTENS,
    NO_COPY,
    ONCE,
    QUEUED,
    READY,
    STANDING,
    WINDOW,
)

PER_WHEEL = 64


def check(scheduler: Scheduler, flying: set[int] | None = None) -> None:
    """Check that every page is in the one queue that its state names; `flying`: the ids that were taken."""
    check_numbers(scheduler)
    check_slots(scheduler)
    states = states_of(scheduler)
    seen: dict[int, int] = dict.fromkeys(free_slots(scheduler), FREE)
    assert len(seen) == scheduler._table.used - scheduler._table.live, "a free slot is lost"
    if flying is not None:
        ids = scheduler._table.ids_of(np.flatnonzero(states == IN_FLIGHT))
        assert set(ids.tolist()) == flying, "the pages in flight are not those that were taken"
    policy = scheduler._policy
    assert isinstance(policy, ByPrice)
    if policy._built[1] == 0:
        assert set(states.tolist()) <= {FREE, QUEUED, IDLE}, "nothing is placed before the first price"
        return
    for slot, state in pages_in_queues(scheduler):
        assert slot not in seen, f"page {slot} is in two queues"
        seen[slot] = state
    for slot, state in enumerate(states.tolist()):
        if state in (IN_FLIGHT, IDLE):
            assert slot not in seen, f"page {slot} is in flight or idle, and in a queue"
        else:
            assert seen.get(slot) == state, f"page {slot} has state {state} and is in {seen.get(slot)}"
    check_idle(scheduler)
    check_hosts(scheduler)
    check_queue_of_hosts(scheduler)


def states_of(scheduler: Scheduler) -> Any:
    """The state of each slot that was ever used."""
    return scheduler._table.pages["state"][: scheduler._table.used]


def check_numbers(scheduler: Scheduler) -> None:
    """No NaN anywhere, and no number out of its range."""
    table = scheduler._table
    for records in (table.pages[: table.used], table.limits, table.signals, table.hosts.records):
        assert records.dtype.names is not None
        for name in records.dtype.names:
            assert not np.isnan(records[name]).any(), f"{name} is NaN"
    pages = table.pages[: table.used]
    assert np.isfinite(pages["gain"]).all()
    assert np.isfinite(pages["decay"]).all()
    assert np.isfinite(pages["last"]).all()
    assert (pages["last"] <= scheduler.now).all()
    assert np.isfinite(pages["not_before"]).all()
    bucket = scheduler._bucket
    assert bucket.tokens <= bucket.burst
    assert math.isfinite(bucket.tokens)
    assert math.isfinite(scheduler.price)
    assert scheduler.price >= 0
    policy = scheduler._policy
    if isinstance(policy, ByPrice):
        for name in ("width", "origin", "entry", "price", "least_cost", "swept"):
            assert math.isfinite(policy._desk[name][0]), f"{name} is {policy._desk[name][0]}"


def check_slots(scheduler: Scheduler) -> None:
    """Counts of pages agree."""
    states = states_of(scheduler)
    assert int((states != FREE).sum()) == len(scheduler) == scheduler._table.live


def free_slots(scheduler: Scheduler) -> list[int]:
    """The chain of free slots."""
    table = scheduler._table
    slots: list[int] = []
    slot = table._first_free
    while slot >= 0:
        assert table.pages["state"][slot] == FREE, f"slot {slot} is free and has a page"
        slots.append(slot)
        assert len(slots) <= table.used, "the chain of free slots has a loop"
        slot = int(table.pages["next"][slot])
    assert len(set(slots)) == len(slots)
    return slots


def pages_in_queues(scheduler: Scheduler) -> Iterator[tuple[int, int]]:
    """Every page in a queue, with the state it must have; checks the queues on the way."""
    policy = scheduler._policy
    assert isinstance(policy, ByPrice)
    desk, pages = policy._desk[0], scheduler._table.pages
    bins = int(desk["bins"])
    fine, above = policy._bits[: bins // 64], policy._bits[bins // 64 :]
    filled = np.packbits(policy._roots[:bins] >= 0, bitorder="little").view(np.uint64)
    assert np.array_equal(fine, filled), "bits and fine bins disagree"
    assert np.array_equal(above, np.packbits(fine != 0, bitorder="little").view(np.uint64)), "bits above disagree"
    for which in np.flatnonzero(policy._roots >= 0).tolist():
        root = int(policy._roots[which])
        for slot in _list(scheduler, root, which) if which < bins else _heap(scheduler, root, by_time=True):
            assert which == _bin_of(desk, _due(pages[slot])), f"page {slot} is in the wrong bin"
            yield slot, QUEUED
    for place in range(int(desk["candidates"])):
        slot = int(policy._ready[place])
        assert pages["next"][slot] == place, f"candidate {slot} does not know its place"
        yield slot, READY
    for root, state in ((int(desk["held"]), HELD), (int(desk["standing"]), STANDING)):
        for slot in _heap(scheduler, root, by_time=state == HELD):
            yield slot, state
    for number, host in enumerate(scheduler._table.hosts.records):
        found = 0
        for name, state in (("by_due", AT_HOST), ("by_value", BY_VALUE)):
            for slot in _heap(scheduler, int(host[name]), by_time=state == AT_HOST):
                assert pages["host"][slot] == number, f"page {slot} waits at another host"
                found += 1
                yield slot, state
        assert found == host["waiting"], f"host {number} counts {host['waiting']} pages, not {found}"


def _bin_of(desk: Any, due: float) -> int:
    """The plain twin of `queues.bin_of`."""
    bins, base = int(desk["bins"]), int(desk["base"])
    number = max(int(min(max((due - float(desk["origin"])) / float(desk["width"]), 0.0), 4e15)), base)
    coarse = number // (bins // PER_WHEEL)
    ahead = coarse - base // (bins // PER_WHEEL)
    if ahead < PER_WHEEL:
        return number % bins
    return bins + (coarse % COARSE if ahead < COARSE else COARSE)


def _list(scheduler: Scheduler, slot: int, which: int) -> Iterator[int]:
    pages = scheduler._table.pages
    before = -2 - which
    while slot >= 0:
        assert pages["prev"][slot] == before, f"page {slot} in a bin does not point back"
        yield slot
        before, slot = slot, int(pages["next"][slot])


def _heap(scheduler: Scheduler, root: int, *, by_time: bool) -> Iterator[int]:
    pages = scheduler._table.pages
    waiting = [(root, -1, -1)]
    while waiting:
        slot, parent, before = waiting.pop()
        if slot < 0:
            continue
        yield slot
        page = pages[slot]
        assert page["prev"] == before, f"page {slot} in a heap does not point back"
        if parent >= 0:
            keys = (_due(pages[parent]), _due(page)) if by_time else (-pages["wait"][parent], -page["wait"])
            assert (keys[0], parent) < (keys[1], slot), f"page {slot} comes before its parent in the heap"
            waiting.append((int(page["next"]), parent, slot))
        else:
            assert page["next"] == -1
        waiting.append((int(page["child"]), slot, slot))


def _due(page: Any) -> float:
    return float(page["last"]) + float(page["wait"])


def check_idle(scheduler: Scheduler) -> None:
    """Only a page whose crawl will never be worth anything is nowhere."""
    for slot in np.flatnonzero(states_of(scheduler) == IDLE).tolist():
        page = scheduler._table.pages[slot]
        static = page["decay"] == 0 and page["law"] != WINDOW and not (page["flags"] & NO_COPY)
        faded = page["law"] == ONCE and scheduler._table.values(np.array([slot]), scheduler.now)[0] < 1e-200
        told = page["flags"] & LISTENS and scheduler._table.signals["recall"][slot] == 1 and page["signals"] == 0
        assert page["gain"] == 0 or static or faded or told, f"page {slot} is idle: {page}"


def check_hosts(scheduler: Scheduler) -> None:
    """Hosts count their crawls in flight and their candidates."""
    table = scheduler._table
    pages = table.pages[: table.used]
    for number, host in enumerate(table.hosts.records):
        for name, state in (("in_flight", IN_FLIGHT), ("offered", READY)):
            count = int(((pages["host"] == number) & (pages["state"] == state)).sum())
            assert host[name] == count, f"host {number} counts {host[name]} for {name}, not {count}"


def check_queue_of_hosts(scheduler: Scheduler) -> None:
    """The queue is a heap, and every host with waiting pages that will open is in it, for that time."""
    policy = scheduler._policy
    assert isinstance(policy, ByPrice)
    hosts, size = scheduler._table.hosts.records, int(policy._desk["closed"][0])
    for place in range(size):
        host = hosts[policy._queue[place]]
        assert host["place"] == place
        assert hosts[policy._queue[max(place - 1, 0) // 2]]["offer_at"] <= host["offer_at"]
    assert int((hosts["place"] >= 0).sum()) == size
    for number, host in enumerate(hosts):
        time = opens_at(host, scheduler._table.burst) if host["waiting"] > 0 else math.inf
        if host["offered"] >= HOST_CHOICE or (host["offered"] > 0 and host["by_value"] < 0):
            time = max(time, _due(scheduler._table.pages[host["by_due"]])) if host["by_due"] >= 0 else math.inf
        if host["paced"] or host["waiting"]:
            known = float(host["offer_at"]) if host["place"] >= 0 else math.inf
            assert known == time, f"host {number} is queued for {known}, not {time}"


def opens_at(host: Any, burst: float) -> float:
    """The plain twin of `host_limits.opens_at`."""
    if 0 < host["max_in_flight"] <= host["in_flight"] or host["rate_cap"] == 0:
        return math.inf
    opens = max(float(host["next_start"]), float(host["blocked_until"]))
    if math.isfinite(host["rate_cap"]):
        opens = max(opens, float(host["cap_time"]) - (max(burst, 1.0) - 1.0 + 1e-9) / float(host["rate_cap"]))
    return opens


def picture(scheduler: Scheduler) -> dict[str, Any]:
    """A copy of everything a scheduler keeps, to see that a refused call changed nothing."""
    table, policy = scheduler._table, scheduler._policy
    kept: dict[str, Any] = {
        "pages": table.pages[: table.used].tobytes(),
        "limits": table.limits[: table.used].tobytes(),
        "signals": table.signals[: table.used].tobytes(),
        "beliefs": table.beliefs[: table.used].tobytes(),
        "hosts": table.hosts.records.tobytes(),
        "names": list(table.hosts.names),
        "table": (table.used, table.live, table._first_free, table.least_cost),
        "kinds": (list(scheduler._kinds.names), scheduler._kinds.profiles.tobytes()),
        "bucket": (scheduler._bucket.tokens, scheduler._bucket.rate, scheduler._bucket.filled),
        "clock": (scheduler.now, scheduler.counts.clock_went_back),
        "counts": repr(scheduler.counts),
    }
    if isinstance(policy, ByPrice):
        candidates = np.sort(policy._ready[: policy._desk["candidates"][0]])
        hosts = np.sort(policy._queue[: policy._desk["closed"][0]])
        queues = policy._bits, hosts, candidates  # the order within a bin means nothing
        kept["market"] = (policy.state(), *(array.tobytes() for array in queues))
    return kept
