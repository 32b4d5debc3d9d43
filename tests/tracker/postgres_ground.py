"""Places for stores of both kinds, for tests that run trackers; one PostgreSQL server serves them all."""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from postgres_server import PostgresServer, running_postgres

KINDS = ("sqlite", "postgresql")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a store is, and how it is cleared away."""

    where: str
    server: PostgresServer | None = None
    database: str = ""

    def clear(self) -> None:
        if self.server is not None:
            self.server.drop(self.database)


@cache
def shared_server() -> PostgresServer:
    """One server for all tests of this process that ask for it; skips the test if there are no binaries."""
    stack = ExitStack()
    server = stack.enter_context(running_postgres())
    atexit.register(stack.close)
    return server


def new_place(kind: str, folder: Path) -> Place:
    """An empty place for a store: a folder, or a fresh database."""
    if kind == "sqlite":
        return Place(str(folder / "data"))
    server = shared_server()
    database = server.fresh_database()
    return Place(server.dsn(database), server, database)
