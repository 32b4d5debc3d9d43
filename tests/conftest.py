"""What tests of several files share: stores of both kinds, and one service."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from postgres_server import PostgresServer, running_postgres
from store_samples import PostgresMaker, SqliteMaker, StoreMaker

if TYPE_CHECKING:
    from service_ground import Ground

# A machine that is slow or busy is no error of the code under test.
settings.register_profile("recrawl", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("recrawl")

KINDS = ["sqlite", "postgresql"]
# Files that take longest go first, so that no process is left alone with one at the end.
LONG_FILES = ("test_crashes.py", "test_docs_examples.py", "test_policy_contract.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long files first; the others keep their order."""
    items.sort(key=lambda item: LONG_FILES.index(item.path.name) if item.path.name in LONG_FILES else len(LONG_FILES))


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


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """A service over a store that the tests of the room share: each uses addresses of its own."""
    from service_ground import Service  # loads a web framework

    service = Service(tmp_path_factory.mktemp("service"))
    try:
        yield service.begin()
    finally:
        service.end()


@pytest.fixture(scope="module", params=["plain", "arrow"])
def csv_reader(request: pytest.FixtureRequest) -> Iterator[None]:
    """CSV read by Python's csv module alone, then by Arrow first, whatever the size of the file."""
    from recrawl.tables.csv_file import LARGE_BYTES

    token = LARGE_BYTES.set(0 if request.param == "arrow" else sys.maxsize)
    yield
    LARGE_BYTES.reset(token)
