"""Freshness with noisy signals against the paper's sums in 60 digits, its limits and its inverses."""

from __future__ import annotations

import itertools
import math
import random
from typing import NamedTuple

import mpmath as mp
import numpy as np
import pytest

from recrawl.errors import InvalidInput
from recrawl.values import (
    freshness_due,
    freshness_value,
    noisy_freshness_due,
    noisy_freshness_value,
    selective_freshness_value,
    trusting_freshness_value,
)
from recrawl.values.signals.freshness import linear_cycle, linear_from, summed_cycle
from recrawl.values.signals.page import SignalPage, signal_page


class Twin(NamedTuple):
    """A page in mpmath, with the formulas as the paper prints them."""

    change_rate: mp.mpf
    silent_rate: mp.mpf
    signal_rate: mp.mpf
    false_signal_rate: mp.mpf
    weight: mp.mpf

    def duration_and_value(self, elapsed: float, signals: int, terms: int | None = None) -> tuple[mp.mpf, mp.mpf]:
        """ψ and V/μ = w − e^{−y}ψ, by sums over i ≤ y/b."""
        level = self.silent_rate * mp.mpf(elapsed) + signals * self.weight
        last = int(mp.floor(level / self.weight))
        last = last if terms is None else min(last, terms - 1)
        duration, fresh = mp.mpf(0), mp.mpf(0)
        for i in range(last + 1):
            time = (level - i * self.weight) / self.silent_rate
            share = _tail(i + 1, self.signal_rate * time)
            rate = self.change_rate + self.false_signal_rate
            duration += share / self.signal_rate
            fresh += (self.false_signal_rate / rate) ** i / rate * _tail(i + 1, rate * time)
            if share < mp.mpf(10) ** -45 * duration:
                break
        return duration, fresh - mp.exp(-level) * duration


def twin(change_rate: float, recall: float, false_signal_rate: float) -> Twin:
    delta, share, false = mp.mpf(change_rate), mp.mpf(recall), mp.mpf(false_signal_rate)
    signal_rate = share * delta + false
    return Twin(delta, (1 - share) * delta, signal_rate, false, mp.log(signal_rate / false))


def _tail(shape: int, x: mp.mpf) -> mp.mpf:
    """P(shape, x) of a whole shape, by whichever Poisson sum is short."""
    if x <= 0:
        return mp.mpf(0)
    smallest = mp.mpf(10) ** (-mp.mp.dps - 3)
    above = x < shape + 30
    j = shape if above else shape - 1
    term = mp.exp(j * mp.log(x) - x - mp.loggamma(j + 1))
    total = mp.mpf(0)
    while term > smallest * (total if above else 1) and j >= 0:
        total += term
        j += 1 if above else -1
        term *= x / j if above else (j + 1) / x
    return total if above else 1 - total


def _page(recall: float, precision: float, change_rate: float = 1.0) -> tuple[float, float, float]:
    return change_rate, recall, recall * change_rate * (1 - precision) / precision


def _chance() -> float:
    """A probability in (0, 1), often close to an end."""
    return random.choice([10 ** random.uniform(-3, -0.01), 1 - 10 ** random.uniform(-6, -0.1), random.random()])


def _samples(count: int) -> list[tuple[tuple[float, float, float], float, int]]:
    """Pages, elapsed times and signals with levels from 1e-10 to 50, strong and weak signals alike."""
    random.seed(11)
    samples: list[tuple[tuple[float, float, float], float, int]] = []
    while len(samples) < count:
        recall, precision = _chance(), _chance()
        page = _page(recall, precision, 10 ** random.uniform(-3, 3))
        numbers = signal_page(*page)
        level = 10 ** random.uniform(-10, math.log10(50))
        if level / numbers.signal_weight > 400:
            continue
        signals = random.randint(0, int(level / numbers.signal_weight))
        elapsed = max(0.0, (level - signals * numbers.signal_weight) / numbers.silent_rate)
        samples.append((page, elapsed, signals))
    return samples


def test_the_value_is_the_papers_from_levels_of_1e_10_to_50() -> None:
    """Relative error at most 1e-13, where the printed difference loses every digit."""
    with mp.workdps(60):
        for page, elapsed, signals in _samples(150):
            true = twin(*page).duration_and_value(elapsed, signals)[1]
            value = noisy_freshness_value(1.0, *page, elapsed, signals)
            assert abs(value / true - 1) < 1e-13, (page, elapsed, signals)


