"""The living web as a process of its own: it answers on the other core, and ends with us whatever happens."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any

from recrawl.errors import RecrawlError
from recrawl.lab.livingweb.clock import RunningClock
from recrawl.lab.livingweb.world import LivingWorld
from recrawl.lab.livingweb.world_settings import WorldSettings

_START_S = 60.0
_END_S = 5.0


@dataclass(slots=True)
class WebProcess:
    """Starts the web in `async with`, and has its world and its clock here too.

    Args:
        settings: of the web.
        speedup: seconds of the web in one real second.
    """

    settings: WorldSettings
    speedup: float
    port: int = 0
    _process: asyncio.subprocess.Process | None = None
    _facts: dict[str, Any] | None = None

    @property
    def clock(self) -> RunningClock:
        """The time of the web."""
        assert self._facts is not None
        return RunningClock(**self._facts["clock"])

    @property
    def allow(self) -> dict[str, str]:
        """The network that a crawler must be allowed."""
        assert self._facts is not None
        return dict(self._facts["allow"])

    @property
    def resolve(self) -> dict[str, str]:
        """The names that a crawler must be told."""
        assert self._facts is not None
        return dict(self._facts["resolve"])

    def world(self) -> LivingWorld:
        """The same web, to ask for the truth without a request."""
        assert self._facts is not None
        return LivingWorld(WorldSettings(**self._facts["settings"]))

    async def __aenter__(self) -> WebProcess:
        options = {**asdict(self.settings), "speedup": self.speedup}
        shared = options.pop("every_host")
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        flags += [f"--every-host={name}={value}" for name, value in shared.items()]
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "recrawl.livingweb", "--with-stdin", *flags,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert self._process.stdout is not None
        line = b""
        with suppress(TimeoutError):
            async with asyncio.timeout(_START_S):
                line = await self._process.stdout.readline()
        if not line:
            await self._end()
            raise RecrawlError("the living web did not start: run `python -m recrawl.livingweb` to see why")
        self._facts = json.loads(line)
        self.port = self._facts["port"]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def _end(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(_END_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
