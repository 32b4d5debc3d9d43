"""A store of the first version of the tables, and a backup of one, are brought up to date with all that they hold."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import apsw
from postgres_server import PostgresServer
from store_samples import NOW, PostgresMaker, SqliteMaker, StoreMaker, lease_all, opened, result_of, run

from recrawl.store.postgres.backend import url_key
from recrawl.store.postgres.backup import FORMAT, restore_postgres
from recrawl.store.postgres.connection import SQL, Connection, Limits, connect
from recrawl.store.postgres.schema import apply_step, begin_tables
from recrawl.store.queries import load_migrations
from recrawl.store.rows import NewPage, PageRow, PendingSignal, SourceRow
from recrawl.store.sqlite.backup import restore_sqlite
from recrawl.store.sqlite.file import FILE_NAME, migrate
from recrawl.store.sqlite.session import url_hash
from recrawl.store.store import Store

URL = "https://example.org/1"
EXPECTED = PageRow(
    1, URL, "example.org", "g", 2.5, "harmonic", 60.0, None, "import", NOW, belief=b"learned", memory=b"m", visits=3,
    last_token=7, settled_token=7,
)  # fmt: skip
OLD_SQLITE = """
    INSERT INTO ledger VALUES (1, 'old', 4, 'someone', 7, 0, 0);
    INSERT INTO names VALUES (1, 'example.org'), (2, 'g'), (3, 'harmonic'), (4, 'import');
    INSERT INTO addresses VALUES (1, {key}, '{url}', 4, {now});
    INSERT INTO pages (id, host, in_group, importance, objective, min_interval_s, visits, last_token, settled_token,
        belief) VALUES (1, 1, 2, 2.5, 3, {least}, 3, 7, 7, x'{belief}');
    INSERT INTO copies (id, memory) VALUES (1, x'6d');
    INSERT INTO signals VALUES (1, 'ping', 2, {now}, {now});
    INSERT INTO facts VALUES
        ('groups', '[{{"min_interval_s": 0.0, "name": "g"}}, {{"min_interval_s": 60.0, "name": "h"}}]');
"""
OLD_POSTGRES = """
    INSERT INTO recrawl.ledger (store_id, generation, last_token) VALUES ('old', 4, 7);
    INSERT INTO recrawl.host_names (name) VALUES ('example.org');
    INSERT INTO recrawl.pages (url_key, url, host_no, group_name, importance, objective, min_interval_s, source,
        added_at, visits, last_token, settled_token, belief, memory)
    VALUES ('\\x{key}', '{url}', 1, 'g', 2.5, 'harmonic', {least}, 'import', {now}, 3, 7, 7, '\\x{belief}', '\\x6d');
    INSERT INTO recrawl.signals VALUES (1, 'ping', 2, {now}, {now});
    INSERT INTO recrawl.facts VALUES
        ('groups', '[{{"min_interval_s": 0.0, "name": "g"}}, {{"min_interval_s": 60.0, "name": "h"}}]');
