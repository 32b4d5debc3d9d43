"""Estimated freshness: the compiled pass against plain Python, and audits that correct it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from recrawl.learning.calibration import CLASSES, EDGES, Audit, Calibration, Correction, classes_of
from recrawl.scheduling.scheduler import Scheduler
from recrawl.scheduling.types import Signal


def corrected_by(factors: np.ndarray) -> Correction:
    return Correction(np.array(EDGES), factors)


def small_scheduler() -> Scheduler:
    """Pages of every kind: known and learned rates, signals, costs, no copy yet, sources and pages for once."""
    scheduler = Scheduler(budget=10.0, objective="harmonic", now=20.0)
    scheduler.add(importance=[3.0, 1.0], change_rate=[0.5, 2.0], last_crawled=[19.0, 12.0], host="a")
    scheduler.add(importance=[2.0, 5.0, 1.0], last_crawled=[18.0, 20.0, 1.0], host=["a", "b", "b"])
    scheduler.add(importance=4.0, change_rate=1.0, host="b")  # no copy
    scheduler.add(importance=6.0, change_rate=1.0, last_crawled=19.5, cost=2.0)
    scheduler.add(
        importance=[7.0, 8.0],
        change_rate=1.5,
        last_crawled=19.0,
        objective="freshness",
        signals={"sitemap": Signal(recall=0.8, precision=0.6)},
    )
    scheduler.add(profit=1.0, new_page_rate=2.0, decay=0.1, last_crawled=19.0, objective="news")
    scheduler.add(profit=1.0, decay=0.1, objective="once")
    return scheduler


def slow_freshness(scheduler: Scheduler, now: float, factors: np.ndarray | None = None) -> tuple[float, float, int]:
    """The same as the pass, page by page, from what `explain` says."""
    fresh = importance = 0.0
    pages = 0
    for number in scheduler.ids().tolist():
        said = scheduler.explain(number, now)
        if said.objective in ("news", "once", "captures"):
            continue
        pages += 1
        importance += said.importance
        if said.last_crawled is None:
            continue
        assert said.change_rate is not None
        exposed = (now - said.last_crawled) * (1 - (said.recall or 0.0))
        if said.shape is None:
            chance = math.exp(-said.change_rate * exposed)
        else:
            exposure = said.shape / said.change_rate
            chance = (exposure / (exposure + exposed)) ** said.shape
        if said.signals:
            chance *= (1 - (said.precision or 0.0)) ** said.signals
        if factors is not None:
            chance = chance ** factors[classes_of([said.shape or 0.0], EDGES)[0]]
        fresh += said.importance * chance
    return fresh / importance, importance, pages


def test_the_pass_agrees_with_plain_python() -> None:
    """For every kind of page, with and without a correction."""
    scheduler = small_scheduler()
    ids = scheduler.ids()
    scheduler.signal(ids[7:8], 20.0, "sitemap")
    found = scheduler.estimator().look(21.0)
    freshness, importance, pages = slow_freshness(scheduler, 21.0)
    assert (found.pages, found.no_copy) == (pages, 1) == (9, 1)
    assert found.importance == pytest.approx(importance)
    assert found.freshness == pytest.approx(freshness, rel=1e-6)
    assert found.believed == pytest.approx(freshness, rel=1e-6)
    factors = np.linspace(0.5, 3.0, CLASSES)
    corrected = scheduler.estimator().look(21.0, correction=corrected_by(factors))
    assert corrected.freshness == pytest.approx(slow_freshness(scheduler, 21.0, factors)[0], rel=1e-6)
    assert corrected.believed == pytest.approx(freshness, rel=1e-6)


def test_sums_by_host_and_shares_add_up() -> None:
    """What hosts have is what their pages have; the rest has no host."""
    scheduler = small_scheduler()
    found = scheduler.estimator().look(21.0)
    assert found.hosts.pages.tolist() == [3, 3]
    assert found.hosts.importance.tolist() == [6.0, 10.0]
    assert 0 < found.hosts.fresh.sum() < found.freshness * found.importance
    assert found.missing == pytest.approx(4.0 / found.importance)
    assert (found.listening, found.learned) == (2, 3)
    assert found.recall == pytest.approx(0.8)
    assert found.precision == pytest.approx(0.6)


def test_pages_that_are_gone_are_neither_fresh_nor_stale() -> None:
    """They are left out of everything."""
    scheduler = small_scheduler()
    whole = scheduler.estimator().look(21.0)
    gone = scheduler.ids()[[1, 4]]
    rest = scheduler.estimator().look(21.0, gone)
    assert rest.pages == whole.pages - 2
    assert rest.importance == pytest.approx(whole.importance - 2.0)


def test_an_empty_scheduler_is_fresh_and_has_no_ages() -> None:
    """There is nothing to be stale."""
    found = Scheduler(budget=1.0).estimator().look(0.0)
    assert (found.pages, found.freshness, found.ages.percentile(0.5), found.recall) == (0, 1.0, None, None)


@pytest.mark.parametrize("share", [0.01, 0.5, 0.9, 0.99, 1.0])
def test_percentiles_of_ages_are_right_to_a_tenth(share: float) -> None:
    """Against NumPy, over seven decades of ages."""
    rng = np.random.default_rng(7)
    ages_s = 10 ** rng.uniform(0.5, 7.5, 4000)
    scheduler = Scheduler(budget=1.0, now=1000.0)
    scheduler.add(importance=1.0, change_rate=1.0, last_crawled=1000.0 - ages_s / 86_400.0)
    found = scheduler.estimator().look(1000.0).ages.percentile(share)
    assert found == pytest.approx(float(np.quantile(ages_s, share)), rel=0.12)


def test_what_was_believed_at_the_last_look_is_remembered() -> None:
    """Crawls that teach the scheduler afterwards do not change it; pages it never saw are not known."""
    scheduler = Scheduler(budget=100.0, now=0.0)
    ids = scheduler.add(importance=[1.0, 2.0], last_crawled=0.0)
    estimator = scheduler.estimator()
    estimator.look(0.5)
    before = estimator.believed(ids, np.array([0.5, 0.5]))
    batch = scheduler.take(1.0, 2)
    scheduler.crawled(batch.ids, 1.0, changed=[True] * len(batch.ids))
    assert np.array_equal(estimator.believed(ids, np.array([0.5, 0.5])).chance, before.chance)
    new = scheduler.add(importance=1.0, change_rate=1.0, last_crawled=0.0)
    assert math.isnan(estimator.believed(new, np.array([1.0])).chance[0])


def audits(count: int, truth: float, seed: int = 3, shape: float = 1.0) -> list[Audit]:
    """Crawls of pages whose rates are `truth` times what is believed, some crawled far more often than others."""
    rng = np.random.default_rng(seed)
    gaps = 10 ** rng.uniform(-1, 1, count)
    rates = 10 ** rng.uniform(-1, 0.5, count)
    changed = rng.random(count) < -np.expm1(-truth * rates * gaps)
    weights = rng.pareto(1.5, count) * gaps
    rows = zip((rates * gaps).tolist(), changed.tolist(), weights.tolist(), strict=True)
    return [Audit(hazard, flag, weight, shape) for hazard, flag, weight in rows]


@pytest.mark.parametrize("truth", [0.4, 1.0, 2.5])
def test_factors_find_by_how_much_beliefs_are_wrong(truth: float) -> None:
    """To a quarter, from three thousand audits of very different weight."""
    calibration = Calibration()
    calibration.take(audits(3000, truth))
    assert calibration.factors()[classes_of([1.0], EDGES)[0]] == pytest.approx(truth, rel=0.25)


def test_classes_are_corrected_apart_and_lean_on_all_while_little_is_known() -> None:
    """Beliefs that rest on much are right here, those that rest on little are not."""
    calibration = Calibration()
    calibration.take(audits(1500, 3.0, shape=0.5))
    calibration.take(audits(1500, 1.0, seed=4, shape=9.0))
    low, _, between, high = calibration.factors()
    assert low == pytest.approx(3.0, rel=0.3)
    assert high == pytest.approx(1.0, rel=0.3)
    assert high < between < low
    assert Calibration().factors().tolist() == [1.0] * CLASSES
    assert len(EDGES) == CLASSES - 1


def test_a_single_audit_moves_little() -> None:
    """A few imagined ones keep it."""
    calibration = Calibration()
    calibration.take([Audit(0.1, True, 1.0, 1.0)])
    assert calibration.factors()[0] == pytest.approx(1.0, rel=1.0)
    calibration.take([Audit(0.0, False, 0.0, 1.0), Audit(math.nan, False, 1.0, 1.0)])
    assert len(calibration) == 1


def test_found_by_expected_is_one_where_beliefs_hold() -> None:
    """Within what chance allows."""
    calibration = Calibration()
    calibration.take(audits(3000, 1.0))
    assert calibration.found_by_expected == pytest.approx(1.0, abs=0.08)


def test_the_curve_rises_with_the_budget_and_feels_the_gaps_of_hosts() -> None:
    """A host with a gap cannot be crawled more often, whatever the budget."""
    rng = np.random.default_rng(2)
    scheduler = Scheduler(budget=50.0, now=1.0)
    scheduler.add(importance=rng.pareto(1.2, 300) + 0.1, change_rate=rng.uniform(0.1, 3, 300), last_crawled=0.0, host=0)
    free = scheduler.budget_curve()
    assert len(free) > 10
    budgets, freshness = [point.budget for point in free], [point.freshness for point in free]
    assert budgets[0] == pytest.approx(50 / 8)
    assert budgets[-1] == pytest.approx(400)
    assert freshness == sorted(freshness)
    scheduler.set_host(0, min_gap=1 / 60)
    paced = scheduler.budget_curve()
    assert paced[-1].freshness < free[-1].freshness - 0.02
    assert paced[0].freshness == pytest.approx(free[0].freshness, abs=1e-6)
    faster = scheduler.budget_curve(correction=corrected_by(np.full(CLASSES, 3.0)))
    assert faster[5].freshness < paced[5].freshness


def test_more_budget_buys_nothing_where_least_intervals_let_no_more_be_used() -> None:
    scheduler = Scheduler(budget=8.0)
    scheduler.add(importance=np.ones(10), change_rate=1.0, last_crawled=0.0, min_interval=2.0)
    bound = scheduler.budget_curve()
    assert bound[-1].freshness == pytest.approx(bound[-2].freshness)  # ten pages, five crawls a day
    assert (bound[-1].price, bound[0].price > 0.0) == (0.0, True)
    scheduler.add(importance=1.0, change_rate=1.0, last_crawled=0.0)
    assert scheduler.budget_curve()[-1].freshness > bound[-1].freshness


def test_there_is_no_curve_without_pages_or_budget() -> None:
    """An empty list, not an error."""
    assert Scheduler(budget=1.0).budget_curve() == []
    scheduler = Scheduler(budget=0.0, objective="freshness")
    scheduler.add(importance=1.0, change_rate=1.0, last_crawled=0.0)
    assert scheduler.budget_curve() == []


def test_doubt_falls_with_audits_and_is_that_of_a_guess_without() -> None:
    """A factor of e either way; after three thousand audits, what the factors scatter by."""
    assert Calibration().doubt == 1.0
    few, many = Calibration(), Calibration()
    few.take(audits(30, 1.5))
    many.take(audits(3000, 1.5))
    assert 1.0 > few.doubt > 2 * many.doubt
    found = []
    for seed in range(40):
        calibration = Calibration()
        calibration.take(audits(3000, 1.5, seed=seed))
        found.append(math.log(calibration.factors()[classes_of([1.0], EDGES)[0]]))
    assert many.doubt == pytest.approx(float(np.std(found)), rel=0.5)


def test_audits_of_beliefs_that_were_replaced_are_dropped() -> None:
    """All of those before the first fit, and then those before the last fit but one."""
    calibration = Calibration()
    calibration.take(audits(300, 3.0))
    calibration.renew()
    assert len(calibration) == 0
    calibration.take(audits(20, 1.0))
    calibration.renew()
    assert len(calibration) == 20
    calibration.take(audits(7, 1.0))
    calibration.renew()
    assert len(calibration) == 7
    calibration.renew()
    assert len(calibration) == 0


def test_luck_is_that_of_few_important_pages() -> None:
    """The spread of freshness over many draws of which copies are current."""
    scheduler = Scheduler(budget=1.0, objective="freshness", now=1.0)
    importance, rates = np.geomspace(1.0, 5.0, 40), np.geomspace(0.1, 2.0, 40)
    scheduler.add(importance=importance, change_rate=rates, last_crawled=0.0)
    found = scheduler.estimator().look(1.0)
    fresh = np.random.default_rng(1).random((20_000, 40)) < np.exp(-rates)
    assert found.luck == pytest.approx(float((fresh @ importance / importance.sum()).std()), rel=0.02)
    low, high = found.freshness_range(0.0)
    assert (low, high) == pytest.approx((found.freshness - 2 * found.luck, found.freshness + 2 * found.luck))
    slower, faster = (
        scheduler.estimator().look(1.0, correction=corrected_by(np.full(CLASSES, each))) for each in (0.999, 1.001)
    )
    assert found.slope == pytest.approx((slower.freshness - faster.freshness) / 0.002, rel=1e-3)
    assert found.freshness_range(1.0)[0] < low
