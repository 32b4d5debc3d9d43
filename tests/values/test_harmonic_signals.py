"""Harmonic values with noisy signals against their definitions, computed slowly."""

import hashlib
import itertools
import math
from importlib import resources

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from numpy.typing import NDArray
from scipy import integrate, optimize, stats

from build_harmonic_table import exact_ratio
from recrawl.errors import InvalidInput
from recrawl.values import noisy_harmonic_due, noisy_harmonic_value
from recrawl.values.arrays import AMOUNT, COUNT, PROBABILITY, SPAN, function
from recrawl.values.signals.harmonic import (
    cycle_at,
    noisy_harmonic_due_fast_kernel,
    noisy_harmonic_value_fast_kernel,
    smooth_cycle,
)
from recrawl.values.signals.harmonic_cost import boundary, expected_cost, threshold
from recrawl.values.signals.page import shape_of, signal_page
from recrawl.values.signals.planning import harmonic_costs_at_rate, harmonic_rate_at_value, harmonic_value_at_rate
from recrawl.values.signals.table import (
    CERTAINTIES,
    CERTAINTY_SCALE,
    MOST_CERTAIN,
    PRECISIONS,
    STRETCH_SCALE,
    STRETCHES,
    TABLE_SHA256,
    ratios,
    table_ratio,
)
from recrawl.values.special import ein, h, inverse_ein

Floats = NDArray[np.float64]
PAGE = {"importance": AMOUNT, "change_rate": AMOUNT, "recall": PROBABILITY, "false_signal_rate": AMOUNT}
noisy_harmonic_value_fast = function(
    noisy_harmonic_value_fast_kernel, {**PAGE, "elapsed": SPAN, "signals": COUNT}, "The value from the table."
)
noisy_harmonic_due_fast = function(
    noisy_harmonic_due_fast_kernel, {**PAGE, "signals": COUNT, "price": SPAN}, "The due time from the table."
)


def slow_cost(a: float, n: float, precision: float) -> float:
    """c(a, n) by mpmath's quadrature of its definition."""
    with mp.workdps(30):
        s = a + n * precision
        result = mp.quad(
            lambda u: -mp.expm1(n * mp.log1p(-mp.mpf(precision) * u) - mp.mpf(a) * u) / u,
            [0, *(p / s for p in (1, 4, 15, 50) if p < s), 1],
        )
        return float(result)


def counted_cost(a: float, n: int, precision: float) -> float:
    """E H(Poisson(a) + Binomial(n, π)) by summing over both."""
    silent = stats.poisson.pmf(np.arange(80), a)
    announced = stats.binom.pmf(np.arange(n + 1), n, precision)
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, 80 + n))])
    return float(np.convolve(silent, announced) @ harmonic)


def panels(edges: Floats) -> tuple[Floats, Floats]:
    """Nodes and weights of a Gauss–Legendre rule on each interval between neighbouring edges."""
    nodes, weights = np.polynomial.legendre.leggauss(24)
    widths = np.diff(edges)[:, None]
    return (edges[:-1, None] + widths * (nodes + 1) / 2).ravel(), (widths * weights / 2).ravel()


def costs_over_time(silent: Floats, n: int, precision: float) -> Floats:
    """c(a, n) for many a by quadrature in ln u, which no a is too large for."""
    log_u, weights = panels(np.linspace(math.log(1e-9 / (1 + silent.max() + n)), 0.0, 13))
    lost: Floats = -np.expm1(n * np.log1p(-precision * np.exp(log_u)) - np.outer(silent, np.exp(log_u)))
    return lost @ weights + (silent + n * precision) * math.exp(log_u[0])


def slow_cycle(page: tuple[float, float, float], cost: float) -> tuple[float, float]:
    """ψ = ∫ P(c_t < c) dt and V = ∫ E(c − c_t)₊ dt, where c_t is the cost t after a crawl if no other follows."""
    change_rate, recall, false_signal_rate = page
    silent_rate = (1 - recall) * change_rate
    signal_rate = recall * change_rate + false_signal_rate
    precision = recall * change_rate / signal_rate
    duration = value = 0.0
    for n in itertools.count():
        if expected_cost(0.0, float(n), precision) >= cost:
            break
        end = optimize.brentq(
            lambda t, n=n: expected_cost(silent_rate * t, float(n), precision) - cost,
            0.0,
            2 * inverse_ein(cost) / silent_rate,
            xtol=1e-300,
            rtol=1e-14,
        )
        spread = np.clip(n + math.sqrt(n + 1) * np.arange(-9, 15, 3), 0.0, signal_rate * end) / signal_rate
        times, weights = panels(np.unique([0.0, *spread, *np.geomspace(1e-3 * end, end, 8)]))
        chance = weights * stats.poisson.pmf(n, signal_rate * times)
        duration += chance.sum()
        value += chance @ (cost - costs_over_time(silent_rate * times, n, precision))
        if n > signal_rate * end and chance.sum() < 1e-14 * duration:
            break
    return duration, value


