"""The parts of the market against slow, obvious twins: wheel, heaps, queue of hosts, token bucket."""

from __future__ import annotations

import heapq
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.jit import kernel
from recrawl.scheduling.budget import TokenBucket
from recrawl.scheduling.market.queues import (
    COARSE,
    DESK,
    FEWEST_BINS,
    Market,
    drain,
    enter_wheel,
    first_in_wheel,
    leave_wheel,
    next_host,
    put_in,
    schedule_host,
    take_from,
    unravel,
)
from recrawl.scheduling.table.records import HOST, LIMITS, PAGE, Records, Slots
from recrawl.scheduling.value_heap import Offers, heapify, pop_highest, push_value

MODERATE = settings(max_examples=60, deadline=None)


def market_of(pages: int, hosts: int = 0) -> Market:
    """An empty market."""
    records = np.zeros(hosts, dtype=HOST)
    records["by_due"] = records["by_value"] = records["place"] = -1
    records["rate_cap"] = math.inf
    page_records = np.zeros(pages, dtype=PAGE)
    page_records["host"] = -1
    desk = np.zeros(1, dtype=DESK)
    desk["width"], desk["bins"] = 1.0, FEWEST_BINS
    roots = np.full(FEWEST_BINS + COARSE + 1, -1, dtype=np.int32)
    bits = np.zeros(FEWEST_BINS // 64 + FEWEST_BINS // 4096, dtype=np.uint64)
    queue, ready = np.zeros(hosts, dtype=np.int32), np.zeros(pages, dtype=np.int32)
    return Market(page_records, np.zeros(0, dtype=LIMITS), records, roots, bits, queue, ready, desk)


@kernel
def enter_all(market: Market, slots: Slots) -> None:
    for i in range(len(slots)):
        enter_wheel(market, slots[i])


@kernel
def leave_all(market: Market, slots: Slots) -> None:
    for i in range(len(slots)):
        leave_wheel(market, slots[i])


@kernel
def drain_due(market: Market, now: float) -> int:
    market.desk[0]["now"] = now
    return drain(market, market.ready, 0)


@kernel
def first_page(market: Market) -> int:
    return first_in_wheel(market)


waits = st.one_of(
    st.floats(0.0, 30.0), st.floats(0.0, 5e3), st.floats(0.0, 3e5), st.floats(0.0, 1e8), st.sampled_from([1e12, 1e29])
)


@MODERATE
@given(data=st.data())
def test_the_wheel_gives_pages_back_in_order_of_time(data: st.DataObject) -> None:
    """Against a sorted list: nothing early by more than a bin, nothing late, nothing lost, over all bin sizes."""
    pages = 40
    market = market_of(pages)
    market.desk["width"] = 0.01  # fine bins reach 41, coarse ones 655
    waiting: dict[int, float] = {}
    now = 0.0
    for _ in range(data.draw(st.integers(1, 12))):
        free = [slot for slot in range(pages) if slot not in waiting]
        new = data.draw(st.lists(st.sampled_from(free), unique=True, max_size=12)) if free else []
        for slot in new:
            market.pages["last"][slot], market.pages["wait"][slot] = now, data.draw(waits)
            waiting[slot] = now + float(market.pages["wait"][slot])
        enter_all(market, np.array(new, dtype=np.int64))
        if waiting:
            gone = data.draw(st.lists(st.sampled_from(sorted(waiting)), unique=True, max_size=4))
            leave_all(market, np.array(gone, dtype=np.int64))
            for slot in gone:
                del waiting[slot]
        assert first_page(market) == min(waiting, key=lambda slot: (waiting[slot], slot), default=-1)
        now += data.draw(st.sampled_from([0.0, 0.003, 0.4, 7.0, 60.0, 900.0, 4000.0]))
        due = market.ready[: drain_due(market, now)].tolist()
        assert len(set(due)) == len(due)
        end_of_bin = (math.floor(now / 0.01) + 1) * 0.01
        assert all(waiting[slot] <= end_of_bin + 1e-9 for slot in due), "a page came too early"
        for slot in due:
            del waiting[slot]
        assert all(due >= now - 0.01 - 1e-9 for due in waiting.values()), "a page was forgotten"


@kernel
def put_all(pages: Records, root: int, slots: Slots, by_time: bool) -> int:
    for i in range(len(slots)):
        root = put_in(pages, root, slots[i], by_time)
    return root


@kernel
def take_all(pages: Records, root: int, slots: Slots, by_time: bool) -> int:
    for i in range(len(slots)):
        root = take_from(pages, root, slots[i], by_time)
    return root


@kernel
def chain_of(pages: Records, root: int) -> int:
    return unravel(pages, root)


@pytest.mark.parametrize("by_time", [True, False])
@MODERATE
@given(data=st.data())
def test_a_heap_of_pages_is_in_order_and_pages_leave_from_anywhere(by_time: bool, data: st.DataObject) -> None:
    """Against a plain search: the root is the earliest or the most valuable page, of equal ones the lowest slot."""
    pages = market_of(60).pages
    pages["wait"] = data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.5, 7.0]), min_size=60, max_size=60))
    pages["last"] = data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=60, max_size=60)) if by_time else 0.0
    key = pages["last"] + pages["wait"] if by_time else -pages["wait"]
    inside: set[int] = set()
    root = -1
    for _ in range(data.draw(st.integers(1, 15))):
        outside = sorted(set(range(60)) - inside)
        coming = data.draw(st.lists(st.sampled_from(outside), unique=True, max_size=15)) if outside else []
        root = put_all(pages, root, np.array(coming, dtype=np.int64), by_time)
        inside |= set(coming)
        leaving = data.draw(st.lists(st.sampled_from(sorted(inside)), unique=True, max_size=8)) if inside else []
        root = take_all(pages, root, np.array(leaving, dtype=np.int64), by_time)
        inside -= set(leaving)
        for _ in range(data.draw(st.integers(0, 4))):  # the first ones leave, too
            assert root == min(inside, key=lambda slot: (key[slot], slot), default=-1)
            if inside:
                inside.remove(root)
                root = take_all(pages, root, np.array([root]), by_time)
    slot, chain = chain_of(pages, root), []
    while slot >= 0:
        chain.append(slot)
        slot = int(pages["next"][slot])
    assert sorted(chain) == sorted(inside)


