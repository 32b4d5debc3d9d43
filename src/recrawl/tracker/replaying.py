"""What was learned of pages, learned once more from the fetches that the store still has, and compared.

What a page's belief holds are sums over its crawls. If the log is whole, the same sums must come out; that they do says
that nothing was counted twice, and nothing lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.learning.filter_state import PAGE_STATE
from recrawl.learning.online_filter import OnlineFilter
from recrawl.scheduling.learner import TURN_DOUBT, prior_around
from recrawl.scheduling.types import Tuning
from recrawl.store.contract import Store
from recrawl.store.rows import HostRow, Observation
from recrawl.tracker.clock import DAY_S
from recrawl.tracker.signals.trust import from_bytes

_BATCH = 5000
_SAME = 0.02  # of a rate; sums are kept in single precision
_SHOWN = 10


@dataclass(slots=True)
class Replayed:
    """How many pages there are with something learned, and how many of them came out the same.

    Args:
        pages: with a belief.
        agree: learned from the log as they are in the store.
        differ: not so, although the log has all their crawls.
        heard: not so, but on a host whose signals were followed: they teach as well, and are not in the log.
        partial: whose older crawls are no longer kept.
        differing: addresses of the first that differ.
    """

    pages: int = 0
    agree: int = 0
    differ: int = 0
    heard: int = 0
    partial: int = 0
    differing: list[str] = field(default_factory=list)


async def replay(store: Store, crawl_rate: float, report: Callable[[int, int | None], None]) -> Replayed:
    """Learn from the log of a store and compare. O(fetches + pages), 140 bytes of memory a page.

    Args:
        store: may be running.
        crawl_rate: crawls a day of an average page, around which rates are believed.
        report: told of fetches read, and of all there are.
    """
    counts = await store.counts()
    pages = counts.last_page_id
    log = _Log(pages + 1, crawl_rate)
    after, done = 0, 0
    while seen := await store.all_observations(after, _BATCH):
        after, done = seen[-1][0], done + len(seen)
        log.learn([each for _, each in seen if each.verdict is not None and each.page_id <= pages])
        report(done, counts.observations)
    return await _compare(store, log)


class _Log:
    """What the log of fetches teaches.

    The scheduler learns from the time between the ends of visits, captures from the time between the starts of fetches,
    which is the gap in the log. A second look or a slow answer makes them differ, so both are learned.
    """

    def __init__(self, pages: int, crawl_rate: float) -> None:
        self.visits = np.zeros(pages, dtype=np.int64)
        self.by_start, self.by_end = (_filter(pages, crawl_rate) for _ in range(2))
        self._ended_at = np.full(pages, np.nan)

    def learn(self, seen: list[Observation]) -> None:
        """Learn from fetches that told the content of a page, in their order."""
        np.add.at(self.visits, [each.page_id for each in seen], 1)
        pages, starts, ends, changed = list[int](), list[float](), list[float](), list[bool]()
        for each in seen:
            before, self._ended_at[each.page_id] = float(self._ended_at[each.page_id]), each.at
            if each.verdict != "first" and each.gap_s is not None:
                pages.append(each.page_id)
                starts.append(each.gap_s / DAY_S)
                ends.append(starts[-1] if np.isnan(before) else max(each.at - before, 0.0) / DAY_S)
                changed.append(each.verdict == "changed")
        self.by_start.update_many(pages, starts, changed)
        self.by_end.update_many(pages, ends, changed)


def _filter(pages: int, crawl_rate: float) -> OnlineFilter:
    return OnlineFilter(prior_around(crawl_rate), pages, memory=Tuning().memory, doubt=TURN_DOUBT)


async def _compare(store: Store, log: _Log) -> Replayed:
    found = Replayed()
    learned, visits = (log.by_start, log.by_end), log.visits
    kept = OnlineFilter(log.by_end.prior, len(visits), memory=log.by_end.memory, doubt=TURN_DOUBT)
    followed = {row.name for row in await store.hosts() if _followed(row)}
    after = 0
    while rows := await store.list_pages(after, _BATCH):
        after = rows[-1].id
        known = [
            row
            for row in rows
            if row.belief is not None and len(row.belief) == PAGE_STATE.itemsize and row.id < len(visits)
        ]
        found.pages += len(known)
        whole = [row for row in known if visits[row.id] == row.visits]
        found.partial += len(known) - len(whole)
        if not whole:
            continue
        ids = np.array([row.id for row in whole])
        kept.state[ids] = np.frombuffer(b"".join(row.belief or b"" for row in whole), dtype=PAGE_STATE)
        kept.state["prior_row"][ids] = 0
        stored, again = kept.estimate(ids).mean, np.array([each.estimate(ids).mean for each in learned])
        same = (np.abs(stored - again) <= _SAME * np.maximum(stored, again)).any(axis=0)
        found.agree += int(same.sum())
        others = [row for row, equal in zip(whole, same.tolist(), strict=True) if not equal]
        silent = [row.url for row in others if row.host not in followed]
        found.differ += len(silent)
        found.heard += len(others) - len(silent)
        found.differing += silent[: _SHOWN - len(found.differing)]
    return found


def _followed(host: HostRow) -> bool:
    """Whether pages of a host ever listened to its signals, as far as can be read."""
    try:
        return host.learned is not None and from_bytes(host.learned).followed
    except InvalidInput:
        return True
