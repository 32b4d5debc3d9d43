"""A program that keeps a search index, as a process that can be killed, and its index, looked at from outside.

The index is a SQLite file with a table `entries (page, url, body)`, a row for each page. Its writes are counted by
SQLite itself, in the transactions of the program, whatever that says of them.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from recrawl.errors import RecrawlError

_COUNTED = """
CREATE TABLE proof_writes (writes INTEGER NOT NULL);
INSERT INTO proof_writes VALUES (0);
CREATE TRIGGER proof_insert AFTER INSERT ON entries BEGIN UPDATE proof_writes SET writes = writes + 1; END;
CREATE TRIGGER proof_update AFTER UPDATE ON entries BEGIN UPDATE proof_writes SET writes = writes + 1; END;
CREATE TRIGGER proof_delete AFTER DELETE ON entries BEGIN UPDATE proof_writes SET writes = writes + 1; END;
"""


def example_program() -> Path | None:
    """The example of the repository, None where recrawl is installed without it."""
    program = Path(__file__).parents[4] / "examples" / "search_index.py"
    return program if program.is_file() else None


class Follower:
    """The program that keeps an index, as a process.

    Args:
        program: its file; called with the path of the index, `--address`, and `--once` to catch up and end.
        index: the file of the index.
        address: of the service.
        token: for it.
    """

    def __init__(self, program: Path, index: Path, address: str, token: str) -> None:
        self._command = (sys.executable, str(program), str(index), "--address", address)
        self._environment = {**os.environ, "RECRAWL_TOKEN": token}
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Follow from now on."""
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stderr=asyncio.subprocess.DEVNULL, env=self._environment
        )

    async def kill(self) -> None:
        """End it without a warning, whatever it is doing."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is not None:
            raise RecrawlError(f"the program that keeps the index ended by itself, with {process.returncode}")
        process.kill()
        await process.wait()

    async def catch_up(self) -> None:
        """Take all events that there are."""
        process = await asyncio.create_subprocess_exec(
            *self._command, "--once", stderr=asyncio.subprocess.PIPE, env=self._environment
        )
        _, said = await process.communicate()
        if process.returncode:
            raise RecrawlError(f"the index could not be brought up to date: {said.decode(errors='replace').strip()}")


def count_writes(index: Path) -> None:
    """Count every row of the index that is written from now on."""
    with closing(sqlite3.connect(index)) as database:
        database.executescript(_COUNTED)


def read_index(index: Path) -> tuple[int, dict[str, str]]:
    """How many rows were written, and the texts of the index by address, with single spaces."""
    with closing(sqlite3.connect(index)) as database:
        (writes,) = database.execute("SELECT writes FROM proof_writes").fetchone()
        return writes, {url: " ".join(body.split()) for url, body in database.execute("SELECT url, body FROM entries")}
