"""The parts of the market against slow, obvious twins: wheel, heaps, agenda, standing lists, token bucket."""

from __future__ import annotations

import heapq
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.jit import kernel
from recrawl.scheduling.agenda import CLOSED, OPEN, enter, first_of
from recrawl.scheduling.budget import TokenBucket
from recrawl.scheduling.host_heap import gather, put, take_out
from recrawl.scheduling.market_state import FEWEST_BINS, SPAN, Market, empty_desk, empty_lists
from recrawl.scheduling.placing import standing_step, standing_value
from recrawl.scheduling.table.records import HARMONIC, HOST, LIMITS, PAGE, Records, Slots
from recrawl.scheduling.value_heap import Offers, heapify, pop_highest, push_value
from recrawl.scheduling.wheel import bin_of, next_due_list, next_list, schedule_page, unschedule_page

MODERATE = settings(max_examples=60, deadline=None)


def market_of(pages: int, hosts: int = 0) -> Market:
    """An empty market for pages without signals."""
    heads, bits = empty_lists(FEWEST_BINS)
    records = np.zeros(hosts, dtype=HOST)
    records["root"] = records["behind"] = records["book"] = records["offered"] = -1
    records["rate_cap"] = math.inf
    page_records = np.zeros(pages, dtype=PAGE)
    page_records["law"], page_records["host"] = HARMONIC, -1
    limits = np.zeros(0, dtype=LIMITS)
    agenda = np.zeros((2, hosts), dtype=np.int32)
    return Market(page_records, limits, None, records, agenda, heads, bits, empty_desk(0.0))


@kernel
def schedule_all(market: Market, slots: Slots) -> None:
    for i in range(len(slots)):
        page = market.pages[slots[i]]
        schedule_page(market, slots[i], page["last"] + np.float64(page["wait"]))


@kernel
def unschedule_all(market: Market, slots: Slots) -> None:
    for i in range(len(slots)):
        unschedule_page(market, slots[i])


@kernel
def drain(market: Market, now: float, out: Slots) -> int:
    """Take everything out of the wheel whose bin has come."""
    count = 0
    now_bin = bin_of(market, now)
    while True:
        which = next_due_list(market, now_bin)
        if which < 0:
            return count
        slot = market.heads[which]
        while slot >= 0:
            unschedule_page(market, slot)
            out[count] = slot
            count += 1
            slot = market.heads[which]


@kernel
def peek(market: Market) -> int:
    return next_list(market)


waits = st.one_of(
    st.floats(0.0, 30.0), st.floats(0.0, 5e3), st.floats(0.0, 3e5), st.floats(0.0, 1e8), st.sampled_from([1e12, 1e29])
)


@MODERATE
@given(data=st.data())
def test_the_wheel_gives_pages_back_in_order_of_time(data: st.DataObject) -> None:
    """Against a sorted list: nothing early by more than a bin, nothing late, nothing lost, over all bin sizes."""
    pages = 40
    market = market_of(pages)
    market.desk["width"] = 0.01  # near bins reach 41, middle ones 655, far ones 10 486
    waiting: dict[int, float] = {}
    now, out = 0.0, np.empty(pages, dtype=np.int64)
    for _ in range(data.draw(st.integers(1, 12))):
        free = [slot for slot in range(pages) if slot not in waiting]
        new = data.draw(st.lists(st.sampled_from(free), unique=True, max_size=12)) if free else []
        for slot in new:
            market.pages["last"][slot], market.pages["wait"][slot] = now, data.draw(waits)
            waiting[slot] = now + float(market.pages["wait"][slot])
        schedule_all(market, np.array(new, dtype=np.int64))
        if waiting:
            gone = data.draw(st.lists(st.sampled_from(sorted(waiting)), unique=True, max_size=4))
            unschedule_all(market, np.array(gone, dtype=np.int64))
            for slot in gone:
                del waiting[slot]
        _first_is_first(market, waiting)
        now += data.draw(st.sampled_from([0.0, 0.003, 0.4, 7.0, 60.0, 900.0, 4000.0]))
        due = out[: drain(market, now, out)].tolist()
        assert len(set(due)) == len(due)
        end_of_bin = (math.floor(now / 0.01) + 1) * 0.01
        assert all(waiting[slot] <= end_of_bin + 1e-9 for slot in due), "a page came too early"
        for slot in due:
            del waiting[slot]
        assert all(due >= now - 0.01 - 1e-9 for due in waiting.values()), "a page was forgotten"


def _first_is_first(market: Market, waiting: dict[int, float]) -> None:
    """The next list holds the page that is due first, up to the length of its bins."""
    which = peek(market)
    if not waiting:
        assert which == -1
        return
    slot, found = int(market.heads[which]), set()
    while slot >= 0:
        found.add(slot)
        slot = int(market.pages["next"][slot])
    first = min(waiting.values())
    length = 0.01 if which < FEWEST_BINS else 0.64 if which < FEWEST_BINS + SPAN else math.inf
    assert any(waiting[slot] <= first + length + 1e-9 for slot in found)


