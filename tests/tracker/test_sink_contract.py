"""What every kind of sink keeps to: all events in order, at least once, under one id, whatever happens between."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType

import pytest
from sink_targets import TARGETS, Target
from test_sinks import HOSTILE, Time, append

from recrawl.errors import InvalidInput
from recrawl.store.rows import NewChange
from recrawl.store.store import Store, open_store
from recrawl.tracker.kinds import SINKS
from recrawl.tracker.settings.file import read_settings
from recrawl.tracker.settings.settings import Settings, SinkRule
from recrawl.tracker.sinks.registry import check_sinks, sink_module
from recrawl.tracker.sinks.sink import run_sink

Story = Callable[[Store, Target], Awaitable[None]]
KINDS = pytest.mark.parametrize("kind", list(SINKS))


def on_target(kind: str, folder: Path, story: Story) -> None:
    async def run() -> None:
        store = await open_store(str(folder / "data"), owner=True)
        try:
            async with TARGETS[kind](folder) as target:
                await story(store, target)
        finally:
            await store.close()

    asyncio.run(run())


async def life(store: Store, target: Target, rounds: int = 1) -> None:
    """One life of a sink: made, fed and closed."""
    clock = Time()
    sink = await sink_module(SINKS[target.rule.kind]).make(target.rule, target.settings, store, lambda: clock.at)
    await run_sink("s", sink, store, frozenset(), clock.around(rounds))


async def ids_of(store: Store) -> list[str]:
    return [change.id for change in await store.changes(0, 1000)]


@KINDS
def test_every_event_comes_once_and_in_order_over_restarts(tmp_path: Path, kind: str) -> None:
    async def story(store: Store, target: Target) -> None:
        for number in range(4):
            await append(store, [2 * number, 2 * number + 1])
            await life(store, target)
        assert target.ids() == await ids_of(store)

    on_target(kind, tmp_path, story)


@KINDS
def test_a_write_that_a_crash_cut_short_spoils_nothing_that_follows(tmp_path: Path, kind: str) -> None:
    async def story(store: Store, target: Target) -> None:
        await append(store, range(3))
        await life(store, target)
        target.tear()
        await append(store, [3, 4])
        await life(store, target)
        assert target.ids() == await ids_of(store)

    on_target(kind, tmp_path, story)


@KINDS
def test_a_target_that_cannot_be_written_is_tried_again_and_nothing_is_lost(tmp_path: Path, kind: str) -> None:
    async def story(store: Store, target: Target) -> None:
        await append(store, range(2))
        await life(store, target)
        target.set_broken(True)
        await append(store, [2, 3])
        await life(store, target, rounds=2)
        assert (await store.sink("s")).failures > 0
        target.set_broken(False)
        await life(store, target, rounds=50)
        assert target.ids() == await ids_of(store)
        assert (await store.sink("s")).failures == 0

    on_target(kind, tmp_path, story)


@KINDS
def test_an_address_that_would_break_a_document_comes_whole(tmp_path: Path, kind: str) -> None:
    async def story(store: Store, target: Target) -> None:
        hostile = HOSTILE.replace("\x00", "")
        await store.append_changes([NewChange("changed", 2e9, hostile, detail='{"reason": "]]><b>"}')])
        await append(store, [1])
        await life(store, target)
        assert target.ids() == await ids_of(store)

    on_target(kind, tmp_path, story)


@KINDS
def test_an_event_that_comes_again_has_the_same_id(tmp_path: Path, kind: str) -> None:
    """A crash between the write and the cursor: whoever reads can tell."""

    async def story(store: Store, target: Target) -> None:
        await append(store, range(3))
        await life(store, target)
        row = await store.sink("s")
        await store.save_sink(type(row)("s", 0), [])
        await life(store, target)
        assert list(dict.fromkeys(target.ids())) == await ids_of(store)

    on_target(kind, tmp_path, story)


@KINDS
@pytest.mark.parametrize("target", ["", "."])
def test_a_target_that_cannot_be_is_refused_before_anything_runs(kind: str, target: str) -> None:
    with pytest.raises(InvalidInput, match=r"sinks\.s\.target"):
        check_sinks(Settings(sinks=(SinkRule("s", kind, target),)))


def test_a_kind_that_nobody_knows_is_refused_in_the_settings_and_by_the_sinks(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('[[sinks]]\nname = "s"\nkind = "fax"\ntarget = "x"\n')
    for refused in (
        lambda: read_settings(path),
        lambda: check_sinks(Settings(sinks=(SinkRule("s", "fax", "x"),))),
    ):
        with pytest.raises(InvalidInput, match="one of jsonl, webhook, atom"):
            refused()


def test_a_kind_that_is_named_and_not_written_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "half_a_sink", ModuleType("half_a_sink"))
    with pytest.raises(ImportError, match="'check', which every sink has"):
        sink_module("half_a_sink")
    with pytest.raises(ImportError):
        sink_module("recrawl.tracker.sinks.nothing")


def test_every_kind_has_a_target_in_the_tests() -> None:
    assert set(TARGETS) == set(SINKS)
