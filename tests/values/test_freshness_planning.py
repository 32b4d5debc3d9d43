"""Rates, marginal values and costs of threshold policies with noisy signals, against independent definitions."""

from __future__ import annotations

import math
import random

import mpmath as mp
import pytest
from scipy import integrate, special

from recrawl.values.signals.freshness import cycle_at_level, linear_from, step_value
from recrawl.values.signals.page import SignalPage, signal_page
from recrawl.values.signals.planning import freshness_costs_at_rate, freshness_rate_at_value, freshness_value_at_rate


def _page(recall: float, precision: float, change_rate: float = 1.0) -> SignalPage:
    return signal_page(change_rate, recall, recall * change_rate * (1 - precision) / precision)


PAGES = [
    _page(0.5, 0.5),
    _page(0.9, 0.95, 0.2),
    _page(0.3, 0.05, 3.0),
    _page(0.6, 1.0),
    _page(0.05, 0.3),
    _page(0.8, 0.02, 7.0),
    _page(0.99, 0.6),
    _page(1e-5, 0.5),
    _page(0.0, 0.5),
]


def _random_pages(count: int) -> list[SignalPage]:
    random.seed(4)
    pages = []
    for _ in range(count):
        recall = random.choice([10 ** random.uniform(-6, -0.01), 1 - 10 ** random.uniform(-9, -0.1), random.random()])
        precision = random.choice([10 ** random.uniform(-6, 0), 1 - 10 ** random.uniform(-9, -0.1), random.random()])
        pages.append(_page(recall, precision, 10 ** random.uniform(-3, 3)))
    return pages


def test_the_rate_at_a_value_is_that_of_the_level_with_that_value() -> None:
    """From the level to its value and back to one over its duration, over all kinds of pages."""
    for page in _random_pages(2000):
        level = 10 ** random.uniform(-8, 1.3)
        cycle = cycle_at_level(page, level)
        if cycle.value * page.change_rate > 1 - 1e-9:
            continue
        rate, slope = freshness_rate_at_value(page, cycle.value)
        # A level that is known to 1e-15 fixes the duration only as sharply as the duration changes with it.
        sharpness = 1 + level * cycle.growth / cycle.duration
        tolerance = 1e-12 * sharpness / min(1.0, math.exp(-level) * level)
        assert rate * cycle.duration == pytest.approx(1, rel=tolerance)
        assert slope <= 0


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("part", [1e-6, 0.01, 0.3, 0.9])
def test_the_slope_is_the_derivative_of_the_rate(page: SignalPage, part: float) -> None:
    """Slope = d rate / d ln value."""
    value, step = part / page.change_rate, 1e-4
    above, below = (
        freshness_rate_at_value(page, value * math.exp(step))[0],
        freshness_rate_at_value(page, value * math.exp(-step))[0],
    )
    rate, slope = freshness_rate_at_value(page, value)
    assert slope == pytest.approx((above - below) / (2 * step), rel=1e-3, abs=1e-6 * rate)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("part", [1e-4, 0.05, 0.4, 0.9])
def test_one_more_crawl_saves_its_value(page: SignalPage, part: float) -> None:
    """Between two rates the binary cost falls by no more than the value at the lower, no less than at the higher."""
    value = part / page.change_rate
    rate = freshness_rate_at_value(page, value)[0]
    low, high = freshness_value_at_rate(page, rate)
    assert low * (1 - 1e-9) <= value <= high * (1 + 1e-9)
    for step in (1e-2 * rate, 1e-4 * rate):
        saved = (freshness_costs_at_rate(page, rate - step)[0] - freshness_costs_at_rate(page, rate + step)[0]) / (
            2 * step
        )
        assert freshness_value_at_rate(page, rate + step)[0] * (1 - 1e-7) <= saved
        assert saved <= freshness_value_at_rate(page, rate - step)[1] * (1 + 1e-7)