@pytest.mark.parametrize(("recall", "precision", "level"), [(0.3, 0.4, 0.2), (0.6, 0.5, 2.5), (0.9, 0.2, 1.1)])
def test_the_value_is_the_integral_of_the_discounted_duration(recall: float, precision: float, level: float) -> None:
    """V = ∫₀^y e^{−s}ψ(s) ds, with ψ by its own sum."""
    page = _page(recall, precision)
    with mp.workdps(30):
        true = twin(*page)
        kinks = [i * true.weight for i in range(int(level / true.weight) + 1)]
        integral = mp.quad(
            lambda s: mp.exp(-s) * true.duration_and_value(s / true.silent_rate, 0)[0], [*kinks, mp.mpf(level)]
        )
    value = noisy_freshness_value(1.0, *page, level / (1 - recall), 0)
    assert value == pytest.approx(float(integral), rel=1e-12)


def _page_by_load(load: float, weight: float) -> SignalPage:
    """The page with signal weight b and kb = load."""
    precision = -math.expm1(-weight)
    odds = load / weight * precision
    recall = odds / (1 + odds)
    return signal_page(1.0, recall, recall * math.exp(-weight) / precision)


@pytest.mark.parametrize("weight", [1e-5, 1e-2, 0.5])
@pytest.mark.parametrize("load", [1e-4, 0.03, 0.1, 0.3, 0.5, 1.0, 2.0, 4.0, 16.0, 60.0, 250.0])
def test_the_sum_meets_the_linear_form_where_it_gives_way(load: float, weight: float) -> None:
    """Past the transient both forms agree to 1e-13 in V and 3e-13 in the duration, for all strengths of signals."""
    page = _page_by_load(load, weight)
    signals = math.ceil(linear_from(page))
    for part in (0.1, 0.6):
        rest = part * page.signal_weight
        summed = summed_cycle(page, float(signals), rest, math.inf)
        linear = linear_cycle(page, signals * page.signal_weight + rest)
        assert linear.value == pytest.approx(summed.value, rel=1e-13)
        assert linear.duration == pytest.approx(summed.duration, rel=5e-13)


@pytest.mark.parametrize(("recall", "precision", "level"), [(0.5, 0.05, 1.5), (0.2, 0.01, 0.4), (0.8, 0.05, 6.0)])
def test_weak_signals_with_many_terms_keep_the_digits(recall: float, precision: float, level: float) -> None:
    """Where the linear form replaces dozens of terms it is still the paper's value."""
    page = _page(recall, precision)
    assert level / signal_page(*page).signal_weight > linear_from(signal_page(*page))
    elapsed = level / (1 - recall)
    with mp.workdps(50):
        true = twin(*page).duration_and_value(elapsed, 0)[1]
    assert abs(noisy_freshness_value(1.0, *page, elapsed, 0) / true - 1) < 1e-13


def test_without_recall_signals_are_ignored() -> None:
    """Recall 0 is the plain freshness value, and small recalls approach it."""
    elapsed = np.geomspace(1e-6, 100, 30)
    plain = freshness_value(2.0, 0.7, elapsed)
    np.testing.assert_array_equal(noisy_freshness_value(2.0, 0.7, 0.0, 0.3, elapsed, 5), plain)
    np.testing.assert_allclose(noisy_freshness_value(2.0, 0.7, 1e-9, 0.3, elapsed, 0), plain, rtol=1e-8)
    np.testing.assert_allclose(noisy_freshness_value(2.0, 0.7, 1e-18, 0.0, elapsed, 0), plain, rtol=1e-14)


def test_without_false_signals_one_signal_says_it_all() -> None:
    """With no false signals V is μ/Δ after any signal, and before it the closed form that few false ones approach."""
    elapsed = np.geomspace(1e-3, 50, 20)
    delta, recall = 0.8, 0.6
    silent, signal = (1 - recall) * delta, recall * delta
    before = -np.expm1(-delta * elapsed) / delta + np.exp(-silent * elapsed) * np.expm1(-signal * elapsed) / signal
    np.testing.assert_allclose(noisy_freshness_value(3.0, delta, recall, 0.0, elapsed, 0), 3 * before, rtol=1e-9)
    np.testing.assert_allclose(noisy_freshness_value(3.0, delta, recall, 1e-25, elapsed, 0), 3 * before, rtol=1e-9)
    assert noisy_freshness_value(3.0, delta, recall, 0.0, 0.0, 2) == 3.0 / delta
    np.testing.assert_allclose(noisy_freshness_value(3.0, delta, recall, 1e-25, 1.0, 1), 3.0 / delta, rtol=1e-13)