"""


async def finds_everything(maker: StoreMaker) -> None:
    """All that was kept is there, and all that is new works."""
    async with opened(maker) as store:
        assert (store.generation, store.store_id) == (5, "old")
        assert await store.list_pages(role=None) == [EXPECTED]
        assert await store.find_pages([URL]) == {URL: 1}
        assert await store.pending_signals() == [PendingSignal(1, "ping", 2, NOW, NOW)]
        assert (await store.load_schedule()).page_id.tolist() == [1]
        assert (await store.counts()).pages["active"] == 1
        assert await store.sources() == []
        await _uses_what_is_new(store)
        assert await store.check() == []


async def _uses_what_is_new(store: Store) -> None:
    hub = NewPage("https://example.org/news", "example.org", importance=0.0, role="source")
    assert await store.add_pages([hub]) == [(2, True)]
    assert await store.add_sources([SourceRow(1, "hub"), SourceRow(2, "hub")]) == [True, True]
    [(page, lease)] = await lease_all(store, [1])
    assert lease.token == 8
    assert await store.complete([result_of(page, lease)]) == ["applied"]
    assert [row.id for row in await store.list_pages()] == [1]


async def counts_0_as_nothing_said(maker: StoreMaker) -> None:
    """A least interval of 0 was the default, so it says nothing; the tracker is to tell people."""
    async with opened(maker) as store:
        assert [page.min_interval_s for page in await store.list_pages()] == [None]
        facts = await store.facts()
        assert facts["interval_notice"] == "due"
        assert json.loads(facts["groups"]) == [
            {"min_interval_s": None, "name": "g"},
            {"min_interval_s": 60.0, "name": "h"},
        ]


def _make_old_sqlite(file: Path, least: str = "60.0") -> None:
    file.parent.mkdir()
    with closing(apsw.Connection(str(file))) as connection:
        migrate(connection, load_migrations("sqlite")[:1])
        text = OLD_SQLITE.format(key=url_hash(URL), url=URL, now=NOW, belief=b"learned".hex(), least=least)
        connection.execute(text)


def test_an_interval_of_0_in_an_old_file_says_nothing(tmp_path: Path) -> None:
    _make_old_sqlite(tmp_path / "data" / FILE_NAME, "0.0")
    run(counts_0_as_nothing_said(SqliteMaker(tmp_path / "data")))


def test_an_interval_of_0_in_an_old_database_says_nothing(postgres: PostgresServer, database: str) -> None:
    async def story() -> None:
        await (await _make_old_postgres(postgres.dsn(database), "0.0")).close()
        await counts_0_as_nothing_said(PostgresMaker(postgres.dsn(database)))

    run(story())


def test_a_new_store_has_nothing_to_tell_of_intervals(store_maker: StoreMaker) -> None:
    async def story() -> None:
        async with opened(store_maker) as store:
            assert await store.facts() == {}

    run(story())


def test_a_file_of_version_1_has_everything_after_it_is_opened(tmp_path: Path) -> None:
    _make_old_sqlite(tmp_path / "data" / FILE_NAME)
    run(finds_everything(SqliteMaker(tmp_path / "data")))


def test_a_backup_of_a_file_of_version_1_can_be_restored(tmp_path: Path) -> None:
    _make_old_sqlite(tmp_path / "old" / "backup.db")
    run(restore_sqlite(tmp_path / "old" / "backup.db", tmp_path / "data"))
    run(finds_everything(SqliteMaker(tmp_path / "data")))


async def _make_old_postgres(dsn: str, least: str = "60.0") -> Connection:
    connection = await connect(dsn, Limits(), "test")
    await begin_tables(connection)
    await apply_step(connection, load_migrations("postgres")[0])
    text = OLD_POSTGRES.format(key=url_key(URL).hex(), url=URL, now=NOW, belief=b"learned".hex(), least=least)
    await connection.execute(text)
    return connection


def test_a_database_of_version_1_has_everything_after_it_is_opened(postgres: PostgresServer, database: str) -> None:
    async def story() -> None:
        await (await _make_old_postgres(postgres.dsn(database))).close()
        await finds_everything(PostgresMaker(postgres.dsn(database)))

    run(story())


def test_a_backup_of_a_database_of_version_1_can_be_restored(
    postgres: PostgresServer, database: str, tmp_path: Path
) -> None:
    other = postgres.fresh_database()

    async def story() -> None:
        connection = await _make_old_postgres(postgres.dsn(database))
        await _write_old_backup(connection, tmp_path / "old.zip")
        await connection.close()
        await restore_postgres(tmp_path / "old.zip", postgres.dsn(other))
        await finds_everything(PostgresMaker(postgres.dsn(other)))

    run(story())
    postgres.drop(other)


async def _write_old_backup(connection: Connection, path: Path) -> None:
    """As the first version wrote it."""
    names = await connection.fetch(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'recrawl' AND tablename <> 'schema_version'"
    )
    tables = {}
    with zipfile.ZipFile(path, "w") as archive:
        for (name,) in names:
            columns = [column for (column,) in await connection.fetch(SQL["columns_of_table"], name)]
            out = io.BytesIO()
            done = await connection.copy_from_query(f"SELECT {', '.join(columns)} FROM recrawl.{name}", output=out)
            data = out.getvalue()
            last = 1 if name in ("pages", "host_names") else 0
            tables[name] = {"columns": columns, "rows": int(done.split()[-1]), "bytes": len(data),
                            "sha256": sha256(data).hexdigest(), "last_number": last}  # fmt: skip
            archive.writestr(f"{name}.copy", data)
        archive.writestr("manifest.json", json.dumps({"format": FORMAT, "tables_version": 1, "tables": tables}))
