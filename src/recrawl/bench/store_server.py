"""A PostgreSQL server for measures, from the programs of this machine: in a temporary folder, on a unix socket."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recrawl.bench.measure import CannotRun

_USER = "recrawl"
_SETTINGS = "listen_addresses = ''\nfsync = on\nsynchronous_commit = on\nshared_buffers = 128MB\nmax_wal_size = 1GB\n"


@contextmanager
def postgres_server() -> Iterator[Path]:
    """The folder of the socket of a server that runs until the block ends; its databases are made with `database`.

    Raises:
        CannotRun: without the programs of a server.
    """
    programs = _programs()
    if programs is None:
        raise CannotRun("there is no PostgreSQL server on this machine: install one (Debian: apt install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="recrawl-bench-", dir="/tmp"))  # a short path: names of sockets are bounded
    user = _server_user()
    try:
        if user is not None:
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
        data = folder / "data"
        _run(user, programs / "initdb", "-D", data, "-U", _USER, "-A", "trust", "-E", "UTF8", "--no-sync")
        with (data / "postgresql.conf").open("a") as settings:
            settings.write(f"unix_socket_directories = '{folder}'\n{_SETTINGS}")
        _run(user, programs / "pg_ctl", "start", "-w", "-s", "-D", data, "-l", folder / "log")
        try:
            yield folder
        finally:
            _run(user, programs / "pg_ctl", "stop", "-w", "-s", "-D", data, "-m", "immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def database(socket: Path, name: str) -> str:
    """Make an empty database; its address."""
    programs = _programs()
    assert programs is not None
    _run(_server_user(), programs / "createdb", "-h", socket, "-U", _USER, name)
    return f"postgresql://{_USER}@/{name}?host={socket}"


def _run(user: str | None, *command: str | Path) -> None:
    done = subprocess.run(
        [str(part) for part in command],
        user=user,
        cwd="/tmp",
        env={"PATH": os.defpath, "LC_ALL": "C.UTF-8", "TZ": "UTC"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode != 0:
        raise CannotRun(f"{Path(command[0]).name} failed: {' '.join(done.stderr.split())[:300]}")


def _programs() -> Path | None:
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    folders = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(folders, key=lambda folder: float(folder.parent.name), default=None)


def _server_user() -> str | None:
    """PostgreSQL refuses to run as root; then it runs as another user."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"
