"""Accuracy in expectation is the mean of accuracy on drawn changes, and worlds are drawn as the paper says."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from recrawl.lab.papers.ncis_runs import (
    NcisPages,
    Truth,
    accuracy,
    announced_changes,
    corrupted,
    delayed,
    generator,
    given_announced,
    given_crawls,
    given_signals,
    signal_times,
    uniform_pages,
    web_pages,
)
from recrawl.lab.worlds.world import CrawlLog, Events
from recrawl.pages import Floats

HORIZON = 40.0
EDGES = np.array([5.0, 11.0, 33.0, 40.0])


def small_world() -> tuple[NcisPages, Events, CrawlLog, np.random.Generator]:
    random = generator(1)
    pages = uniform_pages(12, random)
    pages.recall[0] = 1.0
    signals = signal_times(pages.signal_rate(), HORIZON, random)
    # Page 11 is never crawled; pages are crawled in bursts and long after their last signals.
    page = random.integers(0, 11, 90).astype(np.int32)
    return pages, signals, CrawlLog(page, np.sort(random.uniform(0.0, HORIZON, 90))), random


def plain_accuracy(truth: Truth, log: CrawlLog, steps: int = 8000) -> list[float]:
    """The chance of a fresh copy at many moments, each worked out from the start."""
    moments = (np.arange(steps) + 0.5) * HORIZON / steps
    fresh = np.zeros(steps)
    for page, importance in enumerate(truth.importance):
        events = truth.events.times[truth.events.offsets[page] : truth.events.offsets[page + 1]]
        crawls = log.time[log.page == page]
        for i, moment in enumerate(moments.tolist()):
            before = crawls[crawls <= moment]
            if len(before):
                heard = int(((events > before[-1]) & (events <= moment)).sum())
                lost = heard * truth.weight[page] if heard else 0.0
                fresh[i] += importance * math.exp(-truth.silent_rate[page] * (moment - before[-1]) - lost)
    return [
        float(fresh[(moments >= low) & (moments < high)].mean() / truth.importance.sum())
        for low, high in pairwise(EDGES.tolist())
    ]


@pytest.mark.parametrize("kind", ["crawls", "signals", "announced"])
def test_integrals_are_those_of_a_plain_loop_over_moments(kind: str) -> None:
    """In every span, for each way to see the truth; up to the coarseness of the moments."""
    pages, signals, log, _ = small_world()
    ways = {
        "crawls": given_crawls(pages),
        "signals": given_signals(pages, signals),
        "announced": given_announced(pages, signals),
    }
    assert accuracy(ways[kind], log, EDGES) == pytest.approx(plain_accuracy(ways[kind], log), rel=2e-3)


def drawn_accuracy(pages: NcisPages, announced: Events, log: CrawlLog, random: np.random.Generator) -> float:
    """Draw silent changes too, and look at every request."""
    served = asked = 0
    for page in range(len(pages.importance)):
        rate = (1.0 - pages.recall[page]) * pages.change_rate[page]
        silent = random.uniform(0.0, HORIZON, random.poisson(rate * HORIZON))
        told = announced.times[announced.offsets[page] : announced.offsets[page + 1]]
        changes = np.sort(np.concatenate([silent, told]))
        requests = random.uniform(0.0, HORIZON, random.poisson(20 * pages.importance[page] * HORIZON))
        crawls = log.time[log.page == page]
        place = np.searchsorted(crawls, requests) - 1
        last = crawls[place] if len(crawls) else np.full(len(requests), HORIZON)
        unchanged = np.searchsorted(changes, requests) == np.searchsorted(changes, last)
        served += int(((place >= 0) & unchanged).sum())
        asked += len(requests)
    return served / asked


def test_expectation_is_the_mean_over_drawn_changes_and_requests() -> None:
    """Given crawls and signals: whether signals are true, silent changes and requests are drawn again and again."""
    pages, signals, log, random = small_world()
    drawn = [
        drawn_accuracy(pages, announced_changes(signals, pages.precision(), random), log, random) for _ in range(400)
    ]
    expected = float(accuracy(given_signals(pages, signals), log, np.array([0.0, HORIZON]))[0])
    assert abs(np.mean(drawn) - expected) < 4 * np.std(drawn) / 20


def test_signals_are_poisson_in_order_and_within_the_horizon() -> None:
    """Numbers have the mean and variance they should, times are uniform."""
    rate: Floats = np.full(4000, 0.5)
    signals = signal_times(rate, HORIZON, generator(2))
    numbers = np.diff(signals.offsets)
    assert numbers.mean() == pytest.approx(20.0, abs=4 * math.sqrt(20 / 4000))
    assert numbers.var() == pytest.approx(20.0, rel=0.1)
    assert 0.0 < signals.times.min() < signals.times.max() < HORIZON
    assert signals.times.mean() == pytest.approx(HORIZON / 2, rel=0.01)
    inner = np.delete(np.diff(signals.times), signals.offsets[1:-1] - 1)
    assert (inner >= 0).all()


def test_true_signals_are_some_of_all_and_late_ones_all_of_them_later() -> None:
    """Each page keeps its own; delays are whole slots with the mean asked for."""
    pages, signals, _, random = small_world()
    true = announced_changes(signals, np.full(12, 0.5), random)
    late = delayed(signals, 6.0, 0.01, random)
    for page in range(12):
        own = signals.times[signals.offsets[page] : signals.offsets[page + 1]]
        assert set(true.times[true.offsets[page] : true.offsets[page + 1]]) <= set(own)
        arrivals = late.times[late.offsets[page] : late.offsets[page + 1]]
        assert (np.diff(arrivals) >= 0).all()
        assert (arrivals >= own).all()
    assert len(true.times) == pytest.approx(len(signals.times) / 2, rel=0.3)
    assert (late.times.sum() - signals.times.sum()) / len(late.times) == pytest.approx(0.06, rel=0.15)
    assert len(pages.importance) == 12


def test_corruption_mixes_noise_into_what_is_believed_only() -> None:
    """Nothing at 0, nothing but noise at 1; importance and change rates stay."""
    random = generator(3)
    pages = web_pages(3000, random)
    noise = random.uniform(0.1, 1.0, 3000)
    same, lost = corrupted(pages, noise, 0.0), corrupted(pages, noise, 1.0)
    assert same.recall == pytest.approx(pages.recall)
    assert same.false_signal_rate == pytest.approx(pages.false_signal_rate)
    assert lost.recall == pytest.approx(noise)
    assert lost.precision() == pytest.approx(noise)
    assert (lost.change_rate == pages.change_rate).all()
    good = (pages.precision() > 0.7) & (pages.recall > 0.6)
    assert good.mean() == pytest.approx(0.04, abs=0.015)