def test_the_marginal_values_hold_the_value_between_them() -> None:
    """On plateaus, where one rate has many values, the interval spans them; elsewhere it is narrow."""
    narrow = 0
    for page in _random_pages(1000):
        value = random.choice([1e-6, 0.01, 0.5, 0.99]) / page.change_rate
        rate = freshness_rate_at_value(page, value)[0]
        low, high = freshness_value_at_rate(page, rate)
        assert low * (1 - 1e-9) <= value <= high * (1 + 1e-9)
        narrow += high < low * (1 + 1e-9)
    assert narrow > 600


def _costs_by_definition(page: SignalPage, level: float) -> tuple[float, float, float]:
    """Rate, binary and harmonic cost, integrated over time and added over signals without any closed form."""
    duration = binary = harmonic = 0.0
    for n in range(int(level / page.signal_weight) + 1):
        end = (level - (n * page.signal_weight if n else 0.0)) / page.silent_rate

        def seen(time: float, n: int = n) -> float:
            return float(special.xlogy(n, page.signal_rate * time) - page.signal_rate * time - special.gammaln(n + 1))

        def missed(u: float, time: float, n: int = n) -> float:
            return -math.expm1(-page.silent_rate * time * u + special.xlog1py(n, -page.precision * u)) / u

        def harm(time: float, n: int = n) -> float:
            return float(integrate.quad(missed, 0, 1, args=(time, n), epsrel=1e-10)[0])

        duration += integrate.quad(lambda t: math.exp(seen(t)), 0, end)[0]
        binary += integrate.quad(lambda t: math.exp(seen(t)) * missed(1.0, t), 0, end)[0]
        harmonic += integrate.quad(lambda t: math.exp(seen(t)) * harm(t), 0, end, epsrel=1e-9)[0]
    return 1 / duration, binary / duration, harmonic / duration


@pytest.mark.parametrize(
    ("recall", "precision", "level"),
    [(0.5, 0.5, 0.1), (0.5, 0.5, 2.0), (0.9, 0.8, 3.5), (0.2, 0.3, 1.0), (0.6, 1.0, 2.0), (0.4, 0.1, 1.6)],
)
def test_costs_are_time_averages_of_their_definitions(recall: float, precision: float, level: float) -> None:
    """Binary: P(some change missed). Harmonic: E[H(changes missed)], with c(τ, n) by its integral."""
    page = _page(recall, precision)
    rate, binary, harmonic = _costs_by_definition(page, level)
    found = freshness_costs_at_rate(page, rate)
    assert found[0] == pytest.approx(binary, rel=1e-8)
    assert found[1] == pytest.approx(harmonic, rel=1e-8)


@pytest.mark.parametrize(("recall", "precision", "level"), [(0.5, 0.05, 1.5), (0.2, 0.02, 0.3), (0.7, 0.3, 15.0)])
def test_costs_past_the_transient_are_those_of_the_sum(recall: float, precision: float, level: float) -> None:
    """Weak signals: the closed form agrees with the sum over every number of signals, in 30 digits."""
    page = _page(recall, precision)
    assert level / page.signal_weight > linear_from(page) + 1
    k = mp.mpf(page.signal_rate) / page.silent_rate
    weight = mp.mpf(page.signal_weight)
    rests = [level - n * weight for n in range(int(level / weight) + 1)]
    with mp.workdps(30):
        full = mp.fsum(mp.gammainc(n + 1, 0, k * rest, regularized=True) for n, rest in enumerate(rests))

        def stale(u: mp.mpf) -> mp.mpf:
            fresh = mp.fsum(
                (1 - page.precision * u) ** n
                * (k / (k + u)) ** (n + 1)
                * mp.gammainc(n + 1, 0, (k + u) * rest, regularized=True)
                for n, rest in enumerate(rests)
            )
            return (1 - fresh / full) / u

        points, weights = special.roots_legendre(12)
        scale = 1 + level
        width = math.log1p(scale)
        harmonic = 0.0
        for point, share in zip(0.5 * (points + 1), 0.5 * weights, strict=True):
            u = math.expm1(point * width) / scale
            harmonic += share * width * math.exp(point * width) / scale * float(stale(u))
    binary, found = freshness_costs_at_rate(page, float(page.signal_rate / full))
    assert binary == pytest.approx(float(stale(mp.mpf(1))), rel=1e-10)
    assert found == pytest.approx(harmonic, rel=1e-7)


