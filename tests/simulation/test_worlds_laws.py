"""Worlds by law: one contract for all of them, then the law of each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.errors import InvalidInput
from recrawl.lab.worlds.laws import (
    Burst,
    Spans,
    bursty,
    churn,
    daily,
    draw_population,
    group,
    hosts,
    hosts_of_addresses,
    only,
    page_of_events,
    periodic,
    poisson_events,
    sections,
    stream,
    weekly,
)
from recrawl.lab.worlds.registry import WORLDS, build_world, summary_of, world_names
from recrawl.lab.worlds.world import Events, World, group_events

EVERY = pytest.mark.parametrize("name", world_names())


def arrays_of(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """All arrays inside a world."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from arrays_of(each)
    elif isinstance(value, tuple):
        for each in value:
            yield from arrays_of(each)
    elif is_dataclass(value):
        for field in fields(value):
            yield from arrays_of(getattr(value, field.name))


def digest(world: World) -> str:
    """A print of every bit of a world's arrays."""
    found = hashlib.sha256()
    for array in arrays_of(world):
        found.update(array.tobytes())
    return found.hexdigest()


def in_order(events: Events) -> bool:
    """Whether each page's events are in order of time."""
    page = page_of_events(events)
    return bool(((np.diff(events.times) >= 0) | (np.diff(page) > 0)).all())


@EVERY
def test_same_seed_same_world_to_the_bit(name: str) -> None:
    """Every array of a world follows from name, size and seed; another seed gives another world."""
    first = build_world(name, 300, 20.0, 7)
    assert digest(first) == digest(build_world(name, 300, 20.0, 7))
    assert digest(first) != digest(build_world(name, 300, 20.0, 8))
    assert first.name == name


@EVERY
@given(pages=st.integers(1, 40), horizon=st.floats(0.01, 60.0), seed=st.integers(0, 2**63))
@settings(max_examples=15, deadline=None)
def test_every_world_keeps_the_contract(name: str, pages: int, horizon: float, seed: int) -> None:
    """Events are in order, within the life of their page and the horizon; columns have one entry a page."""
    world = build_world(name, pages, horizon, seed)
    count = len(world)
    assert world.horizon == horizon
    assert count >= pages
    assert world.change_rate is not None
    for column in (world.importance, world.change_rate, world.born, world.removed):
        assert column.shape == (count,)
        assert column.dtype == np.float64
        assert not np.isnan(column).any()
    assert (world.importance >= 0).all()
    assert (world.removed >= world.born).all()
    for events in (world.changes, *(signals.events for signals in world.signals.values())):
        assert events.offsets[0] == 0
        assert events.offsets[-1] == len(events.times)
        assert len(events.offsets) == count + 1
        assert events.offsets.dtype == np.int64
        page = page_of_events(events)
        assert in_order(events)
        assert (events.times >= world.born[page]).all()
        assert (events.times <= np.minimum(world.removed, horizon)[page]).all()


@EVERY
def test_changes_come_at_the_rate_that_is_said(name: str) -> None:
    """The number of changes is the sum of rate times life, within five standard deviations of a bursty count."""
    horizon = 70.0  # whole weeks and days
    world = build_world(name, 4000, horizon, 3)
    assert world.change_rate is not None
    life = np.minimum(world.removed, horizon) - world.born
    expected = float((world.change_rate * life).sum())
    # Counts of bursts of size S vary E S²/E S = 5.8 times as much as Poisson counts, those of other worlds less.
    assert abs(len(world.changes.times) - expected) < 5 * np.sqrt(5.8 * expected)


@EVERY
def test_every_world_is_described(name: str) -> None:
    """The command line shows a line for each world."""
    assert summary_of(name).endswith(".")


@EVERY
@pytest.mark.parametrize(
    ("pages", "horizon", "field"),
    [(0, 1.0, "pages"), (-3, 1.0, "pages"), (5, 0.0, "horizon"), (5, -1.0, "horizon"), (5, float("nan"), "horizon")],
)
def test_empty_worlds_are_refused(name: str, pages: int, horizon: float, field: str) -> None:
    """A world without pages or time gets one sentence that names the argument."""
    with pytest.raises(InvalidInput, match=f"^{field} is ") as caught:
        build_world(name, pages, horizon, 0)
    assert caught.value.field == field


@EVERY
def test_negative_seeds_are_refused(name: str) -> None:
    """A seed is 0 or more."""
    with pytest.raises(InvalidInput, match="seed is -1"):
        build_world(name, 3, 1.0, -1)


def test_worlds_too_large_for_memory_are_refused() -> None:
    """A slip of the keyboard does not fill the memory."""
    with pytest.raises(InvalidInput, match="fewer pages or a shorter horizon"):
        build_world("uniform", 10_000, 1e9, 0)


@pytest.mark.parametrize(
    ("asked", "near"), [("unifrom", "uniform"), ("Zipf", "zipf"), ("burst", "bursty"), ("week", "weekly")]
)
def test_an_unknown_name_gets_the_nearest(asked: str, near: str) -> None:
    """The sentence suggests what was probably meant."""
    with pytest.raises(InvalidInput, match=f"did you mean '{near}'"):
        build_world(asked, 3, 1.0, 0)


