"""Copies of a PostgreSQL store: whole, of one moment, and refused if they are anything else."""

from __future__ import annotations

import asyncio
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from postgres_server import PostgresServer
from store_samples import NOW, add, changed_result, lease_all, new_pages, run
from xxhash import xxh3_128_digest

from recrawl.errors import InvalidInput, StoreDamaged, StoreError, StoreNewer
from recrawl.store.postgres.backend import open_postgres
from recrawl.store.postgres.backup import restore_postgres
from recrawl.store.rows import HostRow, NewChange, SinkRow
from recrawl.store.store import Store

BODY = b"<html>body</html>\0" * 100


async def filled(dsn: str) -> Store:
    """A store with something in each of its tables."""
    store = await open_postgres(dsn, owner=True)
    leased = await lease_all(
        store, await add(store, 6, group="news", objective="pages", source="tab\tline\nback\\slash")
    )
    await store.complete([changed_result(page, lease) for page, lease in leased[:4]], {"fetched": 4})
    await store.put_body(xxh3_128_digest(BODY), BODY)
    await store.add_signals([1, 2], "ping", NOW)
    await store.pause("group", "news", NOW)
    await store.save_sink(SinkRow("file", 2))
    await store.save_facts({"settings": "abc"})
    await store.save_hosts([HostRow("other", 2.0, learned=b"\0\xff")])
    await store.post("add", b"{}", NOW)
    return store


async def everything(store: Store) -> list[object]:
    schedule = await store.load_schedule()
    return [
        await store.list_pages(limit=100), await store.leases(), await store.all_observations(), await store.changes(),
        await store.hosts(), await store.facts(), await store.tallies(), await store.orders(), await store.paused(),
        await store.pending_signals(), await store.sink("file"), await store.read_body(xxh3_128_digest(BODY)),
        await store.versions(1), await store.read_text(1), await store.counts(), store.store_id,
        schedule.page_id.tolist(), schedule.held.tolist(), schedule.hosts, schedule.objectives,
    ]  # fmt: skip


def test_a_restored_store_is_the_one_that_was_backed_up(
    postgres: PostgresServer, database: str, tmp_path: Path
) -> None:
    other = postgres.fresh_database()

    async def story() -> None:
        store = await filled(postgres.dsn(database))
        backup = tmp_path / "copy.zip"
        await store.backup(backup)
        assert backup.stat().st_mode & 0o777 == 0o600
        assert [file.name for file in tmp_path.iterdir()] == ["copy.zip"]
        with pytest.raises(InvalidInput, match="already"):
            await store.backup(backup)
        await restore_postgres(backup, postgres.dsn(other))
        copy = await open_postgres(postgres.dsn(other), owner=True)
        assert await everything(copy) == await everything(store)
        assert await copy.check() == []
        assert copy.generation == 2
        # Numbers go on where they were: none is given twice.
        assert await copy.add_pages(new_pages(7)) == [(number, number == 7) for number in range(1, 8)]
        [(_, lease)] = await lease_all(copy, [7])
        assert lease.token == 7
        assert await copy.append_changes([NewChange("network_up", NOW, "")]) == [5]
        await copy.close()
        with pytest.raises(StoreError, match="empty database"):
            await restore_postgres(backup, postgres.dsn(other))
        await store.close()

    run(story())
    postgres.drop(other)


def test_a_backup_is_of_one_moment_while_others_write(postgres: PostgresServer, database: str, tmp_path: Path) -> None:
    other = postgres.fresh_database()

    async def story() -> None:
        store = await open_postgres(postgres.dsn(database), owner=True)
        done = asyncio.Event()

        async def write() -> None:
            while not done.is_set():
                await store.append_changes([NewChange("network_up", NOW, "")] * 3)
                await store.raise_tallies({"events": 3})

        async def back_up() -> None:
            await store.backup(tmp_path / "copy.zip")
            done.set()

        await asyncio.gather(write(), back_up())
        await restore_postgres(tmp_path / "copy.zip", postgres.dsn(other))
        copy = await open_postgres(postgres.dsn(other), owner=False)
        assert await copy.check() == []
        assert (await copy.last_cursor()) - (await copy.tallies()).get("events", 0) in (0, 3)
        await copy.close()
        await store.close()

    run(story())
    postgres.drop(other)


