"""Worlds that did happen: lives and changes from a history, against a plain replay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from real_histories import every_history, opened

from recrawl.errors import InvalidInput
from recrawl.files.history import (
    CHANGED,
    CREATED,
    REMOVED,
    SECONDS_A_DAY,
    ChangeHistory,
    ObservedCrawls,
    PageEvents,
    open_history,
)
from recrawl.lab.worlds.signals import announce
from recrawl.lab.worlds.trace import todays_schedule, trace_world

Happening = tuple[int, float, int]
Life = tuple[int, float, float, list[float]]


def history_of(
    happenings: Sequence[Happening], pages: int, end: float, importance: list[float] | None = None
) -> ChangeHistory:
    """A history of (page, day, kind) in order of time, from day 0."""
    page, day, kind = (np.array(column) for column in zip(*happenings, strict=True))
    events = PageEvents(page.astype(np.int32), 1e9 + day * SECONDS_A_DAY, kind.astype(np.int8))
    return ChangeHistory(
        name="made",
        page_names=tuple(f"page {index}" for index in range(pages)),
        importance=None if importance is None else np.array(importance),
        events=events,
        start=1e9,
        end=1e9 + end * SECONDS_A_DAY,
    )


def replay(happenings: Sequence[Happening], pages: int) -> list[Life]:
    """The slow, obvious twin: page, birth, removal and changes of each life, by page and birth."""
    lives: list[Life] = []
    for page in range(pages):
        alive: Life | None = None
        seen = False
        for day, kind in [(day, kind) for each, day, kind in happenings if each == page]:
            if not seen and kind != CREATED:
                alive = (page, 0.0, np.inf, [])
            seen = True
            if kind == REMOVED:
                if alive is not None:
                    lives.append((page, alive[1], day, alive[3]))
                alive = None
            elif alive is None:
                alive = (page, day, np.inf, [])
            else:
                alive[3].append(day)
        if alive is not None:
            lives.append(alive)
    return [
        (page, born, removed, sorted({day for day in changes if born < day < removed}))
        for page, born, removed, changes in lives
        if removed > born
    ]


def lives_in(happenings: Sequence[Happening], pages: int, end: float) -> list[Life]:
    """The same from a world."""
    world = trace_world(history_of(happenings, pages, end))
    assert world.page_names is not None
    cut = world.changes.offsets
    return [
        (
            int(world.page_names[life].removeprefix("page ")),
            world.born[life],
            world.removed[life],
            world.changes.times[cut[life] : cut[life + 1]].tolist(),
        )
        for life in range(len(world))
    ]


def test_a_page_created_again_is_a_new_page() -> None:
    """Two lives with one name; the gap belongs to neither."""
    found = lives_in([(0, 0, CREATED), (0, 2, CHANGED), (0, 3, REMOVED), (0, 5, CREATED), (0, 6, CHANGED)], 1, 8.0)
    assert found == [(0, 0.0, 3.0, [2.0]), (0, 5.0, np.inf, [6.0])]


def test_untidy_histories_make_sense() -> None:
    """Changes before a creation, second creations, changes after a removal, and removals of what is gone."""
    happenings = [
        (0, 0, CREATED),  # an ordinary page
        (1, 1, CHANGED),  # was there before
        (2, 1, REMOVED),  # was there before too
        (0, 2, CREATED),  # it exists: a change
        (2, 2, REMOVED),  # it is gone: nothing
        (2, 3, CHANGED),  # so it is back
        (1, 4, REMOVED),
        (3, 5, CREATED),  # gone when it came
        (3, 5, REMOVED),
    ]
    assert lives_in(happenings, 4, 6.0) == [
        (0, 0.0, np.inf, [2.0]),
        (1, 0.0, 4.0, [1.0]),
        (2, 0.0, 1.0, []),
        (2, 3.0, np.inf, []),
    ]


def test_events_at_one_time_are_one() -> None:
    """Two changes at a time count once, changes at birth or removal not at all."""
    happenings = [(0, 0, CREATED), (0, 0, CHANGED), (0, 2, CHANGED), (0, 2, CHANGED), (0, 3, CHANGED), (0, 3, REMOVED)]
    assert lives_in(happenings, 1, 4.0) == [(0, 0.0, 3.0, [2.0])]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 20), st.sampled_from([0, 1, 1, 1, 2])), min_size=1, max_size=40
    )
)
@settings(deadline=None, max_examples=300)
def test_any_history_is_replayed_as_its_twin_does(happenings: list[tuple[int, int, int]]) -> None:
    """Lives and changes equal those of a loop over events."""
    ordered = [(page, float(day), kind) for page, day, kind in sorted(happenings, key=lambda each: each[1])]
    expected = replay(ordered, 4)
    if not expected:
        with pytest.raises(InvalidInput, match="no page that exists"):
            lives_in(ordered, 4, 21.0)
    else:
        assert lives_in(ordered, 4, 21.0) == expected


def test_importance_as_given_or_uniform() -> None:
    """A second life weighs what the first did; without importance every page weighs 1."""
    happenings = [(0, 0, CREATED), (1, 0, CREATED), (0, 1, REMOVED), (0, 2, CREATED)]
    given_weights = history_of(happenings, 2, 3.0, [5.0, 2.0])
    assert trace_world(given_weights).importance.tolist() == [5.0, 5.0, 2.0]
    assert trace_world(given_weights, "uniform").importance.tolist() == [1.0, 1.0, 1.0]
    assert trace_world(history_of(happenings, 2, 3.0)).importance.tolist() == [1.0, 1.0, 1.0]


def test_a_trace_has_no_law_of_change() -> None:
    """Nobody knows rates, and change is not called Poisson."""
    world = trace_world(history_of([(0, 0, CREATED), (0, 1, CHANGED)], 1, 2.0))
    assert world.change_rate is None
    assert not world.poisson
    assert world.horizon == pytest.approx(2.0)
    assert world.hosts is None


def test_histories_without_time_or_pages_are_refused() -> None:
    """One sentence."""
    with pytest.raises(InvalidInput, match="spans no time"):
        trace_world(history_of([(0, 0, CREATED)], 1, 0.0))
    with pytest.raises(InvalidInput, match="no page that exists"):
        trace_world(history_of([(0, 1, CREATED), (0, 1, REMOVED)], 1, 2.0))


def test_todays_schedule_crawls_the_world_of_its_log(tmp_path: Path) -> None:
    """Its times are days from the first crawl, its pages are those of the world, and pages have hosts."""
    rows = ["https://a.example/1,0,0", "https://b.example/,43200,0", "https://a.example/1,86400,1"]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["url,time,changed", *rows]))
    history = open_history(path)
    world, log = trace_world(history), todays_schedule(history)
    assert log is not None
    assert log.page.tolist() == [0, 1, 0]
    assert log.page.dtype == np.int32
    assert log.time.tolist() == [0.0, 0.5, 1.0]
    assert world.born.tolist() == [0.0, 0.5]
    assert world.hosts is not None
    assert world.hosts.names == ("a.example", "b.example")
    assert 0 < world.changes.times[0] <= 1.0
    assert todays_schedule(history_of([(0, 0, CREATED)], 1, 1.0)) is None


def test_crawls_of_a_history_print_short() -> None:
    """No wall of numbers."""
    crawls = ObservedCrawls(np.zeros(3, np.int32), np.zeros(3), np.zeros(3, bool))
    assert repr(crawls) == "ObservedCrawls(3 crawls)"


@every_history
def test_real_traces(name: str) -> None:
    """Every creation is a life, no change is lost but doubles, and signals can be made from it."""
    history = opened(name)
    world = trace_world(history)
    kinds = np.bincount(history.events.kind, minlength=3)
    assert len(history) <= len(world) <= kinds[CREATED]
    assert 0.99 * kinds[CHANGED] <= len(world.changes.times) <= kinds[CHANGED]
    assert np.isfinite(world.removed).sum() <= kinds[REMOVED]
    assert world.horizon == pytest.approx((history.end - history.start) / SECONDS_A_DAY)
    again = trace_world(opened(name))
    assert world.changes.times.tobytes() == again.changes.times.tobytes()
    signals = announce(world, 0.7, 0.6, kind="sitemap", seed=1).signals["sitemap"].events
    assert len(signals.times) == pytest.approx(0.7 / 0.6 * len(world.changes.times), rel=0.02)
