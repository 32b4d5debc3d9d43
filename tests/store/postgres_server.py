"""A PostgreSQL server for tests: real, alone, in a temporary folder, on a unix socket and nowhere else.

It starts from the binaries of the system. PostgreSQL refuses to run as root; then it runs as `postgres` or `nobody`.
`fsync` is off: tests kill servers, never machines, and what a killed server has written the system still has. There is
one server for each process of tests.
"""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path

import pytest

from patience import PATIENCE_S

USER = "recrawl"
"""The role of the tests; a superuser of this server, which nobody else can reach."""
LOCKED = "locked"
"""A role that needs a password, for the test that makes it."""
_NO_BINARIES = (
    "NO POSTGRESQL SERVER ON THIS MACHINE: the PostgreSQL half of the store tests did NOT run. "
    "Install it to run them (Debian: apt-get install postgresql)."
)
_SETTINGS = {
    "listen_addresses": "''",
    "fsync": "off",
    "synchronous_commit": "on",
    "max_connections": "60",
    "shared_buffers": "64MB",
    "max_wal_size": "512MB",
    "autovacuum_naptime": "5min",
}


@dataclass
class PostgresServer:
    """A running server; `fresh_database` makes an empty database and gives its address."""

    bin: Path
    folder: Path
    runs_as: str | None

    def __post_init__(self) -> None:
        self._numbers = count(1)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def pid(self) -> int:
        """Of the postmaster."""
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def dsn(self, database: str) -> str:
        return f"postgresql://{USER}@/{database}?host={self.folder}"

    def run(self, *command: str) -> str:
        """Run one of the server's programs as the server's user; what it printed."""
        program = [str(self.bin / command[0]), *command[1:]]
        done = subprocess.run(
            program,
            user=self.runs_as,
            group=None if self.runs_as is None else pwd.getpwnam(self.runs_as).pw_gid,
            extra_groups=None if self.runs_as is None else [],
            cwd=self.folder,
            env={"PATH": os.defpath, "LC_ALL": "C.UTF-8", "TZ": "UTC"},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(program)} failed: {done.stdout}{done.stderr}")
        return done.stdout

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Run a statement with psql; its rows, fields divided by `|`."""
        return self.run("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", str(self.folder), "-U", USER,
                        "-d", database, "-c", statement).strip()  # fmt: skip

    def fresh_database(self) -> str:
        """Make an empty database; its name."""
        name = f"test_{next(self._numbers)}"
        self.sql(f'CREATE DATABASE "{name}" TEMPLATE template0')
        return name

    def drop(self, database: str) -> None:
        self.sql(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')

    def start(self) -> None:
        self.run("pg_ctl", "start", "-w", "-s", "-D", str(self.data), "-l", str(self.folder / "log"))

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; `immediate` is a crash, after which `start` recovers from its log."""
        self.run("pg_ctl", "stop", "-w", "-s", "-D", str(self.data), "-m", mode)

    def backends(self, database: str) -> list[int]:
        """Process ids of the sessions of a database."""
        found = self.sql(f"SELECT pid FROM pg_stat_activity WHERE datname = '{database}'")
        return [int(line) for line in found.splitlines()]

    def freeze(self, database: str) -> list[int]:
        """Stop all of the server that would answer for a database, as a hung machine would; what to `thaw`."""
        frozen = [self.pid(), *self.backends(database)]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        return frozen

    def thaw(self, pids: list[int]) -> None:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                continue


@cache
def shared_server() -> PostgresServer:
    """The one server of this process, stopped at its end; without binaries the test that asks is skipped, loudly."""
    stack = ExitStack()
    server = stack.enter_context(running_postgres())
    atexit.register(stack.close)
    return server


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """A server until the end of the block; without binaries the test that asks is skipped, loudly."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip(_NO_BINARIES)
    # A short path: the name of a unix socket may have about 100 bytes.
    folder = Path(tempfile.mkdtemp(prefix="recrawl-pg-", dir="/tmp"))
    server = PostgresServer(binaries, folder, _user_of_server())
    try:
        if server.runs_as is not None:
            os.chown(folder, pwd.getpwnam(server.runs_as).pw_uid, -1)
        server.run("initdb", "-D", str(server.data), "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8",
                   "--no-sync")  # fmt: skip
        with (server.data / "postgresql.conf").open("a") as settings:
            settings.write(f"unix_socket_directories = '{folder}'\n")
            settings.writelines(f"{name} = {value}\n" for name, value in _SETTINGS.items())
        access = server.data / "pg_hba.conf"
        access.write_text(f"local all {LOCKED} scram-sha-256\n{access.read_text()}")
        server.start()
        yield server
    finally:
        if (server.data / "postmaster.pid").exists():
            server.thaw([server.pid()])
            server.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


def find_binaries() -> Path | None:
    """The folder of the newest server of this machine."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    folders = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(folders, key=lambda folder: float(folder.parent.name), default=None)


def _user_of_server() -> str | None:
    """Whom to run the server as; None for ourselves."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"
