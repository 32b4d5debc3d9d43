"""A tracker on a living web for a measure: however it ends, nothing of it is left open."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from recrawl.bench.living_run import LivingRun, crawl, living_settings
from recrawl.bench.living_truth import calm_world
from recrawl.errors import InvalidInput, StoreError
from recrawl.lab.livingweb.server import LivingWeb
from recrawl.tracker.admission import PageRequest
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.tracker import Tracker

RUN = LivingRun(
    calm_world(20, 4, 5, laws="poisson", decades=1.0), days=10_000.0, speedup=1000.0
)  # has no end of its own


def settings(web: LivingWeb, folder: str) -> Settings:
    return living_settings(web, folder, 10_000.0, 1.0)


def wanted(web: LivingWeb) -> Sequence[PageRequest]:
    return [PageRequest(web.world.url(page, web.port), 1.0) for page in range(20)]


def open_stores() -> list[str]:
    return [
        thread.name for thread in threading.enumerate() if thread.name.startswith(("recrawl-writes", "recrawl-reads"))
    ]


def test_pages_that_cannot_be_had_leave_no_store_open() -> None:
    def broken(_web: LivingWeb) -> Sequence[PageRequest]:
        raise InvalidInput("is broken", field="wanted")

    before = open_stores()
    with pytest.raises(InvalidInput, match="wanted is broken"):
        crawl(RUN, settings, broken)
    assert open_stores() == before


def test_a_tracker_that_fails_leaves_no_store_open_and_nothing_running() -> None:
    """Its data is taken away while it crawls."""
    before, ends = open_stores(), []

    async def beside(tracker: Tracker, _web: LivingWeb) -> None:
        try:
            shutil.rmtree(Path(tracker.settings.store))
            await asyncio.Event().wait()
        finally:
            ends.append("beside")

    with pytest.raises(StoreError):
        crawl(RUN, settings, wanted, beside)
    assert open_stores() == before
    assert ends == ["beside"]


def test_what_fails_beside_a_tracker_ends_the_run_at_once() -> None:
    before = open_stores()

    async def beside(_tracker: Tracker, _web: LivingWeb) -> None:
        raise InvalidInput("is no key", field="key")

    with pytest.raises(InvalidInput, match="key is no key"):
        crawl(RUN, settings, wanted, beside)
    assert open_stores() == before
