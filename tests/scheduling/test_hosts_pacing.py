"""Hosts with limits: each is used to its limit, pays its own price, and stands in nobody's way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from invariants import check

import recrawl
from recrawl.pages import Floats

OBJECTIVES = pytest.mark.parametrize("objective", ["freshness", "harmonic"])


def population(pages: int, seed: int) -> tuple[Floats, Floats]:
    """Importance and change rate of pages with heavy tails."""
    random = np.random.default_rng(seed)
    return random.pareto(2.0, pages) + 0.1, 10 ** random.uniform(-2.0, 0.5, pages)


def crawl(scheduler: recrawl.Scheduler, end: float, step: float, flight: float = 0.0) -> tuple[Floats, Any]:
    """Poll steadily, each crawl settled after `flight`: when what was taken."""
    times: list[float] = []
    ids: list[int] = []
    flying: list[tuple[float, Any]] = []
    for now in np.arange(scheduler.now + step, end, step).tolist():
        while flying and flying[0][0] <= now:
            back, batch = flying.pop(0)
            scheduler.crawled(batch, back)
        batch = scheduler.take(now, 1000).ids
        times.extend([now] * len(batch))
        ids.extend(batch.tolist())
        if flight:
            flying.append((now + flight, batch))
        else:
            scheduler.crawled(batch, now)
    return np.array(times), np.array(ids, dtype=np.int64)


def cost(columns: tuple[Floats, Floats], objective: str, times: Floats, slots: Any, span: tuple[float, float]) -> float:
    """The importance-weighted cost per unit time of crawls: probability of being stale, or missed changes."""
    importance, rate = columns
    start, end = span
    total = 0.0
    for page in range(len(importance)):
        crawls = times[slots == page]
        before = crawls[crawls <= start]
        first = before[-1] if len(before) else 0.0
        marks = np.concatenate([[first], crawls[(crawls > start) & (crawls < end)], [end]])
        low = np.maximum(marks[:-1], start) - marks[:-1]
        gathered = area(rate[page], np.diff(marks), objective) - area(rate[page], low, objective)
        total += importance[page] * gathered.sum()
    return total / (end - start)


def area(rate: float, elapsed: Floats, objective: str) -> Floats:
    """The cost that a copy gathers in a time: of staleness, or of missed changes by the harmonic numbers."""
    x = rate * elapsed
    if objective == "freshness":
        return elapsed + np.expm1(-x) / rate
    from recrawl.values.special import ein, h

    sums = np.array([each * ein(each) - h(each) if each > 0 else 0.0 for each in x])
    return sums / rate


@OBJECTIVES
def test_a_slow_host_with_most_pages_is_as_if_it_were_not_there(objective: Any) -> None:
    """90 % of the pages at a gap of 10: the others are served as with the budget that the slow host leaves."""
    others, slow, budget, gap, end = 300, 2700, 20.0, 10.0, 250.0
    importance, rate = population(others + slow, seed=1)
    crowded = recrawl.Scheduler(budget=budget, objective=objective, burst=3.0)
    crowded.set_host("slow", min_gap=gap)
    hosts = np.array(["free"] * others + ["slow"] * slow)
    ids = crowded.add(importance=importance, change_rate=rate, host=hosts, last_crawled=0.0)
    times, taken = crawl(crowded, end, 0.05)
    alone = recrawl.Scheduler(budget=budget - 1 / gap, objective=objective, burst=3.0)
    alone.add(importance=importance[:others], change_rate=rate[:others], last_crawled=0.0)
    times_alone, taken_alone = crawl(alone, end, 0.05)
    check(crowded)

    at_slow = taken >= ids[others]
    assert np.diff(times[at_slow]).min() >= gap - 1e-9
    assert at_slow.sum() >= 0.99 * (end / gap - 1), "the slow host is used to its limit"
    assert len(taken) >= 0.995 * budget * end, "the budget is spent"
    columns = (importance[:others], rate[:others])
    crowded_cost = cost(columns, objective, times[~at_slow], taken[~at_slow], (50.0, end))
    alone_cost = cost(columns, objective, times_alone, taken_alone, (50.0, end))
    total = importance[:others].sum() if objective == "freshness" else alone_cost
    assert crowded_cost - alone_cost <= 0.01 * total


@OBJECTIVES
def test_a_saturated_host_serves_its_pages_nearly_as_well_as_it_can(objective: Any) -> None:
    """A host that takes one crawl per unit time, with demand for many: close to the plan for its own capacity."""
    pages, gap, end = 300, 1.0, 1500.0
    importance, rate = population(pages, seed=2)
    scheduler = recrawl.Scheduler(budget=20.0, objective=objective, burst=3.0)
    scheduler.add(importance=importance, change_rate=rate, host="slow", last_crawled=0.0)
    free = population(500, seed=3)
    scheduler.add(importance=free[0], change_rate=free[1], last_crawled=0.0)
    scheduler.set_host("slow", min_gap=gap)
    times, taken = crawl(scheduler, end, 0.05)
    at_slow = taken < pages
    assert at_slow[times > 100].sum() >= 0.99 * (end - 100)  # until then pages that were all fresh at 0 grow stale
    found = cost((importance, rate), objective, times[at_slow], taken[at_slow], (500.0, end))
    plan = recrawl.plan({"importance": importance, "change_rate": rate}, budget=1 / gap, objective=objective)
    best = plan.costs.binary if objective == "freshness" else plan.costs.harmonic
    total = importance.sum() - best if objective == "freshness" else best
    assert (found - best) / total <= 0.05


@pytest.mark.parametrize("seed", [2, 12, 22])
def test_a_saturated_host_does_not_crawl_pages_that_its_plan_leaves_out(seed: int) -> None:
    """Most pages of the host will never be worth its price: its freshness is that of the plan with its cap, to 1 %."""
    pages, gap, end = 300, 1.0, 1500.0
    importance, rate = (np.concatenate(both) for both in zip(population(300, seed), population(500, 99), strict=True))
    host = np.array(["slow"] * pages + ["free"] * 500)
    plan = recrawl.plan(
        {"importance": importance, "change_rate": rate, "host": host}, 20.0, "freshness", host_caps={"slow": 1 / gap}
    )
    x = np.divide(rate, plan.rates, out=np.full(len(rate), np.inf), where=plan.rates > 0)[:pages]
    best = float((importance[:pages] * -np.expm1(-x) / x).sum())  # freshness of pages that are crawled evenly
    assert (plan.rates[:pages] == 0).mean() > 0.5
    scheduler = recrawl.Scheduler(budget=20.0, objective="freshness", burst=3.0)
    scheduler.add(importance=importance, change_rate=rate, host=host, last_crawled=0.0)
    scheduler.set_host("slow", min_gap=gap)
    times, taken = crawl(scheduler, end, 0.05)
    at_slow = taken < pages
    stale = cost((importance[:pages], rate[:pages]), "freshness", times[at_slow], taken[at_slow], (500.0, end))
    assert importance[:pages].sum() - stale >= 0.99 * best


def test_more_budget_is_worth_nothing_where_hosts_cannot_use_what_there_is() -> None:
    """The price goes to 0 as the plan's, and comes back with pages that can be crawled."""
    importance, rate = population(100, seed=8)
    scheduler = recrawl.Scheduler(budget=20.0, burst=2.0)
    scheduler.add(importance=importance, change_rate=rate, host="slow", last_crawled=0.0)
    scheduler.set_host("slow", min_gap=1.0)
    crawl(scheduler, 400.0, 0.05)
    columns = {"importance": importance, "change_rate": rate, "host": ["slow"] * 100}
    assert recrawl.plan(columns, 20.0, host_caps={"slow": 1.0}).price == 0
    assert scheduler.price == scheduler.status().marginal_value == 0
    assert scheduler.host_price("slow") == pytest.approx(
        recrawl.plan({"importance": importance, "change_rate": rate}, 1.0).price, rel=0.25
    )
    scheduler.add(importance=importance, change_rate=rate, last_crawled=scheduler.now)
    crawl(scheduler, 500.0, 0.05)
    plan = recrawl.plan({"importance": importance, "change_rate": rate}, 19.0)
    assert scheduler.price == pytest.approx(plan.price, rel=0.1)


