"""Several kinds of signals against their delay equation, their full sums and the formula for one kind."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import special

from recrawl.errors import InvalidInput
from recrawl.pages import Floats
from recrawl.values import noisy_freshness_value
from recrawl.values.signals.kinds import several_signals_value


def _false_rate(recall: Floats, weight: Floats) -> Floats:
    """The rate of false signals that gives each kind this weight, at change rate 1."""
    return recall / np.expm1(weight)


def _by_full_sum(recall: Floats, false_rate: Floats, level: float) -> float:
    """V by the sum over every number of signals of every kind, as w − e^{−y}ψ."""
    rates = recall + false_rate
    weights = np.log(rates / false_rate)
    silent, total = 1 - recall.sum(), rates.sum()
    counts = np.array(np.meshgrid(*(np.arange(int(level / weight) + 1.0) for weight in weights), indexing="ij"))
    counts = counts.reshape(len(recall), -1)
    z = level - weights @ counts
    counts, z = counts[:, z >= 0], z[z >= 0]
    number = counts.sum(axis=0)
    log_chance = special.gammaln(number + 1) - special.gammaln(counts + 1).sum(axis=0) + np.log(rates / total) @ counts
    k = total / silent
    duration = np.sum(np.exp(log_chance) * special.gammainc(number + 1, k * z))
    fading = log_chance - weights @ counts + (number + 1) * math.log(k / (k + 1))
    fresh = np.sum(np.exp(fading) * special.gammainc(number + 1, (k + 1) * z))
    return float((fresh - math.exp(-level) * duration) / total)


@pytest.mark.parametrize(
    ("recall", "weights", "level"),
    [
        ([0.4, 0.3], [0.5, 1.2], 2.0),
        ([0.1, 0.3, 0.2], [0.3, 0.9, 0.05], 1.5),
        ([0.3, 0.2], [0.9, 0.004], 1.5),
        ([0.3, 0.2], [0.9, 0.0011], 1.5),
        ([0.2, 0.1, 0.3], [0.01, 0.012, 0.7], 0.8),
        ([0.8, 0.199], [0.4, 0.7], 3.0),
    ],
)
def test_the_value_is_that_of_the_full_sum(recall: list[float], weights: list[float], level: float) -> None:
    """Pooled or not, weak kinds cost less than one part in a million."""
    shares = np.array(recall)
    false_rate = _false_rate(shares, np.array(weights))
    value = several_signals_value(1.0, 1.0, shares, false_rate, level / (1 - shares.sum()), [0] * len(recall))
    assert value == pytest.approx(_by_full_sum(shares, false_rate, level), rel=1e-6)


def test_the_value_solves_the_delay_equation() -> None:
    """α dψ/dy = 1 − γψ(y) + Σ γ_j ψ((y − b_j)₊) step by step, and V the integral of e^{−y}ψ."""
    recall, weights = np.array([0.3, 0.25]), np.array([0.5, 0.2])
    false_rate = _false_rate(recall, weights)
    rates = recall + false_rate
    silent = 1 - recall.sum()
    step = 1e-4
    delays = np.round(weights / step).astype(int)
    duration = np.zeros(14001)
    for i in range(1, duration.size):
        back = [
            sum(rate * (duration[j - delay] if j >= delay else 0.0) for rate, delay in zip(rates, delays, strict=True))
            for j in (i - 1, i)
        ]
        known = duration[i - 1] * (silent / step - rates.sum() / 2) + 1 + sum(back) / 2
        duration[i] = known / (silent / step + rates.sum() / 2)
    level = step * np.arange(duration.size)
    integral = np.trapezoid(np.exp(-level) * duration, dx=step)
    value = several_signals_value(2.0, 1.0, recall, false_rate, level[-1] / silent, [0, 0])
    assert value == pytest.approx(2 * integral, rel=1e-6)


def test_one_kind_is_the_ordinary_value() -> None:
    """With one kind on the last axis nothing changes."""
    elapsed = np.geomspace(0.01, 20, 12)
    several = several_signals_value(2.0, 0.5, [0.6], [0.2], elapsed, [1])
    np.testing.assert_allclose(several, noisy_freshness_value(2.0, 0.5, 0.6, 0.2, elapsed, 1), rtol=1e-10)


def test_kinds_of_one_precision_are_one_kind() -> None:
    """Two kinds of the same weight are one kind with the sum of their rates and signals."""
    counts = np.array([[0, 0], [1, 0], [0, 2], [2, 1]])
    several = several_signals_value(1.0, 1.0, [0.2, 0.4], [0.05, 0.1], 0.7, counts)
    one = noisy_freshness_value(1.0, 1.0, 0.6, 0.15, 0.7, counts.sum(axis=1))
    np.testing.assert_allclose(several, one, rtol=1e-10)


def test_lumping_kinds_together_is_wrong() -> None:
    """A good and a bad kind under one weight misjudge the page by more than a tenth."""
    several = several_signals_value(1.0, 1.0, [0.4, 0.4], [0.02, 3.0], 0.5, [1, 0])
    lumped = noisy_freshness_value(1.0, 1.0, 0.8, 3.02, 0.5, 1)
    assert abs(lumped / several - 1) > 0.1


def test_kinds_that_tell_nothing_are_ignored() -> None:
    """A kind of recall 0 changes nothing, however often it fires."""
    alone = noisy_freshness_value(1.0, 1.0, 0.5, 0.3, 1.0, 1)
    several = several_signals_value(1.0, 1.0, [0.0, 0.5], [9.0, 0.3], 1.0, [7, 1])
    assert several == pytest.approx(alone, rel=1e-10)
    assert several_signals_value(1.0, 1.0, [0.0], [9.0], 1.0, [7]) == pytest.approx(1 - 2 / math.e, rel=1e-14)


def test_a_kind_without_false_signals_settles_it() -> None:
    """One such signal makes the copy surely stale; until it comes the other kind counts."""
    assert several_signals_value(3.0, 2.0, [0.2, 0.5], [0.0, 0.3], 0.1, [1, 0]) == 1.5
    value = several_signals_value(1.0, 1.0, [0.2, 0.5], [0.0, 0.3], 1.0, [0, 1])
    nearly = several_signals_value(1.0, 1.0, [0.2, 0.5], [1e-30, 0.3], 1.0, [0, 1])
    assert value == pytest.approx(nearly, rel=1e-9)


def test_with_every_change_announced_only_signals_count() -> None:
    """Without a drift V is (e^{−y}/γ) Σ chance·(e^z − 1) over the numbers of signals that fit below the level."""
    recall, false_rate, counts = np.array([0.7, 0.3]), np.array([0.4, 0.1]), np.array([2, 1])
    rates = recall + false_rate
    weights = np.log(rates / false_rate)
    level = float(weights @ counts)
    total = 0.0
    for i, j in itertools.product(range(20), range(20)):
        z = level - i * weights[0] - j * weights[1]
        if z > 0:
            chance = math.comb(i + j, i) * rates[0] ** i * rates[1] ** j / rates.sum() ** (i + j)
            total += chance * math.expm1(z)
    value = several_signals_value(1.0, 1.0, recall, false_rate, 5.0, counts)
    assert value == pytest.approx(math.exp(-level) * total / rates.sum(), rel=1e-12)
    assert several_signals_value(1.0, 1.0, recall, false_rate, math.inf, [0, 0]) == 0.0


def test_pages_broadcast_before_the_axis_of_kinds() -> None:
    """Importance of shape (3, 1) and signals of shape (2, kinds) make a table of (3, 2)."""
    values = several_signals_value([[1.0], [2.0], [0.0]], 1.0, [0.3, 0.2], [0.1, 0.4], 1.0, [[0, 0], [1, 0]])
    assert values.shape == (3, 2)
    np.testing.assert_allclose(values[1], 2 * values[0])
    assert not values[2].any()
    assert several_signals_value(1.0, 0.0, [0.3], [0.1], 1.0, [1]) == 0.0
    assert several_signals_value(1.0, 2.0, [0.3], [0.1], math.inf, [0]) == 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, 1.0, [0.7, 0.7], [0.1, 0.1], 1.0, [0, 0]), "at most one kind"),
        ((1.0, 1.0, [0.7, -0.1], [0.1, 0.1], 1.0, [0, 0]), "recall"),
        ((1.0, 1.0, [0.3, 0.2], [0.1, math.inf], 1.0, [0, 0]), "false_signal_rate"),
        ((1.0, 1.0, [0.3, 0.2], [0.1, 0.1], -1.0, [0, 0]), "elapsed"),
        ((1.0, 1.0, [0.3, 0.2], [0.1, 0.1], 1.0, [0, 0.5]), "signals"),
        ((math.nan, 1.0, [0.3, 0.2], [0.1, 0.1], 1.0, [0, 0]), "importance"),
        ((1.0, 1.0, [0.3, 0.2], [0.1, 0.1, 0.3], 1.0, [0, 0]), "last axis"),
    ],
)
def test_a_bad_argument_is_named(arguments: tuple[Any, ...], message: str) -> None:
    """The error names the argument at fault."""
    with pytest.raises(InvalidInput, match=message):
        several_signals_value(*arguments)