PAGES = [(1.0, 0.7, 0.4), (0.3, 0.95, 0.02), (2.0, 0.2, 3.0), (1.0, 0.5, 0.0), (5.0, 0.99, 1.0)]


@pytest.mark.parametrize("precision", [1e-6, 0.3, 1.0])
@pytest.mark.parametrize(("a", "n"), [(1e-9, 0), (1e-9, 3), (0.4, 1), (3.0, 8), (0.0, 30), (25.0, 12), (60.0, 50)])
def test_cost_is_its_integral(a: float, n: int, precision: float) -> None:
    """The expected cost agrees with mpmath from tiny to large numbers of changes."""
    assert expected_cost(a, float(n), precision) == pytest.approx(slow_cost(a, n, precision), rel=1e-13)


def test_cost_is_the_mean_harmonic_number_of_missed_changes() -> None:
    """The integral is E H(Poisson(a) + Binomial(n, π)), counted out; for whole numbers of changes it is H(n)."""
    for a, n, precision in [(0.5, 3, 0.4), (4.0, 7, 0.9), (0.0, 5, 0.2)]:
        assert expected_cost(a, float(n), precision) == pytest.approx(counted_cost(a, n, precision), rel=1e-12)
    assert expected_cost(0.0, 4.0, 1.0) == pytest.approx(25 / 12, rel=1e-15)


@pytest.mark.parametrize("x", [1e-8, 0.3, 2.0, 30.0, 400.0, 3e4])
def test_boundary_is_where_the_cost_is_reached(x: float) -> None:
    """On the boundary the cost is the threshold, and beyond it a is 0."""
    for precision, n in itertools.product([0.05, 1.0], [1.0, 3.0, 17.0]):
        edge = boundary(threshold(precision, x), n, x - n * precision)
        if edge.a > 0:
            assert expected_cost(edge.a, n, precision) == pytest.approx(ein(x), rel=2e-14)
        else:
            assert expected_cost(0.0, n, precision) >= ein(x) * (1 - 1e-14)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("x", [0.002, 0.7, 3.0, 12.0])
def test_cycle_is_that_of_the_process(page: tuple[float, float, float], x: float) -> None:
    """Duration and value agree with integrals over the free-running process."""
    duration, value = slow_cycle(page, ein(x))
    cycle = cycle_at(shape_of(signal_page(*page)), x)
    assert cycle.duration / page[0] == pytest.approx(duration, rel=1e-10)
    assert cycle.value / page[0] == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize(
    ("page", "x", "tolerance"),
    [
        ((1.0, 0.5, 12.0), 6.0, 1e-10),
        ((1.0, 0.6, 0.3), 90.0, 1e-10),
        ((1.0, 0.6, 0.3), 230.0, 1e-5),
        ((1.0, 0.1, 0.0), 600.0, 1e-5),
    ],
)
def test_cycles_of_many_signals_agree_with_the_process(
    page: tuple[float, float, float], x: float, tolerance: float
) -> None:
    """Sums, panels beyond the reach of quadrature, and the smooth form for many signals per cycle."""
    duration, value = slow_cycle(page, ein(x))
    cycle = cycle_at(shape_of(signal_page(*page)), x)
    assert cycle.duration == pytest.approx(duration, rel=tolerance)
    assert cycle.value == pytest.approx(value, rel=tolerance)


BORDERS = [(0.5, 400.0), (0.05, 30.0), (0.7, 2.0), (0.96, 0.5)]


def around_the_border(recall: float, load: float) -> Floats:
    """Thresholds on both sides of where the smooth form replaces the sums, and between."""
    signals = max(380.0 * recall**1.5, (1 - recall) ** -2)
    return np.linspace(0.97, 1.6, 24) * float(signals / load)