@pytest.mark.parametrize("precision", [0.999, 0.5, 1e-3, 1e-7])
def test_with_full_recall_only_signals_count(precision: float) -> None:
    """With recall 1 V is μ[(1−qⁿ)/Δ − qⁿn/γ], without its cancellation, and recalls close to 1 approach it."""
    delta, recall, false = _page(1.0, precision, 0.4)
    for signals in (0, 1, 2, 10, 1000):
        with mp.workdps(50):
            gamma = mp.mpf(delta) + mp.mpf(false)
            q = mp.mpf(false) / gamma
            true = 2 * ((1 - q**signals) / mp.mpf(delta) - q**signals * signals / gamma)
        value = noisy_freshness_value(2.0, delta, recall, false, 3.0, signals)
        assert value == pytest.approx(float(true), rel=1e-13)
        if signals:
            near = noisy_freshness_value(2.0, delta, 1 - 1e-14, false, 0.0, signals)
            assert near == pytest.approx(float(true), rel=1e-5)
    assert noisy_freshness_value(2.0, delta, recall, false, math.inf, 0) == 0.0


def test_approximation_j_keeps_the_first_j_terms() -> None:
    """The paper's G-NCIS-APPROX-j, term by term; with all terms it is the exact value."""
    with mp.workdps(60):
        for page, elapsed, signals in _samples(40):
            exact = noisy_freshness_value(1.0, *page, elapsed, signals)
            values = noisy_freshness_value(1.0, *page, elapsed, signals, terms=[1, 2, 3, 1000])
            for terms, value in zip((1, 2, 3), values, strict=False):
                true = twin(*page).duration_and_value(elapsed, signals, terms)[1]
                assert abs(value / true - 1) < 1e-12, (page, elapsed, signals, terms)
            assert np.all(np.diff(values) >= -1e-13 * exact)
            assert values[-1] == pytest.approx(exact, rel=1e-12)


def test_the_first_terms_of_a_fully_announced_page_are_a_partial_sum() -> None:
    """With recall 1 approximation j is Σ_{i<j} (qⁱ − qⁿ)/γ."""
    delta, _, false = _page(1.0, 0.3)
    gamma, q = delta + false, false / (delta + false)
    for terms in (1, 3, 20):
        true = sum(q**i - q**6 for i in range(min(terms, 7))) / gamma
        assert noisy_freshness_value(1.0, delta, 1.0, false, 1.0, 6, terms) == pytest.approx(true, rel=1e-13)


def test_due_is_when_the_value_reaches_the_price() -> None:
    """The value at the due time is the price; before it is less."""
    for page, elapsed, signals in _samples(200):
        price = noisy_freshness_value(3.0, *page, elapsed, signals)
        due = noisy_freshness_due(3.0, *page, signals, price)
        if 0 < due < math.inf:
            assert noisy_freshness_value(3.0, *page, due, signals) == pytest.approx(price, rel=1e-12)
            assert noisy_freshness_value(3.0, *page, 0.9 * due, signals) < price * (1 + 1e-12)


def test_due_knows_now_and_never() -> None:
    """0 if the price is reached already, infinity if it lies at μ/Δ or if only a signal could help."""
    assert noisy_freshness_due(1.0, 0.5, 0.6, 0.1, 3, 0.5) == 0.0
    assert noisy_freshness_due(1.0, 0.5, 0.6, 0.1, 0, 2.0) == math.inf
    assert noisy_freshness_due(1.0, 0.5, 1.0, 0.1, 0, 0.1) == math.inf
    assert noisy_freshness_due(1.0, 0.5, 1.0, 0.0, 1, 2.0) == 0.0
    assert noisy_freshness_due(0.0, 0.5, 0.6, 0.1, 0, 1.0) == math.inf
    assert noisy_freshness_due(1.0, 0.0, 0.6, 0.1, 0, 1.0) == math.inf
    assert noisy_freshness_due(1.0, 0.5, 0.6, 0.1, 0, 0.0) == 0.0
    assert noisy_freshness_due(2.0, 0.5, 0.0, 0.1, 4, 1.0) == freshness_due(2.0, 0.5, 1.0)


def test_signals_raise_the_value_and_bring_the_due_time_forward() -> None:
    """V grows with time and with each signal; the due time shrinks."""
    values = noisy_freshness_value(1.0, 0.5, 0.5, 0.2, np.linspace(0, 9, 50)[:, None], np.arange(8))
    assert np.all(np.diff(values, axis=0) > 0)
    assert np.all(np.diff(values, axis=1) > 0)
    assert np.all(np.diff(noisy_freshness_due(1.0, 0.5, 0.5, 0.2, np.arange(4), 1.2)) <= 0)


