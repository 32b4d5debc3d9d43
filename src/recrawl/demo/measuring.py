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
    """Freshness at a moment, in real seconds since the start, and the crawls that each had made by then."""

    at: float
    ours: float
    round_robin: float
    optimum: float
    crawls: int = 0


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
    """Three crawlers on one web, which make the same number of crawls.

    Args:
        world: the web.
        budget_per_day: crawls in a day of the web that were planned; those that are made count.
        now: when it begins, in seconds of the web.
    """

    world: LivingWorld
    budget_per_day: float
    now: float
    samples: list[Sample] = field(default_factory=list)
    crawls: int = 0
    truth: Truth = field(init=False)
    ours: Copies = field(init=False)
    round_robin: RoundRobin = field(init=False)
    optimum: KnownRates = field(init=False)

    def __post_init__(self) -> None:
        self.truth = Truth(self.world, self.now)
        self.ours = Copies(self.truth)
        self.round_robin = RoundRobin(self.truth)
        self.optimum = KnownRates(self.truth, self.budget_per_day, self.now)

    def note(self, url: str, at: float) -> None:
        """The tracker made a copy."""
        page = self.world.page_of(url)
        if page is not None:
            self.ours.made_at(page, at)

    def sample(self, now: float, seconds: float, crawls: int = 0) -> Sample:
        """Let the shadows make the tracker's crawls, and compare.

        Args:
            now: seconds of the web.
            seconds: real ones since the start.
            crawls: requests that the tracker paid for since the last sample.
        """
        for shadow in (self.round_robin, self.optimum):
            shadow.crawl(crawls, self.now, now)
        self.now = now
        self.crawls += crawls
        found = Sample(
            seconds,
            self.ours.freshness(now),
            self.round_robin.copies.freshness(now),
            self.optimum.copies.freshness(now),
            self.crawls,
        )
        self.samples.append(found)
        return found

    @property
    def hosts(self) -> int:
        """Hosts of the pages that the tracker tracks."""
        return len({self.world.pages.host[page] for page in self.truth.pages})

    @property
    def has_begun(self) -> bool:
        """Whether there is something to compare: the tracker has copies of a twentieth of the pages."""
        return 20 * self.ours.made >= len(self.truth.pages)

    @property
    def had_a_round(self) -> bool:
        """Whether there were enough crawls to fetch each page once."""
        return self.crawls >= len(self.truth.pages)

    def crawls_a_second(self, within_s: float) -> float | None:
        """Crawls in a real second, averaged over the latest seconds; None until that time has passed."""
        last = self.samples[-1] if self.samples else None
        if last is None or last.at < within_s:
            return None
        first = next(each for each in self.samples if each.at >= last.at - within_s)
        return (last.crawls - first.crawls) / (last.at - first.at) if last.at > first.at else None

    def standing(self, since: float) -> Standing:
        """Means of the samples since so many real seconds."""
        counted = [each for each in self.samples if each.at >= since] or self.samples[-1:]
        count = max(len(counted), 1)
        return Standing(
            sum(each.ours for each in counted) / count,
            sum(each.round_robin for each in counted) / count,
            sum(each.optimum for each in counted) / count,
        )
