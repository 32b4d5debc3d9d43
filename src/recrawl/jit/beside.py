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
_stopped = False


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
        _process = _started(parts)
        if _process is None:
            return False
        atexit.register(stop, os.getpid())
        if ended is not None:
            threading.Thread(target=_wait, args=(_process, parts, ended), daemon=True).start()
    return True


def _started(parts: Sequence[str]) -> subprocess.Popen[bytes] | None:
    """The process, None where none can be started: kernels stay interpreted."""
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE, "--beside", *parts],  # -P: nothing of the folder we happen to be in
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, VARIABLE: "compiled"},
            start_new_session=True,  # Ctrl-C is for the program, which then ends it
        )
    except OSError:
        return None


def _wait(process: subprocess.Popen[bytes], parts: Sequence[str], ended: Callable[[bool], None]) -> None:
    process.wait()
    if not _stopped:
        ended(complete_parts() >= set(parts))


def is_compiling() -> bool:
    """Whether the process of this one is at work."""
    return _process is not None and _process.poll() is None


def stop(owner: int) -> None:
    """End the process, if it runs and this is the process that started it, not a fork of that."""
    global _stopped  # noqa: PLW0603 - one for the process
    if _process is not None and os.getpid() == owner and _process.poll() is None:
        _stopped = True
        _process.kill()
        _process.wait()