def test_trusting_takes_every_signal_for_a_change() -> None:
    """GREEDY-CIS is the value without false signals."""
    elapsed, signals = np.array([0.0, 1.0, 4.0]), np.array([[0], [1]])
    expected = noisy_freshness_value(2.0, 0.5, 0.7, 0.0, elapsed, signals)
    np.testing.assert_array_equal(trusting_freshness_value(2.0, 0.5, 0.7, elapsed, signals), expected)
    assert trusting_freshness_value(2.0, 0.5, 0.7, 0.0, 1) == 4.0


def test_selective_trusts_good_signals_only() -> None:
    """GREEDY-CIS+ needs precision above 0.7 and recall above 0.6; else it is plain GREEDY."""
    delta = 0.5
    plain = freshness_value(1.0, delta, 2.0)
    for recall, precision, trusted in ((0.9, 0.9, True), (0.9, 0.6, False), (0.5, 0.9, False), (0.61, 0.71, True)):
        _, _, false = _page(recall, precision, delta)
        value = selective_freshness_value(1.0, delta, recall, false, 2.0, 1)
        assert value == (1 / delta if trusted else plain)


def test_units_of_time_and_importance_do_not_matter() -> None:
    """Time in other units scales V with it; importance scales V alone."""
    value = noisy_freshness_value(1.0, 0.3, 0.6, 0.2, 2.0, 1)
    assert noisy_freshness_value(7.0, 0.3, 0.6, 0.2, 2.0, 1) == pytest.approx(7 * value, rel=1e-14)
    assert noisy_freshness_value(1.0, 0.3e9, 0.6, 0.2e9, 2e-9, 1) == pytest.approx(1e-9 * value, rel=1e-13)


def test_no_legal_input_gives_nan_or_leaves_the_range() -> None:
    """Rates from the smallest to the largest float, weak and strong signals, endless waits."""
    rates = [0.0, 5e-324, 1e-300, 1e-9, 0.7, 1e12, 1.7e308]
    recalls = [0.0, 1e-300, 1e-20, 1e-9, 0.5, 1 - 1e-9, math.nextafter(1, 0), 1.0]
    spans = [0.0, 5e-324, 1e-9, 1.0, 100.0, 1e300, math.inf]
    counts = [0.0, 1.0, 7.0, 1e6, 1e300]
    change_rate, recall, false, span, count = np.array(list(itertools.product(rates, recalls, rates, spans, counts))).T
    values = noisy_freshness_value(1.0, change_rate, recall, false, span, count)
    moving = change_rate > 1e-300
    assert np.all(values >= 0)
    assert np.all(values[moving] <= (1 + 1e-12) / change_rate[moving])
    partial = noisy_freshness_value(1.0, change_rate, recall, false, span, count, terms=2)
    assert np.all((partial >= 0) & (partial <= values * (1 + 1e-9)))
    dues = noisy_freshness_due(1.0, change_rate, recall, false, count, span)
    assert np.all(dues >= 0)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((-1.0, 1.0, 0.5, 0.1, 1.0, 0), "importance"),
        ((1.0, math.inf, 0.5, 0.1, 1.0, 0), "change_rate"),
        ((1.0, 1.0, 1.5, 0.1, 1.0, 0), "recall"),
        ((1.0, 1.0, 0.5, math.nan, 1.0, 0), "false_signal_rate"),
        ((1.0, 1.0, 0.5, 0.1, -1.0, 0), "elapsed"),
        ((1.0, 1.0, 0.5, 0.1, 1.0, 0.5), "signals"),
        ((1.0, 1.0, 0.5, 0.1, 1.0, 1, 0), "terms"),
    ],
)
def test_a_bad_argument_is_named(arguments: tuple[float, ...], name: str) -> None:
    """The error names the argument at fault."""
    with pytest.raises(InvalidInput, match=name):
        noisy_freshness_value(*arguments)


def test_a_bad_price_is_named() -> None:
    """Prices are 0 or more."""
    with pytest.raises(InvalidInput, match="price"):
        noisy_freshness_due(1.0, 1.0, 0.5, 0.1, 0, -1.0)


def test_signal_page_knows_its_limits() -> None:
    """No signals, no changes and pure noise are all a page without signals; no false ones weigh infinitely."""
    assert signal_page(2.0, 0.0, 1.0) == SignalPage(2.0, 2.0, 0.0, 0.0, 0.0, 0.0)
    assert signal_page(0.0, 0.5, 1.0) == SignalPage(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert signal_page(1.0, 0.5, 1e40).signal_rate == 0.0
    assert signal_page(2.0, 0.5, 0.0).signal_weight == math.inf
    assert signal_page(2, 1, 1).silent_rate == 0.0
    weak = signal_page(1.0, 0.5, 1e9)
    assert weak.signal_weight == pytest.approx(5e-10 * (1 - 2.5e-10), rel=1e-15)
