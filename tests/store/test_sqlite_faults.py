"""What SQLite stores do when the disk, the file or another program is in the way."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from store_samples import NOW, SqliteMaker, add, changed_result, fetch, lease_all, new_pages, opened, run

from patience import PATIENCE_S, ticks
from recrawl.errors import StoreBusy, StoreDamaged, StoreError, StoreFull, StoreLost, StoreNewer, StoreTaken
from recrawl.store.rows import HostRow
from recrawl.store.sqlite.backend import SqliteBackend, log_bytes, long_log, open_sqlite
from recrawl.store.sqlite.errors import sqlite_warning
from recrawl.store.sqlite.session import Session
from recrawl.store.store import Store


@pytest.fixture
def maker(tmp_path: Path) -> SqliteMaker:
    return SqliteMaker(tmp_path / "data")


def file_of(maker: SqliteMaker) -> Path:
    return maker.folder / "recrawl.db"


def made(maker: SqliteMaker, pages: int = 50) -> Path:
    """A store with some pages, closed; its file."""

    async def story() -> None:
        async with opened(maker) as store:
            await add(store, pages)
            await fetch(store, 1)

    run(story())
    return file_of(maker)


@contextmanager
def tiny_disk(folder: Path) -> Iterator[Path]:
    """A disk of 3 MB."""
    folder.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no right to mount a small disk here; the bound on file sizes is tried instead")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


async def _fill_and_go_on(store: Store, free: Callable[[], None]) -> None:
    """Write until nothing more fits; then nothing partial is there, and all goes on when there is space."""
    [page_id, *_rest] = await add(store, 3)
    [leased] = await lease_all(store, [page_id])
    written = 0

    async def fill() -> None:
        nonlocal written
        while True:
            await store.save_hosts([HostRow(f"{written + place}", robots=os.urandom(20_000)) for place in range(10)])
            written += 10

    with pytest.raises(StoreFull, match="space"):
        await fill()
    assert len(await store.hosts()) == written
    free()
    assert await store.complete([changed_result(*leased)]) == ["applied"]
    assert await store.last_cursor() == 1
    assert len(await store.hosts()) == written + 1
    assert await store.check() == []


def test_a_full_disk_loses_nothing_and_goes_on_when_there_is_space(tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "disk") as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(1_000_000))

        async def story() -> None:
            async with opened(SqliteMaker(disk / "data")) as store:
                await _fill_and_go_on(store, ballast.unlink)

        run(story())


def test_a_bound_on_file_sizes_is_taken_as_a_full_disk(maker: SqliteMaker) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    async def story() -> None:
        async with opened(maker) as store:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, hard))
            await _fill_and_go_on(store, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard)))

    try:
        run(story())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_calls_beside_one_that_finds_the_disk_full_are_done(maker: SqliteMaker) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    async def story() -> None:
        async with opened(maker) as store:
            ids = await add(store, 5)
            resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, hard))
            large = store.save_hosts([HostRow("large", robots=bytes(5_000_000))])
            *answers, failure = await asyncio.gather(
                *(store.lease([page_id], "w", NOW, NOW + 1) for page_id in ids), large, return_exceptions=True
            )
            assert isinstance(failure, StoreFull)
            assert [len(leased) for leased in answers if isinstance(leased, list)] == [1] * 5
            assert len(await store.leases()) == 5

    try:
        run(story())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_lock_held_by_another_program_is_waited_for_and_then_reported(maker: SqliteMaker) -> None:
    file = made(maker)

    async def story() -> None:
        store = await open_sqlite(maker.folder, owner=True, busy_s=0.2)
        with closing(apsw.Connection(str(file))) as other:
            other.execute("BEGIN IMMEDIATE")
            for _ in range(2):
                with pytest.raises(StoreBusy, match="locked by another program"):
                    await store.raise_tallies({"n": 1})
            assert (await store.counts()).pages["active"] == 50  # readers do not wait
            other.execute("ROLLBACK")
            await store.raise_tallies({"n": 1})
            other.execute("BEGIN IMMEDIATE")
            waiting = asyncio.create_task(store.raise_tallies({"n": 1}))
            await asyncio.sleep(0)
            other.execute("ROLLBACK")
            await waiting
        assert await store.tallies() == {"n": 2}
        await store.close()

    run(story())


@pytest.mark.parametrize("damage", ["cut short", "header", "not a database", "empty", "another program's"])
def test_a_damaged_file_is_refused_and_left_as_it_is(maker: SqliteMaker, damage: str) -> None:
    file = made(maker, pages=500)
    whole = file.read_bytes()
    other = maker.folder / "other"
    with closing(apsw.Connection(str(other))) as connection:
        connection.execute("CREATE TABLE t (x)")
    spoiled = {
        "cut short": whole[: len(whole) // 2],
        "header": b"\xff" * 100 + whole[100:],
        "not a database": b"{}" * 5000,
        "empty": b"",
        "another program's": other.read_bytes(),
    }[damage]
    other.unlink()
    file.write_bytes(spoiled)
    for owner in (True, False):
        with pytest.raises(StoreDamaged, match=r"recrawl\.db"):
            run(maker.open(owner=owner))
        assert file.read_bytes() == spoiled
    assert [path.name for path in maker.folder.iterdir() if not path.name.startswith("recrawl.db-")] == ["recrawl.db"]
    file.write_bytes(whole)

    async def story() -> None:
        async with opened(maker) as store:
            assert (await store.counts()).pages["active"] == 500

    run(story())


def test_damage_inside_is_found_where_it_is_read_and_by_the_check(maker: SqliteMaker) -> None:
    file = made(maker, pages=2000)
    with closing(apsw.Connection(str(file))) as connection:
        [(root,)] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'pages'")
        [(size,)] = connection.execute("PRAGMA page_size")
    with file.open("r+b") as stream:
        stream.seek((root - 1) * size)
        stream.write(b"\xff" * 200)

    async def story() -> None:
        async with opened(maker) as store:
            with pytest.raises(StoreDamaged, match="restore a backup"):
                await store.load_schedule()
            try:
                assert await store.check()
            except StoreDamaged:
                return

    run(story())


def test_a_file_of_a_newer_recrawl_is_refused_and_left_as_it_is(maker: SqliteMaker) -> None:
    file = made(maker)
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute("PRAGMA user_version = 999")
    before = file.read_bytes()
    for owner in (True, False):
        with pytest.raises(StoreNewer, match="tables 999"):
            run(maker.open(owner=owner))
    assert file.read_bytes() == before


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """Root may write anywhere but on a disk that is mounted to be read."""
    data = tmp_path / "data"
    if os.geteuid() != 0:
        data.mkdir()
        data.chmod(0o500)
        with pytest.raises(StoreError, match="writable"):
            run(SqliteMaker(data).open())
        return
    with tiny_disk(tmp_path / "disk") as disk:
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        with pytest.raises(StoreError, match="writable"):
            run(SqliteMaker(disk / "data").open())


def test_a_file_where_the_folder_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("mine")
    with pytest.raises(ValueError, match="must be a folder"):
        run(SqliteMaker(tmp_path / "data").open())
    assert (tmp_path / "data").read_text() == "mine"


@pytest.mark.parametrize("event", ["deleted", "replaced"])
def test_a_file_that_is_deleted_or_replaced_under_way_is_noticed(maker: SqliteMaker, event: str) -> None:
    async def story() -> None:
        store = await maker.open()
        await add(store, 2)
        file = file_of(maker)
        if event == "replaced":
            shutil.copy(file, maker.folder / "copy")
            (maker.folder / "copy").rename(file)
        else:
            file.unlink()
        for attempt in (store.add_pages(new_pages(3)), store.counts()):
            with pytest.raises(StoreLost, match="moved, deleted or replaced"):
                await attempt
        await store.close()

    run(story())


def test_an_owner_whose_place_was_taken_may_not_write(maker: SqliteMaker) -> None:
    async def story() -> None:
        async with opened(maker) as store:
            ids = await add(store, 1)
            with closing(apsw.Connection(str(file_of(maker)))) as other:
                other.execute("UPDATE ledger SET generation = generation + 1")
            with pytest.raises(StoreLost, match="another owner"):
                await store.lease(ids, "w", NOW, NOW + 1)
            assert await store.leases() == []

    run(story())


def test_a_long_reader_stops_nobody_and_the_log_shrinks_after_it(maker: SqliteMaker) -> None:
    async def story() -> None:
        async with opened(maker) as store:
            file = file_of(maker)
            with closing(apsw.Connection(str(file))) as reader:
                reader.execute("BEGIN")
                list(reader.execute("SELECT count(*) FROM pages"))
                for number in range(40):
                    await store.save_hosts([HostRow(f"{number}", robots=os.urandom(1_000_000))])
                grown = log_bytes(file)
                assert grown > 40_000_000
                [sentence] = long_log(file, 1_000_000)
                assert "reads for long" in sentence
                assert long_log(file) == []
                reader.execute("COMMIT")
            for number in range(40):
                await store.save_hosts([HostRow(f"{number}", robots=os.urandom(1_000_000))])
            assert log_bytes(file) <= 70_000_000
            assert len(await store.hosts()) == 40

    run(story())


def test_files_are_for_their_user_alone(maker: SqliteMaker) -> None:
    async def story() -> None:
        async with opened(maker) as store:
            await add(store, 1)
            await store.put_body(bytes.fromhex("99aa06d3014798d86001c324468d497f"), b"")
            paths = list(maker.folder.rglob("*"))
            assert {path.stat().st_mode & 0o777 for path in paths if path.is_file()} == {0o600}
            assert {path.stat().st_mode & 0o777 for path in [maker.folder, *paths] if path.is_dir()} == {0o700}
            assert {path.name for path in maker.folder.iterdir()} <= {
                "recrawl.db",
                "recrawl.db-wal",
                "recrawl.db-shm",
                "bodies",
            }

    run(story())


def test_an_old_library_is_warned_of() -> None:
    assert sqlite_warning("3.51.2") is not None
    assert sqlite_warning("3.7") is not None
    assert sqlite_warning("3.51.3") is None
    assert sqlite_warning("3.54.1") is None
    assert sqlite_warning(apsw.sqlite_lib_version()) is None


def test_who_owns_the_store_is_written_in_it(maker: SqliteMaker) -> None:
    file = made(maker)
    with closing(apsw.Connection(str(file))) as connection:
        [(owner,)] = connection.execute("SELECT owner FROM ledger")
    assert str(os.getpid()) in owner


@pytest.mark.parametrize("thread", ["reader", "writer"])
def test_a_thread_that_ends_by_a_fault_leaves_nobody_waiting(maker: SqliteMaker, thread: str) -> None:
    """Calls that it had begun, that waited and that come later fail, and say what to do; the store can be closed."""

    async def story() -> None:
        async with opened(maker) as store:
            assert isinstance(store.backend, SqliteBackend)
            serving = store.backend.writer if thread == "writer" else store.backend.reader
            begun, gate = threading.Event(), threading.Event()

            def wait(_session: Session) -> None:
                begun.set()
                gate.wait(PATIENCE_S)

            first = asyncio.create_task(serving.do(wait))
            await asyncio.to_thread(begun.wait, PATIENCE_S)
            faulty: Any = (lambda _session: None, _FaultyPoints()) if thread == "writer" else (_raise_unreadable,)
            broken = asyncio.create_task(serving.do(*faulty))
            waiting = asyncio.create_task(serving.do(lambda _session: None))
            await ticks()
            gate.set()
            await first
            for each in (broken, waiting, serving.do(lambda _session: None)):
                with pytest.raises(StoreTaken, match="start this process again"):
                    await each

    run(story())


class _FaultyPoints:
    """Raises where nothing is expected to: after a commit."""

    before = ""

    @property
    def after(self) -> str:
        raise AssertionError("after the commit")


class _UnreadableError(OSError):
    """Raises while it is turned into an error of the store."""

    @property
    def errno(self) -> int:  # type: ignore[override]
        raise AssertionError("cannot be read")


def _raise_unreadable(_session: Session) -> None:
    raise _UnreadableError
