"""What tests of several files share: stores of both kinds, and one service."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from postgres_server import PostgresServer, shared_server
from store_samples import PostgresMaker, SqliteMaker, StoreMaker

from recrawl.jit import force
from recrawl.jit.way import VARIABLE, forced_way

if TYPE_CHECKING:
    from service_ground import Ground

# A machine that is slow or busy is no error of the code under test.
settings.register_profile("recrawl", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("recrawl")

# Kernels that change over from interpreted to compiled during a test would change last digits, so all are compiled;
# tests of interpreted ones say so, and `make test` runs some files with RECRAWL_KERNELS=interpreted too.
os.environ.setdefault(VARIABLE, "compiled")
force(forced_way())

KINDS = ["sqlite", "postgresql"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was skipped and why, one line for each reason."""
    tests: dict[str, Counter[str]] = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        tests.setdefault(reason.removeprefix("Skipped: "), Counter())[report.nodeid.partition("[")[0]] += 1
    if not tests:
        return
    terminalreporter.section("skipped, and why")
    for reason, names in sorted(tests.items()):
        shown = ", ".join(name if count == 1 else f"{name} ({count})" for name, count in sorted(names.items()))
        terminalreporter.write_line(f"{names.total()} skipped: {reason}: {shown}")


@pytest.fixture(scope="session")
def postgres() -> PostgresServer:
    """The server of all tests of this process."""
    return shared_server()


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
    from recrawl.files.csv_file import LARGE_BYTES

    token = LARGE_BYTES.set(0 if request.param == "arrow" else sys.maxsize)
    yield
    LARGE_BYTES.reset(token)
