"""The group `store`: what durability costs, what a tracker adds to a fetch, how long a large store takes to open."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from recrawl.bench.measure import RUNS, Bound, CannotRun, Measure, Reading
from recrawl.extras import is_installed, missing

_BARE = "a bare executemany loop into one table, as durable"
_LONGEST_S = 120


class Sizes(NamedTuple):
    """Pages of a store that is written to, fetches of a tracker, pages of a store that is opened, and runs of both."""

    pages: int = 20_000
    fetches: int = 10_000
    opened: int = 1_000_000
    runs: int = RUNS


FULL = Sizes()


def measures(sizes: Sizes = FULL) -> tuple[Measure, ...]:
    """The measures, in the order they run; nothing is computed yet."""
    work = _Work(sizes)
    floor, none = Bound("value", floor=10_000), "none"
    return (
        Measure("sqlite_commits", "results/s", _BARE, floor, work.read_sqlite),
        Measure("sqlite_leases", "leases/s", none, floor, work.read_sqlite_leases),
        Measure("postgresql_commits", "results/s", _BARE, floor, work.read_postgres),
        Measure("postgresql_leases", "leases/s", none, floor, work.read_postgres_leases),
        Measure("tracker_cpu_unchanged", "µs", none, Bound("value", limit=200), work.read_unchanged),
        Measure("tracker_cpu_changed", "µs", none, Bound("value", limit=200), work.read_changed),
        Measure("open_1m", "s", none, Bound("value", limit=5), work.read_opening),
    )


class _Work:
    """What measures of the group share."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes

    @cached_property
    def _sqlite(self) -> Any:
        from recrawl.bench.store_commits import sqlite_speeds

        return sqlite_speeds(self._sizes.pages)

    @cached_property
    def _postgres(self) -> Any:
        if not is_installed("asyncpg"):
            raise CannotRun(missing("asyncpg", "the measure"))
        from recrawl.bench.store_commits import postgres_speeds
        from recrawl.bench.store_server import database, postgres_server

        with postgres_server() as socket:
            return postgres_speeds(database(socket, "ours"), database(socket, "bare"), self._sizes.pages)

    def read_sqlite(self) -> Reading:
        """Results a second on SQLite, against the bare loop."""
        speeds = self._sqlite
        return Reading(speeds.commits, speeds.commits / speeds.bare, f"{speeds.bare:.0f} rows/s")

    def read_sqlite_leases(self) -> Reading:
        """Leases a second on SQLite."""
        return Reading(self._sqlite.leases)

    def read_postgres(self) -> Reading:
        """Results a second on PostgreSQL, against the bare loop."""
        speeds = self._postgres
        return Reading(speeds.commits, speeds.commits / speeds.bare, f"{speeds.bare:.0f} rows/s")

    def read_postgres_leases(self) -> Reading:
        """Leases a second on PostgreSQL."""
        return Reading(self._postgres.leases)

    def read_unchanged(self) -> Reading:
        """CPU of a fetch that is answered with 304."""
        return self._tracker("unchanged")

    def read_changed(self) -> Reading:
        """CPU of a fetch that brings a new text."""
        return self._tracker("changed")

    def _tracker(self, kind: str) -> Reading:
        runs = [_in_a_process("store_tracker", kind, str(self._sizes.fetches)) for _ in range(self._sizes.runs)]
        return Reading(min(found["cpu_us"] for found in runs))

    def read_opening(self) -> Reading:
        """CPU seconds from opening a store to the first lease."""
        from recrawl.bench.store_opening import build

        with TemporaryDirectory(prefix="recrawl-bench-") as folder:
            asyncio.run(build(Path(folder) / "data", self._sizes.opened))
            runs = [_in_a_process("store_opening", str(Path(folder) / "data")) for _ in range(self._sizes.runs)]
        best = min(runs, key=lambda found: float(found["cpu_s"]))
        return Reading(best["cpu_s"], None, f"on the clock {best['clock_s']:.2f} s")


def _in_a_process(module: str, *arguments: str) -> dict[str, Any]:
    """What a module of this group prints when it is run."""
    done = subprocess.run(
        [sys.executable, "-m", f"recrawl.bench.{module}", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=_LONGEST_S,
    )
    if done.returncode != 0:
        raise CannotRun(f"{module} failed: {(done.stderr.strip().splitlines() or ['no word'])[-1]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