def test_a_name_like_no_other_gets_the_list() -> None:
    """Without a near name all are listed."""
    with pytest.raises(InvalidInput, match=", ".join(WORLDS)):
        build_world("xyzzy", 3, 1.0, 0)


def test_poisson_counts_and_times_have_their_law() -> None:
    """Counts have mean and variance rate times length; times are uniform over the span."""
    pages = 20_000
    spans = Spans(np.full(pages, 2.0), np.full(pages, 12.0))
    events = poisson_events(stream(5, "test"), np.full(pages, 0.3), spans)
    counts = np.diff(events.offsets)
    assert counts.mean() == pytest.approx(3.0, rel=0.02)
    assert counts.var() == pytest.approx(3.0, rel=0.05)
    share = (events.times - 2.0) / 10.0
    assert 0 < share.min() < share.max() < 1
    histogram = np.histogram(share, bins=20, range=(0, 1))[0] / len(share)
    assert histogram == pytest.approx(np.full(20, 0.05), rel=0.1)
    # Of a page with one change, it lies anywhere; of one with two, the first is at a third on average.
    assert share[events.offsets[:-1][counts == 1]].mean() == pytest.approx(1 / 2, abs=0.02)
    assert share[events.offsets[:-1][counts == 2]].mean() == pytest.approx(1 / 3, abs=0.02)


def test_poisson_events_of_pages_without_rate_or_time() -> None:
    """A page with rate 0 or a span that ends before it starts has no events."""
    spans = Spans(np.array([0.0, 5.0, 0.0]), np.array([10.0, 1.0, 10.0]))
    events = poisson_events(stream(0, "test"), np.array([0.0, 9.0, 9.0]), spans)
    assert np.diff(events.offsets)[:2].tolist() == [0, 0]
    assert len(events.times) > 30


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 100)), max_size=60))
@settings(deadline=None)
def test_many_events_are_grouped_as_few_are(pairs: list[tuple[int, float]]) -> None:
    """The compiled grouping equals the plain one, to the bit."""
    from recrawl.lab.worlds.world import group_many_events

    page = np.array([page for page, _ in pairs], dtype=np.int64)
    times = np.array([time for _, time in pairs], dtype=np.float64)
    plain, fast = group_events(page, times, 7), group_many_events(page, times, 7)
    assert plain.offsets.tolist() == fast.offsets.tolist()
    assert plain.times.tobytes() == fast.times.tobytes()


def test_the_size_of_a_world_does_not_change_how_it_is_grouped() -> None:
    """Below and above the size from which compiled code groups, the answer is the same."""
    random = np.random.default_rng(2)
    page, times = random.integers(0, 1000, 120_000), random.random(120_000)
    plain, used = group_events(page, times, 1000), group(page, times, 1000)
    assert plain.times.tobytes() == used.times.tobytes()


def test_events_can_be_left_out() -> None:
    """What is left keeps its page and order."""
    events = Events(np.array([0, 2, 2, 4]), np.array([1.0, 2.0, 3.0, 4.0]))
    left = only(events, np.array([False, True, True, False]))
    assert left.offsets.tolist() == [0, 1, 1, 2]
    assert left.times.tolist() == [2.0, 3.0]


def test_uniform_and_zipf_populations() -> None:
    """Means and shares of the laws; Zipf's importance 1 has 6/π² of the pages."""
    uniform = draw_population("uniform", 50_000, 1)
    assert uniform.importance.mean() == pytest.approx(0.5, abs=0.01)
    assert uniform.change_rate.var() == pytest.approx(1 / 12, rel=0.03)
    zipf = draw_population("zipf", 50_000, 1)
    assert (zipf.importance == 1).mean() == pytest.approx(6 / np.pi**2, abs=0.01)
    assert (zipf.importance == 2).mean() == pytest.approx(1.5 / np.pi**2, abs=0.01)
    assert zipf.importance.max() <= 10_000
    assert zipf.change_rate.mean() == pytest.approx(0.5, abs=0.01)
    with pytest.raises(InvalidInput, match="law is 'gauss'"):
        draw_population("gauss", 5, 1)


def dispersion(world: World) -> float:
    """Variance of counts over what Poisson counts of the same rates would have."""
    assert world.change_rate is not None
    expected = world.change_rate * world.horizon
    return float(((np.diff(world.changes.offsets) - expected) ** 2).sum() / expected.sum())


def test_bursts_are_clustered_and_periods_are_regular() -> None:
    """Counts of clusters of 1 + Poisson(4) spread 5.8 times as widely as Poisson's, periodic ones hardly at all."""
    assert dispersion(build_world("uniform", 5000, 70.0, 1)) == pytest.approx(1.0, abs=0.1)
    assert dispersion(bursty(5000, 70.0, 1)) == pytest.approx((4**2 + 4 + 2 * 4 + 1) / 5, rel=0.1)
    assert dispersion(bursty(5000, 70.0, 1, burst=Burst(followers=0.0))) == pytest.approx(1.0, abs=0.1)
    assert dispersion(periodic(5000, 70.0, 1)) < 0.05


