"""What callers get wrong: one clear error each, and nothing is changed by a call that is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from invariants import check, picture

import recrawl
from recrawl import InvalidInput, Signal, UnknownPage
from recrawl.scheduling.table.records import Ids

NAN, INF = math.nan, math.inf
TRUST = {"feed": Signal(0.5, 0.5)}


def running() -> tuple[recrawl.Scheduler, Ids, Ids]:
    """A scheduler with pages of many kinds that has run for a while: itself, its pages, those in flight."""
    scheduler = recrawl.Scheduler(budget=4.0, burst=4.0)
    scheduler.set_host("slow", min_gap=0.5)
    ids = np.concatenate(
        [
            scheduler.add(importance=[1.0, 2.0, 3.0], change_rate=1.0, last_crawled=0.0, host="slow"),
            scheduler.add(importance=np.ones(3), host=["a", "b", "a"], cost=0.5),
            scheduler.add(importance=np.ones(3), change_rate=0.5, last_crawled=0.0, signals=TRUST, min_interval=0.1),
            scheduler.add(profit=np.ones(2), new_page_rate=1.0, decay=1.0, objective="news"),
        ]
    )
    for step in range(1, 8):
        batch = scheduler.take(step / 4, 2)
        scheduler.crawled(batch.ids[:1], step / 4, changed=True)
        scheduler.failed(batch.ids[1:], step / 4)
    return scheduler, ids, scheduler.take(3.0, 2).ids


def refused(scheduler: recrawl.Scheduler, call: Callable[[], Any], error: Any = InvalidInput) -> str:
    """Make a call that is refused and changes nothing; what it says."""
    before = picture(scheduler)
    with pytest.raises(error) as raised:
        call()
    after = picture(scheduler)
    assert [name for name in before if before[name] != after[name]] == []
    check(scheduler)
    return str(raised.value)


BAD_PAGES: dict[str, dict[str, Any]] = {
    "NaN importance": {"importance": [1.0, NAN]},
    "infinite importance": {"importance": [INF, 1.0]},
    "negative importance": {"importance": [1.0, -1.0]},
    "importance in words": {"importance": ["much", "little"]},
    "too large": {"importance": [1e61, 1.0]},
    "too small": {"importance": [1e-61, 1.0]},
    "no importance": {"change_rate": 1.0},
    "None": {"importance": None},
    "NaN rate": {"importance": [1.0, 1.0], "change_rate": NAN},
    "rate in words": {"importance": 1.0, "change_rate": "often"},
    "lengths": {"importance": [1.0, 2.0], "change_rate": [1.0, 2.0, 3.0]},
    "lengths of hosts": {"importance": [1.0, 2.0], "host": ["new", "newer", "newest"]},
    "hosts of no kind": {"importance": [1.0, 2.0], "host": ["new", 2.5]},
    "a missing host": {"importance": [1.0, 2.0], "host": ["new", None]},
    "a host that is true": {"importance": [1.0, 2.0], "host": True},
    "no cost": {"importance": [1.0, 2.0], "host": ["new", "newer"], "cost": [1.0, 0.0]},
    "NaN cost": {"importance": [1.0, 2.0], "cost": NAN},
    "a cost beyond all": {"importance": [1.0, 2.0], "cost": 1e60},
    "a cost below all": {"importance": [1.0, 2.0], "cost": 1e-60},
    "NaN interval": {"importance": [1.0, 2.0], "min_interval": NAN},
    "endless interval": {"importance": [1.0, 2.0], "min_interval": INF},
    "no interval": {"importance": [1.0, 2.0], "max_interval": 0.0},
    "intervals crossed": {"importance": [1.0, 2.0], "min_interval": 3.0, "max_interval": 2.0},
    "crawled in the future": {"importance": [1.0, 2.0], "last_crawled": [0.0, 9.0]},
    "crawled before time": {"importance": [1.0, 2.0], "last_crawled": -INF},
    "crawled in words": {"importance": [1.0, 2.0], "last_crawled": "yesterday"},
    "objective": {"importance": [1.0, 2.0], "objective": "speed"},
    "not of this objective": {"importance": [1.0, 2.0], "profit": 1.0},
    "captures without decay": {"importance": [1.0, 2.0], "change_rate": 1.0, "objective": "captures"},
    "captures without rate": {"importance": [1.0, 2.0], "decay": 1.0, "objective": "captures"},
    "news without rate": {"profit": [1.0, 2.0], "decay": 1.0, "objective": "news"},
    "profit beyond all": {"profit": 1e60, "new_page_rate": 1.0, "decay": 1.0, "objective": "news"},
    "signals that are none": {"importance": [1.0, 2.0], "host": "new", "signals": ["feed"]},
    "a signal that is none": {"importance": [1.0, 2.0], "host": "new", "signals": {"new": 0.5}},
    "recall above 1": {"importance": [1.0, 2.0], "signals": {"new": Signal(1.5, 0.5)}},
    "NaN recall": {"importance": [1.0, 2.0], "host": "new", "signals": {"new": Signal(NAN, 0.5)}},
    "recalls above 1": {"importance": [1.0, 2.0], "signals": {"new": Signal(0.6, 0.5), "newer": Signal(0.6, 0.5)}},
    "never right": {
        "importance": [1.0, 2.0],
        "host": "new",
        "signals": {"feed": Signal(0.5, 0.5), "new": Signal(0.2, 0)},
    },
    "lengths of signals": {"importance": [1.0, 2.0], "signals": {"new": Signal([0.1, 0.2, 0.3], 0.5)}},
    "too many kinds": {"importance": [1.0, 2.0], "signals": {str(kind): Signal(0.01, 0.5) for kind in range(64)}},
    "an unknown column": {"importance": [1.0, 2.0], "colour": "blue"},
}


@pytest.mark.parametrize("name", BAD_PAGES)
def test_pages_that_cannot_be_are_refused_and_leave_no_trace(name: str) -> None:
    """Not even their hosts and kinds of signals are known afterwards."""
    scheduler, _, _ = running()
    said = refused(scheduler, lambda: scheduler.add(**BAD_PAGES[name]))
    assert said
    assert "\n" not in said


@pytest.mark.parametrize("name", [name for name in BAD_PAGES if name != "objective"])
def test_updates_that_cannot_be_are_refused_and_leave_no_trace(name: str) -> None:
    scheduler, ids, _ = running()
    if name in ("no importance", "captures without rate"):
        return  # what is not said stays as it is
    columns = {key: value for key, value in BAD_PAGES[name].items() if key != "objective"}
    pages = ids[9:11] if "profit" in columns and "importance" not in columns else ids[0:2]
    if name in ("captures without decay", "news without rate"):
        columns["objective"] = BAD_PAGES[name]["objective"]
        pages = ids[0:2]
    refused(scheduler, lambda: scheduler.update(pages, **columns))


@pytest.mark.parametrize("bad", [NAN, INF, -INF, "soon", None, 1e61, 1j, [1.0, 2.0]])
def test_a_time_that_is_none_is_refused_by_every_call(bad: Any) -> None:
    scheduler, ids, flying = running()
    for call in (
        lambda: scheduler.take(bad, 1),
        lambda: scheduler.crawled(flying, bad),
        lambda: scheduler.failed(flying, bad),
        lambda: scheduler.release(flying, bad),
        lambda: scheduler.signal(ids[6:8], bad, kind="feed"),
        lambda: scheduler.set_budget(1.0, bad),
    ):
        assert "now" in refused(scheduler, call)
    with pytest.raises(InvalidInput):
        recrawl.Scheduler(budget=1.0, now=bad)


@pytest.mark.parametrize("bad", [-1, 1.5, "many", None, True, NAN])
def test_a_number_of_pages_that_is_none_is_refused(bad: Any) -> None:
    scheduler, _, _ = running()
    refused(scheduler, lambda: scheduler.take(4.0, bad))


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (-1, UnknownPage),
        (10**6, UnknownPage),
        (1 << 40, UnknownPage),
        (2**63, InvalidInput),
        (2**64, InvalidInput),
        (0.5, InvalidInput),
        (NAN, InvalidInput),
        (True, InvalidInput),
        ("one", InvalidInput),
        (None, InvalidInput),
        ([[0, 1], [2, 3]], InvalidInput),
        ([[0], [1, 2]], InvalidInput),
    ],
)
def test_ids_that_are_none_are_refused_by_every_call(bad: Any, error: Any) -> None:
    scheduler, _, _ = running()
    for call in (
        lambda: scheduler.crawled(bad, 4.0),
        lambda: scheduler.failed(bad, 4.0),
        lambda: scheduler.release(bad, 4.0),
        lambda: scheduler.signal(bad, 4.0, kind="feed"),
        lambda: scheduler.update(bad, importance=1.0),
        lambda: scheduler.remove(bad),
    ):
        refused(scheduler, call, (InvalidInput, UnknownPage) if bad == 2**63 else error)


def test_an_old_id_is_unknown_also_when_its_slot_has_a_new_page() -> None:
    scheduler, ids, _ = running()
    old = ids[3]
    scheduler.remove([old])
    new = scheduler.add(importance=[1.0])
    assert int(new[0]) & 0xFFFFFFFF == int(old) & 0xFFFFFFFF
    assert str(old) in refused(scheduler, lambda: scheduler.update([old], importance=2.0), UnknownPage)
    refused(scheduler, lambda: scheduler.remove([new[0], old]), UnknownPage)


def test_crawls_are_settled_once_and_only_if_they_were_taken() -> None:
    scheduler, ids, flying = running()
    idle = next(page for page in ids.tolist() if page not in flying.tolist())
    ways: list[Any] = [scheduler.failed, scheduler.release, scheduler.crawled]
    for settle in ways:
        refused(scheduler, partial(settle, [idle], 5.0))
        refused(scheduler, partial(settle, [flying[0], idle], 5.0))
        refused(scheduler, partial(settle, [flying[0], flying[0]], 5.0))
    scheduler.crawled(flying[:1], 5.0)
    for settle in ways:
        refused(scheduler, partial(settle, flying[:1], 6.0))


def test_an_id_twice_is_refused_where_it_makes_no_sense() -> None:
    scheduler, ids, _ = running()
    refused(scheduler, lambda: scheduler.update([ids[0], ids[0]], importance=1.0))
    refused(scheduler, lambda: scheduler.remove([ids[0], ids[0]]))
    assert scheduler.signal([ids[6], ids[6]], 4.0, kind="feed") == 2


@pytest.mark.parametrize("bad", [[True, False, True, True], [0.5, 1.0], "yes", [None, True], [2, 0], [[True], [True]]])
def test_outcomes_that_are_none_are_refused(bad: Any) -> None:
    scheduler, _, flying = running()
    assert len(flying) == 2
    refused(scheduler, lambda: scheduler.crawled(flying, 4.0, changed=bad))


@pytest.mark.parametrize("bad", [NAN, INF, -1.0, "later", [1.0, 2.0, 3.0], [1.0, NAN], 1e31])
def test_waits_that_are_none_are_refused(bad: Any) -> None:
    scheduler, _, flying = running()
    refused(scheduler, lambda: scheduler.failed(flying, 4.0, retry_after=bad))


@pytest.mark.parametrize("bad", ["unheard-of", "", None, 3, ["feed"]])
def test_signals_of_no_known_kind_are_refused(bad: Any) -> None:
    scheduler, ids, _ = running()
    assert "kind" in refused(scheduler, lambda: scheduler.signal(ids[6:8], 4.0, kind=bad))


@pytest.mark.parametrize(
    "limits",
    [
        {"min_gap": NAN},
        {"min_gap": -1.0},
        {"min_gap": INF},
        {"min_gap": "long"},
        {"max_in_flight": 0},
        {"max_in_flight": 1.5},
        {"max_in_flight": NAN},
        {"rate_cap": -1.0},
        {"rate_cap": NAN},
        {"blocked_until": NAN},
        {"blocked_until": INF},
        {"blocked_until": "tomorrow"},
        {"min_gap": 1.0, "rate_cap": NAN},
    ],
)
def test_limits_that_cannot_be_are_refused_and_leave_no_trace(limits: dict[str, Any]) -> None:
    scheduler, _, _ = running()
    refused(scheduler, lambda: scheduler.set_host("new", **limits))
    refused(scheduler, lambda: scheduler.set_host("slow", **limits))


@pytest.mark.parametrize("bad", [None, 1.5, True, ("a", "b")])
def test_a_host_that_is_none_is_refused(bad: Any) -> None:
    scheduler, _, _ = running()
    refused(scheduler, lambda: scheduler.set_host(bad, min_gap=1.0))


@pytest.mark.parametrize("bad", [NAN, INF, -1.0, "plenty", None, 1e61])
def test_a_budget_that_is_none_is_refused(bad: Any) -> None:
    scheduler, _, _ = running()
    refused(scheduler, lambda: scheduler.set_budget(bad, 4.0))
    with pytest.raises(InvalidInput, match="budget"):
        recrawl.Scheduler(budget=bad)
    with pytest.raises(InvalidInput, match="burst"):
        recrawl.Scheduler(budget=1.0, burst=bad)


def test_time_that_goes_back_is_the_latest_time_and_counted() -> None:
    scheduler, ids, flying = running()
    assert scheduler.now == 3.0
    scheduler.crawled(flying[:1], 1.0)
    scheduler.signal(ids[6:8], -1e9, kind="feed")
    scheduler.take(2.9, 1)
    scheduler.set_budget(5.0, 0.0)
    assert scheduler.now == 3.0
    assert scheduler.counts.clock_went_back == 4
    assert scheduler._table.pages["last"][int(flying[0]) & 0xFFFFFFFF] == 3.0
    check(scheduler)
    assert len(scheduler.take(5.0, 3).ids) == 3


def test_nothing_can_be_done_to_no_pages() -> None:
    scheduler, _, _ = running()
    before = len(scheduler)
    assert len(scheduler.add(importance=[], change_rate=[])) == 0
    assert len(scheduler.add(importance=[], host=[], signals=TRUST)) == 0
    scheduler.update([], importance=1.0)
    scheduler.remove([])
    scheduler.crawled([], 4.0, changed=[])
    scheduler.failed([], 4.0, retry_after=[])
    scheduler.release([], 4.0)
    assert scheduler.signal([], 4.0, kind="feed") == 0
    assert len(scheduler.take(4.0, 0).ids) == 0
    assert len(scheduler) == before
    check(scheduler)


def test_a_million_signals_to_one_page_count_and_cost_no_more_than_one_page() -> None:
    scheduler, ids, _ = running()
    storm = np.full(1_000_000, ids[6])
    assert scheduler.signal(storm, 4.0, kind="feed") == 1_000_000
    assert scheduler.signal(storm[:10], 4.0, kind="feed") == 10
    check(scheduler)
    assert ids[6] in [page for step in range(40) for page in scheduler.take(4.0 + step / 4, 5).ids]


def test_signals_of_no_trust_are_ignored() -> None:
    """A kind with recall 0 is known, and tells nothing."""
    scheduler = recrawl.Scheduler(budget=1.0)
    ids = scheduler.add(importance=[1.0], change_rate=1.0, last_crawled=0.0, signals={"ping": Signal(0.0, 1.0)})
    more = scheduler.add(importance=[1.0], change_rate=1.0, last_crawled=0.0, signals={})
    scheduler.take(1.0, 1)
    assert scheduler.signal([*ids, *more], 2.0, kind="ping") == 0
    assert scheduler.counts.signals_ignored == 2


@pytest.mark.parametrize("objective", ["freshness", "harmonic"])
def test_the_largest_and_smallest_numbers_are_served(objective: Any) -> None:
    """Importance and rates from 1e-60 to 1e60 in one market: no NaN, no warning, and all that fits is crawled."""
    sizes = np.array([1e-60, 1e-30, 1.0, 1e30, 1e60])
    scheduler = recrawl.Scheduler(budget=3.0, objective=objective, burst=5.0)
    importance, rate = (grid.ravel() for grid in np.meshgrid(sizes, sizes))
    trust = {"sure": Signal(0.5, 1.0), "weak": Signal(0.5, 1e-12)}
    scheduler.add(importance=importance, change_rate=rate, last_crawled=0.0, host="slow")
    ids = scheduler.add(importance=importance, change_rate=rate, last_crawled=0.0, signals=trust)
    scheduler.add(importance=importance, change_rate=rate)
    scheduler.set_host("slow", min_gap=0.3)
    taken = 0
    for step in range(1, 120):
        now = step * 0.25 if step < 100 else 10.0 ** (step - 98)
        scheduler.signal(ids, now, kind="sure" if step % 2 else "weak")
        batch = scheduler.take(now, 5)
        assert np.isfinite(batch.values).all()
        scheduler.crawled(batch.ids, now, changed=np.zeros(len(batch.ids), dtype=bool))
        check(scheduler)
        taken += len(batch.ids)
    assert taken > 150


def test_no_budget_and_no_pages_are_fine() -> None:
    scheduler = recrawl.Scheduler(budget=0.0, burst=2.0)
    assert len(scheduler.take(0.0, 5).ids) == 0
    scheduler.add(importance=[1.0, 2.0, 3.0], change_rate=1.0, last_crawled=0.0)
    assert sum(len(scheduler.take(float(step), 5).ids) for step in range(1, 10)) <= 2
    check(scheduler)


@pytest.mark.parametrize("bad", [[1], {}, None, 1.5])
def test_a_host_that_is_no_name_has_no_price(bad: Any) -> None:
    """Whoever asks for the price of something else is told so."""
    scheduler, _, _ = running()
    assert "host" in refused(scheduler, partial(scheduler.host_price, bad))


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("policy", []),
        ("policy", None),
        ("policy", "cheapest"),
        ("objective", np.array(["harmonic", "freshness"])),
        ("objective", []),
        ("tuning", {}),
        ("tuning", None),
    ],
)
def test_a_scheduler_cannot_be_made_of_anything(name: str, bad: Any) -> None:
    """The error names what is wrong."""
    made: dict[str, Any] = {"budget": 1.0, name: bad}
    with pytest.raises(InvalidInput, match=name):
        recrawl.Scheduler(**made)


@pytest.mark.parametrize("bad", [np.array(["harmonic", "harmonic"]), ["harmonic"], 1])
def test_an_objective_is_one_name_for_all_pages(bad: Any) -> None:
    """Both when pages are added and when they change."""
    scheduler, ids, _ = running()
    assert "objective" in refused(scheduler, partial(scheduler.add, importance=[1.0, 1.0], objective=bad))
    assert "objective" in refused(scheduler, partial(scheduler.update, ids[:1], importance=1.0, objective=bad))


@pytest.mark.parametrize("bad", ["", 1, b"file", "a\0b", "/"])
def test_a_snapshot_is_written_to_a_path(bad: Any) -> None:
    """Whatever cannot name a file is refused by one sentence."""
    scheduler, _, _ = running()
    assert "path" in refused(scheduler, partial(scheduler.snapshot, bad))


def test_an_id_twice_is_told_by_its_row() -> None:
    """The row is that of the second."""
    scheduler, ids, flying = running()
    page = int(flying[0])
    call = partial(scheduler.crawled, [page, page], 4.0, outcome=["changed", "failed"])
    assert "ids[1]" in refused(scheduler, call)
    assert "ids[2]" in refused(scheduler, partial(scheduler.remove, [int(ids[0]), int(ids[1]), int(ids[0])]))


def test_a_time_may_be_a_number_of_numpy() -> None:
    """Times of columns are such numbers."""
    scheduler = recrawl.Scheduler(budget=1.0)
    until: Any
    for until in (np.int64(5), np.float32(5.0), 5):
        scheduler.set_host("a", blocked_until=until)
    refused(scheduler, partial(scheduler.set_host, "a", blocked_until=True))


def test_a_page_can_be_taken_from_its_host() -> None:
    """`host=None` takes the host away, also in flight; without it the host stays."""
    scheduler = recrawl.Scheduler(budget=2.0, burst=2.0)
    scheduler.set_host("slow", min_gap=10.0)
    ids = scheduler.add(importance=np.ones(3), change_rate=1.0, last_crawled=0.0, host="slow")
    flying = scheduler.take(1.0, 3).ids
    assert len(flying) == 1
    scheduler.update(ids, importance=2.0)
    assert scheduler.explain(int(ids[0]), 1.0).host == "slow"
    scheduler.update(ids, host=None)
    check(scheduler, set(flying.tolist()))
    assert scheduler.explain(int(ids[0]), 1.0).host is None
    assert len(scheduler.take(2.0, 3)) == 2


def test_costs_and_limits_of_captures_change_alone() -> None:
    """What a captured change is worth stays, and so does how it fades."""
    scheduler = recrawl.Scheduler(budget=1.0)
    ids = scheduler.add(
        objective="captures", importance=[1.0, 3.0], change_rate=0.5, decay=0.2, life="append", last_crawled=0.0
    )
    before = [scheduler.explain(page, 2.0) for page in ids.tolist()]
    scheduler.update(ids, cost=2.0, max_interval=9.0)
    after = [scheduler.explain(page, 2.0) for page in ids.tolist()]
    assert [page.value for page in after] == pytest.approx([page.value for page in before])
    assert [(page.cost, page.max_interval) for page in after] == [(2.0, 9.0)] * 2
    assert "importance" in refused(scheduler, partial(scheduler.update, ids, change_rate=1.0))
