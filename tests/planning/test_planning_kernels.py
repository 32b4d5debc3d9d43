"""The compiled passes equal slow, obvious twins."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import recrawl
from recrawl.pages import Floats
from recrawl.planning import costs, laws
from recrawl.planning.laws import Columns
from recrawl.planning.market import HostSums, spend, spend_by_host

NONE: Floats = np.empty(0)
SIZE = 1500  # three blocks, the last one partly filled
RANDOM = np.random.default_rng(9)
GAIN = RANDOM.pareto(1.2, SIZE) * RANDOM.integers(0, 2, SIZE)
DECAY = 10 ** RANDOM.uniform(-2, -0.01, SIZE)
KIND = RANDOM.integers(0, 2, SIZE).astype(np.uint8)
COST = 10 ** RANDOM.uniform(-1, 1, SIZE)
LOW = RANDOM.random(SIZE) * 0.05
HIGH = LOW + RANDOM.random(SIZE)
GROUP = RANDOM.integers(0, 4, SIZE)


def columns(law: int, *, kind: bool = False, limits: bool = False, group: bool = False) -> Columns:
    return Columns(
        law=law,
        gain=GAIN,
        decay=DECAY,
        special=np.flatnonzero(KIND) if kind else np.empty(0, dtype=np.int64),
        cost=COST if limits else NONE,
        low=LOW if limits else NONE,
        high=HIGH if limits else NONE,
        group=GROUP if group else np.empty(0, dtype=np.int64),
        given_rate=NONE,
        given_slope=NONE,
        charged=True,
    )


def root(function: object, low: float, high: float) -> float:
    """Bisect a rising function to zero."""
    assert callable(function)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if function(middle) > 0 else (middle, high)
    return (low + high) / 2


def slow_rate(law: int, special: bool, gain: float, decay: float, price: float) -> float:  # noqa: PLR0911
    """The rate of one page, by the definition of its law."""
    if gain == 0:
        return 0.0
    if law == laws.EVEN_G:
        if special:
            return decay if gain / decay > price else 0.0
        if gain / decay <= price:
            return 0.0
        x = root(lambda x: gain / decay * (1 - (1 + x) * math.exp(-x)) - price, 0.0, 700.0)
        return decay / x
    if law == laws.EVEN_H:
        return decay / root(lambda x: gain / decay * (x - 1 + math.exp(-x)) - price, 0.0, 1e9)
    if law == laws.POISSON_BINARY:
        return max(0.0, math.sqrt(gain * decay / price) - decay)
    if law == laws.SLOT_BINARY:
        return min(1.0, max(0.0, (math.sqrt(gain * decay / price) - decay) / (1 - decay)))
    if law == laws.POISSON_HARMONIC:
        if special:
            return min(decay, gain / price)
        return root(lambda rate: rate * (rate + decay) - gain * decay / price, 0.0, 1e6)
    return gain / price


# Only two laws know a second kind of page.
@pytest.mark.parametrize(
    ("law", "kind"), [*((law, False) for law in range(6)), (laws.EVEN_G, True), (laws.POISSON_HARMONIC, True)]
)
@pytest.mark.parametrize("limits", [False, True])
def test_a_pass_equals_a_loop_over_pages(law: int, *, kind: bool, limits: bool) -> None:
    price, rates = 1.7, np.empty(SIZE)
    page_price = price * COST if limits else np.full(SIZE, price)
    expected = np.array([slow_rate(law, kind and KIND[i] == 1, GAIN[i], DECAY[i], page_price[i]) for i in range(SIZE)])
    if limits:
        expected = np.clip(expected, LOW, HIGH)
    table = columns(law, kind=kind, limits=limits)
    spent, bend = spend(table, price, rates)
    assert rates == pytest.approx(expected, rel=1e-9, abs=1e-13)
    weight = COST if limits else np.ones(SIZE)
    assert spent == pytest.approx(float(rates @ weight), rel=1e-13)
    step = 1e-5
    up, down = spend(table, price * math.exp(step), NONE)[0], spend(table, price * math.exp(-step), NONE)[0]
    if not (kind and law == laws.EVEN_G):  # a window is a step: no derivative there
        assert bend == pytest.approx((up - down) / (2 * step), rel=2e-2)


@pytest.mark.parametrize("law", range(6))
def test_sums_per_host_add_up_to_those_of_all(law: int) -> None:
    sums = HostSums(*(np.empty(4) for _ in range(5)))
    rates, expected = np.empty(SIZE), np.empty(SIZE)
    table = columns(law, limits=True, group=True)
    spend_by_host(table, 1.7, np.zeros(4), sums, rates)
    spent, bend = spend(table, 1.7, expected)
    assert rates.tolist() == expected.tolist()
    assert sums.spent.sum() == pytest.approx(spent, rel=1e-12)
    assert 1.7 * sums.bend2.sum() == pytest.approx(bend, rel=1e-9)
    assert sums.crawls == pytest.approx(np.bincount(GROUP, weights=rates), rel=1e-12)


def test_a_surcharge_is_paid_on_its_host_alone() -> None:
    sums = HostSums(*(np.empty(4) for _ in range(5)))
    plain, raised = np.empty(SIZE), np.empty(SIZE)
    table = columns(laws.POISSON_HARMONIC, group=True)
    spend_by_host(table, 1.7, np.zeros(4), sums, plain)
    spend_by_host(table, 1.7, np.array([0.0, 0.0, 5.0, 0.0]), sums, raised)
    there = (GROUP == 2) & (GAIN > 0)
    assert (raised[there] < plain[there]).all()
    assert raised[GROUP != 2].tolist() == plain[GROUP != 2].tolist()


def even_twin(x: float) -> tuple[float, float]:
    """Average over one interval of E H(N) and P(N > 0), N Poisson with mean x·t, by quadrature."""

    def missed(t: float) -> mpmath.mpf:
        return mpmath.quad(lambda u: (1 - mpmath.exp(-x * t * u)) / u, [0, 1])

    return float(mpmath.quad(missed, [0, 1])), float(mpmath.quad(lambda t: 1 - mpmath.exp(-x * t), [0, 1]))


@pytest.mark.parametrize("x", [1e-6, 0.3, 2.0, 30.0])
def test_costs_of_even_spacing_are_averages_over_an_interval(x: float) -> None:
    assert costs.even_costs(x, 1.0) == pytest.approx(even_twin(x), rel=1e-10)


@pytest.mark.parametrize(("change", "crawl"), [(0.2, 0.3), (0.01, 0.9), (0.7, 0.05)])
def test_costs_in_slots_are_those_of_the_chain(change: float, crawl: float) -> None:
    """Missed changes form a chain: a crawl empties it, else a change adds one."""
    states = 4000
    share = np.zeros(states)
    share[0] = 1.0
    for _ in range(3000):
        moved = np.zeros(states)
        moved[1:] += (1 - crawl) * change * share[:-1]
        moved += (1 - crawl) * (1 - change) * share
        moved[0] += crawl * share.sum()
        share = moved / moved.sum()
    harmonic = float(share[1:] @ np.cumsum(1 / np.arange(1.0, states)))
    assert costs.slot_costs(change, crawl) == pytest.approx((harmonic, 1 - share[0]), rel=1e-9)


@pytest.mark.parametrize("crawls_per_change", [1.0, 0.5, 0.3, 1 / 7])
def test_counting_announced_changes_beats_tossing_a_coin(crawls_per_change: float) -> None:
    counted, tossed = costs.counter_costs(1.0, crawls_per_change), costs.coin_costs(1.0, crawls_per_change)
    assert counted[0] <= tossed[0] + 1e-15
    assert counted[1] <= tossed[1] + 1e-15
    if crawls_per_change == 1 / 7:
        assert counted == pytest.approx((sum(1 / k for k in range(2, 8)), 6 / 7), rel=1e-12)


def test_freshness_alone_equals_freshness_from_both_costs() -> None:
    pages = {"importance": GAIN, "change_rate": DECAY, "recall": KIND, "precision": KIND}
    for solver in ("even", "azar", "azar-discrete", "lambdacrawl"):
        alone, both = (recrawl.plan(pages, 20.0, solver=solver) for _ in range(2))
        weight = GAIN.sum()
        assert alone.freshness == pytest.approx(1 - both.costs.binary / weight, rel=1e-12)


@pytest.mark.parametrize("life", ["append", "overwrite", "window"])
def test_gain_is_what_the_schedule_captures(life: str) -> None:
    """Captured value per unit time of one page, against a quadrature over the age of changes."""
    page = {"importance": [2.0], "change_rate": [1.5], "decay": [0.7], "window": [0.4], "life": [life]}
    plan = recrawl.plan(page, 2.0, objective="captures")
    interval = 1 / plan.rates[0]
    worth = {
        "append": lambda age: math.exp(-0.7 * age),
        "overwrite": lambda age: math.exp(-(0.7 + 1.5) * age),
        "window": lambda age: 1.0 if age <= 0.4 else 0.0,
    }[life]
    captured = 3.0 * float(mpmath.quad(worth, [0, min(0.4, interval), interval])) / interval
    assert plan.gain == pytest.approx(captured, rel=1e-9)