@OBJECTIVES
def test_many_paced_hosts_are_near_the_plan_with_their_caps(objective: Any) -> None:
    """Half of the hosts are saturated: freshness or cost is near that of the plan with host caps."""
    hosts, each, budget, end = 100, 10, 50.0, 300.0
    importance, rate = population(hosts * each, seed=4)
    host = np.repeat(np.arange(hosts), each)
    columns = {"importance": importance, "change_rate": rate, "host": host}
    free = recrawl.plan(columns, budget=budget, objective=objective)
    use = np.bincount(host, weights=free.rates)
    gap = float(1 / np.median(use))
    scheduler = recrawl.Scheduler(budget=budget, objective=objective, burst=3.0)
    for number in range(hosts):
        scheduler.set_host(number, min_gap=gap)
    scheduler.add(importance=importance, change_rate=rate, host=host, last_crawled=0.0)
    times, taken = crawl(scheduler, end, 0.02)
    check(scheduler)
    caps = dict.fromkeys(range(hosts), 1 / gap)
    plan = recrawl.plan(columns, budget=budget, objective=objective, host_caps=caps)
    best = plan.costs.binary if objective == "freshness" else plan.costs.harmonic
    found = cost((importance, rate), objective, times, taken, (100.0, end))
    total = importance.sum() - best if objective == "freshness" else best
    assert (found - best) / total <= 0.03