@pytest.mark.parametrize(("recall", "false_signal_rate"), BORDERS)
def test_smooth_form_takes_over_without_a_leap(recall: float, false_signal_rate: float) -> None:
    """Where it replaces the sums, both agree to 1e-5, and value and duration rise with the threshold throughout."""
    page = shape_of(signal_page(1.0, recall, false_signal_rate))
    thresholds = around_the_border(recall, page.signals_per_change)
    cycles = [cycle_at(page, float(x)) for x in thresholds]
    for name in ("duration", "value"):
        summed, smooth = getattr(cycles[0], name), getattr(smooth_cycle(page, float(thresholds[0])), name)
        assert summed == pytest.approx(smooth, rel=1e-5)
        assert cycles[-1] == pytest.approx(smooth_cycle(page, float(thresholds[-1])), rel=1e-14)
        course = np.array([getattr(cycle, name) for cycle in cycles])
        assert (np.diff(course) > 0).all()
        leaps = np.diff(np.log(course), n=2)
        assert np.abs(leaps).max() < 3e-3


@pytest.mark.parametrize(("recall", "false_signal_rate"), BORDERS)
def test_rates_fall_with_the_value_where_the_smooth_form_takes_over(recall: float, false_signal_rate: float) -> None:
    """The rate for a value is monotone on both sides of the border and between, in steps of 3e-7."""
    page = signal_page(1.0, recall, false_signal_rate)
    for x in around_the_border(recall, shape_of(page).signals_per_change)[::5]:
        value = cycle_at(shape_of(page), float(x)).value
        rates = [harmonic_rate_at_value(page, value * (1 + 3e-7 * step))[0] for step in range(5)]
        assert (np.diff(rates) < 0).all()


def test_value_without_signals_is_the_harmonic_value() -> None:
    """At recall 0 signals are ignored; with rare or with empty signals V tends to that."""
    plain = h(1.2) / 0.4
    assert noisy_harmonic_value(1.0, 0.4, 0.0, 0.0, 3.0, 0) == pytest.approx(plain, rel=1e-14)
    assert noisy_harmonic_value(1.0, 0.4, 0.0, 5.0, 3.0, 17) == pytest.approx(plain, rel=1e-14)
    assert noisy_harmonic_value(1.0, 0.4, 1e-9, 0.0, 3.0, 0) == pytest.approx(plain, rel=1e-8)
    assert noisy_harmonic_value(1.0, 0.4, 0.5, 1e7, 3.0, 15_000_000 * 2) == pytest.approx(plain, rel=1e-6)


def test_value_of_announced_changes_counts_them() -> None:
    """With every change announced and no false signal V = (μ/Δ) n, and it is approached from below and above."""
    signals = np.arange(6)
    exact = 2.0 / 0.5 * signals
    assert noisy_harmonic_value(2.0, 0.5, 1.0, 0.0, 1.0, signals) == pytest.approx(exact)
    assert noisy_harmonic_value(2.0, 0.5, 1.0 - 1e-9, 1e-9, 1.0, signals[1:]) == pytest.approx(exact[1:], rel=1e-7)


def test_value_with_recall_1_is_the_limit() -> None:
    """Among false signals V_n = (1/γ) Σ (1 − (1−π)^j), the limit of the general value."""
    expected = [sum(1 - (1 - 0.25) ** j for j in range(1, n + 1)) / 4.0 for n in range(8)]
    signals = np.arange(8)
    assert noisy_harmonic_value(1.0, 1.0, 1.0, 3.0, 2.0, signals) == pytest.approx(expected, rel=1e-13)
    near = noisy_harmonic_value(1.0, 1.0, 1.0 - 1e-10, 3.0, 0.0, signals)
    assert near[1:] == pytest.approx(expected[1:], rel=1e-8)


def random_pages(count: int, seed: int) -> list[Floats]:
    """Columns change_rate, recall, false_signal_rate, elapsed, signals: ordinary pages and the corners."""
    random = np.random.default_rng(seed)
    pick = random.random(count)
    recall = np.select(
        [pick < 0.6, pick < 0.8], [random.random(count), 10 ** random.uniform(-9, 0, count)], 1 - 10**-8 * pick
    )
    recall = np.where(random.random(count) < 0.2, 1 - 10 ** random.uniform(-8, 0, count), recall)
    false_signal_rate = np.where(random.random(count) < 0.15, 0.0, 10 ** random.uniform(-4, 5, count))
    change_rate = 10 ** random.uniform(-3, 3, count)
    missed = np.where(
        random.random(count) < 0.6, 10 ** random.uniform(-1.5, 1.5, count), 10 ** random.uniform(-9, 4, count)
    )
    split = np.where(random.random(count) < 0.3, 1.0, random.random(count))
    signal_rate = recall + false_signal_rate
    signals = np.floor(np.minimum((1 - split) * missed * signal_rate / recall, 1e9))
    elapsed = split * missed / (1 - recall)
    return [change_rate, recall, false_signal_rate * change_rate, elapsed / change_rate, signals]


