"""Rows of the tables: sources in their order, read anew each time unless reading them takes long."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import pytest

from recrawl.service.dashboard import data
from recrawl.service.dashboard.data import SourceOrder, source_lines
from recrawl.store.rows import NewPage, SourceRow
from recrawl.store.store import Store, open_store


async def _add(store: Store, number: int, found: int) -> None:
    url = f"https://a.example/{number}"
    ((page, _),) = await store.add_pages([NewPage(url, "a.example")])
    await store.add_sources([SourceRow(page, "hub", polls=10, found=found)])


async def _twice(folder: Path) -> tuple[list[str], list[str], int]:
    """Addresses of sources in the table, before and after one more is added that found most."""
    store = await open_store(str(folder), owner=True)
    try:
        order = SourceOrder()
        await _add(store, 1, found=2)
        await _add(store, 2, found=5)
        before, _ = await source_lines(store, order)
        await _add(store, 3, found=9)
        after, hidden = await source_lines(store, order)
        return [line.url for line in before], [line.url for line in after], hidden
    finally:
        await store.close()


def test_sources_that_found_most_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "_LONG_S", math.inf)
    before, after, hidden = asyncio.run(_twice(tmp_path / "data"))
    assert before == ["https://a.example/2", "https://a.example/1"]
    assert after == ["https://a.example/3", *before]
    assert hidden == 0


def test_those_beyond_the_table_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "_LONG_S", math.inf)
    monkeypatch.setattr(data, "LINES_SHOWN", 1)
    _, after, hidden = asyncio.run(_twice(tmp_path / "data"))
    assert after == ["https://a.example/3"]
    assert hidden == 2


def test_sources_that_take_long_to_read_are_kept_for_a_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "_LONG_S", -1.0)
    monkeypatch.setattr(data, "_KEPT_TIMES", 1e9)
    before, after, _ = asyncio.run(_twice(tmp_path / "data"))
    assert after == before
