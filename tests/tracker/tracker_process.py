"""`recrawl track` as a process of its own, with a settings file in a folder, that tests kill, stop and start again."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from ledger_site import HOOK

from patience import patience
from recrawl.tracker.settings.file import read_settings
from recrawl.tracker.settings.settings import Settings

MIN_GAP_S = 0.02
SLOW_GAP_S = 2.5
SLOW = "slow"
"""A host whose gap is longer than a restart."""

_SETTINGS = """
store = "{store}"
budget = "{budget}/s"
contact = "tests@example.com"
concurrency = {concurrency}
min-gap = "{gap}s"
min-interval = 0
again-after = "0s"
drain = "{drain}s"
longest-turn = "{turn}s"
lease = "{lease}s"

[limits]
total = "{total}s"

[retry]
first = "0.05s"
longest = "0.2s"

[retention]
bodies = true

[network]
allow = {{site = "127.0.0.1/32:{port}"}}
resolve = {{"*.site.test" = "127.0.0.1"}}

[[hosts]]
pattern = "{slow}.site.test"
min-gap = "{slow_gap}s"

[[sinks]]
name = "hook"
kind = "webhook"
target = "http://hook.site.test:{port}{hook}"
plain-http = true

[[sinks]]
name = "lines"
kind = "jsonl"
target = "{lines}"
"""
_MAIN = "from recrawl.cli.main import main; main()"


@dataclass(slots=True)
class TrackerProcess:
    """A tracker on a place for a store and a web on loopback.

    Args:
        folder: for its settings, its events and what it says.
        store: where its store is.
        port: of the web.
        budget: crawls a second.
        drain_s: given to fetches under way when it is stopped.
        concurrency: fetches at once.
        slow_gap_s: between two requests to the slow host.
        listen: where its service listens.
        lease_s: how long a page is leased.
        turn_s: longest wait for the turn of a host.
        total_s: longest time of a fetch on the network.
    """

    folder: Path
    store: str
    port: int
    budget: float = 60.0
    drain_s: float = 2.0
    concurrency: int = 8
    slow_gap_s: float = SLOW_GAP_S
    listen: str = "off"
    lease_s: float = 120.0
    turn_s: float = 30.0
    total_s: float = 30.0
    process: asyncio.subprocess.Process | None = None

    def __post_init__(self) -> None:
        text = _SETTINGS.format(
            store=self.store,
            budget=self.budget,
            gap=MIN_GAP_S,
            port=self.port,
            slow=SLOW,
            slow_gap=self.slow_gap_s,
            drain=self.drain_s,
            concurrency=self.concurrency,
            hook=HOOK,
            lines=self.lines,
            lease=self.lease_s,
            turn=self.turn_s,
            total=self.total_s,
        )
        self.path.write_text(text, encoding="utf-8")

    @property
    def path(self) -> Path:
        return self.folder / "recrawl.toml"

    @property
    def lines(self) -> Path:
        """The file of the sink for lines."""
        return self.folder / "events.jsonl"

    @property
    def said(self) -> str:
        """What it said, in all its lives."""
        path = self.folder / "said.txt"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    @property
    def settings(self) -> Settings:
        return read_settings(self.path).settings

    async def start(self, crash: str = "") -> None:
        """Start it, to die at a point if one is named."""
        environment = {**os.environ, "RECRAWL_CRASH": crash, "RECRAWL_LISTEN": self.listen}
        with (self.folder / "said.txt").open("ab") as said:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", _MAIN, "track", "--settings", str(self.path),
                cwd=self.folder, env=environment, stdout=said, stderr=said,
            )  # fmt: skip

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.returncode is None

    async def ended(self) -> int:
        """Wait until it has ended; its exit code."""
        assert self.process is not None
        async with patience("the tracker to end"):
            return await self.process.wait()

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    async def stop(self) -> int:
        """Ask it to drain; its exit code."""
        self.send(signal.SIGTERM)
        return await self.ended()

    async def kill(self) -> None:
        """Have it gone, whatever it does."""
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