def test_a_page_without_signals_is_spaced_evenly() -> None:
    """Binary h(x)/x and harmonic Ein(x) − h(x)/x with x = Δ/ρ, as without signals."""
    page = signal_page(0.5, 0.0, 3.0)
    x = 0.5 / 0.2
    stale = (x - 1 + math.exp(-x)) / x
    ein = float(mp.euler + mp.log(x) + mp.e1(x))
    assert freshness_costs_at_rate(page, 0.2) == pytest.approx((stale, ein - stale), rel=1e-12)
    value = (1 - (1 + x) * math.exp(-x)) / 0.5
    assert freshness_value_at_rate(page, 0.2) == pytest.approx((value, value), rel=1e-12)
    assert freshness_rate_at_value(page, value)[0] == pytest.approx(0.2, rel=1e-12)


@pytest.mark.parametrize("precision", [0.9, 0.3, 0.01])
def test_a_fully_announced_page_has_steps(precision: float) -> None:
    """Rates γ/n: the least n whose V_n reaches the value; the marginal values of γ/n are V_{n−1} and V_n."""
    page = _page(1.0, precision, 0.7)
    for n in (1, 2, 3, 17, 200):
        below, above = step_value(page, n - 1.0), step_value(page, float(n))
        if above * page.change_rate > 1 - 1e-12:
            continue
        assert freshness_rate_at_value(page, 0.5 * (below + above)) == (page.signal_rate / n, 0.0)
        assert freshness_value_at_rate(page, page.signal_rate / n) == (below, above)
        between = page.signal_rate / (n + 0.5)
        assert freshness_value_at_rate(page, between) == (above, above)
    assert freshness_rate_at_value(page, 0.0) == (page.signal_rate, 0.0)
    assert freshness_value_at_rate(page, 1.1 * page.signal_rate) == (0.0, 0.0)


@pytest.mark.parametrize("precision", [0.9, 0.3, 0.01])
@pytest.mark.parametrize("n", [1, 2, 5, 64, 65, 400])
def test_costs_of_a_fully_announced_page_are_averages_over_signals(precision: float, n: int) -> None:
    """Crawling at every n-th signal: j = 0 … n − 1 signals, each for as long; Binomial(j, π) changes missed."""
    page = _page(1.0, precision)
    stale = [1 - (1 - precision) ** j for j in range(n)]
    missed = [0.0]
    for j in range(1, n):
        missed.append(missed[-1] + stale[j] / j)
    found = freshness_costs_at_rate(page, page.signal_rate / n)
    assert found == pytest.approx((sum(stale) / n, sum(missed) / n), rel=1e-10, abs=1e-15)


def test_a_rate_between_two_steps_is_both_in_turn() -> None:
    """The costs are mixed as the rates are: linear in between, with slope −V_n."""
    page = _page(1.0, 0.4)
    fast, slow = page.signal_rate / 2, page.signal_rate / 3
    quick, lazy = freshness_costs_at_rate(page, fast), freshness_costs_at_rate(page, slow)
    mixed = freshness_costs_at_rate(page, 0.25 * fast + 0.75 * slow)
    for i in (0, 1):
        assert mixed[i] == pytest.approx(0.25 * quick[i] + 0.75 * lazy[i], rel=1e-12)
    assert (lazy[0] - quick[0]) / (fast - slow) == pytest.approx(step_value(page, 2.0), rel=1e-12)
    assert freshness_costs_at_rate(page, 2 * page.signal_rate) == (0.0, 0.0)