@kernel
def schedule_one(market: Market, number: int) -> None:
    schedule_host(market, number)


@kernel
def next_of(market: Market, now: float) -> int:
    market.desk[0]["now"] = now
    return next_host(market)


@MODERATE
@given(st.lists(st.tuples(st.integers(0, 11), st.floats(0, 9), st.integers(0, 2)), max_size=60))
def test_hosts_come_in_order_of_their_times(calls: list[tuple[int, float, int]]) -> None:
    """Against a dict: hosts with waiting pages, by when they open; others are not in the queue."""
    market = market_of(0, hosts=12)
    twin: dict[int, float] = {}
    for number, opens, waiting in calls:
        market.hosts[number]["waiting"], market.hosts[number]["next_start"] = waiting, opens
        market.hosts[number]["blocked_until"] = -math.inf
        schedule_one(market, number)
        twin.pop(number, None)
        if waiting:
            twin[number] = opens
        assert market.desk["closed"][0] == len(twin)
        assert all(market.queue[market.hosts[each]["place"]] == each for each in twin)
    while twin:
        first = min(twin.values())
        assert next_of(market, first - 1.0) == -1
        assert twin.pop(next_of(market, first)) == first
    assert next_of(market, math.inf) == -1


@kernel
def sell_off(values: Any, slots: Any, extra: Any, out: Any) -> None:
    """Heapify, then drop the highest and add another, turn by turn."""
    room = len(values) + len(extra)
    offers = Offers(np.empty(room), np.empty(room, dtype=np.int32))
    offers.values[: len(values)] = values
    offers.slots[: len(values)] = slots
    count = len(values)
    heapify(offers, count)
    for i in range(len(out)):
        out[i] = offers.slots[0]
        count = pop_highest(offers, count)
        if i < len(extra):
            count = push_value(offers, count, extra[i], len(values) + i)


@MODERATE
@given(
    values=st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.5, 1e300]), min_size=1, max_size=30),
    extra=st.lists(st.sampled_from([0.5, 1.0, 2.0, 9.0]), max_size=10),
)
def test_the_value_heap_sells_the_highest_and_of_equal_ones_the_lower_slot(
    values: list[float], extra: list[float]
) -> None:
    slots = np.arange(len(values), dtype=np.int32)
    out = np.empty(len(values), dtype=np.int64)
    sell_off(np.array(values), slots, np.array(extra), out)
    twin = [(-value, slot) for slot, value in enumerate(values)]
    heapq.heapify(twin)
    for turn, slot in enumerate(out.tolist()):
        assert slot == heapq.heappop(twin)[1]
        if turn < len(extra):
            heapq.heappush(twin, (-extra[turn], len(values) + turn))


@given(st.lists(st.tuples(st.floats(0, 3), st.floats(0, 4), st.booleans()), max_size=40))
def test_the_bucket_never_holds_more_than_the_burst_nor_pays_more_than_the_rate(
    calls: list[tuple[float, float, bool]],
) -> None:
    """Whatever is asked for, spent in every window is at most rate · window + burst."""
    bucket = TokenBucket(rate=2.0, burst=3.0, now=0.0)
    now, log = 0.0, []
    for wait, asked, back in calls:
        now += wait
        tokens = bucket.fill(now)
        assert tokens <= 3.0
        if asked <= tokens:
            bucket.spend(asked)
            if back:
                bucket.refund(asked)
            else:
                log.append((now, asked))
        assert bucket.tokens <= 3.0
    for start, (begin, _) in enumerate(log):
        spent = 0.0
        for end, asked in log[start:]:
            spent += asked
            assert spent <= 2.0 * (end - begin) + 3.0 + 1e-9
