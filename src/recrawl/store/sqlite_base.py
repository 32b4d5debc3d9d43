"""What the parts of a SQLite store share: the thread that writes and the one that reads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from recrawl.errors import StoreBusy
from recrawl.store.bodies import BodyFiles
from recrawl.store.sqlite.session import Access
from recrawl.store.sqlite.writer import CrashPoints, SessionThread, Value, Work, WriterThread


@dataclass(frozen=True, slots=True)
class Engine:
    """The machinery of a store that is open.

    Args:
        file: the database.
        access: how it is opened.
        writer, reader: the threads.
        bodies: files beside the database.
        generation: of the owner; 0 for a visitor.
    """

    file: Path
    access: Access
    writer: WriterThread
    reader: SessionThread
    bodies: BodyFiles
    generation: int

    async def read(self, work: Work[Value]) -> Value:
        """Look at the last committed state; never waits for a write."""
        return await self.reader.do(work)

    async def write(self, work: Work[Value], points: CrashPoints | None = None) -> Value:
        """Change something, as owner; durable when it returns. `work` may be called twice, the first time undone."""
        self.require_owner()
        return await self.writer.do(work, points)

    def require_owner(self) -> None:
        """Only the owner may write."""
        if not self.generation:
            raise StoreBusy(
                f"{self.file} was opened to be read: only its owner writes; post an order, or open it as owner"
            )


class SqlitePart:
    """A part of the store's methods, on a shared engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
