"""What the scheduler compiles on the first start on a machine: before the loop runs, and what signals need beside it.

A loop that stalls for a minute later would miss the turns of hosts and the time of leases.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress

from recrawl.scheduling.warming import is_warm, warm_up

_MODULE = "recrawl.scheduling.warming"


async def compile_beforehand(say: Callable[[str], None]) -> None:
    """Compile what every tracker needs, if no start before has."""
    if not is_warm(signals=False):
        say("compiling for this machine, which is done once and takes half a minute")
        await asyncio.to_thread(warm_up, signals=False)


class SignalCompiler:
    """Has what signals need compiled in a process of its own; until then pages listen to none."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._ready = False

    async def ready(self) -> bool:
        """Whether pages may listen; the first call starts the process if need be."""
        if not self._ready and self._process is None and not is_warm(signals=True):
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", _MODULE, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL
            )
        # Whatever has become of the process, what it has not compiled is compiled here.
        self._ready = self._ready or self._process is None or self._process.returncode is not None
        return self._ready

    async def end(self) -> None:
        """End the process, if it still runs."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
