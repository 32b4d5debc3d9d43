"""Places for stores of both kinds, for tests that run trackers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from postgres_server import PostgresServer, shared_server

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


def new_place(kind: str, folder: Path) -> Place:
    """An empty place for a store: a folder, or a fresh database."""
    if kind == "sqlite":
        return Place(str(folder / "data"))
    server = shared_server()
    database = server.fresh_database()
    return Place(server.dsn(database), server, database)