@pytest.mark.compiled
def test_table_is_within_a_thousandth() -> None:
    """V from the table has a relative error below 1e-3 on pages of all kinds."""
    change_rate, recall, false_signal_rate, elapsed, signals = random_pages(8000, seed=5)
    exact = noisy_harmonic_value(3.0, change_rate, recall, false_signal_rate, elapsed, signals)
    fast = noisy_harmonic_value_fast(3.0, change_rate, recall, false_signal_rate, elapsed, signals)
    assert np.abs(fast / exact - 1).max() < 1e-3


@pytest.mark.compiled
def test_due_from_the_table_meets_the_price() -> None:
    """Where the table says a page is due the exact value is the price within 1e-3, or above it from the start."""
    change_rate, recall, false_signal_rate, elapsed, signals = random_pages(4000, seed=6)
    price = noisy_harmonic_value(1.0, change_rate, recall, false_signal_rate, elapsed, 0) + 1e-3 / change_rate
    due = noisy_harmonic_due_fast(1.0, change_rate, recall, false_signal_rate, signals, price)
    there = noisy_harmonic_value(1.0, change_rate, recall, false_signal_rate, due, signals)
    assert (there[due > 0] / price[due > 0]) == pytest.approx(1.0, abs=1e-3)
    assert (there[due == 0] >= price[due == 0] * (1 - 1e-3)).all()


def test_table_file_is_current() -> None:
    """The file is the one the source names, and points computed afresh agree with it."""
    data = resources.files("recrawl.values.signals").joinpath("table.npy").read_bytes()
    assert hashlib.sha256(data).hexdigest() == TABLE_SHA256
    random = np.random.default_rng(0)
    for _ in range(60):
        n, i, j, k = (int(random.integers(size)) for size in ratios().shape)
        theta = max(
            math.expm1(i / (CERTAINTIES - 1) * math.log1p(CERTAINTY_SCALE * MOST_CERTAIN)) / CERTAINTY_SCALE, 1e-5
        )
        precision = max(j / (PRECISIONS - 1), 1e-5)
        steepness = STRETCH_SCALE * theta / (n + 2.0)
        place = min(math.expm1(k / (STRETCHES - 1) * math.log1p(steepness)) / steepness, 1.0)
        assert ratios()[n, i, j, k] == pytest.approx(exact_ratio(n + 1.0, theta, precision, place), rel=1e-6)
        assert table_ratio(n + 1, theta, precision, place) == pytest.approx(float(ratios()[n, i, j, k]), rel=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    recall=st.floats(0.0, 1.0),
    false_signal_rate=st.floats(0.0, 50.0),
    elapsed=st.floats(1e-6, 100.0),
    signals=st.integers(0, 12),
)
def test_due_inverts_the_value(recall: float, false_signal_rate: float, elapsed: float, signals: int) -> None:
    """A page whose value is the price now is due now."""
    price = noisy_harmonic_value(2.0, 0.5, recall, false_signal_rate, elapsed, signals)
    due = noisy_harmonic_due(2.0, 0.5, recall, false_signal_rate, signals, price)
    if math.isfinite(due) and due > 0:
        again = noisy_harmonic_value(2.0, 0.5, recall, false_signal_rate, due, signals)
        assert again == pytest.approx(price, rel=1e-9)
    else:  # already worth it when the signals came, within rounding
        assert price <= noisy_harmonic_value(2.0, 0.5, recall, false_signal_rate, 0.0, signals) * (1 + 1e-9)


def test_due_of_announced_pages_waits_for_signals() -> None:
    """With recall 1 time alone changes nothing: due now or never; a free crawl is due at once."""
    assert noisy_harmonic_due(1.0, 1.0, 1.0, 0.0, [0, 1, 2, 3], 2.0).tolist() == [math.inf, math.inf, 0.0, 0.0]
    assert noisy_harmonic_due(1.0, 1.0, 0.5, 0.2, 0, 0.0) == 0.0
    assert noisy_harmonic_due(1.0, 0.0, 0.5, 0.2, 3, 1.0) == math.inf


