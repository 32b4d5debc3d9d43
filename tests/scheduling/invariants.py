"""Walks the raw arrays of a scheduler with the policy `price` and says what is not as it must be. Slow and plain."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from recrawl.scheduling.market_state import SPAN
from recrawl.scheduling.market_state import STANDING as STANDING_LISTS
from recrawl.scheduling.policies.by_price import ByPrice
from recrawl.scheduling.scheduler import Scheduler
from recrawl.scheduling.table.records import (
    AT_HOST,
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

PER_NEAR, PER_FAR = 64, 16


def check(scheduler: Scheduler, flying: set[int] | None = None) -> None:
    """Check everything; `flying`: the ids that were taken and not settled."""
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
    if policy._built_budget == 0.0:
        assert set(states.tolist()) <= {FREE, QUEUED}, "nothing is placed before the first price"
        return
    for slot, state in pages_in_lists(scheduler):
        assert slot not in seen, f"page {slot} is in two places"
        seen[slot] = state
    for slot in pages_at_hosts(scheduler):
        assert slot not in seen, f"page {slot} is in two places"
        seen[slot] = AT_HOST
    for slot in _heap(scheduler, int(policy._desk["pen"][0]), -1, None):
        assert slot not in seen, f"page {slot} is in two places"
        seen[slot] = HELD
    for slot, state in enumerate(states.tolist()):
        if state in (IN_FLIGHT, IDLE):
            assert slot not in seen, f"page {slot} is in flight or idle, and in a list"
        else:
            assert seen.get(slot) == state, f"page {slot} has state {state} and is in {seen.get(slot)}"
    in_lists = np.isin(states, (QUEUED, STANDING, READY, IDLE))
    children = scheduler._table.pages["child"][: scheduler._table.used]
    assert (children[in_lists] == -1).all(), "a page in no heap has a link of one: it would seem to hear signals"
    check_idle(scheduler)
    check_hosts(scheduler)
    check_agenda(scheduler)


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


def pages_in_lists(scheduler: Scheduler) -> Iterator[tuple[int, int]]:
    """Every page in a list of the market, with the state it must have; checks links, bits and counts on the way."""
    policy = scheduler._policy
    assert isinstance(policy, ByPrice)
    desk = policy._desk[0]
    bins = int(desk["bins"])
    standing, ready = bins + 2 * SPAN + 1, len(policy._heads) - 1
    assert ready == standing + STANDING_LISTS
    near, above = policy._bits[: bins // 64], policy._bits[bins // 64 :]
    filled = np.packbits(policy._heads[:bins] >= 0, bitorder="little").view(np.uint64)
    assert np.array_equal(near, filled), "bits and near lists disagree"
    assert np.array_equal(above, np.packbits(near != 0, bitorder="little").view(np.uint64)), "bits above disagree"
    on_offer = 0
    for which in np.flatnonzero(policy._heads >= 0).tolist():
        for slot in _chain(scheduler, which):
            if which < standing:
                _check_bin(scheduler, slot, which)
                yield slot, QUEUED
            elif which < ready:
                assert which - standing <= desk["top"], "a standing list above the top has a page"
                yield slot, STANDING
            else:
                on_offer += 1
                yield slot, READY
    assert on_offer == desk["ready"], "the count of pages on offer is wrong"


def _chain(scheduler: Scheduler, which: int) -> Iterator[int]:
    policy = scheduler._policy
    assert isinstance(policy, ByPrice)
    pages = scheduler._table.pages
    before, slot, length = -2 - which, int(policy._heads[which]), 0
    while slot >= 0:
        assert slot < scheduler._table.used
        assert pages["prev"][slot] == before, f"page {slot} in list {which} does not point back"
        yield slot
        before, slot = slot, int(pages["next"][slot])
        length += 1
        assert length <= scheduler._table.used, f"list {which} has a loop"


def _check_bin(scheduler: Scheduler, slot: int, which: int) -> None:
    """A page in the wheel is in the bin of the time it is due, and none is behind the wheel."""
    policy = scheduler._policy
    assert isinstance(policy, ByPrice)
    desk = policy._desk[0]
    bins, base = int(desk["bins"]), int(desk["base"])
    page = scheduler._table.pages[slot]
    due = float(page["last"]) + float(page["wait"])
    number = math.floor(min(max((due - float(desk["origin"])) / float(desk["width"]), -4e15), 4e15))
    assert number >= base, f"page {slot} is behind the wheel"
    middle, first = number // (bins // PER_NEAR), base // (bins // PER_NEAR)
    far = middle // PER_FAR
    if which < bins:
        assert number < base + bins + bins // PER_NEAR
        assert which == number & (bins - 1), f"page {slot} is in the wrong near bin"
    elif which < bins + SPAN:
        assert middle >= first + PER_NEAR, f"page {slot} should be near by now"
        assert which == bins + (middle & (SPAN - 1)), f"page {slot} is in the wrong middle bin"
    elif which < bins + 2 * SPAN:
        assert far >= first // PER_FAR + PER_NEAR, f"page {slot} should be in the middle by now"
        assert which == bins + SPAN + (far & (SPAN - 1)), f"page {slot} is in the wrong far bin"
    else:
        assert far >= first // PER_FAR + SPAN // 2 - 1, f"page {slot} should be far by now, not later"


def pages_at_hosts(scheduler: Scheduler) -> Iterator[int]:
    """Every page in the heap of a host; checks the heap on the way."""
    table = scheduler._table
    for number, host in enumerate(table.hosts.records):
        found = [slot for name in ("root", "behind") for slot in _heap(scheduler, int(host[name]), -1, number)]
        assert len(found) == host["waiting"], f"host {number} counts {host['waiting']} pages, not {len(found)}"
        yield from found


def _heap(scheduler: Scheduler, slot: int, parent: int, number: int | None) -> Iterator[int]:
    pages = scheduler._table.pages
    waiting = [(slot, parent, -1)]
    while waiting:
        slot, parent, before = waiting.pop()
        if slot < 0:
            continue
        yield slot
        page = pages[slot]
        assert number is None or page["host"] == number, f"page {slot} is in the heap of another host"
        assert page["prev"] == before, f"page {slot} in a heap does not point back"
        if parent >= 0:
            assert _due(pages[parent]) <= _due(page), f"page {slot} comes before its parent in the heap"
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
    """Hosts count their crawls in flight, and have at most one page on offer."""
    table = scheduler._table
    pages = table.pages[: table.used]
    for number, host in enumerate(table.hosts.records):
        flying = int(((pages["host"] == number) & (pages["state"] == IN_FLIGHT)).sum())
        assert host["in_flight"] == flying, f"host {number} counts {host['in_flight']} in flight, not {flying}"
        if host["offered"] >= 0:
            page = pages[host["offered"]]
            assert page["state"] == READY
            assert page["host"] == number


def check_agenda(scheduler: Scheduler) -> None:
    """The heaps of hosts are heaps, and every host with a page to offer is in one, in time."""
    policy = scheduler._policy
    assert isinstance(policy, ByPrice)
    hosts = scheduler._table.hosts.records
    for book in (0, 1):
        size = int(policy._desk["agenda"][0, book])
        for place in range(size):
            host = hosts[policy._agenda[book, place]]
            assert host["book"] == book
            assert host["place"] == place
            if place:
                assert hosts[policy._agenda[book, (place - 1) // 2]]["offer_at"] <= host["offer_at"]
    assert int((hosts["book"] >= 0).sum()) == int(policy._desk["agenda"].sum())
    for number, host in enumerate(hosts):
        if host["waiting"] == 0 or host["offered"] >= 0:
            continue
        opens = opens_at(host, scheduler._table.burst)
        if host["book"] < 0:
            assert host["root"] < 0 or math.isinf(opens), (
                f"host {number} has pages and may be crawled, but is not on the agenda"
            )
        elif host["book"] == 0:
            assert host["offer_at"] <= max(opens, scheduler.now), f"host {number} is looked at too late"
        else:
            first = host["root"] if host["root"] >= 0 else host["behind"]
            assert host["offer_at"] <= _due(scheduler._table.pages[first]), f"host {number} offers too late"


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
        # What the desk was told of the last call is no state of its own.
        desk = policy.state()["desk"].copy()
        desk["now"], desk["burst"], desk["sample"], desk["touched"] = 0.0, 0.0, 0, 0
        lists = {name: array for name, array in policy.state().items() if name != "desk"}
        kept["market"] = (desk.tobytes(), *(array.tobytes() for array in lists.values()))
    return kept