def test_without_false_signals_a_low_rate_is_never_or_at_every_signal() -> None:
    """Below γ part of the time nothing is crawled: binary falls by 1/Δ per crawl, harmonic is infinite."""
    page = _page(0.6, 1.0, 2.0)
    assert freshness_costs_at_rate(page, 0.5 * page.signal_rate) == (1 - 0.25 * page.signal_rate, math.inf)
    assert freshness_value_at_rate(page, 0.5 * page.signal_rate) == (0.5, 0.5)
    binary, harmonic = freshness_costs_at_rate(page, page.signal_rate)
    assert binary == pytest.approx(0.4, rel=1e-12)
    assert harmonic == pytest.approx(math.log1p(0.8 / 1.2), rel=1e-12)
    announced = _page(1.0, 1.0, 2.0)
    assert freshness_rate_at_value(announced, 0.3) == (2.0, 0.0)
    assert freshness_value_at_rate(announced, 2.0) == (0.0, 0.5)
    assert freshness_costs_at_rate(announced, 2.0) == (0.0, 0.0)
    assert freshness_costs_at_rate(announced, 1.0) == (0.5, math.inf)


def test_signals_make_a_crawl_rate_go_further() -> None:
    """At one crawl per change good signals cut the harmonic cost of the freshness policy by more than half."""
    plain = freshness_costs_at_rate(_page(0.0, 0.5), 1.0)
    good = freshness_costs_at_rate(_page(0.9, 0.95), 1.0)
    fair = freshness_costs_at_rate(_page(0.5, 0.45), 1.0)
    assert good[0] < fair[0] < plain[0]
    assert good[1] < fair[1] < plain[1]
    assert good[1] < 0.5 * plain[1]


@pytest.mark.parametrize("page", [*PAGES, _page(1.0, 0.5), _page(1.0, 1.0)])
def test_ends_of_the_range_have_a_meaning(page: SignalPage) -> None:
    """No crawls cost 1 and infinity, endless crawls nothing; from 1/Δ on no crawl is worth its price."""
    assert freshness_costs_at_rate(page, 0.0) == (1.0, math.inf)
    assert freshness_costs_at_rate(page, math.inf) == (0.0, 0.0)
    assert freshness_value_at_rate(page, 0.0) == (1 / page.change_rate, 1 / page.change_rate)
    assert freshness_value_at_rate(page, math.inf) == (0.0, 0.0)
    assert freshness_rate_at_value(page, 1.0001 / page.change_rate) == (0.0, 0.0)
    assert freshness_rate_at_value(page, 0.0)[0] == (math.inf if page.silent_rate else page.signal_rate)


def test_a_page_that_never_changes_needs_no_crawl() -> None:
    """Change rate 0: rate 0 at any price, no cost, no value."""
    page = signal_page(0.0, 0.5, 1.0)
    assert freshness_rate_at_value(page, 0.5) == (0.0, 0.0)
    assert freshness_costs_at_rate(page, 0.0) == (0.0, 0.0)
    assert freshness_value_at_rate(page, 1.0) == (0.0, 0.0)


def test_no_page_gives_nan() -> None:
    """Rates from 1e-60 to 1e60, recalls down to 1e-300 and up to one ulp below 1."""
    rates = (1e-60, 1e-9, 0.3, 1e9, 1e60)
    for change_rate in rates:
        for recall in (0.0, 1e-300, 1e-20, 0.5, 1 - 1e-9, math.nextafter(1, 0), 1.0):
            for false_rate in (0.0, *rates):
                page = signal_page(change_rate, recall, false_rate)
                for part in (0.0, 1e-30, 1e-9, 0.3, 0.999999, 1 - 2e-15, 1.0, 2.0):
                    rate, slope = freshness_rate_at_value(page, part / change_rate)
                    assert rate >= 0 >= slope
                    binary, harmonic = freshness_costs_at_rate(page, rate)
                    assert 0 <= binary <= 1 + 1e-12
                    assert harmonic >= 0
                for crawls in (1e-30, 0.5, 1e9):
                    low, high = freshness_value_at_rate(page, crawls * change_rate)
                    assert 0 <= low <= high <= 1.0000001 / change_rate
