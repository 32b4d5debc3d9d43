"""The laws of change keep their rates and their shapes."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.errors import InvalidInput
from recrawl.lab.livingweb.chance import mix, share, stream
from recrawl.lab.livingweb.hosts import phase_end
from recrawl.lab.livingweb.laws import LAWS, WINDOW_DAYS, WINDOW_S, EventTimes, Law, Times, draw_window, hourly_weights
from recrawl.lab.livingweb.truth import change_rate
from recrawl.lab.livingweb.world import MASS_EDITS_PER_DAY, LivingWorld
from recrawl.lab.livingweb.world_settings import WorldSettings

DAY = 86_400.0


def _draws(law: Law, rate: float, windows: int = 400, phase: int = 0) -> list[Times]:
    return [draw_window(law, rate, phase, stream(3, law, window)) for window in range(windows)]


@pytest.mark.parametrize("law", ["poisson", "bursty", "rhythm"])
def test_a_law_keeps_its_mean_rate(law: Law) -> None:
    draws = _draws(law, 2.0)
    assert sum(times.size for times in draws) / (400 * WINDOW_DAYS) == pytest.approx(2.0, rel=0.06)
    assert all((times >= 0).all() and (times < WINDOW_S).all() and (np.diff(times) >= 0).all() for times in draws)


def test_static_pages_never_change() -> None:
    assert draw_window("static", 5.0, 0, stream(1, "x")).size == 0


def _gap_variation(draws: list[Times]) -> float:
    gaps = np.concatenate([np.diff(times) for times in draws])
    return float(gaps.std() / gaps.mean())


def test_gaps_of_poisson_are_exponential_and_those_of_bursts_far_more_uneven() -> None:
    assert _gap_variation(_draws("poisson", 4.0)) == pytest.approx(1.0, abs=0.05)
    assert _gap_variation(_draws("bursty", 4.0)) > 2.0


def test_rhythm_follows_the_hours_of_the_week_shifted_by_its_phase() -> None:
    weights = hourly_weights()
    times = np.concatenate(_draws("rhythm", 24.0, windows=200, phase=5))
    counts = np.bincount((times // 3600).astype(int) % 168, minlength=168) / times.size
    assert np.abs(counts - np.roll(weights, 5)).max() < 0.002
    assert weights.sum() == pytest.approx(1.0)


def test_events_are_the_same_whoever_asks_first() -> None:
    def draw(window: int) -> Times:
        return draw_window("poisson", 1.0, 0, stream(9, "any", window))

    early, late = EventTimes(draw), EventTimes(draw)
    steps = [early.count(at) for at in np.arange(0, 100 * DAY, DAY)]
    assert late.count(99 * DAY) == steps[-1]
    assert [late.count(at) for at in np.arange(0, 100 * DAY, DAY)] == steps
    assert early.between(10 * DAY, 20 * DAY) == late.between(10 * DAY, 20 * DAY)
    assert early.count(-1.0) == 0
    assert early.last(-1.0) is None


def test_an_event_counts_from_its_very_moment() -> None:
    times = EventTimes(lambda window: np.array([5.0, 7.0]) if window == 0 else np.empty(0))
    assert [times.count(at) for at in (4.999, 5.0, 6.0, 7.0)] == [0, 1, 1, 2]
    assert times.last(6.9) == 5.0


def test_a_mass_edit_changes_all_living_pages_of_its_section_at_once() -> None:
    world = LivingWorld(WorldSettings(pages=400, hosts=2))
    at = world.mass_edits(0, 1).between(0, 60 * DAY)[0]
    moment = world.epoch + at
    pages = [page for page in world.pages_of(0) if world.pages.born[page] < at < world.pages.gone[page]]
    hit = [page for page in pages if moment in world.changes(page, moment - 1, moment)]
    assert hit == [page for page in pages if world.pages.section[page] == 1]
    assert len(hit) > 10


def test_pages_change_at_the_rate_that_the_truth_gives() -> None:
    """Over half a year, by law: the counts of pages that live all the time are those of their rates."""
    world = LivingWorld(WorldSettings(pages=400, hosts=10))
    start, end = world.epoch + 20 * DAY, world.epoch + 200 * DAY
    lives = [page for page in range(400) if world.pages.gone[page] > 200 * DAY]
    for law in LAWS:
        pages = [page for page in lives if world.law(page) == law]
        own = sum(world.pages.rate[page] for page in pages) * 180
        sections = [world.mass_edits(world.pages.host[page], world.pages.section[page]) for page in pages]
        mass = sum(len(times.between(20 * DAY, 200 * DAY)) for times in sections)
        counted = sum(len(world.changes(page, start, end)) for page in pages)
        assert counted - mass == pytest.approx(own, rel=0.05)
        assert (law == "static") == (own == 0)
    assert world.pages.rate[lives[0]] + MASS_EDITS_PER_DAY == change_rate(world, lives[0])


def test_chance_is_spread_and_repeatable() -> None:
    shares = np.array([share(4, i) for i in range(20_000)])
    assert shares.mean() == pytest.approx(0.5, abs=0.01)
    assert np.histogram(shares, 10, (0, 1))[0].min() > 1800
    assert len({mix(1, i) for i in range(20_000)}) == 20_000
    assert mix(20260823, 17, 4) == mix(20260823, 17, 4)


def test_phases_of_trouble_come_and_go_and_end_when_they_say() -> None:
    minutes = np.arange(0, 20 * DAY, 60.0)
    ends = [phase_end(1, 4, at) for at in minutes]
    inside = [(at, end) for at, end in zip(minutes, ends, strict=True) if end is not None]
    assert 0.01 < len(inside) / minutes.size < 0.3
    for at, end in inside:
        assert at < end <= at + 5400
        assert phase_end(1, 4, end - 1e-3) == end
        assert phase_end(1, 4, end) != end


def test_all_pages_that_change_can_be_given_one_law() -> None:
    mixed, alike = (LivingWorld(WorldSettings(pages=300, laws=laws)) for laws in ("mixed", "poisson"))
    assert {mixed.law(page) for page in range(300)} == set(LAWS)
    assert {alike.law(page) for page in range(300)} == {"static", "poisson"}
    assert list(alike.pages.rate) == list(mixed.pages.rate)
    with pytest.raises(InvalidInput, match="laws"):
        WorldSettings(laws="whim")  # type: ignore[arg-type]
