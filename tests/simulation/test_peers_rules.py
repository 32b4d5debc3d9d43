"""Rules and planners step by step, worked out by hand or by another method."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from peers_small_worlds import small_world
from scipy.optimize import brentq, minimize

from recrawl.lab.peers import rules as dispatch
from recrawl.lab.peers.planners import Whittle, draw_sample, estimates, mirror_step, sites_of
from recrawl.lab.peers.registry import make_peer
from recrawl.lab.peers.rules import REMEMBERED, Visit
from recrawl.lab.worlds.world import World, no_events


def _waits(name: str, parameters: tuple[float, ...], bits: str, **facts: Any) -> Iterator[float]:
    """Waits of a rule after a first visit and then one for each bit, each at the end of the wait before."""
    wait_of = vars(dispatch)[f"{name}_wait"]
    own, now, gap = np.zeros(REMEMBERED), 0.0, 0.0
    for k, bit in enumerate("f" + bits):
        visit = Visit(now, gap, bit == "1", k == 0, 0.0, np.empty(0), (0, 0), 1.0, 1.0, 2.0, 3.0, 0.25)
        gap = wait_of(np.array(parameters), own, visit._replace(**facts))
        now += gap
        yield gap


def _peer(name: str) -> tuple[float, ...]:
    parameters: tuple[float, ...] = make_peer(name).parameters  # type: ignore[attr-defined]
    return parameters


def test_nutch_without_sync_only_multiplies() -> None:
    """30 days, then times 0.8 after a change and times 1.4 after none."""
    waits = list(_waits("nutch", _peer("nutch-adaptive-nosync"), "1101"))
    assert waits == pytest.approx([30, 24, 19.2, 26.88, 21.504])


def test_nutch_with_sync_moves_towards_the_last_change() -> None:
    """Without a change for 30 days: interval 42, offset 9; then 63 days without: interval 63, offset 18.9."""
    waits = list(_waits("nutch", _peer("nutch-adaptive"), "001"))
    assert waits == pytest.approx([30, 42 - 9, 63 - 0.3 * 63, 50.4])


def test_nutch_drops_an_offset_beyond_the_longest_interval() -> None:
    """Division of whole numbers makes it 0."""
    parameters = (30.0, 0.4, 0.2, 1.0, 100.0, 0.3, math.inf)
    own = np.array([90.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    visit = Visit(330.0, 90.0, False, False, 0.0, np.empty(0), (0, 0), 1.0, 1.0, 2.0, 3.0, 0.5)
    assert dispatch.nutch_wait(np.array(parameters), own.copy(), visit) == pytest.approx(100 - 99)
    later = visit._replace(now=340.0)
    assert dispatch.nutch_wait(np.array(parameters), own.copy(), later) == 100.0


def test_nutch_forgets_what_goes_beyond_the_limit_of_the_database() -> None:
    """80 · 1.4 = 112 days is beyond 90: due at once, interval 81, and the next fetch can tell no change."""
    parameters = (80.0, 0.4, 0.2, 1.0, 365.0, 0.0, 90.0)
    assert list(_waits("nutch", parameters, "011")) == pytest.approx([80, 0, 81, 64.8])


def test_stormcrawler_counts_whole_minutes() -> None:
    """1440, 2160, 3240, then halfway to 60: 1650, 855, 457 (and a half, cut off); and half more: 685 (again)."""
    waits = np.array(list(_waits("stormcrawler", _peer("stormcrawler-adaptive"), "001110"))) * 1440
    assert waits == pytest.approx([1440, 2160, 3240, 1650, 855, 457, 685])


def test_heritrix_stays_within_its_limits() -> None:
    waits = list(_waits("heritrix", _peer("heritrix1"), "0" * 12 + "1" * 24))
    assert waits[1] == 1.5
    assert max(waits) == 28.0
    assert min(waits) == waits[-1] == 1 / 24


def test_bubing_waits_at_least_as_long_as_nothing_changed() -> None:
    """5 days; 5 · 1.2 = 6; 11 days without a change is more than 7.2."""
    assert list(_waits("bubing", _peer("bubing"), "001")) == pytest.approx([5, 6, 11, 8.8])


def test_aduana_counts_one_change_more_than_it_found() -> None:
    assert list(_waits("aduana", (1.0,), "011")) == pytest.approx([1, 1, 2 / 2, 3 / 3])


def test_cho_interval_estimates_after_five_visits() -> None:
    """2 of 5 visits changed: 1 / −ln(3.5 / 5.5); then none of 5: the longest interval."""
    waits = list(_waits("cho_interval", _peer("cho-interval"), "1010000000"))
    assert waits[:5] == [1.0] * 5
    assert waits[5] == pytest.approx(1 / -math.log(3.5 / 5.5))
    assert waits[10] == 90.0


def test_changedetection_draws_around_three_hours() -> None:
    assert list(_waits("changedetection", _peer("changedetection"), "")) == [0.125]
    assert list(_waits("changedetection", (0.125, 0.02), "", chance=0.25)) == pytest.approx([0.115])


def test_lm_factor_waits_a_fifth_of_the_age_up_to_three_days() -> None:
    for modified, wait in ((9.0, 0.2), (-90.0, 3.0), (10.0, 1 / 1440), (-math.inf, 3.0)):
        assert list(_waits("lm_factor", _peer("lm-factor"), "", now=10.0, modified=modified)) == pytest.approx([wait])


@pytest.mark.parametrize(
    ("dates", "wait"),
    [
        ([], 1.0),
        ([9.0], 1.0),
        ([1.0, 2.0, 9.0], 1.0),  # one entry in the week before day 10
        ([4.0, 4.5, 5.0], 7 / 14),
        ([4.0, 4.3, 5.0, 5.2], 7 / 18),  # mean gap 0.4: 17.5 a week, rounded up
        ([5.0, 5.0, 5.0], 5 / 1440),
    ],
)
def test_miniflux_counts_the_entries_of_a_week(dates: list[float], wait: float) -> None:
    facts = {"now": 10.0, "dates": np.array(dates), "entries": (0, len(dates))}
    assert list(_waits("miniflux", _peer("miniflux-entry-frequency"), "", **facts)) == pytest.approx([wait])


def test_stochastic_approximation_and_the_law_of_large_numbers_find_the_rate() -> None:
    """At 0.5 crawls a day of a page that changes 0.3 times a day, crawled at random."""
    random = np.random.default_rng(3)
    own = np.zeros(REMEMBERED)
    rule = np.array([0.75, 0.01])
    visit = Visit(0.0, 0.0, False, True, 0.0, np.empty(0), (0, 0), 1.0, 1.0, 2.0, 3.0, 0.5)
    for _ in range(20_000):
        gap = dispatch.poisson_probe_wait(rule, own, visit)
        changed = bool(random.random() < -math.expm1(-0.3 * gap))
        visit = visit._replace(gap=gap, changed=changed, first=False, chance=float(random.random()))
    changed_sum, visits, approximated = own[:3]
    assert 0.5 * changed_sum / (visits + 1 - changed_sum) == pytest.approx(0.3, rel=0.05)
    assert approximated == pytest.approx(0.3, rel=0.25)


def test_probes_find_the_slope_of_the_cost() -> None:
    """The mean of what probes miss is r·dJ/dr·ε: of the cost 1 − (1 − e^−x)/x less 1 − e^−x, x = rate / r."""
    random = np.random.default_rng(4)
    own, probing, step, rate = np.zeros(REMEMBERED), 0.5, 2.0, 0.4
    visit = Visit(0.0, 0.0, False, True, 0.0, np.empty(0), (0, 0), 1.0, 1.0, step, 3.0, 0.5)
    for _ in range(60_000):
        gap = dispatch.mirror_probe_wait(np.array([probing]), own, visit)
        changed = bool(random.random() < -math.expm1(-rate * gap))
        visit = visit._replace(changed=changed, first=False, chance=float(random.random()))
    x = rate * step
    expected = (1 - -math.expm1(-x) / x) - -math.expm1(-x)
    assert own[3] / (probing * own[4]) == pytest.approx(expected, rel=0.05)


def _gaps(seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    days = random.exponential(3.0, int(random.integers(1, 30)))
    return days, random.random(len(days)) < -np.expm1(-days * 10 ** random.uniform(-3, 1))


@pytest.mark.parametrize("seed", range(20))
def test_estimates_solve_their_equations(seed: int) -> None:
    """Against a root finder that brackets; a rate outside the limits is at the limit."""
    days, changed = _gaps(seed)
    page = np.ones(len(days), dtype=np.int32)
    all_days, all_changed = np.append(days, [0.5, 0.5]), np.append(changed, [True, False])
    expected_changes = min(float(changed.sum()), len(days) - 0.5)

    def likelihood(rate: float) -> float:
        return float((all_days / np.expm1(rate * all_days))[all_changed].sum() - all_days[~all_changed].sum())

    def moments(rate: float) -> float:
        return float(expected_changes + np.expm1(-rate * days).sum())

    for by_moments, equation in ((False, likelihood), (True, moments)):
        low, high = equation(5e-4), equation(7.0)
        expected = 5e-4 if low <= 0 else 7.0 if high >= 0 else brentq(equation, 5e-4, 7.0)
        assert estimates(page, days, changed, 2, by_moments)[1] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("by_moments", [False, True])
def test_estimates_of_mixed_pages_equal_those_of_each_alone_without_its_first_crawl(by_moments: bool) -> None:
    page = np.array([1, 0, 1, 1], dtype=np.int32)
    gap, changed = np.array([0.0, 2.0, 3.0, 4.0]), np.array([False, True, False, True])
    together = estimates(page, gap, changed, 3, by_moments)
    for number, rows in ((0, [1]), (1, [2, 3]), (2, [])):
        alone = estimates(np.zeros(len(rows), dtype=np.int32), gap[rows], changed[rows], 1, by_moments)
        assert together[number] == alone[0]


def test_the_mirror_step_solves_its_problem() -> None:
    """Against a general optimiser: step·⟨slope, r⟩ + Σ (r/r₀ − 1 − ln(r/r₀)) is least, within limits and budget."""
    random = np.random.default_rng(5)
    before, slope = random.uniform(0.1, 0.7, 6), -random.exponential(1.0, 6)
    moved = mirror_step(before, slope)

    def cost(rates: np.ndarray) -> float:
        return float((2.7 * slope * rates + rates / before - 1 - np.log(rates / before)).sum())

    room = {"type": "ineq", "fun": lambda rates: 6 * 0.4 / 1.05 - rates.sum()}
    best = minimize(cost, before, bounds=[(0.025, 3.0)] * 6, constraints=[room], tol=1e-12)
    assert moved.mean() == pytest.approx(0.4 / 1.05)
    np.testing.assert_allclose(moved, best.x, rtol=1e-3)


def test_whittle_waits_have_equal_indices() -> None:
    """The index of Avrachenkov and Borkar in small slots, at the end of each page's wait, is the same for all."""
    days, decay, slot = 400.0, 1.0, 1e-3
    world = small_world(40, days, seed=3, steady=True)
    log = Whittle(decay=decay).crawl(world, 60.0, seed=1)
    crawls = np.bincount(log.page, minlength=40)
    often = np.flatnonzero(crawls > 1.2 * 0.05 * 60.0 * days / 40)  # beyond what every page gets
    assert len(often) > 10
    rate = world.change_rate
    assert rate is not None
    kept = math.exp(-decay * slot)
    indices = []
    for page in often:
        gained = float(rate[page] * world.importance[page]) * (1 - kept) / decay
        value = gained * (1 - kept ** round(days / crawls[page] / slot)) / (1 - kept)
        slots = math.ceil(math.log((gained - (1 - kept) * value) / gained) / math.log(kept) - 1e-6)
        indices.append(slots * ((1 - kept) * value - gained) + gained * (1 - kept**slots) / (1 - kept))
    assert np.std(indices) < 0.03 * np.mean(indices)


def test_samples_are_of_every_site_and_at_most_half_a_cycle() -> None:
    random = np.random.default_rng(1)
    site = random.integers(0, 5, 200)
    drawn = draw_sample(site, 100, random)
    assert len(set(drawn.tolist())) == len(drawn) == 50
    assert np.bincount(site[drawn]).tolist() == [10] * 5
    assert len(draw_sample(np.arange(200), 100, random)) == 50


def test_a_site_is_a_host_or_the_first_folder_or_everything() -> None:
    facts: dict[str, Any] = {"name": "x", "horizon": 1.0, "importance": np.ones(3), "changes": no_events(3)}
    facts |= {"born": np.zeros(3), "removed": np.full(3, math.inf)}
    assert sites_of(World(**facts)).tolist() == [0, 0, 0]
    assert sites_of(World(**facts, page_names=("/b/x", "/a/x", "/b/y"))).tolist() == [1, 0, 1]


def test_the_registry_loads_no_compiler() -> None:
    """Names and summaries are there for a command's help."""
    code = "import sys; from recrawl.lab.peers.registry import PEERS; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