@kernel
def put_all(pages: Records, hosts: Records, slots: Slots) -> None:
    for i in range(len(slots)):
        put(pages, hosts[0], slots[i])


@kernel
def take_all_out(pages: Records, hosts: Records, slots: Slots) -> None:
    for i in range(len(slots)):
        take_out(pages, hosts[0], slots[i])


@kernel
def gather_all(pages: Records, hosts: Records) -> int:
    return gather(pages, hosts[0]["root"], hosts[0]["behind"])


@MODERATE
@given(data=st.data())
def test_the_heap_of_a_host_is_a_heap_that_pages_leave_from_anywhere(data: st.DataObject) -> None:
    """Against heapq: the root is always the page that is due first."""
    market = market_of(60, hosts=1)
    pages, hosts = market.pages, market.hosts
    pages["wait"] = data.draw(st.lists(st.floats(0, 10, width=32), min_size=60, max_size=60))
    inside: set[int] = set()
    for _ in range(data.draw(st.integers(1, 15))):
        outside = sorted(set(range(60)) - inside)
        coming = data.draw(st.lists(st.sampled_from(outside), unique=True, max_size=15)) if outside else []
        put_all(pages, hosts, np.array(coming, dtype=np.int64))
        inside |= set(coming)
        leaving = data.draw(st.lists(st.sampled_from(sorted(inside)), unique=True, max_size=8)) if inside else []
        for _ in range(data.draw(st.integers(0, 4))):
            rest = sorted(inside - set(leaving))
            if rest:  # the first ones leave too
                leaving.append(heapq.nsmallest(1, rest, key=lambda slot: pages["wait"][slot])[0])
        take_all_out(pages, hosts, np.array(leaving, dtype=np.int64))
        inside -= set(leaving)
        assert hosts["waiting"][0] == len(inside)
        root = int(hosts["root"][0])
        assert (root == -1) == (not inside)
        if inside:
            assert pages["wait"][root] == min(pages["wait"][slot] for slot in inside)
    slot, chain = gather_all(pages, hosts), []
    while slot >= 0:
        chain.append(slot)
        slot = int(pages["next"][slot])
    assert sorted(chain) == sorted(inside)


@kernel
def enter_one(market: Market, number: int, book: int, time: float) -> None:
    enter(market, number, book, time)


@kernel
def first(market: Market, book: int) -> int:
    return first_of(market, book)


@MODERATE
@given(st.lists(st.tuples(st.integers(0, 11), st.sampled_from([CLOSED, OPEN]), st.floats(0, 9)), max_size=60))
def test_the_agenda_knows_the_next_host_of_each_kind(calls: list[tuple[int, int, float]]) -> None:
    """Against a dict; a time above 8 stands for taking the host out."""
    market = market_of(0, hosts=12)
    twin: dict[int, tuple[int, float]] = {}
    for number, book, drawn in calls:
        time = math.inf if drawn > 8 else drawn
        enter_one(market, number, book, time)
        twin.pop(number, None)
        if time < math.inf:
            twin[number] = (book, time)
        for each in (CLOSED, OPEN):
            times = [time for kept, time in twin.values() if kept == each]
            assert market.desk["agenda"][0, each] == len(times)
            found = first(market, each)
            assert (found == -1) == (not times)
            if times:
                assert twin[found] == (each, min(times))
        for number_, (kept, _) in twin.items():
            host = market.hosts[number_]
            assert market.agenda[kept, host["place"]] == number_


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


@kernel
def steps_of(values: Any, out: Any) -> None:
    for i in range(len(values)):
        out[i] = standing_step(values[i])


@kernel
def values_of(steps: Any, out: Any) -> None:
    for i in range(len(steps)):
        out[i] = standing_value(steps[i])


def test_standing_lists_are_in_order_of_value() -> None:
    """A page is in the list whose least value is the highest that it reaches, over 300 decades."""
    values = np.logspace(-150, 150, 20_001)
    steps, least, above = np.empty(len(values), dtype=np.int64), np.empty(len(values)), np.empty(len(values))
    steps_of(values, steps)
    values_of(steps, least)
    values_of(steps + 1, above)
    assert (np.diff(steps) >= 0).all()
    assert (least <= values * (1 + 1e-12)).all()
    assert (values <= above * (1 + 1e-12)).all()
    assert above[0] / least[0] == pytest.approx(2 ** (1 / 32))
    steps_of(np.array([5e-324, 1e300]), steps)
    assert steps[0] == 0


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
