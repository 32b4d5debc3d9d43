"""The group `commands`: CPU of commands that must answer at once, beside a Python that does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from recrawl.bench.measure import RUNS, Bound, CannotRun, Measure, Reading

_CALL = "from recrawl.cli.main import main; main()"
_WITHIN = Bound("value", limit=0.3)
_CALLS = {
    "help_cpu": ("--help",),
    "add_cpu": ("add", "https://example.com/", "--store", "data"),
    "status_cpu": ("status", "--store", "data"),
}


def measures() -> tuple[Measure, ...]:
    """Every measure of the group, in the order they run."""
    return tuple(Measure(name, "s", "bare Python", _WITHIN, partial(_read, call)) for name, call in _CALLS.items())


def _read(call: tuple[str, ...]) -> Reading:
    """CPU seconds of a command on a store that is there, the best of some, and those of bare Python."""
    with TemporaryDirectory(prefix="recrawl-bench-") as folder:
        _cpu_seconds(Path(folder), _CALL, *_CALLS["add_cpu"])  # makes the store, and loads the files once
        ours = min(_cpu_seconds(Path(folder), _CALL, *call) for _ in range(RUNS))
        bare = min(_cpu_seconds(Path(folder), "pass") for _ in range(RUNS))
    return Reading(ours, ours / bare, f"{bare:.3f} s")


def _cpu_seconds(folder: Path, code: str, *arguments: str) -> float:
    """CPU seconds of a process, start and end included."""
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise CannotRun(f"recrawl {' '.join(arguments)} failed: {(said.splitlines() or ['no word'])[-1]}")
    return used.ru_utime + used.ru_stime
