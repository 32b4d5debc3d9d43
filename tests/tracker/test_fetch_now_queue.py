"""Requests to fetch pages now: one a host when its gap is over, and no host is looked at before."""

from __future__ import annotations

import numpy as np

from recrawl.scheduling.scheduler import Scheduler
from recrawl.tracker.clock import TrackerClock
from recrawl.tracker.hosts import HostBook
from recrawl.tracker.pipeline.dispatch import FetchNowQueue
from recrawl.tracker.schedule import Schedule
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.visit import InFlight

HOSTS = 300


class CountedHosts(HostBook):
    """Hosts that count how often somebody wants to know whether one may be asked."""

    looks = 0

    def may_ask(self, name: str, at: float | None = None) -> bool:
        self.looks += 1
        return super().may_ask(name, at)


class Desk:
    """A queue of requests for two pages of each of many hosts, which may be asked at once or in 100 s."""

    def __init__(self) -> None:
        clock, settings = TrackerClock(wall=lambda: 0.0, steady=lambda: 0.0), Settings(min_gap_s=0.0)
        self.hosts = CountedHosts(settings, clock, lambda _: None)
        self.names = [f"h{number}" for number in range(HOSTS)]
        numbers = [self.hosts.of(name).number for name in self.names]
        scheduler = Scheduler(86_400.0 * 1000, burst=3 * HOSTS)
        schedule = Schedule(scheduler, self.hosts, clock, settings)
        ids = scheduler.add(importance=np.ones(2 * HOSTS), host=numbers * 2, last_crawled=0.0)
        schedule.index.put(np.arange(1, 2 * HOSTS + 1), ids)
        self.schedule = schedule
        self.queue = FetchNowQueue(schedule, self.hosts, InFlight())
        for page_id in range(1, 2 * HOSTS + 1):
            self.queue.add(page_id, self.names[(page_id - 1) % HOSTS])

    def claim(self, now: float) -> list[int]:
        """Claim and drop the requests of what was claimed, as dispatching does; return the pages."""
        pages = [self.schedule.page_of(entry) for entry in self.queue.claim(1000, now)]
        for page_id in pages:
            assert self.queue.pop(page_id, self.names[(page_id - 1) % HOSTS])
        return pages


def test_each_host_gives_one_page_at_a_time_until_all_were_fetched() -> None:
    desk = Desk()
    assert sorted(desk.claim(1.0)) == list(range(1, HOSTS + 1))
    assert sorted(desk.claim(2.0)) == list(range(HOSTS + 1, 2 * HOSTS + 1))
    assert len(desk.queue) == 0
    assert desk.claim(3.0) == []
    desk.queue.add(5, desk.names[4])
    desk.schedule.give_back(desk.schedule.index.all_of(5))
    assert desk.claim(4.0) == [5]


def test_hosts_whose_gap_is_not_over_are_not_looked_at_again_and_again() -> None:
    desk = Desk()
    for name in desk.names[10:]:
        desk.hosts.of(name).blocked_until = 100.0
    assert len(desk.claim(1.0)) == 10
    before = desk.hosts.looks
    assert len(desk.claim(2.0)) == 10
    assert desk.hosts.looks - before == 10
    assert len(desk.claim(100.5)) == HOSTS - 10


def test_a_page_that_left_is_dropped_and_the_next_of_its_host_is_fetched() -> None:
    desk = Desk()
    desk.schedule.leave(1)
    assert HOSTS + 1 in desk.claim(1.0)
    assert len(desk.queue) == HOSTS - 1
