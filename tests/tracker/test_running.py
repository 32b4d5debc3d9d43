"""A tracker and what runs beside it: the first that fails ends all of it."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from sqlite3 import connect

import pytest
from tracker_ground import FAST, SHORT

from patience import patience
from recrawl.errors import StoreTaken
from recrawl.tracker.process import run_tracker, serving, stop_after
from recrawl.tracker.tracker import Tracker


class SinkError(Exception):
    """A sink that is dead."""


@pytest.mark.parametrize("fetch", [True, False])
def test_a_companion_that_fails_ends_the_tracker_with_its_error(tmp_path: Path, fetch: bool) -> None:
    ended: list[str] = []

    async def fails(_: Tracker) -> None:
        raise SinkError

    async def goes_on(tracker: Tracker) -> None:
        await tracker.pause(1e9)
        ended.append("told to stop")

    async def story() -> None:
        settings = replace(FAST, store=str(tmp_path))
        async with patience("the tracker to end"):
            await run_tracker(settings, lambda _: None, [goes_on, fails], wanted=None, timing=SHORT, fetch=fetch)

    with pytest.raises(SinkError):
        asyncio.run(story())
    assert ended == ["told to stop"]


@pytest.mark.parametrize("fetch", [True, False])
def test_it_stops_by_itself_after_some_time_and_says_what_it_did(tmp_path: Path, fetch: bool) -> None:
    async def story() -> dict[str, int | float]:
        settings = replace(FAST, store=str(tmp_path))
        async with patience("the tracker to end"):
            return await run_tracker(settings, lambda _: None, [stop_after(0.01)], timing=SHORT, fetch=fetch)

    assert asyncio.run(story())["taken"] == 0


def test_a_tracker_that_serves_a_block_stops_when_its_store_is_taken_and_raises_that_at_the_end(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            patience("the tracker to stop"),
            serving(replace(FAST, store=str(tmp_path)), print, SHORT) as tracker,
        ):
            with closing(connect(tmp_path / "recrawl.db")) as other, other:
                other.execute("UPDATE ledger SET generation = generation + 1")
            await tracker.pause(1e9)

    with pytest.raises(StoreTaken):
        asyncio.run(story())
