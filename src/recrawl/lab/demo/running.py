"""A demo from start to end: the living web, the tracker on it, the race on the truth, and whoever looks on.

The web runs in a process of its own, and everything else in this one: the tracker fetches, the dashboard shows it, the
race notes each copy and lets its shadows make as many crawls, and the view is told some times a second.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

from recrawl.errors import RecrawlError
from recrawl.lab.demo.race import Race, Standing, WatchedFetcher
from recrawl.lab.demo.scene import Scene
from recrawl.lab.livingweb.clock import RunningClock
from recrawl.lab.livingweb.world import LivingWorld
from recrawl.lab.livingweb.world_settings import WorldSettings
from recrawl.service.listening import Listening
from recrawl.service.server import service
from recrawl.tracker.admission import PageRequest
from recrawl.tracker.clock import DAY_S, TrackerClock
from recrawl.tracker.commands.commands import Add, CommandHandler
from recrawl.tracker.process import run_tracker
from recrawl.tracker.settings.settings import Retention, Settings, SignalRules
from recrawl.tracker.tracker import Tracker
from recrawl.web.fetch.egress import egress_policy

_START_S = 60.0
_END_S = 5.0


SAMPLE_S = 0.25
_CONTACT = "demo@living.test"
_MEASURED = 1 / 3
_REFERENCES = ("in truth", "round robin", "optimum")
_PACE_S = 5.0  # over which requests a second are counted
_KEEPS_UP = 0.9  # of the budget
_LONG_S = 30 * DAY_S
_AT_ONCE = 64  # on a slow machine more would wait for long, and be chosen by what was true before
_BURST_S = 2.0
_VERSIONS = 10  # of a page, so that the dashboard can show what changed
Look = Callable[["Show"], None]
"""Called with every sample."""


@dataclass(slots=True)
class WebProcess:
    """The living web as a process of its own: it answers on the other core, and ends with us whatever happens.

    Starts the web in `async with`, and has its world and its clock here too.

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


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What a demo came to; freshness is the mean over its last third, on the truth."""

    seconds: float
    speedup: float
    pages: int
    hosts: int
    budget_per_s: float
    crawls: int
    requests: int
    changes: int
    price: float
    freshness: float
    round_robin: float
    optimum: float
    gap_closed: float | None
    errors: int
    dashboard: str

    def as_json(self) -> dict[str, object]:
        """For scripts."""
        return asdict(self)


class Show:
    """A demo that runs, for whoever looks on.

    Args:
        scene: its numbers.
        web: the living web.
        tracker: on it.
    """

    def __init__(self, scene: Scene, web: WebProcess, tracker: Tracker) -> None:
        self.scene = scene
        self.web = web
        self.tracker = tracker
        self.race = Race(web.world(), scene.budget_per_day, web.clock())
        self.fetcher = WatchedFetcher(tracker.fetcher, self.race.note)
        tracker.fetcher = self.fetcher
        self._began = time.monotonic()
        self.dashboard, self.link = "", ""  # the link signs in once

    @property
    def seconds(self) -> float:
        """Real seconds since it began."""
        return time.monotonic() - self._began

    @property
    def crawls(self) -> int:
        """Fetches of pages that ended."""
        return self.tracker.usage.ended["fetched"]

    @property
    def requests(self) -> int:
        """Requests that were paid from the budget: fetches of pages, second ones, and robots.txt."""
        return self.tracker.usage.counted["requests"]

    @property
    def price(self) -> float:
        """What a crawl must be worth, in clicks that find a fresh copy instead of a stale one."""
        return self.tracker.schedule.scheduler.price

    async def add_pages(self) -> None:
        """Tell the tracker of the pages, and how much each is clicked; nothing else."""
        world, port = self.race.world, self.web.port
        wanted = [
            PageRequest(world.url(page, port), float(self.race.truth.weights[page])) for page in self.race.truth.pages
        ]
        hand = CommandHandler(self.tracker.store, self.tracker.settings, self.tracker)
        await hand.do(Add(wanted), self.tracker.clock.now())

    @property
    def behind(self) -> str:
        """A sentence if this machine cannot make the requests of the budget, else ""."""
        made, budget = self.race.crawls_a_second(_PACE_S), self.scene.budget_per_s
        if made is None or made >= _KEEPS_UP * budget:
            return ""
        return f"This machine makes {made:.0f} of {budget:g} requests a second; all three get the same {made:.0f}."

    def sample(self) -> None:
        """Compare now."""
        self.race.sample(self.web.clock(), self.seconds, self.requests - self.race.crawls)

    def references(self) -> dict[str, float]:
        """For the dashboard: freshness as it is in truth, beside what the tracker estimates of itself; NaN at first."""
        if not self.race.has_begun:
            return dict.fromkeys(_REFERENCES, math.nan)
        last = self.race.course.last
        return dict(zip(_REFERENCES, (last.ours, last.round_robin, last.optimum), strict=True))

    def standing(self) -> Standing:
        """Over the last third."""
        return self.race.standing(self.seconds * (1 - _MEASURED))

    def result(self) -> DemoResult:
        """As it stands."""
        standing, scene = self.standing(), self.scene
        return DemoResult(
            round(self.seconds, 3), round(scene.speedup, 3), scene.pages, scene.hosts, scene.budget_per_s,
            self.crawls, self.race.crawls, self.fetcher.changes, self.price, round(standing.ours, 6),
            round(standing.round_robin, 6), round(standing.optimum, 6), standing.gap_closed, self.fetcher.errors,
            self.dashboard,
        )  # fmt: skip


async def run_demo(
    scene: Scene,
    seconds: float | None,
    look: Look,
    listening: Listening | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> DemoResult:
    """Run a demo until a signal, or for so many real seconds from when it begins to crawl.

    Args:
        scene: its numbers.
        seconds: after which it ends by itself.
        look: called some times a second.
        listening: where the dashboard is; None for none.
        say: takes sentences of the tracker.
    """
    results: list[DemoResult] = []
    addresses = {"": ""}  # of the dashboard, with the link to sign in

    def told(address: str, link: str) -> None:
        addresses.clear()
        addresses[address] = link

    shows: list[Show] = []

    def references() -> dict[str, float]:
        return shows[-1].references() if shows else dict.fromkeys(_REFERENCES, math.nan)

    dashboard = [] if listening is None else [service(listening, link=True, told=told, references=references)]
    with TemporaryDirectory(prefix="recrawl-demo-") as folder:
        async with WebProcess(scene.world(int(time.time())), scene.speedup) as web:

            async def show_it(tracker: Tracker) -> None:
                show = Show(scene, web, tracker)
                shows.append(show)
                await show.add_pages()
                while not tracker.stopping and (seconds is None or show.seconds < seconds):
                    ((show.dashboard, show.link),) = addresses.items()
                    show.sample()
                    look(show)
                    await tracker.pause(SAMPLE_S)
                results.append(show.result())
                tracker.stop()

            settings = settings_of(scene, web, Path(folder) / "data")
            companions = (show_it, *dashboard)
            await run_tracker(settings, say, companions, wanted=None, clock_from=lambda at: _clock(web, at))
    return results[0]


def settings_of(scene: Scene, web: WebProcess, folder: Path) -> Settings:
    """What a tracker of the demo is told: times are in seconds of the web."""
    return Settings(
        store=str(folder),
        budget_per_day=scene.budget_per_day,
        objective="freshness",
        contact=_CONTACT,
        lease_s=_LONG_S,
        longest_turn_s=DAY_S,
        min_interval_s=0.0,  # round robin and the optimum beside it have no such bound
        burst=_BURST_S * scene.budget_per_s,  # else a machine that stalls for a moment loses budget
        concurrency=_AT_ONCE,
        egress=egress_policy(allow=web.allow, resolve=web.resolve),
        retention=Retention(versions=_VERSIONS),
        signals=SignalRules(kinds=("manual",)),
    )


def _clock(web: WebProcess, not_before: float) -> TrackerClock:
    """The clock of the web: both run by the same three numbers."""
    return TrackerClock(not_before, wall=web.clock, pace=web.speedup)
