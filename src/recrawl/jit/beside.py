"""A process beside this one that compiles kernels, so that nobody waits for the compiler.

It starts when interpreted kernels have taken a second of CPU, or at once where a program knows that it will run for
long. One such process at a time works for all that share a folder of compiled code; it ends with the process that
started it, and keeps what it has compiled by then.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence

from recrawl.jit.folders import complete_parts
from recrawl.jit.way import VARIABLE, forced_way

MODULE = "recrawl.warming"
_AFTER_S = 1.0
_spent_s = 0.0
_lock = threading.Lock()
_process: subprocess.Popen[bytes] | None = None


def note(spent_s: float, parts: Sequence[str]) -> None:
    """Note CPU time of an interpreted call; after a second of it, start to compile."""
    global _spent_s  # noqa: PLW0603 - one sum for the process
    if _process is None and _spent_s <= _AFTER_S:
        _spent_s += spent_s
        if _spent_s > _AFTER_S:
            start(parts)


def start(parts: Sequence[str], ended: Callable[[bool], None] | None = None) -> bool:
    """Start the process, unless it was started before or there is nothing to compile; whether it is at work.

    Args:
        parts: of the warm-up, in the order to compile them.
        ended: called in a thread of its own when the process has ended by itself, with whether all was compiled.
    """
    global _process  # noqa: PLW0603 - one for the process
    with _lock:
        if _process is not None or forced_way() is not None or complete_parts() >= set(parts):
            return is_compiling()
        _process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE, "--beside", *parts],  # -P: nothing of the folder we happen to be in
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, VARIABLE: "compiled"},
            start_new_session=True,  # Ctrl-C is for the program, which then ends it
        )
        atexit.register(stop)
        if ended is not None:
            threading.Thread(target=_wait, args=(_process, ended), daemon=True).start()
    return True


def _wait(process: subprocess.Popen[bytes], ended: Callable[[bool], None]) -> None:
    code = process.wait()
    if code >= 0:  # not killed, as by `stop`
        ended(code == 0)


def is_compiling() -> bool:
    """Whether the process of this one is at work."""
    return _process is not None and _process.poll() is None


def stop() -> None:
    """End the process, if it runs."""
    if _process is not None and _process.poll() is None:
        _process.kill()
        _process.wait()
