"""Install recrawl into the environment whose Python runs this: by uv, and by pip where uv cannot.

    .venv/bin/python tools/install.py '.[test]'

uv reads none of pip's settings, so those that say where packages come from are handed to it in its environment. They
are written nowhere and never printed: addresses may hold passwords. uv first resolves all versions, within seconds;
if that fails, or uv comes to a stop while it installs, or pip has a setting that uv cannot be told, pip installs
everything as it always did.
"""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

# Together below 20 seconds, after which pip has taken over.
FETCH_UV_S = 12
RESOLVE_S = 7
# A slow network takes as long as it takes; uv has come to a stop when it has written nothing for so long.
STOPPED_S = 180
LONGEST_S = 3600  # where it cannot be seen what a process writes
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
CONSTRAINED = ("--quiet", "--constraint", "constraints.txt")
SECTIONS = ("global", "install", ":env:")
"""Of pip's settings, from the weakest to the strongest."""

WORDS = {
    "index-url": "UV_DEFAULT_INDEX",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "keyring-provider": "UV_KEYRING_PROVIDER",
    "proxy": "ALL_PROXY",
}
LISTS = {
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "constraint": ("UV_CONSTRAINT", " "),
}
FLAGS = {
    "no-index": {"UV_NO_INDEX": "1"},
    "no-cache-dir": {"UV_NO_CACHE": "1"},
    "pre": {"UV_PRERELEASE": "allow"},
}
PIP_ALONE = ("no-binary", "only-binary", "prefer-binary", "require-hashes", "no-build-isolation", "config-settings")
"""What says how packages are built or checked: uv would do otherwise."""


def main() -> int:
    """Install what the command line names; the exit code of the one that did it."""
    target = sys.argv[1] if len(sys.argv) == 2 else "."
    if _by_uv(target):
        return 0
    sys.stderr.write("uv cannot install here: pip does, which takes a minute\n")
    sys.stderr.flush()
    return subprocess.run([*PIP, "install", *CONSTRAINED, "--editable", target], check=False).returncode


def _by_uv(target: str) -> bool:
    """Install by uv; False if it is not to be had, or cannot."""
    try:
        found = settings_of(_output([*PIP, "config", "list"], FETCH_UV_S))
        if any(name in found for name in PIP_ALONE):
            return False
        uv = Path(sys.executable).with_name("uv")
        if not uv.exists():
            _output([*PIP, "install", *CONSTRAINED, "uv"], FETCH_UV_S)
        environment = uv_environment(found, os.environ)
        install = [str(uv), "pip", "install", "--python", sys.executable, *CONSTRAINED, "--editable", target]
        _output([*install, "--dry-run"], RESOLVE_S, environment)
        run_while_it_writes(install, environment)
    except (OSError, ValueError, SyntaxError, subprocess.SubprocessError):
        return False
    return True


def _output(command: list[str], longest: float | None, environment: Mapping[str, str] | None = None) -> str:
    """Run a command and keep what it says to ourselves."""
    done = subprocess.run(
        command, env=environment, timeout=longest, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    return done.stdout


def run_while_it_writes(command: list[str], environment: Mapping[str, str], stopped_s: float = STOPPED_S) -> None:
    """Run a command to its end, unless it writes nothing for a long time: then end it, with all that it has started.

    Raises:
        subprocess.SubprocessError: it failed, or came to a stop.
    """
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(
        command, env=environment, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
    )
    written, since = written_by(process.pid), time.monotonic()
    try:
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(min(1.0, stopped_s / 10))
            now = written_by(process.pid)
            if now != written:
                written, since = now, time.monotonic()
            if process.poll() is None and time.monotonic() - since > (LONGEST_S if now is None else stopped_s):
                raise subprocess.TimeoutExpired(command, stopped_s)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


def written_by(process: int) -> int | None:
    """How many bytes a process has written, None where that cannot be seen."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{process}/io").read_text().partition("wchar:")[2].split()[0])
    return None


def settings_of(listing: str) -> dict[str, str]:
    """Pip's settings by name, from what `pip config list` prints; the strongest section counts."""
    found: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in listing.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.rpartition(".")
        if section in found:
            found[section][name] = str(ast.literal_eval(value))
    return {name: value for section in SECTIONS for name, value in found[section].items()}


def uv_environment(found: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for uv: what pip was told, and whatever uv was told itself, which is stronger."""
    made = {
        # As pip does: the best version of all indexes, the interpreter that is there, and no long waiting.
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_HTTP_TIMEOUT": "10",
        "UV_HTTP_RETRIES": "1",
    }
    made |= {variable: found[name] for name, variable in WORDS.items() if name in found}
    for name, (variable, between) in LISTS.items():
        values = [value for value in found.get(name, "").split() if _is_there(value)]
        if values:
            made[variable] = between.join(values)
    for name, variables in FLAGS.items():
        if found.get(name, "").lower() in ("1", "true", "yes", "on"):
            made |= variables
    own = {name: value for name, value in environment.items() if name not in made or name.startswith("UV_")}
    return {**made, **own}


def _is_there(place: str) -> bool:
    """Whether a local folder or file exists: pip passes over one that does not, where uv would fail."""
    parts = urlsplit(place)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path)).exists()
    return bool(parts.scheme) or "/" not in place or Path(place).exists()


if __name__ == "__main__":
    sys.exit(main())
