"""Worlds that did happen: a change history replayed, in days from its first event.

A page is born when it is created and ends when it is removed. One that is created again is a new page with the same
name: whoever crawled the old one found it gone, and must find the new one. Histories need not be tidy: a page whose
first event is no creation was there from the start, a creation of a page that exists is a change, a change of one that
was removed brings it back, and a removal of one that is not there says nothing. Events of a page within the same second
are one to any crawler: changes at one time count once, a change at the time of its birth or removal does not count,
and a page removed when it was born is left out. Nothing here does IO.

A history happened once, and most policies do nothing by chance. What chance there is lies in when a crawler happened to
start: where its rounds stood when pages were born and changed. So a repetition starts the crawler some time before the
history begins, by its seed, and each of its crawls falls at another moment of the history. A crawl log does not say
when in their intervals pages changed: a repetition places the changes again (`Replay`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.files.history import CHANGED, CREATED, REMOVED, SECONDS_A_DAY, ChangeHistory, place_again
from recrawl.lab.worlds.laws import group, hosts_of_addresses
from recrawl.lab.worlds.world import CrawlLog, Events, Hosts, Ints, Signals, World
from recrawl.pages import Floats

_Flags = NDArray[np.bool_]


class Lives(NamedTuple):
    """The lives of the pages of a history: the page, from when to when in days, infinite if it was not removed."""

    page: Ints
    born: Floats
    removed: Floats


def trace_world(history: ChangeHistory, importance: Literal["given", "uniform"] = "given") -> World:
    """Make a world of a history. O(events · log events).

    Args:
        history: where it comes from.
        importance: as the history gives it (1 if it gives none), or 1 for every page.
    """
    if not history.end > history.start:
        raise InvalidInput("spans no time: it needs events at two times at least", field="history")
    lives, changed_life, changed_at = _replayed(history)
    if not len(lives.page):
        raise InvalidInput("has no page that exists for any time", field="history")
    given = history.importance if importance == "given" else None
    weights = np.ones(len(lives.page)) if given is None else given[lives.page]
    hosts = hosts_of_addresses(history.page_names)
    return World(
        name=history.name,
        horizon=history.days,
        importance=weights,
        changes=group(changed_life, changed_at, len(lives.page)),
        born=lives.born,
        removed=lives.removed,
        hosts=None if hosts is None else Hosts(hosts.number[lives.page], hosts.names),
        page_names=tuple(history.page_names[page] for page in lives.page),
    )


def todays_schedule(history: ChangeHistory) -> CrawlLog | None:
    """The crawls that a crawl log holds, as a log in its world; None if the history is no crawl log."""
    if history.crawls is None:
        return None
    days = (history.crawls.time - history.start) / SECONDS_A_DAY
    # A crawl log has no removals, so each of its pages has one life and keeps its number.
    return CrawlLog(history.crawls.page, days)


def _replayed(history: ChangeHistory) -> tuple[Lives, Ints, Floats]:
    """The lives of all pages, and the life and time of each change."""
    order = np.lexsort((np.arange(len(history.events.page)), history.events.page))
    page = history.events.page[order].astype(np.int64)
    day = (history.events.time[order] - history.start) / SECONDS_A_DAY
    kind = history.events.kind[order]
    opens = np.append(True, page[1:] != page[:-1]) if len(page) else np.empty(0, dtype=bool)
    after_removal = np.append(False, kind[:-1] == REMOVED) & ~opens if len(page) else opens
    # A life begins with the first event of a page, and with what follows a removal unless it is one more removal.
    begins = opens | (after_removal & (kind != REMOVED))
    life = np.cumsum(begins) - 1
    there_before = opens & (kind != CREATED)
    first = np.flatnonzero(begins)
    born = np.where(there_before[first], 0.0, day[first])
    removed = np.full(len(first), np.inf)
    ends = (kind == REMOVED) & ~after_removal
    removed[life[ends]] = day[ends]
    changes = _changes(kind, begins, there_before)
    return _tidied(Lives(page[first], born, removed), life[changes], day[changes])


def _changes(kind: NDArray[np.int8], begins: _Flags, there_before: _Flags) -> _Flags:
    """Which events are changes of a living page: all but births and removals."""
    changes: _Flags = ((kind == CHANGED) | (kind == CREATED)) & (~begins | (there_before & (kind == CHANGED)))
    return changes


def _tidied(lives: Lives, life: Ints, day: Floats) -> tuple[Lives, Ints, Floats]:
    """Without lives of no length, changes at the ends of a life, and changes at one time."""
    lasting = lives.removed > lives.born
    number = np.cumsum(lasting) - 1
    kept = lasting[life] & (day > lives.born[life]) & (day < lives.removed[life])
    life, day = life[kept], day[kept]
    once = np.append(True, (life[1:] != life[:-1]) | (day[1:] != day[:-1])) if len(life) else kept[:0]
    kept_lives = Lives(lives.page[lasting], lives.born[lasting], lives.removed[lasting])
    return kept_lives, number[life[once]], day[once]


@dataclass(frozen=True, slots=True)
class Replay:
    """Crawls as a log says they were made, in a history of so many days."""

    name: str
    log: CrawlLog
    days: float

    @property
    def per_day(self) -> float:
        """Crawls a day."""
        return len(self.log) / self.days

    def crawl(self, world: World, budget: float, seed: int) -> CrawlLog:  # noqa: ARG002 - the contract's signature
        """The log itself, put off as the history is: what was done was done."""
        return CrawlLog(self.log.page, self.log.time + (world.horizon - self.days))


@dataclass(frozen=True, slots=True)
class SameWorld:
    """Makes the same world for every seed, but for when the crawler starts: up to `earliest` days before it."""

    world: World
    earliest: float = 0.0

    def __call__(self, seed: int) -> World:
        """The world, put off by a time that depends on the seed."""
        if self.earliest <= 0:
            return self.world
        return put_off(self.world, float(np.random.Generator(np.random.PCG64(seed)).uniform(0.0, self.earliest)))


@dataclass(frozen=True, slots=True)
class LoggedWorld:
    """Makes worlds that the crawls of a log may have seen, each with another start of the crawler as in `SameWorld`."""

    history: ChangeHistory
    importance: Literal["given", "uniform"]
    earliest: float

    def __call__(self, seed: int) -> World:
        """The world of a seed. O(crawls · log crawls)."""
        return SameWorld(trace_world(place_again(self.history, seed), self.importance), self.earliest)(seed)


def put_off(world: World, days: float) -> World:
    """The same world so many days later: pages that were there at the start wait unchanged. O(events)."""
    return replace(
        world,
        horizon=world.horizon + days,
        changes=_later(world.changes, days),
        born=np.where(world.born <= 0, world.born, world.born + days),
        removed=world.removed + days,
        signals={kind: Signals(_later(sent.events, days), sent.quality) for kind, sent in world.signals.items()},
    )


def _later(events: Events, days: float) -> Events:
    return Events(events.offsets, np.where(events.times <= 0, events.times, events.times + days))
