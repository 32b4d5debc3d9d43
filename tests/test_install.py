"""`tools/install.py`: uv is told what pip was told, in its environment alone."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from install import run_while_it_writes, settings_of, uv_environment
from patience import PATIENCE_S, until

ROOT = Path(__file__).parents[1]


def test_the_strongest_setting_of_pip_counts() -> None:
    """The environment before the section of the command, that before the global one, as in pip."""
    listing = "\n".join(
        [
            "global.cert='/a.pem'",
            "global.index-url='https://weak/simple'",
            "install.index-url='https://strong/simple'",
            "install.cert='/b.pem'",
            ":env:.cert='/c.pem'",
            "freeze.cert='/other.pem'",
        ]
    )
    assert settings_of(listing) == {"cert": "/c.pem", "index-url": "https://strong/simple"}


def test_uv_is_told_where_packages_come_from(tmp_path: Path) -> None:
    """Indexes, folders, certificates and hosts; a folder that does not exist is left out, as pip does."""
    told = {
        "index-url": "https://name:secret@index.example/simple",
        "extra-index-url": f"https://more.example/simple file://{tmp_path} file:///no/such/index",
        "find-links": f"{tmp_path} /no/such/folder",
        "cert": "/c.pem",
        "trusted-host": "a.example b.example",
        "no-index": "true",
        "default-timeout": "180",
    }
    made = uv_environment(told, {"PATH": "/bin", "SSL_CERT_FILE": "/system.pem"})
    assert {name: made[name] for name in made if name not in ("UV_HTTP_TIMEOUT", "UV_HTTP_RETRIES")} == {
        "UV_DEFAULT_INDEX": "https://name:secret@index.example/simple",
        "UV_INDEX": f"https://more.example/simple file://{tmp_path}",
        "UV_FIND_LINKS": str(tmp_path),
        "UV_INSECURE_HOST": "a.example b.example",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_NO_INDEX": "1",
        "SSL_CERT_FILE": "/c.pem",
        "PATH": "/bin",
    }


def test_what_uv_was_told_itself_is_stronger() -> None:
    """Somebody who knows uv needs no settings of pip."""
    made = uv_environment({"index-url": "https://pip/simple"}, {"UV_DEFAULT_INDEX": "https://uv/simple"})
    assert made["UV_DEFAULT_INDEX"] == "https://uv/simple"


WRITES = """
import time
ends = time.monotonic() + 5
with open("written", "wb", buffering=0) as file:
    while time.monotonic() < ends:
        file.write(b"some")
"""

STOPS = """
import os, signal, subprocess, sys
child = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import signal; signal.pause()"])
with open("child", "w") as file:
    file.write(str(child.pid))
signal.pause()
"""


def test_uv_may_take_its_time_as_long_as_it_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_while_it_writes([sys.executable, "-I", "-S", "-c", WRITES], os.environ, stopped_s=3)
    assert (tmp_path / "written").stat().st_size


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="what a process writes cannot be seen here")
def test_uv_is_ended_when_it_comes_to_a_stop_with_all_that_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(subprocess.TimeoutExpired):
        run_while_it_writes([sys.executable, "-I", "-S", "-c", STOPS], os.environ, stopped_s=3)
    child = int((tmp_path / "child").read_text())
    asyncio.run(until(lambda: is_gone(child)))


def is_gone(process: int) -> bool:
    """Whether a process has ended; one that nobody has asked for its exit code is a zombie."""
    try:
        return ") Z" in Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_uv_that_fails_is_an_error() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        run_while_it_writes([sys.executable, "-c", "raise SystemExit(3)"], os.environ)


def test_pip_takes_over_without_showing_addresses(tmp_path: Path) -> None:
    """Neither an index nor its password shows when nothing can be installed from it; the exit code says so."""
    (tmp_path / "constraints.txt").touch()
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "it"\nversion = "1"\ndependencies = ["no-such-it"]\n')
    secret = "http://name:secret@127.0.0.1:9/simple"
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "install.py"), "."],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": secret, "PIP_RETRIES": "0"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode != 0
    assert "uv cannot install here: pip does" in done.stderr
    assert "secret" not in done.stdout + done.stderr