def test_rhythms_are_in_full_swing_from_the_start() -> None:
    """In the first hours too changes come at the mean rate: bursts and periods did not begin with the world."""
    for world in (bursty(40_000, 0.25, 5), periodic(40_000, 0.25, 5, jitter=1.0)):
        assert world.change_rate is not None
        assert len(world.changes.times) == pytest.approx(world.change_rate.sum() * 0.25, rel=0.05)


def test_periods_have_their_length_and_jitter() -> None:
    """Without jitter gaps are one over the rate; with it they differ from that by at most the jitter."""
    for jitter in (0.0, 0.1, 1.0):
        world = periodic(200, 50.0, 4, jitter=jitter)
        assert world.change_rate is not None
        page = page_of_events(world.changes)
        same = np.diff(page) == 0
        gaps = (np.diff(world.changes.times) * world.change_rate[page[1:]])[same]
        assert np.abs(gaps - 1).max() <= jitter + 1e-9
        assert in_order(world.changes)
    with pytest.raises(InvalidInput, match="jitter is 2"):
        periodic(5, 1.0, 0, jitter=2)


def test_days_and_weeks_have_their_rhythm() -> None:
    """The daily wave has its first harmonic; a weekend day has a tenth of a working day's changes."""
    times = daily(3000, 70.0, 2).changes.times
    wave = 2 * np.exp(2j * np.pi * times).mean()
    smeared = np.sinc(2 * 3 / 24)  # the peaks of pages lie within three hours around
    assert abs(wave) == pytest.approx(0.9 * smeared, abs=0.02)
    assert np.angle(wave) / (2 * np.pi) % 1 * 24 == pytest.approx(14.0, abs=0.2)
    day = np.floor(weekly(3000, 70.0, 2).changes.times) % 7
    assert (day >= 5).sum() / 2 / ((day < 5).sum() / 5) == pytest.approx(0.1, abs=0.01)


def test_pages_come_and_go_in_balance() -> None:
    """As many live at the end as at the start; lives are exponential, births uniform."""
    world = churn(5000, 100.0, 6, lifetime=40.0)
    assert (world.born == 0).sum() == 5000
    assert len(world) - 5000 == pytest.approx(5000 * 100 / 40, rel=0.03)
    for moment in (25.0, 50.0, 100.0):
        assert ((world.born <= moment) & (world.removed > moment)).sum() == pytest.approx(5000, rel=0.06)
    newborn = world.born[world.born > 0]
    assert newborn.mean() == pytest.approx(50.0, rel=0.03)
    early = world.born == 0
    assert (world.removed[early] > 40.0).mean() == pytest.approx(np.exp(-1), abs=0.03)
    assert not ((world.removed > 100.0) & np.isfinite(world.removed)).any()
    with pytest.raises(InvalidInput, match="lifetime is 0"):
        churn(5, 1.0, 0, lifetime=0.0)


def test_hosts_are_zipf_and_alike() -> None:
    """The largest of H hosts holds 1 over the H-th harmonic number; likeness is the variance between hosts."""
    world = hosts(50_000, 1.0, 3)
    assert world.hosts is not None
    assert world.change_rate is not None
    size = np.bincount(world.hosts.number)
    assert (size > 0).all()
    assert len(size) == len(world.hosts.names)
    assert size[0] / len(world) == pytest.approx(1 / (1 / np.arange(1, 224)).sum(), rel=0.05)
    rate = np.log(world.change_rate)
    mean = np.bincount(world.hosts.number, rate) / size
    within = float(((rate - mean[world.hosts.number]) ** 2).mean())
    assert within / 1.5**2 == pytest.approx(0.5, rel=0.1)
    alike = hosts(500, 1.0, 3, likeness=1.0, count=4)
    assert alike.change_rate is not None
    assert len(np.unique(alike.change_rate)) == 4
    with pytest.raises(InvalidInput, match="likeness is 2"):
        hosts(5, 1.0, 0, likeness=2)


def test_hosts_and_sections_of_names() -> None:
    """URLs give hosts, without regard to case and port; one name that is no URL gives none. Paths give sections."""
    found = hosts_of_addresses(["http://a.example:80/x", "https://A.example", "https://b.example/#"])
    assert found is not None
    assert found.names == ("a.example", "b.example")
    assert found.number.tolist() == [0, 0, 1]
    assert hosts_of_addresses(["http://a.example/x", "docs/index.md"]) is None
    assert hosts_of_addresses(["http://[broken/x"]) is None
    parts = sections(["a/b/c/d.md", "a/b/e.md", "a/f.md", "g.md"], depth=2)
    assert parts.names == ("a/b", "a", "")
    assert parts.number.tolist() == [0, 0, 1, 2]


def test_naming_worlds_loads_no_compiler() -> None:
    """The names for a command's help come without numba, Arrow or matplotlib."""
    import subprocess
    import sys

    code = (
        "import sys, recrawl.lab.worlds.registry, recrawl.lab.worlds.trace;"
        "print([name for name in ('numba', 'pyarrow', 'matplotlib') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
