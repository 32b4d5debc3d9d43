"""Prove that a search index is kept in step: a site that lives, freezes, and must be in the index as it is.

    python -m recrawl.lab.demo.index_run examples/search_index.py

The living web, the tracker with discovery, its service, and a program that follows the change stream into an index;
the program is killed now and then, and started again. Then the site freezes, every page is due once more, and the
index is compared with the site. Its writes are counted by SQLite, not by the program.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from recrawl._event_loop import run
from recrawl.errors import RecrawlError
from recrawl.jit import BESIDE_PARTS
from recrawl.lab.livingweb.articles import title
from recrawl.lab.livingweb.clock import RunningClock
from recrawl.lab.livingweb.server import LivingWeb
from recrawl.lab.livingweb.world import SECTIONS, LivingWorld
from recrawl.lab.livingweb.world_settings import WorldSettings
from recrawl.service.auth.access import Access
from recrawl.service.listening import Listening
from recrawl.service.server import service
from recrawl.store.store import Store
from recrawl.tracker.admission import PageRequest
from recrawl.tracker.clock import DAY_S, TrackerClock
from recrawl.tracker.commands.commands import Add, CommandHandler
from recrawl.tracker.process import run_tracker
from recrawl.tracker.settings.settings import DiscoveryRules, GroupRule, RemovalRules, Settings, SignalRules
from recrawl.tracker.tracker import Tracker
from recrawl.warming import warm
from recrawl.web.content.rules import ContentRules
from recrawl.web.fetch.egress import egress_policy

_EXISTS = ("alive", "moved")


_COUNTED = """
CREATE TABLE proof_writes (writes INTEGER NOT NULL);
INSERT INTO proof_writes VALUES (0);
CREATE TRIGGER proof_insert AFTER INSERT ON entries BEGIN UPDATE proof_writes SET writes = writes + 1; END;
CREATE TRIGGER proof_update AFTER UPDATE ON entries BEGIN UPDATE proof_writes SET writes = writes + 1; END;
CREATE TRIGGER proof_delete AFTER DELETE ON entries BEGIN UPDATE proof_writes SET writes = writes + 1; END;
"""

INDEX_KINDS = ("discovered", "changed", "restored", "moved", "removed")
"""Events of which each is one write to an index."""

# A site whose answers can be trusted: what is measured is whether the index follows what the tracker sees.
_HONEST = {
    "robots": "allow", "trouble": "calm", "etag": "true", "modified": "true", "sitemap": "honest", "feed": "none",
    "gone": "not-found", "hub": False, "max_age_s": None,
}  # fmt: skip
_LONG_S = 30 * DAY_S
_LOOK_S = 0.1
_BATCH = 1000
_MOST_TRIES = 10


@dataclass(frozen=True, slots=True)
class Comparison:
    """An index against a site, by address.

    Args:
        right: entries that say what the page says.
        stale: entries that say something else.
        missing: pages of the site without an entry.
        surplus: entries of pages that are not there.
    """

    right: int
    stale: tuple[str, ...]
    missing: tuple[str, ...]
    surplus: tuple[str, ...]


def compare(world: LivingWorld, port: int, now: float, entries: Mapping[str, str]) -> Comparison:
    """Compare an index, texts by address, with the site as it is at a time. O(all texts).

    The site is the living web. What a page says is known from the seed, without noise and frame: an entry is right if
    all of it is in the entry. So a copy that is one change old is found out, whoever made it.
    """
    stale, surplus, right = [], [], 0
    for url, text in entries.items():
        said = says(world, port, now, url)
        if said is None:
            surplus.append(url)
        elif all(part in text for part in said):
            right += 1
        else:
            stale.append(url)
    there = [world.url(page, port, now) for page in range(len(world)) if world.state(page, now) in _EXISTS]
    return Comparison(right, tuple(stale), tuple(url for url in there if url not in entries), tuple(surplus))


def says(world: LivingWorld, port: int, now: float, url: str) -> Sequence[str] | None:
    """What must be read at an address at a time: paragraphs, or the titles of a list; None if nothing is there."""
    page = world.page_of(url)
    if page is not None:
        if world.state(page, now) not in _EXISTS or world.url(page, port, now) != url:
            return None
        version, paragraphs = world.version(page, now), world.pages.paragraphs[page]
        return [part.decode() for part in world.pool.paragraphs(page, version, paragraphs)]
    name, _, path = url.partition("://")[2].partition("/")
    host = world.host_numbers.get(name.partition(":")[0].encode())
    section = path.strip("/")
    if host is None or (path and section not in SECTIONS):
        return None
    listed = SECTIONS.index(section) if section else None
    return [
        title(world, each).decode()
        for each in world.pages_of(host)
        if world.pages.section[each] == listed and world.state(each, now) == "alive"
    ]


def true_changes(world: LivingWorld, since: float, until: float) -> int:
    """How often pages of the site changed what they say in a time."""
    return sum(len(world.changes(page, since, until)) for page in range(len(world)))


def example_program() -> Path | None:
    """The example of the repository, None where recrawl is installed without it."""
    program = Path(__file__).parents[4] / "examples" / "search_index.py"
    return program if program.is_file() else None


class Follower:
    """A program that keeps a search index, as a process that can be killed, and its index, looked at from outside.

    The index is a SQLite file with a table `entries (page, url, body)`, a row for each page. Its writes are counted by
    SQLite itself, in the transactions of the program, whatever that says of them.

    The program that keeps an index, as a process.

    Args:
        program: its file; called with the path of the index, `--address`, and `--once` to catch up and end.
        index: the file of the index.
        address: of the service.
        token: for it.
    """

    def __init__(self, program: Path, index: Path, address: str, token: str) -> None:
        self._command = (sys.executable, str(program), str(index), "--address", address)
        self._environment = {**os.environ, "RECRAWL_TOKEN": token}
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Follow from now on."""
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stderr=asyncio.subprocess.DEVNULL, env=self._environment
        )

    async def kill(self) -> None:
        """End it without a warning, whatever it is doing."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is not None:
            raise RecrawlError(f"the program that keeps the index ended by itself, with {process.returncode}")
        process.kill()
        await process.wait()

    async def catch_up(self) -> None:
        """Take all events that there are."""
        process = await asyncio.create_subprocess_exec(
            *self._command, "--once", stderr=asyncio.subprocess.PIPE, env=self._environment
        )
        _, said = await process.communicate()
        if process.returncode:
            raise RecrawlError(f"the index could not be brought up to date: {said.decode(errors='replace').strip()}")


def count_writes(index: Path) -> None:
    """Count every row of the index that is written from now on."""
    with closing(sqlite3.connect(index)) as database:
        database.executescript(_COUNTED)


def read_index(index: Path) -> tuple[int, dict[str, str]]:
    """How many rows were written, and the texts of the index by address, with single spaces."""
    with closing(sqlite3.connect(index)) as database:
        (writes,) = database.execute("SELECT writes FROM proof_writes").fetchone()
        return writes, {url: " ".join(body.split()) for url, body in database.execute("SELECT url, body FROM entries")}


@dataclass(frozen=True, slots=True)
class IndexScene:
    """The numbers of a proof.

    Args:
        pages: of the site, of which some appear, move or end while it runs.
        hosts: that it is spread over.
        days: of the site before it freezes.
        days_after: at least, from then to the end: every page is due within half a day, and what is gone must be
            missing over a day before it counts as removed.
        days_per_s: how fast its time runs.
        crawls_a_day: of each page, on average.
        kills: of the program that keeps the index.
        seed: another seed, another site.
    """

    pages: int = 200
    hosts: int = 20
    days: float = 6.0
    days_after: float = 4.0
    days_per_s: float = 0.15
    crawls_a_day: float = 4.0
    kills: int = 5
    seed: int = 1

    @property
    def longest_s(self) -> float:
        """Real seconds after which a proof is given up, and what is not in step counts."""
        return 30.0 + 5.0 * (self.days + self.days_after) / self.days_per_s


@dataclass(frozen=True, slots=True)
class Standing:
    """An index at the end of a proof.

    Args:
        events: of the five kinds that change an index.
        writes: to the index, as SQLite counted them.
        detected_changes, true_changes: of pages of the site; changes that come between two crawls are seen as one.
        against_site: the index against the frozen site.
    """

    events: int
    writes: int
    detected_changes: int
    true_changes: int
    against_site: Comparison


@dataclass(frozen=True, slots=True)
class IndexResult:
    """What a proof came to.

    Args:
        seconds: real ones.
        crawls: fetches.
        kills: of the program, each followed by a new start.
        standing: of the index.
    """

    seconds: float
    crawls: int
    kills: int
    standing: Standing

    @property
    def holds(self) -> bool:
        """Whether the index was as the site is, and each event was written once."""
        found = self.standing.against_site
        return not (found.stale or found.missing or found.surplus) and self.standing.writes == self.standing.events

    def as_json(self) -> dict[str, object]:
        """For scripts: counts, and the first addresses that are not right."""
        standing, found = self.standing, self.standing.against_site
        return {
            "seconds": self.seconds,
            "crawls": self.crawls,
            "kills": self.kills,
            "events": standing.events,
            "writes": standing.writes,
            "detected_changes": standing.detected_changes,
            "true_changes": standing.true_changes,
            "right": found.right,
            "stale": len(found.stale),
            "missing": len(found.missing),
            "surplus": len(found.surplus),
            "examples": [*found.stale, *found.missing, *found.surplus][:10],
            "holds": self.holds,
        }


async def prove_index(program: Path, scene: IndexScene | None = None) -> IndexResult:
    """Run a proof.

    Args:
        program: the file of the program that keeps an index, such as examples/search_index.py.
        scene: its numbers.
    """
    scene = IndexScene() if scene is None else scene
    await asyncio.to_thread(warm, tuple(BESIDE_PARTS))  # days would pass meanwhile
    began = time.monotonic()
    clock = RunningClock(int(time.time()), time.time(), scene.days_per_s * DAY_S)
    frozen: list[float] = []
    world = LivingWorld(
        WorldSettings(
            pages=scene.pages, hosts=scene.hosts, seed=scene.seed, epoch=int(clock.epoch), kilobytes=3.0,
            noise_share=0.0,
            every_host=_HONEST,
        )
    )  # fmt: skip
    there = [page for page in range(len(world)) if world.state(page, clock.epoch) == "alive"]
    web = LivingWeb(world, lambda: min(clock(), *frozen) if frozen else clock())
    found: list[tuple[int, Standing]] = []
    with TemporaryDirectory(prefix="recrawl-index-") as folder:
        index = Path(folder) / "index.db"

        async def prove(tracker: Tracker) -> None:
            async with _following(tracker, program, index) as follower:
                await _add(tracker, [*web.seeds(), *(web.url(page) for page in there)])
                await follower.start()
                await _live(tracker, clock, follower, scene)
                frozen.append(clock())
                await _full_cycle(tracker, frozen[0], scene)
                await follower.kill()
                await _in_step(tracker.store, follower)
                standing = await _measured(tracker.store, web, index, frozen[0])
            found.append((tracker.usage.ended["fetched"], standing))
            tracker.stop()

        async with web:
            await run_tracker(
                _settings(scene, web, Path(folder) / "data"),
                lambda _: None,
                (prove,),
                clock_from=lambda at: TrackerClock(at, wall=clock, pace=clock.speedup),
            )
    crawls, standing = found[0]
    return IndexResult(round(time.monotonic() - began, 3), crawls, scene.kills, standing)


@asynccontextmanager
async def _following(tracker: Tracker, program: Path, index: Path) -> AsyncIterator[Follower]:
    """A service beside the tracker, and a program that may read from it, with an index that counts its writes."""
    token, _ = await Access(tracker.store, Listening(), time.time).make(["read"], "index")
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serves = service(Listening(port=0, fixed=True), told=lambda where, _link: address.set_result(where))
    serving = asyncio.ensure_future(serves(tracker))
    serving.add_done_callback(lambda _: address.cancel())  # it could not begin
    follower = None
    try:
        follower = Follower(program, index, await address, token)
        await follower.catch_up()
        count_writes(index)
        yield follower
    finally:
        if follower is not None:
            await follower.kill()
        tracker.stop()
        await serving


async def _add(tracker: Tracker, urls: Sequence[str]) -> None:
    """Track pages, now that every write is counted."""
    hand = CommandHandler(tracker.store, tracker.settings, tracker)
    await hand.do(Add([PageRequest(url) for url in urls]), tracker.clock.now())


def _settings(scene: IndexScene, web: LivingWeb, folder: Path) -> Settings:
    return Settings(
        store=str(folder),
        budget_per_day=scene.pages * scene.crawls_a_day,
        contact="demo@living.test",
        lease_s=_LONG_S,
        min_gap_s=0.0,  # a second of ours is hours of the site
        min_interval_s=0.0,
        max_in_flight=8,
        longest_turn_s=DAY_S,
        discover=True,
        discovery=DiscoveryRules(max_interval_s=DAY_S / 2),
        egress=egress_policy(allow=web.allow, resolve=web.resolve),
        # Noise is known by a second fetch some seconds later, in which this site lives for an hour: so it has none.
        content=ContentRules(learn_noise=False),
        groups=(GroupRule("site", ("*",), max_interval_s=DAY_S / 2),),
        signals=SignalRules(kinds=("manual",)),
        removal=RemovalRules(removed_probe_s=DAY_S),  # links of the site lead to pages that will be there later
    )


async def _live(tracker: Tracker, clock: RunningClock, follower: Follower, scene: IndexScene) -> None:
    """Let the site live, and kill the follower now and then."""
    for number in range(scene.kills + 1):
        until = clock.epoch + scene.days * DAY_S * (number + 1) / (scene.kills + 1)
        while clock() < until and not tracker.stopping:
            await tracker.pause(_LOOK_S)
        if number < scene.kills:
            await follower.kill()
            await follower.start()


async def _full_cycle(tracker: Tracker, frozen_at: float, scene: IndexScene) -> None:
    """Until every page was due, and was looked at, once what had to be confirmed was."""
    halfway = frozen_at + scene.days_after * DAY_S / 2
    give_up = time.monotonic() + scene.longest_s
    while not tracker.stopping and time.monotonic() < give_up:
        now = tracker.clock.now()
        if now > frozen_at + scene.days_after * DAY_S and await _all_seen(tracker.store, halfway):
            return
        await tracker.pause(_LOOK_S)


async def _all_seen(store: Store, since: float) -> bool:
    """Whether every page and source was looked at since a time, and none waits for its absence to be confirmed."""
    after, read = 0, {row.page_id for row in await store.sources() if row.state == "active"}
    while pages := await store.list_pages(after, _BATCH, role=None):
        after = pages[-1].id
        active = [page for page in pages if page.state == "active" and (page.role == "page" or page.id in read)]
        if any(page.missing or (page.attempted_at or 0.0) < since for page in active):
            return False
    return True


async def _in_step(store: Store, follower: Follower) -> None:
    """Until the index has all events that there are."""
    for _ in range(_MOST_TRIES):
        last = await store.last_cursor()
        await follower.catch_up()
        if await store.last_cursor() == last:
            return


async def _measured(store: Store, web: LivingWeb, index: Path, frozen_at: float) -> Standing:
    """The index against the site, and against the change log."""
    events = detected = after = 0
    while changes := await store.changes(after, _BATCH):
        after = changes[-1].cursor
        events += sum(each.event.kind in INDEX_KINDS for each in changes)
        urls = [each.event.url for each in changes if each.event.kind == "changed"]
        detected += sum(web.world.page_of(url) is not None for url in urls)
    writes, entries = read_index(index)
    true = true_changes(web.world, web.world.epoch, frozen_at)
    return Standing(events, writes, detected, true, compare(web.world, web.port, frozen_at, entries))


def main(arguments: list[str] | None = None) -> int:
    """Prove it for a program, print one JSON line; 1 if the index is not as the site is."""
    usual = IndexScene()
    parser = argparse.ArgumentParser("recrawl.lab.demo.index_run", description="Prove that an index is kept in step.")
    parser.add_argument("program", type=Path, help="such as examples/search_index.py")
    parser.add_argument("--pages", type=int, default=usual.pages)
    parser.add_argument("--hosts", type=int, default=usual.hosts)
    parser.add_argument("--days", type=float, default=usual.days, help="of the site before it freezes")
    parser.add_argument("--days-per-s", type=float, default=usual.days_per_s)
    parser.add_argument("--kills", type=int, default=usual.kills)
    parser.add_argument("--seed", type=int, default=usual.seed)
    asked = parser.parse_args(arguments)
    numbers = {name: value for name, value in vars(asked).items() if name != "program"}
    result = run(prove_index(asked.program, IndexScene(**numbers)))
    sys.stdout.write(json.dumps(result.as_json()) + "\n")
    return 0 if result.holds else 1


if __name__ == "__main__":
    sys.exit(main())