@pytest.mark.parametrize(
    ("recall", "precision", "saving_at_1", "saving_at_a_fifth"),
    [(0.9, 0.95, 0.80, 0.06), (0.7, 0.64, 0.35, 0.03), (0.5, 0.45, 0.17, 0.02), (0.3, 0.13, 0.03, 0.003)],
)
def test_signals_save_harmonic_cost(
    recall: float, precision: float, saving_at_1: float, saving_at_a_fifth: float
) -> None:
    """What heeding the signals saves against even spacing, at 1 and at 0.2 crawls per change."""
    page = signal_page(1.0, recall, recall * (1 - precision) / precision)
    for rate, saving, digit in [(1.0, saving_at_1, 0.01), (0.2, saving_at_a_fifth, 0.005)]:
        even = ein(1 / rate) - h(1 / rate) * rate
        assert 1 - harmonic_costs_at_rate(page, rate)[1] / even == pytest.approx(saving, abs=digit)


@pytest.mark.parametrize("recall", [0.0, 1e-7, 0.3, 0.8, 0.97, 1 - 1e-6])
@pytest.mark.parametrize("false_signal_rate", [0.0, 0.2, 30.0])
def test_rate_and_value_are_inverse(recall: float, false_signal_rate: float) -> None:
    """The marginal value at the rate of a value is that value."""
    page = signal_page(2.0, recall, false_signal_rate)
    for value in [1e-9, 1e-3, 0.2, 1.0, 8.0, 300.0]:
        rate, _ = harmonic_rate_at_value(page, value)
        low, high = harmonic_value_at_rate(page, rate)
        assert low * (1 - 1e-10) <= value <= high * (1 + 1e-10)


def test_rate_has_the_slope_it_says() -> None:
    """The slope agrees with a difference quotient."""
    for recall, value in itertools.product([0.0, 0.4, 0.9], [0.05, 1.0, 20.0, 60.0]):
        page = signal_page(2.0, recall, 0.7)
        rise = harmonic_rate_at_value(page, value * 1.0001)[0] - harmonic_rate_at_value(page, value * 0.9999)[0]
        assert harmonic_rate_at_value(page, value)[1] == pytest.approx(rise / 2e-4, rel=1e-5)


def test_costs_fall_by_the_value() -> None:
    """The value is the marginal saving of a crawl: the slope of the cost over the rate, with the other sign."""
    for recall, rate in itertools.product([0.0, 0.4, 0.95], [0.05, 0.8, 6.0]):
        page = signal_page(1.0, recall, 0.5)
        fall = harmonic_costs_at_rate(page, rate * 0.999)[1] - harmonic_costs_at_rate(page, rate * 1.001)[1]
        assert fall / (0.002 * rate) == pytest.approx(harmonic_value_at_rate(page, rate)[0], rel=1e-4)


def test_binary_cost_is_the_share_of_stale_time() -> None:
    """Σ over n of the time with n signals that is fresh, by quadrature."""
    page = signal_page(1.0, 0.7, 0.4)
    rate = 0.6
    x = optimize.brentq(lambda x: cycle_at(shape_of(page), x).duration - 1 / rate, 0.1, 10.0, xtol=1e-14)
    fresh = 0.0
    for n in range(10):
        end = boundary(threshold(page.precision, x), float(n), x - n * page.precision).a / page.silent_rate
        fresh += integrate.quad(
            lambda t, n=n: (
                stats.poisson.pmf(n, page.signal_rate * t) * (1 - page.precision) ** n * math.exp(-page.silent_rate * t)
            ),
            0.0,
            end,
        )[0]
    assert harmonic_costs_at_rate(page, rate)[0] == pytest.approx(1 - rate * fresh, rel=1e-8)


