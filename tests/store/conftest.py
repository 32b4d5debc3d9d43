"""Stores for the tests: every promise of the contract is tried on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_server import PostgresServer, running_postgres
from store_samples import PostgresMaker, SqliteMaker, StoreMaker

KINDS = ["sqlite", "postgresql"]


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests that ask for it."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[str]:
    """The name of an empty database."""
    name = postgres.fresh_database()
    yield name
    postgres.drop(name)


@pytest.fixture(params=KINDS)
def store_maker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreMaker]:
    """A place for a store of each kind; opened again, it is the same store."""
    if request.param == "sqlite":
        yield SqliteMaker(tmp_path / "data")
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    database = server.fresh_database()
    yield PostgresMaker(server.dsn(database))
    server.drop(database)
