"""The example that keeps a search index in step: on the living web, and event by event."""

from __future__ import annotations

import asyncio
import importlib.util
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from recrawl.lab.demo.index_run import INDEX_KINDS, IndexScene, compare, example_program, prove_index, says
from recrawl.lab.livingweb.world import LivingWorld
from recrawl.lab.livingweb.world_settings import WorldSettings

PROGRAM = example_program()
EPOCH = 1_767_225_600
DAY = 86_400.0
PORT = 80


def example() -> ModuleType:
    """The example as a module: it is a file to be copied, and no part of the package."""
    assert PROGRAM is not None
    spec = importlib.util.spec_from_file_location("search_index_example", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


adapter = example()


@dataclass(slots=True)
class Texts:
    """Stands in for the API: texts by page."""

    by_page: dict[int, str] = field(default_factory=dict)

    def text(self, page: int) -> str:
        return self.by_page[page]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(adapter.open_index(str(tmp_path / "index.db"))) as connection:
        yield connection


def event(kind: str, page: int, url: str, **detail: str) -> dict[str, Any]:
    return {"kind": kind, "page": page, "url": url, "detail": detail}


def entries(index: sqlite3.Connection) -> dict[str, tuple[int, str]]:
    return {url: (page, body) for page, url, body in index.execute("SELECT page, url, body FROM entries")}


def test_the_index_is_the_frozen_site_and_each_event_is_one_write() -> None:
    """The tracker follows a site that changes, grows, moves and shrinks; the follower is killed while it writes."""
    assert PROGRAM is not None
    scene = IndexScene(pages=40, hosts=4, days=4.0, days_after=3.0, days_per_s=0.6, kills=2)
    result = asyncio.run(prove_index(PROGRAM, scene))
    standing = result.standing
    assert result.holds, result.as_json()
    assert standing.against_site.right >= 30
    assert 0 < standing.detected_changes <= standing.true_changes
    assert standing.writes == standing.events > 40


def test_events_become_entries_that_can_be_found(index: sqlite3.Connection) -> None:
    api = Texts({1: "apples and pears", 2: 'plums, "quoted"'})
    adapter.take(index, api, [event("discovered", 1, "a"), event("discovered", 2, "b")], 2)
    assert [url for url, _ in adapter.search(index, "pears")] == ["a"]
    assert adapter.search(index, 'no " such OR') == []
    api.by_page[1] = "apples and cherries"
    adapter.take(index, api, [event("changed", 1, "a"), event("removed", 2, "b")], 4)
    assert adapter.search(index, "pears") == adapter.search(index, "plums") == []
    assert [url for url, _ in adapter.search(index, "cherries")] == ["a"]
    adapter.take(index, api, [event("restored", 2, "b")], 5)
    assert entries(index) == {"a": (1, "apples and cherries"), "b": (2, 'plums, "quoted"')}
    index.execute("INSERT INTO words (words) VALUES ('integrity-check')")


def test_a_page_that_moves_keeps_its_entry_until_it_is_seen_there(index: sqlite3.Connection) -> None:
    """Its number at the new address takes over; one that is there already stays, and the old entry goes."""
    api = Texts({1: "one", 2: "one, moved", 3: "three"})
    adapter.take(index, api, [event("discovered", 1, "old"), event("moved", 1, "old", to="new")], 2)
    assert entries(index) == {"new": (1, "one")}
    adapter.take(index, api, [event("discovered", 2, "new")], 3)
    assert entries(index) == {"new": (2, "one, moved")}
    adapter.take(index, api, [event("discovered", 3, "other"), event("moved", 3, "other", to="new")], 5)
    assert entries(index) == {"new": (2, "one, moved")}
    index.execute("INSERT INTO words (words) VALUES ('integrity-check')")


def test_entries_and_cursor_are_written_together_or_not_at_all(index: sqlite3.Connection) -> None:
    """An error in the middle, as a crash, leaves the index at the event before; taken again, nothing is doubled."""
    api = Texts({1: "one", 2: "two"})
    adapter.take(index, api, [event("discovered", 1, "a")], 1)
    with pytest.raises(KeyError):
        adapter.take(index, api, [event("discovered", 2, "b"), event("moved", 1, "a")], 3)  # says not where
    assert entries(index) == {"a": (1, "one")}
    assert adapter.place_of(index) == 1
    for _ in range(2):
        adapter.take(index, api, [event("discovered", 2, "b")], 2)
    assert entries(index) == {"a": (1, "one"), "b": (2, "two")}
    assert adapter.place_of(index) == 2


def test_the_example_asks_for_the_events_that_are_counted() -> None:
    assert tuple(adapter.KINDS.split(",")) == INDEX_KINDS


@pytest.fixture(scope="module")
def world() -> LivingWorld:
    return LivingWorld(WorldSettings(pages=60, hosts=6, epoch=EPOCH, every_host={"hub": False}))


def truth(world: LivingWorld, now: float) -> dict[str, str]:
    """An index that is as the site is."""
    urls = [world.url(page, PORT, now) for page in range(len(world)) if world.state(page, now) in ("alive", "moved")]
    return {url: "\n".join(says(world, PORT, now, url) or ()) for url in urls}


def test_an_index_is_held_against_the_site_page_by_page(world: LivingWorld) -> None:
    now = EPOCH + 6 * DAY
    right = truth(world, now)
    whole = compare(world, PORT, now, right)
    assert (whole.right, whole.stale, whole.missing, whole.surplus) == (len(right), (), (), ())
    (url, *_) = right
    assert compare(world, PORT, now, {each: right[each] for each in right if each != url}).missing == (url,)
    gone = next(world.url(page, PORT) for page in range(len(world)) if world.state(page, now) == "gone")
    moved = next(world.url(page, PORT) for page in range(len(world)) if world.state(page, now) == "moved")
    strange = f"http://{world.hosts[0].name}:{PORT}/no/such-page"
    surplus = compare(world, PORT, now, {**right, gone: "x", moved: "x", strange: "x"}).surplus
    assert surplus == (gone, moved, strange)


def test_a_copy_that_is_one_change_old_is_stale(world: LivingWorld) -> None:
    now = EPOCH + 6 * DAY
    checked = 0
    for page in range(len(world)):
        changes = world.changes(page, EPOCH, now)
        if changes and world.state(page, now) == "alive":
            url = world.url(page, PORT, now)
            old = {url: "\n".join(says(world, PORT, changes[-1] - 1.0, url) or ())}
            assert compare(world, PORT, now, old).stale == (url,)
            checked += 1
    assert checked > 20


def test_a_list_says_the_titles_of_its_pages(world: LivingWorld) -> None:
    now = EPOCH + DAY
    page = next(page for page in range(len(world)) if world.state(page, now) == "alive")
    url = world.url(page, PORT, now)
    listed = says(world, PORT, now, url.rpartition("/")[0] + "/")
    assert listed
    assert says(world, PORT, now, f"http://{world.hosts[0].name}:{PORT}/") == []
    assert says(world, PORT, now, f"http://{world.hosts[0].name}:{PORT}/nowhere/") is None
