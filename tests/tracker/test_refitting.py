"""The prior of a tracker is fitted to its own pages as soon as some were crawled twice, and again as crawls come in."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import numpy as np

from recrawl.scheduling.scheduler import Scheduler
from recrawl.store.rows import LeaseRow, PageRow
from recrawl.tracker.clock import DAY_S, TrackerClock
from recrawl.tracker.hosts import HostBook
from recrawl.tracker.maintenance import Refitting
from recrawl.tracker.pipeline.dispatch import FEWEST_PAGES, FEWEST_SOUNDED_OF, SOUNDED, Soundings
from recrawl.tracker.schedule import Schedule
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.usage import Accounts
from recrawl.tracker.visit import InFlight, Visit


@dataclass
class SmallDesk:
    """As much of a desk as fitting and soundings look at; one host may not be asked."""

    pages: int
    accounts: Accounts = field(default_factory=Accounts)
    in_flight: InFlight = field(default_factory=InFlight)
    closed: str = ""
    hosts_of_pages: int = 10
    least: float = 0.0
    clock_s: float = 0.0

    def __post_init__(self) -> None:
        clock = TrackerClock(wall=lambda: self.clock_s, steady=lambda: 0.0)
        settings = Settings(min_gap_s=0.0)
        self.hosts = HostBook(settings, clock, lambda _: None)
        numbers = [self.hosts.of(f"h{number % self.hosts_of_pages}").number for number in range(self.pages)]
        if self.closed:
            self.hosts.of(self.closed).blocked_until = 1e9
        self.scheduler = Scheduler(float(self.pages), burst=self.pages)
        self.ids = self.scheduler.add(importance=np.ones(self.pages), host=numbers, min_interval=self.least)
        self.schedule = Schedule(self.scheduler, self.hosts, clock, settings)
        self.schedule.index.put(np.arange(1, self.pages + 1), self.ids)

    def soundings(self) -> Soundings:
        """Return what claims pages for soundings."""
        return Soundings(self.schedule, self.hosts, self.in_flight, self.accounts)

    def crawl(self, ids: np.ndarray, now: float) -> None:
        """Crawl some pages."""
        self.scheduler.crawled(ids, now, changed=np.ones(len(ids), dtype=np.bool_))
        self.accounts.end("fetched", "ok", len(ids))

    def crawl_all(self, now: float) -> None:
        """A crawl of each page; every other one has changed."""
        self.scheduler.claim(self.ids, now)
        self.scheduler.crawled(self.ids, now, changed=np.arange(self.pages) % 2 == 0)
        self.accounts.take(self.pages)
        self.accounts.end("fetched", "ok", self.pages)


def fits_after(pages: int, rounds: int) -> list[bool]:
    desk = SmallDesk(pages)
    refitting, fitted = Refitting(desk.schedule, desk.accounts), []
    for number in range(rounds):
        desk.crawl_all(float(number))
        fitted += [asyncio.run(refitting.tend()), asyncio.run(refitting.tend())]
    return fitted


def test_it_is_fitted_from_the_second_crawl_on_and_not_twice_in_a_row() -> None:
    assert fits_after(80, rounds=3) == [False, False, True, False, True, False]


def test_a_tracker_without_a_budget_goes_on_with_what_it_believed() -> None:
    desk = SmallDesk(80)
    refitting = Refitting(desk.schedule, desk.accounts)
    for number in range(2):
        desk.crawl_all(float(number))
    desk.scheduler.set_budget(0.0, 2.0)
    assert not asyncio.run(refitting.tend())


def test_few_pages_do_not_make_a_population() -> None:
    assert not any(fits_after(FEWEST_PAGES - 1, rounds=4))


def sounded(desk: SmallDesk, soundings: Soundings, now: float) -> list[int]:
    """Go through the first round, 32 crawls at a time; the entries of all soundings, in order."""
    found = []
    while desk.accounts.ended["fetched"] < desk.pages:
        now += 32 / desk.pages
        claimed = soundings.claim(32, now * DAY_S)
        found += claimed
        batch = desk.scheduler.take(now, 32 - len(claimed))
        desk.crawl(np.array([*claimed, *batch.ids.tolist()], dtype=np.int64), now)
    return found


def test_the_same_few_pages_are_crawled_again_twice_in_the_first_round() -> None:
    desk = SmallDesk(FEWEST_SOUNDED_OF, hosts_of_pages=64)
    found = sounded(desk, desk.soundings(), 0.0)
    assert len(found) == 2 * SOUNDED
    assert set(found[:SOUNDED]) == set(found[SOUNDED:])
    assert len(set(found)) == SOUNDED
    assert len(desk.scheduler.learned(desk.pages)) >= SOUNDED


def test_a_sounding_asks_one_page_of_a_host_at_a_time() -> None:
    """All others would wait for the turn of their host, each with a lease that runs out meanwhile."""
    desk = SmallDesk(FEWEST_SOUNDED_OF)
    soundings, now, asked = desk.soundings(), 0.0, list[list[object]]()
    while sum(map(len, asked)) < SOUNDED:
        claimed = soundings.claim(32, now * DAY_S)
        asked += [[desk.scheduler.host_of(entry) for entry in claimed]] if claimed else []
        now += 32 / desk.pages
        batch = desk.scheduler.take(now, 32 - len(claimed))
        desk.crawl(np.array([*claimed, *batch.ids.tolist()], dtype=np.int64), now)
    assert len(asked[0]) == 10
    assert all(len(hosts) == len(set(hosts)) for hosts in asked)


def test_a_second_sounding_first_asks_what_the_first_did_not_come_to() -> None:
    """All pages of one host: a page for each claim, and the second sounding begins before the first is through."""
    desk = SmallDesk(FEWEST_SOUNDED_OF, hosts_of_pages=1)
    found = sounded(desk, desk.soundings(), 0.0)
    assert len(found) > 16
    assert len(set(found)) == len(found)


def test_few_pages_are_not_sounded() -> None:
    desk = SmallDesk(FEWEST_SOUNDED_OF - 1)
    assert sounded(desk, desk.soundings(), 0.0) == []


def test_pages_that_are_known_are_not_sounded() -> None:
    """As after a restart, when the rates of pages are read from the store."""
    desk = SmallDesk(FEWEST_SOUNDED_OF)
    for number in range(2):
        desk.crawl_all(float(number))
    desk.accounts = Accounts()
    assert sounded(desk, desk.soundings(), 2.0) == []


def test_a_host_that_may_not_be_asked_is_left_alone() -> None:
    desk = SmallDesk(FEWEST_SOUNDED_OF, closed="h3")
    found = sounded(desk, desk.soundings(), 0.0)
    names = {state.number: state.name for state in desk.hosts}
    assert {names[desk.scheduler.host_of(entry)] for entry in found} == {f"h{n}" for n in range(10) if n != 3}  # type: ignore[index]
    assert len(desk.hosts) == 10  # and none is made up


def test_a_page_that_may_not_be_taken_yet_is_not_sounded() -> None:
    """`Scheduler.resume` holds every second page."""
    desk = SmallDesk(FEWEST_SOUNDED_OF, hosts_of_pages=64)
    soundings, now = desk.soundings(), 0.0
    while desk.accounts.ended["fetched"] < 96:  # before the first sounding
        now += 32 / desk.pages
        desk.crawl(desk.scheduler.take(now, 32).ids, now)
    held = desk.scheduler.copied(desk.pages)[::2]
    desk.scheduler.resume(held, held_until=now + 100.0)
    found = sounded(desk, soundings, now)
    assert found
    assert not set(found) & set(held.tolist())


def test_what_has_left_or_is_not_written_yet_is_not_claimed() -> None:
    desk = SmallDesk(FEWEST_SOUNDED_OF)
    soundings, now = desk.soundings(), 0.0
    while not (first := soundings.claim(1, now * DAY_S)):
        now += 32 / desk.pages
        desk.crawl(desk.scheduler.take(now, 32).ids, now)
    desk.crawl(np.array(first), now)
    drawn = set(desk.scheduler.copied(desk.pages).tolist())
    gone, unwritten = sorted(drawn)[:5], sorted(drawn)[5:10]
    desk.scheduler.remove(gone)
    for page_id in map(desk.schedule.page_of, unwritten):
        page = PageRow(page_id, f"http://h/{page_id}", "h", "", 1.0, None, 0.0, None, "user", 0.0)
        desk.in_flight.add(Visit(page, LeaseRow(page_id, page_id, "worker", 0.0, 60.0), 0))
    rest = list[int]()
    while more := soundings.claim(2 * SOUNDED, now * DAY_S + DAY_S):
        rest += more
    assert len(rest) >= SOUNDED - 11
    assert not {*gone, *unwritten} & set(rest)


def test_a_page_is_not_sounded_within_its_least_interval() -> None:
    desk = SmallDesk(FEWEST_SOUNDED_OF, least=100.0)
    assert sounded(desk, desk.soundings(), 0.0) == []


def test_a_host_that_may_be_asked_only_after_the_moment_of_the_choice_is_left_alone() -> None:
    """Leases count from that moment, so the gap of the host would be cut short by as long as the choice took."""
    desk = SmallDesk(FEWEST_SOUNDED_OF, closed="h3", clock_s=2e9)
    found = sounded(desk, desk.soundings(), 0.0)
    closed = desk.hosts.of("h3").number
    assert found
    assert closed not in {desk.scheduler.host_of(entry) for entry in found}
