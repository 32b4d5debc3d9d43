"""Signals beside crawling: recall, precision, delay, on worlds by law and on traces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.errors import InvalidInput
from recrawl.lab.worlds.laws import page_of_events, uniform, web
from recrawl.lab.worlds.signals import (
    Delay,
    SignalLaw,
    announce,
    announced,
    mean_change_rate,
    ncis,
    ncis_law,
    with_signals,
)
from recrawl.lab.worlds.world import World, no_events

WORLD = uniform(2000, 50.0, 1)
TRACE = replace(WORLD, change_rate=None, poisson=False)


def told_apart(world: World, kind: str = "signal") -> tuple[int, int]:
    """How many signals came with a change, and how many did not."""
    events = world.signals[kind].events
    changes = set(zip(page_of_events(world.changes).tolist(), world.changes.times.tolist(), strict=True))
    signals = list(zip(page_of_events(events).tolist(), events.times.tolist(), strict=True))
    true = sum(signal in changes for signal in signals)
    return true, len(signals) - true


@pytest.mark.parametrize("world", [WORLD, TRACE], ids=["law", "trace"])
@pytest.mark.parametrize("spread", ["by_page", "even"])
@pytest.mark.parametrize(("recall", "precision"), [(0.7, 0.6), (1.0, 1.0), (0.3, 0.9), (0.0, 0.5)])
def test_recall_and_precision_are_kept(world: World, spread: str, recall: float, precision: float) -> None:
    """The share of changes announced, and of signals that mean one, are as asked, however false ones are spread."""
    signalled = announce(world, recall, precision, seed=3, spread=spread)  # type: ignore[arg-type]
    true, false = told_apart(signalled)
    changes = len(world.changes.times)
    assert true / changes == pytest.approx(recall, abs=0.01)
    if recall:
        assert true / (true + false) == pytest.approx(precision, abs=0.01)
    else:
        assert true == false == 0


@pytest.mark.parametrize("world", [WORLD, TRACE], ids=["law", "trace"])
def test_false_signals_by_page_follow_its_changes(world: World) -> None:
    """Spread by page, each page has the precision asked for; spread evenly, all pages have one rate of false ones."""
    rate = mean_change_rate(world)
    by_page = announce(world, 0.5, 0.5, seed=1).signals["signal"].quality
    assert by_page is not None
    changing = rate > 0
    assert by_page.precision[changing] == pytest.approx(0.5)
    assert by_page.recall[changing] == pytest.approx(0.5)
    even = announce(world, 0.5, 0.5, seed=1, spread="even").signals["signal"].quality
    assert even is not None
    false = 0.5 * rate[changing] * (1 / even.precision[changing] - 1)
    assert false == pytest.approx(np.full(len(false), false[0]))


def test_precision_of_each_page_can_be_given() -> None:
    """Columns count page by page."""
    recall = np.where(np.arange(len(WORLD)) < 1000, 1.0, 0.0)
    events = announce(WORLD, recall, 1.0).signals["signal"].events
    counts = np.diff(events.offsets)
    assert counts[:1000].tolist() == np.diff(WORLD.changes.offsets)[:1000].tolist()
    assert counts[1000:].sum() == 0
    with pytest.raises(InvalidInput, match="one number for all"):
        announce(WORLD, recall, np.where(recall > 0, 0.5, 0.7), spread="even")


def test_signals_of_ncis() -> None:
    """Recall is Beta(¼, ¼), false signals come 0.35 times a day on average, and quality says what they are worth."""
    law = ncis_law(50_000, 2)
    assert law.recall.mean() == pytest.approx(0.5, abs=0.01)
    assert law.recall.var() == pytest.approx(1 / 6, rel=0.03)
    assert law.false_signal_rate.mean() == pytest.approx(0.35, abs=0.005)
    world = ncis(2000, 50.0, 2)
    true, false = told_apart(world)
    law = ncis_law(2000, 2)
    assert false == pytest.approx(law.false_signal_rate.sum() * 50, rel=0.02)
    assert true == pytest.approx((law.recall * np.diff(world.changes.offsets)).sum(), rel=0.02)
    quality = world.signals["signal"].quality
    assert quality is not None
    assert world.change_rate is not None
    expected = law.recall * world.change_rate / (law.recall * world.change_rate + law.false_signal_rate)
    assert quality.precision == pytest.approx(expected, abs=1e-9)
    assert ((quality.precision > 0) | (quality.recall == 0)).all()


def test_signals_change_nothing_else() -> None:
    """Changes and signals of other kinds stay as they were, and the order in which kinds are added is no matter."""
    plain = uniform(300, 20.0, 9)
    one = announce(plain, 0.5, 0.5, kind="sitemap", seed=4)
    both = announce(one, 0.9, 0.9, kind="feed", seed=4)
    other = announce(announce(plain, 0.9, 0.9, kind="feed", seed=4), 0.5, 0.5, kind="sitemap", seed=4)
    assert plain.signals == {}
    assert both.changes.times.tobytes() == plain.changes.times.tobytes()
    for kind in ("sitemap", "feed"):
        assert both.signals[kind].events.times.tobytes() == other.signals[kind].events.times.tobytes()
    assert one.signals["sitemap"].events.times.tobytes() == both.signals["sitemap"].events.times.tobytes()
    assert ncis(300, 20.0, 9).changes.times.tobytes() == plain.changes.times.tobytes()


def test_announced_pages_of_the_web() -> None:
    """About four pages in a hundred announce every change and nothing else."""
    world = announced(5000, 10.0, 3)
    counts = np.diff(world.signals["signal"].events.offsets)
    quality = world.signals["signal"].quality
    assert quality is not None
    assert quality.recall.mean() == pytest.approx(0.04, abs=0.01)
    assert counts.tolist() == np.where(quality.recall == 1, np.diff(world.changes.offsets), 0).tolist()
    assert world.changes.times.tobytes() == web(5000, 10.0, 3).changes.times.tobytes()


@pytest.mark.parametrize("law", ["fixed", "exponential", "poisson"])
def test_signals_may_be_late(law: str) -> None:
    """A delay moves true signals by its mean; those past the horizon are never heard."""
    world = announce(WORLD, 1.0, 1.0, delay=Delay(2.0, law, slot=0.5))  # type: ignore[arg-type]
    events = world.signals["signal"].events
    assert events.times.max() <= 50.0
    lost = 1 - len(events.times) / len(WORLD.changes.times)
    assert lost == pytest.approx(2.0 / 50.0, rel=0.1)
    if law == "poisson":
        first = world.changes.times[0]
        steps = (events.times[: events.offsets[1]][:, None] - world.changes.times[: world.changes.offsets[1]]) / 0.5
        assert np.isclose(steps, np.round(steps), atol=1e-9).any(axis=1).all()
        assert events.times[0] >= first
    with pytest.raises(InvalidInput, match="delay"):
        announce(WORLD, 1.0, 1.0, delay=Delay(-1.0))


def test_signals_end_with_their_page() -> None:
    """No signal of a page before its birth or after its removal."""
    world = replace(WORLD, born=np.full(2000, 10.0), removed=np.full(2000, 30.0), changes=no_events(2000))
    law = SignalLaw(np.full(2000, 1.0), np.full(2000, 0.5))
    times = with_signals(world, law).signals["signal"].events.times
    assert times.min() >= 10.0
    assert times.max() <= 30.0
    assert len(times) == pytest.approx(2000 * 0.5 * 20, rel=0.05)


def test_the_even_rate_of_a_trace_without_changes_is_none() -> None:
    """Nothing to announce, nothing to be wrong about."""
    silent = replace(TRACE, changes=no_events(2000))
    for spread in ("by_page", "even"):
        events = announce(silent, 0.7, 0.6, spread=spread).signals["signal"].events
        assert len(events.times) == 0


@pytest.mark.parametrize(
    ("recall", "precision", "sentence"),
    [
        (1.5, 0.5, r"recall\[0\] is 1.5"),
        (-0.1, 0.5, r"recall\[0\] is -0.1"),
        (float("nan"), 0.5, r"recall\[0\] is nan"),
        (0.5, 0.0, r"precision\[0\] is 0 while recall"),
        (0.5, 2.0, r"precision\[0\] is 2"),
    ],
)
def test_impossible_quality_is_refused(recall: float, precision: float, sentence: str) -> None:
    """One sentence names the field."""
    with pytest.raises(InvalidInput, match=sentence):
        announce(WORLD, recall, precision)


def test_columns_of_another_length_are_refused() -> None:
    """A column has one entry a page."""
    with pytest.raises(InvalidInput, match="one for each of the 2000 pages"):
        announce(WORLD, np.ones(3), 1.0)


@given(recall=st.floats(0, 1), precision=st.floats(1e-3, 1), seed=st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_any_quality_gives_legal_signals(recall: float, precision: float, seed: int) -> None:
    """Signals are in order and inside the horizon, and quality is never NaN."""
    world = announce(uniform(20, 5.0, seed), recall, precision, seed=seed)
    events, quality = world.signals["signal"]
    assert quality is not None
    page = page_of_events(events)
    assert ((np.diff(events.times) >= 0) | (np.diff(page) > 0)).all()
    assert ((events.times >= 0) & (events.times <= 5.0)).all()
    assert not np.isnan(quality.precision).any()
    assert not np.isnan(quality.recall).any()
