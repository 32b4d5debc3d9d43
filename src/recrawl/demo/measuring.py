"""The race on the truth: the tracker's copies as they are made, the shadows beside them, and samples of all three."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

from recrawl.demo.copies import Copies, Truth
from recrawl.demo.shadows import KnownRates, RoundRobin
from recrawl.livingweb.world import LivingWorld
from recrawl.store.rows import PageRow
from recrawl.tracker.examination import Examined
from recrawl.tracker.fetching import Visitor
from recrawl.web.fetch_result import FetchResult


@dataclass(frozen=True, slots=True)
class Sample:
    """Freshness at a moment, in real seconds since the start."""

    at: float
    ours: float
    round_robin: float
    optimum: float


@dataclass(frozen=True, slots=True)
class Standing:
    """Mean freshness over a time."""

    ours: float
    round_robin: float
    optimum: float

    @property
    def gap_closed(self) -> float | None:
        """Which share of the way from round robin to the optimum was made; None if there is no way to go."""
        gap = self.optimum - self.round_robin
        return (self.ours - self.round_robin) / gap if gap > 0 else None


class WatchedFetcher:
    """Notes when each copy was made, by the clock of the server.

    A page that is said to be unchanged, or to differ by noise alone, is still the old copy: a change that nobody
    notices leaves it stale.

    Args:
        fetcher: does the work.
        note: takes the address, and the second in which the server wrote the page.
    """

    def __init__(self, fetcher: Visitor, note: Callable[[str, float], None]) -> None:
        self._fetcher = fetcher
        self._note = note
        self.changes = 0
        self.errors = 0

    async def visit(self, page: PageRow, now: float) -> tuple[FetchResult, Examined]:
        """Fetch a page."""
        result, examined = await self._fetcher.visit(page, now)
        self.changes += examined.verdict == "changed"
        self.errors += examined.verdict is None and examined.outcome != "deferred"
        if examined.verdict in ("first", "changed"):
            self._note(page.url, parsedate_to_datetime(result.header(b"date").decode()).timestamp())
        return result, examined


@dataclass(slots=True)
class Race:
    """Three crawlers on one web.

    Args:
        world: the web.
        budget_per_day: crawls in a day of the web, for each.
        now: when it begins, in seconds of the web.
    """

    world: LivingWorld
    budget_per_day: float
    now: float
    samples: list[Sample] = field(default_factory=list)
    now_of_last_sample: float = field(init=False)
    truth: Truth = field(init=False)
    ours: Copies = field(init=False)
    round_robin: RoundRobin = field(init=False)
    optimum: KnownRates = field(init=False)

    def __post_init__(self) -> None:
        self.now_of_last_sample = self.now
        self.truth = Truth(self.world, self.now)
        self.ours = Copies(self.truth)
        self.round_robin = RoundRobin(self.truth, self.budget_per_day, self.now)
        self.optimum = KnownRates(self.truth, self.budget_per_day, self.now)

    def note(self, url: str, at: float) -> None:
        """The tracker made a copy."""
        page = self.world.page_of(url)
        if page is not None:
            self.ours.made_at(page, at)

    def sample(self, now: float, seconds: float) -> Sample:
        """Let the shadows come to a time, and compare; the time is of the web, and in real seconds."""
        self.now_of_last_sample = now
        for shadow in (self.round_robin, self.optimum):
            shadow.crawl_until(now)
        found = Sample(
            seconds,
            self.ours.freshness(now),
            self.round_robin.copies.freshness(now),
            self.optimum.copies.freshness(now),
        )
        self.samples.append(found)
        return found

    def standing(self, since: float) -> Standing:
        """Means of the samples since so many real seconds."""
        counted = [each for each in self.samples if each.at >= since] or self.samples[-1:]
        count = max(len(counted), 1)
        return Standing(
            sum(each.ours for each in counted) / count,
            sum(each.round_robin for each in counted) / count,
            sum(each.optimum for each in counted) / count,
        )
