"""Spikes in hits: one bin with far too many barely moves profit and decay, and hits without spikes lose nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from slow_interest import calm_by_hand, plain_fit

from recrawl.learning.interest import InterestFit, cut_spikes, fit_interest
from recrawl.pages import Floats

WIDTH, BINS = 1 / 72, 504


class Drawn(NamedTuple):
    """Sources with known profit and decay (per unit time), and what their pages gathered."""

    profit: Floats
    decay: Floats
    hits: Floats
    watched: Floats


def draw(sources: int, pages: int, seed: int, *, law: str = "exponential", often: float = 1.0) -> Drawn:
    """Sources whose pages appear over a week: 0.5 to 50 hits each, which fade over an hour to two days."""
    random = np.random.default_rng(seed)
    profit, decay = 10.0 ** random.uniform(-0.3, 1.7, sources), 10.0 ** random.uniform(-0.3, 1.4, sources)
    age_at_end = random.uniform(0.0, BINS, (sources, pages))
    watched = often * np.clip(age_at_end[:, :, None] - np.arange(BINS), 0, 1).sum(axis=1)
    ages = decay[:, None] * WIDTH * np.arange(BINS + 1)
    left = np.exp(-ages) if law == "exponential" else (1 + ages) ** -1.5
    hits = random.poisson(watched * profit[:, None] * -np.diff(left, axis=1)).astype(np.float64)
    return Drawn(profit, decay, hits, watched)


def spiked(hits: Floats, times: float, seed: int) -> Floats:
    """The same hits with one bin of each source raised by so many times all its hits, anywhere but the first."""
    out = hits.copy()
    bins = np.random.default_rng(seed).integers(1, BINS, len(hits))
    out[np.arange(len(hits)), bins] += times * hits.sum(axis=1)
    return out


def rms(estimate: Floats, truth: Floats) -> float:
    """Root mean square of the error of the logarithm."""
    return float(np.sqrt(np.mean(np.log(estimate / truth) ** 2)))


def robust(world: Drawn, hits: Floats | None = None) -> InterestFit:
    return fit_interest(world.hits if hits is None else hits, world.watched, WIDTH)


@pytest.mark.parametrize("pages", [10, 100, 1000])
def test_hits_without_spikes_lose_almost_nothing(pages: int) -> None:
    """Errors of profit and decay are within 3 % of those of plain least squares, from 10 to 1,000 pages a source."""
    world = draw(200, min(pages, 100), 1, often=max(pages / 100, 1.0))
    profit, decay = plain_fit(world.hits, world.watched, WIDTH)
    fit = robust(world)
    assert rms(fit.profit, world.profit) < 1.03 * rms(profit, world.profit)
    assert rms(fit.decay, world.decay) < 1.03 * rms(decay, world.decay)


@pytest.mark.parametrize("times", [0.1, 1.0, 1000.0])
def test_one_spiked_bin_barely_moves_profit_and_decay(times: float) -> None:
    """However high the spike, the error of a source with a hundred pages grows by less than a quarter."""
    world = draw(200, 100, 1)
    calm, shaken = robust(world), robust(world, spiked(world.hits, times, 2))
    assert rms(shaken.profit, world.profit) < 1.25 * rms(calm.profit, world.profit)
    assert rms(shaken.decay, world.decay) < 1.25 * rms(calm.decay, world.decay)
    assert np.median(np.abs(np.log(shaken.profit / calm.profit))) < 0.01
    assert np.median(np.abs(np.log(shaken.decay / calm.decay))) < 0.02


def test_plain_least_squares_is_thrown_off_by_the_same_spikes() -> None:
    """What the cut is for: a spike as large as all hits makes the error of plain least squares thirty times larger."""
    world = draw(200, 100, 1)
    profit, decay = plain_fit(spiked(world.hits, 1.0, 2), world.watched, WIDTH)
    assert rms(profit, world.profit) > 30 * rms(robust(world).profit, world.profit)
    assert rms(decay, world.decay) > 30 * rms(robust(world).decay, world.decay)


def test_one_source_without_noise_keeps_its_decay() -> None:
    """Hits that follow the law, with one bin a hundred times what it should be: profit and decay stay within 1 %."""
    hits = 1e4 * np.exp(-0.02 * np.arange(300.0))[None, :]
    hits[0, 120] *= 100.0
    fit = fit_interest(hits, np.full(hits.shape, 1e3), 1.0)
    assert fit.decay[0] == pytest.approx(0.02, rel=0.01)
    assert fit.profit[0] == pytest.approx(10 / -np.expm1(-0.02), rel=0.01)


def test_a_spike_counts_for_no_more_the_higher_it_is() -> None:
    """More hits never lower the profit, and beyond a limit they do not raise it either."""
    world = draw(1, 100, 3)
    profits = []
    for height in (0, 5, 20, 100, 1e4, 1e12):
        hits = world.hits.copy()
        hits[0, 300] += height
        profits.append(robust(world, hits).profit[0])
    assert (np.diff(profits) > -1e-6 * profits[0]).all()
    assert profits[-1] == pytest.approx(profits[-2], rel=1e-3)
    assert profits[-1] == pytest.approx(profits[0], rel=0.05)


def test_interest_that_follows_another_law_is_not_cut() -> None:
    """Of many hits that fade as a power of age, which no exponential fits, none are taken for spikes."""
    world = draw(60, 100, 4, law="power", often=1000.0)
    profit, decay = plain_fit(world.hits, world.watched, WIDTH)
    fit = robust(world)
    np.testing.assert_allclose(fit.profit, profit, rtol=2e-3)
    np.testing.assert_allclose(fit.decay, decay, rtol=1e-2)
    by_day = fit.profit * -np.expm1(-fit.decay)
    truth = world.profit * (1 - (1 + world.decay) ** -1.5)
    assert rms(by_day, truth) < 0.05


@pytest.mark.parametrize("decay", [0.001, 0.1, 1.0, 10.0])
def test_a_steady_fall_passes_unchanged_however_steep(decay: float) -> None:
    """Noiseless hits, fading over weeks or at once, are what they were."""
    hits = 1e9 * np.exp(-decay * np.arange(60.0))[None, :]
    calm = hits.copy()
    cut_spikes(calm, np.ones(hits.shape), np.ones(1))
    np.testing.assert_allclose(calm[:, :57], hits[:, :57])
    np.testing.assert_allclose(calm.sum(), hits.sum(), rtol=1e-3)


def test_a_bin_in_which_counting_failed_is_filled() -> None:
    """A hole in a busy stretch does as little harm as a spike."""
    hits = np.full((1, 60), 400.0) + np.random.default_rng(1).normal(0, 20, (1, 60))
    hits[0, 30] = 0.0
    cut_spikes(hits, np.ones(hits.shape), np.ones(1))
    assert hits[0, 30] > 280


def test_the_first_bin_counts_in_full() -> None:
    """Nothing comes before it, so much interest at once stays what it is."""
    hits = np.array([[5000.0, 10.0, 11.0, 9.0, 10.0, 12.0, 8.0, 10.0]])
    cut_spikes(hits, np.ones(hits.shape), np.ones(1))
    assert hits[0, 0] == 5000.0


def test_the_kernel_cuts_as_written_by_hand() -> None:
    """On sparse and dense hits, with ages that no page reached between others and in the end."""
    random = np.random.default_rng(5)
    rows = random.choice([0.02, 0.3, 2.0, 50.0], (40, 1))
    watched = random.choice([0.0, 0.5, 1.0, 3.0], (40, 90))
    watched[:10, 60:] = 0.0
    hits = random.poisson(rows * np.ones(90) * watched).astype(np.float64)
    hits[random.random(hits.shape) < 0.02] += 70.0
    by_hand = np.array([calm_by_hand(*row) for row in zip(hits, watched, strict=True)])
    calm = hits.copy()
    cut_spikes(calm, watched, np.ones(40))
    np.testing.assert_allclose(calm, by_hand, rtol=1e-9, atol=1e-12)
    assert (calm != hits).any()
