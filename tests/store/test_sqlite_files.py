"""The files of a SQLite store: made whole, brought up to date, copied, and bodies beside them."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import apsw
import pytest
from store_samples import NOW, SqliteMaker, add, changed_result, fetch, lease_all, opened, run

from recrawl.errors import InvalidInput, StoreDamaged, StoreError, StoreNewer
from recrawl.store.bodies import body_digest
from recrawl.store.queries import Migration, load_migrations
from recrawl.store.sqlite.backup import restore_sqlite
from recrawl.store.sqlite.body_files import BodyFiles
from recrawl.store.sqlite.file import create_file, open_checked
from recrawl.store.store import Store

BODY = b"<p>Good day</p>" * 500


@pytest.fixture
def maker(tmp_path: Path) -> SqliteMaker:
    return SqliteMaker(tmp_path / "data")


def next_step(sql: str) -> list[Migration]:
    """The migrations there are, and one more."""
    known = load_migrations("sqlite")
    return [*known, Migration(len(known) + 1, "next.sql", sql)]


def version_and_tables(file: Path) -> tuple[int, set[str]]:
    with closing(apsw.Connection(str(file))) as connection:
        [(version,)] = connection.execute("PRAGMA user_version")
        return version, {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}


def test_a_migration_brings_an_older_file_up_to_date(tmp_path: Path) -> None:
    file = tmp_path / "recrawl.db"
    create_file(file)
    steps = next_step("CREATE TABLE more (x); INSERT INTO more VALUES (1);")
    with pytest.raises(StoreError, match="older recrawl"):
        open_checked(file, 1.0, owner=False, steps=steps)
    open_checked(file, 1.0, owner=True, steps=steps)
    version, tables = version_and_tables(file)
    assert version == len(steps)
    assert "more" in tables
    open_checked(file, 1.0, owner=False, steps=steps)
    with pytest.raises(StoreNewer):
        open_checked(file, 1.0, owner=True)


def test_a_migration_that_fails_never_happened(tmp_path: Path) -> None:
    file = tmp_path / "recrawl.db"
    create_file(file)
    before = version_and_tables(file)
    with pytest.raises(StoreError):
        open_checked(file, 1.0, owner=True, steps=next_step("CREATE TABLE more (x); SELECT no_such_function();"))
    assert version_and_tables(file) == before


_DIE_IN_MIGRATION = """
import os, signal, sys
from pathlib import Path
from recrawl.store.queries import Migration
from recrawl.store.sqlite.file import migrate
from recrawl.store.sqlite.session import connect
connection = connect(Path(sys.argv[1]), 1.0)
connection.create_scalar_function("die", lambda: os.kill(os.getpid(), signal.SIGKILL), 0)
migrate(connection, [Migration(2, "next.sql", "CREATE TABLE more (x); INSERT INTO more VALUES (die());")])
"""


def test_a_migration_killed_in_the_middle_never_happened(tmp_path: Path) -> None:
    file = tmp_path / "recrawl.db"
    create_file(file)
    before = version_and_tables(file)
    done = subprocess.run([sys.executable, "-c", _DIE_IN_MIGRATION, str(file)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert version_and_tables(file) == before


def test_what_a_crash_left_while_a_store_was_made_is_no_store(maker: SqliteMaker) -> None:
    maker.folder.mkdir()
    (maker.folder / "recrawl.db.unfinished").write_bytes(b"SQLite format 3\0 and no more")

    async def story() -> None:
        async with opened(maker) as store:
            assert await add(store, 1) == [1]

    run(story())
    assert {path.name for path in maker.folder.iterdir()} == {"recrawl.db"}


async def _publish(store: Store, page_id: int, body: bytes) -> None:
    await store.put_body(body_digest(body), body)
    [(page, lease)] = await lease_all(store, [page_id])
    result = changed_result(page, lease)
    assert result.version is not None
    version = replace(result.version, body_digest=body_digest(body))
    assert await store.complete([replace(result, version=version)]) == ["applied"]


def test_a_backup_is_a_whole_store_in_one_file(maker: SqliteMaker, tmp_path: Path) -> None:
    async def story() -> None:
        copy = tmp_path / "backup.db"
        async with opened(maker) as store:
            ids = await add(store, 3)
            await fetch(store, ids[0])
            await _publish(store, ids[1], BODY)
            await store.put_body(body_digest(b"of nobody"), b"of nobody")
            rows, changes = await store.list_pages(), await store.changes()
            await store.backup(copy)
            await fetch(store, ids[2])
        assert copy.stat().st_mode & 0o777 == 0o600
        assert [path.name for path in tmp_path.glob("backup*")] == ["backup.db"]
        other = SqliteMaker(tmp_path / "restored")
        await restore_sqlite(copy, other.folder)
        async with opened(other) as store:
            assert await store.list_pages() == rows
            assert await store.changes() == changes
            assert await store.read_body(body_digest(BODY)) == BODY
            assert await store.read_body(body_digest(b"of nobody")) is None
            assert await store.check() == []
            await fetch(store, ids[2])
        paths = list(other.folder.rglob("*"))
        assert {path.stat().st_mode & 0o777 for path in paths if path.is_file()} == {0o600}
        assert {path.name for path in other.folder.iterdir()} == {"recrawl.db", "bodies"}

    run(story())


def test_a_backup_has_all_bodies_although_a_sweep_runs_beside_it(maker: SqliteMaker, tmp_path: Path) -> None:
    """The sweep comes while the backup reads its first body, and deletes what no version names any more."""
    bodies = sorted([BODY, b"other" * 100], key=body_digest)

    async def story() -> None:
        copy = tmp_path / "backup.db"
        async with opened(maker) as store:
            one, two = await add(store, 2)
            for page_id, body in zip((one, two), bodies, strict=True):
                await _publish(store, page_id, body)
            [first] = maker.folder.glob(f"bodies/*/{body_digest(bodies[0]).hex()}.zst")
            packed = first.read_bytes()
            first.unlink()
            os.mkfifo(first)  # a reader of it waits
            backing_up = asyncio.create_task(store.backup(copy))
            pipe = await asyncio.to_thread(first.open, "wb")  # opens when the backup reads
            whole = first.with_suffix(".whole")
            whole.write_bytes(packed)
            whole.rename(first)
            await fetch(store, one, at=NOW + 2)
            await fetch(store, two, at=NOW + 2)
            await store.forget(0.0, 1)
            pipe.write(packed)
            pipe.close()
            await backing_up
            await store.forget(0.0, 1)
            assert [await store.read_body(body_digest(body)) for body in bodies] == [None, None]
        other = SqliteMaker(tmp_path / "restored")
        await restore_sqlite(copy, other.folder)
        async with opened(other) as store:
            assert [await store.version_body(page_id) for page_id in (one, two)] == bodies
            assert await store.check() == []

    run(story())


def test_a_backup_that_is_not_whole_or_not_ours_is_refused(maker: SqliteMaker, tmp_path: Path) -> None:
    async def story() -> None:
        copy = tmp_path / "backup.db"
        async with opened(maker) as store:
            await add(store, 500)
            await store.backup(copy)
        whole = copy.read_bytes()
        for spoiled in (whole[: len(whole) // 2], b"", b"{}" * 999, _with_a_hole(whole, copy)):
            copy.write_bytes(spoiled)
            with pytest.raises(StoreDamaged, match=r"backup\.db"):
                await restore_sqlite(copy, tmp_path / "restored")
            assert not (tmp_path / "restored").exists()
            assert copy.read_bytes() == spoiled
        copy.write_bytes(whole)
        with closing(apsw.Connection(str(copy))) as connection:
            connection.execute("PRAGMA user_version = 999")
        with pytest.raises(StoreNewer):
            await restore_sqlite(copy, tmp_path / "restored")

    run(story())


def _with_a_hole(whole: bytes, file: Path) -> bytes:
    file.write_bytes(whole)
    with closing(apsw.Connection(str(file))) as connection:
        [(root,)] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'addresses'")
    start = (root - 1) * 4096
    return whole[:start] + b"\xff" * 300 + whole[start + 300 :]


def test_a_backup_never_goes_over_a_store(maker: SqliteMaker, tmp_path: Path) -> None:
    async def story() -> None:
        copy = tmp_path / "backup.db"
        async with opened(maker) as store:
            await add(store, 1)
            await store.backup(copy)
            await add(store, 2)
            with pytest.raises(StoreError, match="another tracker"):
                await restore_sqlite(copy, maker.folder)
        with pytest.raises(InvalidInput, match="is there already"):
            await restore_sqlite(copy, maker.folder)
        with pytest.raises(InvalidInput, match="is not there"):
            await restore_sqlite(tmp_path / "none", tmp_path / "restored")
        async with opened(maker) as store:
            assert (await store.counts()).pages["active"] == 2

    run(story())


def test_a_backup_that_finds_no_space_leaves_nothing(maker: SqliteMaker, tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(maker) as store:
            await add(store, 1)
            with pytest.raises(StoreError):
                await store.backup(tmp_path / "no such folder" / "copy")
            assert await store.check() == []

    run(story())


def test_a_body_that_was_damaged_is_not_given_out(tmp_path: Path) -> None:
    bodies = BodyFiles(tmp_path)
    digest = body_digest(BODY)
    bodies.put(digest, BODY)
    [(file, found)] = bodies.files()
    assert found == digest
    assert file.parent.name == digest.hex()[:2]
    packed = file.read_bytes()
    other = BodyFiles(tmp_path / "other")
    (tmp_path / "other").mkdir()
    other.put(body_digest(b"other"), b"other")
    [(another, _digest)] = other.files()
    for spoiled in (packed[:-3], b"", bytes(letter ^ 255 for letter in packed), another.read_bytes()):
        file.write_bytes(spoiled)
        assert bodies.read(digest) is None
    bodies.put(digest, BODY)
    assert bodies.read(digest) == BODY


def test_a_body_under_a_digest_that_is_not_its_own_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="xxh3"):
        BodyFiles(tmp_path).put(bytes(16), BODY)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_body_is_reported_by_the_check(maker: SqliteMaker) -> None:
    async def story() -> None:
        async with opened(maker) as store:
            [page_id] = await add(store, 1)
            await _publish(store, page_id, BODY)
            assert await store.check() == []
            shutil.rmtree(maker.folder / "bodies")
            [sentence] = await store.check()
            assert "1 bodies are missing" in sentence
            assert await store.read_body(body_digest(BODY)) is None

    run(story())


def test_leftover_temporaries_are_removed_when_the_owner_opens(maker: SqliteMaker) -> None:
    async def story() -> None:
        async with opened(maker) as store:
            [page_id] = await add(store, 1)
            await _publish(store, page_id, BODY)
        [(file, _digest)] = BodyFiles(maker.folder).files()
        leftover = file.with_name(f"{file.name}.1.unfinished")
        leftover.write_bytes(b"half")
        async with opened(maker):
            assert not leftover.exists()
            assert file.exists()

    run(story())


def test_bodies_that_nobody_came_to_name_go_after_a_restart(maker: SqliteMaker) -> None:
    async def story() -> None:
        async with opened(maker) as store:
            await store.put_body(body_digest(BODY), BODY)
            await store.forget(0.0, 1)
            assert await store.read_body(body_digest(BODY)) == BODY  # its result may be on the way
        async with opened(maker) as store:
            await store.forget(0.0, 1)
            assert await store.read_body(body_digest(BODY)) is None

    run(story())


def test_damage_to_counts_is_found_by_the_check(maker: SqliteMaker) -> None:
    spoil = {
        "change log": "DELETE FROM changes WHERE cursor = 1",
        "addresses": "DELETE FROM addresses WHERE id = 2",
        "leases": "INSERT INTO leases VALUES (3, 999, 'w', 0, 0)",
        "never given out": "UPDATE pages SET last_token = 999",
        "counted": "UPDATE ledger SET observations = 7",
        "unknown": "UPDATE versions SET page_id = 99 WHERE page_id = 1",
        "no sources": "INSERT INTO source_memories VALUES (1, x'00')",
    }

    async def story() -> None:
        async with opened(maker) as store:
            for page_id in await add(store, 3):
                await fetch(store, page_id, at=NOW)
            file = maker.folder / "recrawl.db"
            for sentence, statement in spoil.items():
                with closing(apsw.Connection(str(file))) as other:
                    other.execute("BEGIN")
                    other.execute(statement)
                    other.execute("COMMIT")
                found = await store.check()
                assert any(sentence in one for one in found), (sentence, found)

    run(story())


def test_a_store_may_be_in_a_folder_with_an_odd_name(tmp_path: Path) -> None:
    async def story() -> None:
        place = SqliteMaker(tmp_path / "a ?b#c%20d" / "ü")
        async with opened(place) as store:
            assert await add(store, 1) == [1]
            assert await store.check() == []
        assert os.listdir(place.folder) == ["recrawl.db"]  # noqa: PTH208 - names as they are

    run(story())
