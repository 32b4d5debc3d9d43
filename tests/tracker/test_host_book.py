"""What a tracker keeps of hosts: all with tracked pages, a bounded number of others, robots.txt within its memory."""

from __future__ import annotations

import asyncio

from recrawl.store.rows import HostRow
from recrawl.tracker.clock import TrackerClock
from recrawl.tracker.hosts import MOST_PASSING, HostBook, robots_from_bytes
from recrawl.tracker.settings.settings import HostRule, Settings
from recrawl.web.fetch.protocol import FetchJob, FetchResult, NeedRobots, WaitForSlot
from recrawl.web.fetch.robots_cache import RobotsMemory
from recrawl.web.url.address import Address, read_address

START = 1_800_000_000.0


def _address(url: str) -> Address:
    address = read_address(url)
    assert isinstance(address, Address)
    return address


class Ground:
    """A book with a clock that is set by hand, and a web where every host has a robots.txt."""

    def __init__(self, most_origins: int = 1000, settings: Settings | None = None) -> None:
        self.time = 0.0
        self.asked: list[str] = []
        self.paced: list[str] = []
        clock = TrackerClock(steady=lambda: self.time, wall=lambda: START)
        settings = Settings(min_gap_s=1.0) if settings is None else settings
        self.book = HostBook(settings, clock, lambda state: self.paced.append(state.name))
        self.memory = RobotsMemory("recrawl", self._fetch, clock.now, most_origins=most_origins)
        self.book.use(self.memory)

    async def _fetch(self, job: FetchJob) -> FetchResult:
        self.asked.append(job.address.origin)
        return FetchResult(job.address, "ok", "", job.address, status=200, body=b"User-agent: *\nDisallow: /no\n")

    async def visit(self, url: str) -> None:
        """Ask a host as a fetch does, and let its gap pass."""
        await self.book.robots(NeedRobots(_address(url)))
        await self.book.turn(WaitForSlot(_address(url), None, 0))
        self.book.done()
        self.time += 2.0

    def kept(self) -> int:
        """Entries of robots.txt that the states of hosts hold."""
        return sum(len(state.robots) for state in self.book)


def test_the_robots_of_hosts_are_bounded_by_the_memory_that_fetches_them() -> None:
    ground = Ground(most_origins=3)

    async def story(ground: Ground) -> None:
        for number in range(20):
            ground.book.of(f"h{number}.example")
            await ground.visit(f"https://h{number}.example/page")
        assert ground.kept() == 3
        assert ground.book.robots_of(_address("https://h0.example/")) is None
        entry = ground.book.robots_of(_address("https://h19.example/"))
        assert entry is not None
        assert not entry.allows(_address("https://h19.example/no"))
        row = ground.book.of("h19.example").row(robots=True)
        assert list(robots_from_bytes(row.robots)) == ["https://h19.example"]
        await ground.visit("https://h0.example/page")  # asked again, and known again
        assert ground.asked.count("https://h0.example") == 2
        assert ground.book.robots_of(_address("https://h0.example/")) is not None
        assert ground.kept() == 3

    asyncio.run(story(ground))


def _saved(book: HostBook) -> list[HostRow]:
    marks = book.marks()
    rows = book.rows(marks)
    book.saved(marks, robots=True)
    return rows


def test_stored_robots_of_many_hosts_are_loaded_within_the_same_bound() -> None:
    writer = Ground()

    async def write(ground: Ground) -> None:
        for number in range(20):
            await ground.visit(f"https://h{number}.example/page")

    asyncio.run(write(writer))
    rows = _saved(writer.book)
    assert len(rows) == 20
    reader = Ground(most_origins=3)
    reader.book.load(rows, [])
    assert len(reader.book) == 20
    assert reader.kept() == 3


def test_a_look_at_a_host_that_is_not_known_keeps_nothing() -> None:
    book = Ground().book
    for number in range(100):
        assert book.find(f"h{number}.example") is None
        assert book.robots_of(_address(f"http://h{number}.example/")) is None
    assert len(book) == 0


def test_hosts_that_only_redirects_led_to_are_forgotten_when_there_are_many() -> None:
    """Those with pages stay, and those that asked for quiet, and those that are not stored yet."""
    rules = Settings(min_gap_s=1.0, hosts=(HostRule("*.example", min_gap_s=1.0),))
    ground = Ground(most_origins=50, settings=rules)

    async def story(ground: Ground) -> None:
        book = ground.book
        tracked = book.of("tracked.example")
        quiet = _address("http://quiet.example/")
        book.heard(FetchResult(quiet, "rate-limited", "", quiet, status=429, retry_after_s=1e9))
        for number in range(MOST_PASSING + 100):
            await ground.visit(f"http://h{number}.example/")
        assert len(book) == MOST_PASSING + 102  # not stored yet
        assert len(_saved(book)) == MOST_PASSING + 101
        for number in range(100):
            await ground.visit(f"http://later{number}.example/")
        _saved(book)
        assert len(book) <= MOST_PASSING + 2
        assert book.find("tracked.example") is tracked
        assert book.find("quiet.example") is not None
        assert book.find("later99.example") is not None
        assert len(book._rules) <= len(book)
        assert len(book._origins) <= 50
        assert not ground.paced  # the scheduler has no pages of any of these

    asyncio.run(story(ground))


def test_a_host_whose_pages_are_tracked_later_goes_on_where_it_was() -> None:
    ground = Ground()

    async def story(ground: Ground) -> None:
        first = ground.book.of("first.example")
        await ground.visit("http://second.example/")
        second, third = ground.book.of("second.example"), ground.book.of("third.example")
        assert (first.number, second.number, third.number) == (0, 1, 2)
        assert second.robots
        assert second.next_at > START

    asyncio.run(story(ground))


def test_a_fetch_begins_with_the_turn_of_its_first_hop() -> None:
    """A signal that comes while a redirect waits for its turn is newer than the answer that led there."""
    ground = Ground()

    async def story() -> None:
        start = ground.book.now()
        await ground.book.turn(WaitForSlot(_address("http://a.example/"), None, 0))
        ground.time += 5.0
        await ground.book.turn(WaitForSlot(_address("http://b.example/"), None, 1))
        ground.time += 5.0
        assert ground.book.done() == start
        await ground.book.turn(WaitForSlot(_address("http://c.example/"), None, 0))  # another fetch of the task
        assert ground.book.done() == start + 10.0

    asyncio.run(story())