def test_a_place_that_cannot_be_written_is_told(postgres: PostgresServer, database: str, tmp_path: Path) -> None:
    async def story() -> None:
        store = await open_postgres(postgres.dsn(database), owner=True)
        with pytest.raises(StoreError, match="name a place"):
            await store.backup(tmp_path / "nowhere" / "copy.zip")
        await store.close()

    run(story())


def _edit_manifest(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, bytes]], None]:
    def edit(files: dict[str, bytes]) -> None:
        manifest = json.loads(files["manifest.json"])
        change(manifest)
        files["manifest.json"] = json.dumps(manifest).encode()

    return edit


SPOILED: dict[str, tuple[Callable[[dict[str, bytes]], Any], type[StoreError]]] = {
    "a path that leads out": (lambda files: files.update({"../evil": b""}), StoreDamaged),
    "an absolute path": (lambda files: files.update({"/etc/evil": b""}), StoreDamaged),
    "a file too many": (lambda files: files.update({"more.copy": b""}), StoreDamaged),
    "a table too few": (lambda files: files.pop("pages.copy"), StoreDamaged),
    "no manifest": (lambda files: files.pop("manifest.json"), StoreDamaged),
    "a manifest that is none": (lambda files: files.update({"manifest.json": b"[]"}), StoreDamaged),
    "another format": (_edit_manifest(lambda manifest: manifest.update(format="other")), StoreDamaged),
    "a newer version": (_edit_manifest(lambda manifest: manifest.update(tables_version=999)), StoreNewer),
    "other columns": (_edit_manifest(lambda manifest: manifest["tables"]["pages"].update(columns=["x"])), StoreDamaged),
    "a table cut short": (lambda files: files.update({"pages.copy": files["pages.copy"][:-20]}), StoreDamaged),
    "a digit changed": (
        lambda files: files.update({"changes.copy": files["changes.copy"].replace(b"changed", b"removed")}),
        StoreDamaged,
    ),
}


@pytest.fixture(scope="module")
def backup(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good backup."""
    path = tmp_path_factory.mktemp("backup") / "good.zip"
    database = postgres.fresh_database()

    async def make() -> None:
        store = await filled(postgres.dsn(database))
        await store.backup(path)
        await store.close()

    run(make())
    postgres.drop(database)
    return path


@pytest.mark.parametrize("how", SPOILED)
def test_a_file_that_is_no_whole_backup_is_refused_and_nothing_is_written(
    how: str, backup: Path, postgres: PostgresServer, database: str, tmp_path: Path
) -> None:
    with zipfile.ZipFile(backup) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    spoil, kind = SPOILED[how]
    spoil(files)
    with zipfile.ZipFile(tmp_path / "spoiled.zip", "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    with pytest.raises(kind):
        run(restore_postgres(tmp_path / "spoiled.zip", postgres.dsn(database)))
    assert postgres.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'recrawl'", database) == "0"
    assert [file.name for file in tmp_path.iterdir()] == ["spoiled.zip"]


def test_a_backup_cut_short_at_any_place_is_refused(
    backup: Path, postgres: PostgresServer, database: str, tmp_path: Path
) -> None:
    whole = backup.read_bytes()
    short = tmp_path / "short.zip"
    for length in (0, 1, len(whole) // 3, len(whole) // 2, len(whole) - 1):
        short.write_bytes(whole[:length])
        with pytest.raises(StoreDamaged, match="nothing was restored"):
            run(restore_postgres(short, postgres.dsn(database)))
    with pytest.raises(InvalidInput, match="does not exist"):
        run(restore_postgres(tmp_path / "absent.zip", postgres.dsn(database)))