def test_slow_workers_keep_a_host_within_its_crawls_in_flight_and_busy() -> None:
    scheduler = recrawl.Scheduler(budget=100.0)
    scheduler.set_host("shy", max_in_flight=3)
    importance, rate = population(100, seed=5)
    scheduler.add(importance=importance, change_rate=rate, host="shy", last_crawled=0.0)
    times, _ = crawl(scheduler, 50.0, 0.05, flight=0.5)
    for now in np.arange(1.0, 49.0, 0.37):
        assert ((times > now - 0.5 + 1e-9) & (times <= now)).sum() <= 3
    assert len(times) >= 0.9 * 3 / 0.55 * 50


def test_a_host_with_a_cap_is_crawled_at_its_cap() -> None:
    scheduler = recrawl.Scheduler(budget=100.0, burst=5.0)
    scheduler.set_host("capped", rate_cap=4.0)
    importance, rate = population(200, seed=6)
    scheduler.add(importance=importance, change_rate=rate, host="capped", last_crawled=0.0)
    times, _ = crawl(scheduler, 50.0, 0.1)
    for start in range(len(times)):
        counts = np.arange(1, len(times) - start + 1)
        assert (counts <= 4.0 * (times[start:] - times[start]) + 5.0 + 1e-6).all()
    assert len(times) >= 0.99 * 4.0 * 50


def test_a_cap_that_is_raised_counts_at_once() -> None:
    """What an old cap would have paid for in years is paid for at the new rate."""
    scheduler = recrawl.Scheduler(budget=100.0)
    scheduler.set_host("capped", rate_cap=1e-6)
    importance, rate = population(200, seed=6)
    scheduler.add(importance=importance, change_rate=rate, host="capped", last_crawled=0.0)
    assert len(crawl(scheduler, 20.0, 0.1)[0]) == 1
    scheduler.set_host("capped", rate_cap=10.0)
    assert len(crawl(scheduler, 40.0, 0.1)[0]) >= 190


def test_a_longer_gap_counts_from_the_crawl_before() -> None:
    scheduler = recrawl.Scheduler(budget=100.0)
    scheduler.add(importance=np.ones(50), change_rate=1.0, host="slow", last_crawled=0.0)
    first, _ = crawl(scheduler, 1.0, 0.1)
    scheduler.set_host("slow", min_gap=5.0)
    second, _ = crawl(scheduler, 9.0, 0.1)
    assert second[0] >= first[-1] + 5.0 - 1e-9


def test_retry_after_holds_for_the_whole_host_and_for_no_other() -> None:
    scheduler = recrawl.Scheduler(budget=100.0, burst=4.0)
    ids = scheduler.add(importance=np.ones(20), change_rate=1.0, host=["down"] * 10 + ["up"] * 10, last_crawled=0.0)
    batch = scheduler.take(1.0, 4)
    scheduler.failed(batch.ids[batch.ids < ids[10]], 1.0, retry_after=5.0)
    scheduler.crawled(batch.ids[batch.ids >= ids[10]], 1.0)
    assert (batch.ids < ids[10]).any()
    times, taken = crawl(scheduler, 10.0, 0.1)
    assert times[taken < ids[10]].min() >= 6.0
    assert times[taken >= ids[10]].min() < 2.0
    assert len(set(taken[taken < ids[10]].tolist())) == 10


