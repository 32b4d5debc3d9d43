"""How long tests wait before they call something hung, and how much CPU they allow, on a machine of any speed.

`RECRAWL_PATIENCE=5` makes every test wait five times as long.
"""

from __future__ import annotations

import asyncio
import linecache
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

PATIENCE_S = 180.0 * float(os.environ.get("RECRAWL_PATIENCE", "1"))
"""A bound for what hangs: no test is expected to come near it."""
COMPILING_S = 4 * PATIENCE_S
"""The same for a process that compiles from nothing: up to a minute of CPU, on a machine ten times slower."""
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
"""For programs of the tests that run in processes of their own: they find this module."""
_TICK_S = 0.01
_UNIT_LOOPS = 800_000
_UNITS = 5


def patience(awaited: str | None = None, seconds: float = PATIENCE_S) -> AbstractAsyncContextManager[None]:
    """End a block that hangs; the error says what was awaited: without a name, the line of the test."""
    return _ending(awaited or _line_of_test(), seconds)


@asynccontextmanager
async def _ending(awaited: str, seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds) as scope:
            yield
    except TimeoutError as late:
        if not scope.expired():
            raise
        raise TimeoutError(f"waited {seconds:g} s in vain for {awaited}; RECRAWL_PATIENCE=5 waits longer") from late


async def until(happened: Callable[[], bool] | Callable[[], Awaitable[bool]], awaited: str | None = None) -> None:
    """Let the loop run until something has happened."""
    async with patience(awaited):
        while True:
            found = happened()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(_TICK_S)


async def ticks(count: int = 100, tick_s: float = 0.0) -> None:
    """Let the loop run for `count` turns, so that what is ready to happen happens, however slow the machine is."""
    for _ in range(count):
        await asyncio.sleep(tick_s)


def _line_of_test() -> str:
    """The line of a test file that is being run, or of whatever called this module."""
    outside = []
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename != __file__:
            outside.append((Path(frame.f_code.co_filename), frame.f_lineno))
        frame = frame.f_back  # type: ignore[assignment]
    path, number = next((each for each in outside if each[0].name.startswith("test_")), outside[0])
    return f"{path.name}:{number}: {linecache.getline(str(path), number).strip()}"


def cpu_unit_s() -> float:
    """CPU seconds that this process needs for a fixed piece of work, about 0.02 s on a machine of today.

    Limits on CPU are multiples of it, so that they hold on a slow machine too. The slowest of a few rounds counts: a
    machine that does other work is not equally slow all the time.
    """
    return max(_round_s() for _ in range(_UNITS))


def _round_s() -> float:
    began_s, total = time.process_time(), 0
    for number in range(_UNIT_LOOPS):
        total += number & 7
    assert total > 0
    return time.process_time() - began_s