def test_costs_of_a_simulated_policy() -> None:
    """Crawling a simulated page when its expected cost passes the threshold costs what is promised."""
    random = np.random.default_rng(3)
    page = signal_page(1.0, 0.6, 0.3)
    rate = 0.7
    price = harmonic_value_at_rate(page, rate)[0]
    dues = noisy_harmonic_due(1.0, 1.0, 0.6, 0.3, np.arange(12), price)
    time = stale = harmonic = 0.0
    cycles = 20_000
    for _ in range(cycles):
        now, signals, missed = 0.0, 0, 0
        while now < dues[signals]:
            step = random.exponential(1 / 1.3)  # changes at rate 1, false signals at 0.3
            end = min(now + step, dues[signals])
            stale += (end - now) * (missed > 0)
            harmonic += (end - now) * sum(1 / j for j in range(1, missed + 1))
            if now + step < dues[signals]:
                change = random.random() < 1 / 1.3
                missed += change
                signals += (not change) or random.random() < 0.6
            now = end
        time += now
    binary_cost, harmonic_cost = harmonic_costs_at_rate(page, rate)
    assert cycles / time == pytest.approx(rate, rel=0.02)
    assert stale / time == pytest.approx(binary_cost, rel=0.03)
    assert harmonic / time == pytest.approx(harmonic_cost, rel=0.03)


def test_announced_pages_mix_two_steps() -> None:
    """With recall 1 rates between γ/n and γ/(n+1) are two policies in turn, and their cost lies on the chord."""
    page = signal_page(1.0, 1.0, 1.0)  # γ = 2, π = ½
    assert harmonic_rate_at_value(page, 0.25) == (2.0, 0.0)
    assert harmonic_rate_at_value(page, 0.26) == (1.0, 0.0)
    assert harmonic_value_at_rate(page, 1.0) == pytest.approx((0.25, 0.625))
    assert harmonic_value_at_rate(page, 1.5) == pytest.approx((0.25, 0.25))
    assert harmonic_costs_at_rate(page, 2.0) == harmonic_costs_at_rate(page, 3.0) == (0.0, 0.0)
    assert harmonic_costs_at_rate(page, 1.0) == pytest.approx((0.25, 0.25))
    assert harmonic_costs_at_rate(page, 1.5) == pytest.approx((0.125, 0.125))


def test_corners_of_the_planner() -> None:
    """No crawls, no changes, free crawls."""
    page = signal_page(1.0, 0.5, 0.5)
    assert harmonic_costs_at_rate(page, 0.0) == (1.0, math.inf)
    assert harmonic_rate_at_value(page, 0.0)[0] == math.inf
    assert harmonic_value_at_rate(page, 0.0) == (math.inf, math.inf)
    still = signal_page(0.0, 0.5, 0.5)
    assert harmonic_costs_at_rate(still, 0.0) == (0.0, 0.0)
    assert harmonic_rate_at_value(still, 1.0) == (0.0, 0.0)


@pytest.mark.compiled
def test_no_legal_input_has_no_answer() -> None:
    """From the smallest to the largest floats nothing is NaN, nothing warns, and both forms agree."""
    rates = [0.0, 5e-324, 1e-60, 1e-3, 1.0, 1e6, 1e60, 1.7e308]
    recalls = [0.0, 5e-324, 1e-60, 1e-9, 0.5, 0.99, 1 - 1e-9, 1 - 2**-53, 1.0]
    spans = [0.0, 5e-324, 1e-60, 0.3, 50.0, 1e60, math.inf]
    counts = [0.0, 1.0, 9.0, 1e9, 1e300]
    change_rate, recall, false_signal_rate, span, signals = np.meshgrid(rates, recalls, rates, spans, counts)
    for importance in [0.0, 5e-324, 1.0, 1.7e308]:
        exact = noisy_harmonic_value(importance, change_rate, recall, false_signal_rate, span, signals)
        fast = noisy_harmonic_value_fast(importance, change_rate, recall, false_signal_rate, span, signals)
        # A subnormal importance has no digits to agree in.
        told = (exact > 1e-290) & np.isfinite(exact) & (importance > 1e-300)
        assert (exact >= 0).all()
        assert np.abs(fast[told] / exact[told] - 1).max(initial=0.0) < 1e-3
        assert (noisy_harmonic_due(importance, change_rate, recall, false_signal_rate, signals, span) >= 0).all()
        assert (noisy_harmonic_due_fast(importance, change_rate, recall, false_signal_rate, signals, span) >= 0).all()


def test_bad_input_names_the_field() -> None:
    """The sentence names the argument and the row."""
    with pytest.raises(InvalidInput, match=r"recall\[1\] is 1\.5"):
        noisy_harmonic_value(1.0, 1.0, [0.5, 1.5], 0.1, 1.0, 0)
    with pytest.raises(InvalidInput, match=r"signals is 0\.5"):
        noisy_harmonic_due_fast(1.0, 1.0, 0.5, 0.1, 0.5, 1.0)