def test_a_host_that_is_unpaced_again_catches_up() -> None:
    """A saturated host has a price of its own; when its gap goes, it is served as all others are within a cycle."""
    importance, rate = population(400, seed=7)
    scheduler = recrawl.Scheduler(budget=20.0, burst=3.0)
    scheduler.add(importance=importance[:200], change_rate=rate[:200], host="slow", last_crawled=0.0)
    scheduler.add(importance=importance[200:], change_rate=rate[200:], last_crawled=0.0)
    scheduler.set_host("slow", min_gap=5.0)
    crawl(scheduler, 200.0, 0.05)
    scheduler.set_host("slow", min_gap=0.0)
    crawl(scheduler, 250.0, 0.05)
    _, taken = crawl(scheduler, 350.0, 0.05)
    plan = recrawl.plan({"importance": importance, "change_rate": rate}, budget=20.0)
    share = plan.rates[:200].sum() / plan.rates.sum()
    assert (taken < 200).mean() == pytest.approx(share, rel=0.05)


def test_a_host_is_not_stuck_when_a_page_in_flight_becomes_worthless_or_moves() -> None:
    for change in ({"importance": 0.0}, {"host": "other"}):
        scheduler = recrawl.Scheduler(budget=10.0)
        scheduler.set_host("shy", max_in_flight=1)
        scheduler.add(importance=[1.0, 1.0], change_rate=1.0, last_crawled=0.0, host="shy")
        batch = scheduler.take(1.0, 1)
        scheduler.update(batch.ids, **change)
        scheduler.crawled(batch.ids, 1.0)
        check(scheduler)
        taken = {page for step in range(1, 20) for page in scheduler.take(1.0 + step, 5).ids.tolist()}
        assert set(range(2)) - set(batch.ids.tolist()) <= taken


@pytest.mark.parametrize("in_flight", [1, 8])
def test_pages_of_a_host_are_not_forgotten_when_the_price_falls(in_flight: int) -> None:
    """Where first copies are dear, pages wait for a high price; once all have one, like pages are crawled alike."""
    pages, hosts = 360, 6
    scheduler = recrawl.Scheduler(budget=180.0, objective="freshness", burst=45.0)
    for host in range(hosts):
        scheduler.set_host(host, max_in_flight=in_flight)
    sizes = np.repeat(np.arange(hosts), [10, 110, 60, 10, 160, 10])
    scheduler.add(importance=np.ones(pages), change_rate=0.5, host=sizes)
    times, taken = crawl(scheduler, 20.0, 0.01)
    late = np.bincount(taken[times > 5.0], minlength=pages)
    means = [late[sizes == host].mean() for host in range(hosts)]
    assert min(means) > 0.8 * max(means)
    assert late.min() > 0
    check(scheduler)


@pytest.mark.parametrize("hosts", [6, 24, 60])
def test_after_a_cold_start_hosts_with_room_cost_nothing(hosts: int) -> None:
    """First copies are worth another price than all that follows; what comes then is the plan's."""
    pages, budget, end = 600, 150.0, 60.0
    random = np.random.default_rng(5)
    columns = random.uniform(0.0, 1.0, pages), 10 ** random.uniform(-1.0, 0.0, pages)
    scheduler = recrawl.Scheduler(budget=budget, objective="freshness", burst=budget / 2)
    for host in range(hosts):
        scheduler.set_host(host, max_in_flight=8)
    where = (random.random(pages) ** 3 * hosts).astype(np.int64)
    scheduler.add(importance=columns[0], change_rate=columns[1], host=where)
    times, taken = crawl(scheduler, end, 0.02)
    best = recrawl.plan({"importance": columns[0], "change_rate": columns[1]}, budget=budget, objective="freshness")
    assert cost(columns, "freshness", times, taken, (30.0, end)) < 1.02 * best.costs.binary
    check(scheduler)


def test_first_copies_are_fetched_though_another_page_of_the_host_is_always_on_offer() -> None:
    """A page that is crawled again and again at an open host does not keep first copies from being offered."""
    scheduler = recrawl.Scheduler(budget=1_000.0, burst=10.0)
    scheduler.set_host("a", max_in_flight=1)
    busy = scheduler.add(importance=1.0, change_rate=50.0, host="a")
    scheduler.crawled(scheduler.take(0.0, 1).ids, 0.0)
    new = scheduler.add(profit=[1.0, 2.0, 3.0], new_page_rate=1.0, decay=1.0, objective="news", host="a")
    taken: set[int] = set()
    for step in range(1, 40):
        batch = scheduler.take(step / 100, 5)
        taken |= set(batch.ids.tolist())
        scheduler.crawled(batch.ids, step / 100)
    assert set(new.tolist()) <= taken
    assert busy[0] in taken
