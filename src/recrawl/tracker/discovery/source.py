"""A source while the tracker runs: its row, what is remembered of it, its entry in the scheduler; and what it is worth.

Pure: polls are told, and the worth follows from what is remembered, so that a restart changes nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from recrawl.store.rows import PageRow, SourceKind, SourceRow
from recrawl.tracker.discovery.memory import POLLS, Memory
from recrawl.tracker.discovery.value import (
    FLOOR,
    HitCounts,
    YieldModel,
    changes_told,
    for_cost,
    interest_in,
    no_hits,
    rate_of,
    together,
    unpack_counts,
    waiting,
)
from recrawl.tracker.kinds import FEED, SITEMAP, WEBSUB
from recrawl.tracker.settings.settings import DiscoveryRules
from recrawl.web.push.websub import unpack_subscription

_KEEP = 0.7  # of a mean, when one more comes
_WHILE_TOLD = 0.1  # of the rate of polls while a hub tells of changes by itself
_USELESS_TIMES = 8.0  # times as long, for sources whose signals say nothing and that bring no pages
_FADED = 31 / 32  # of what is known of first fetches, when one more comes: the last 32 count
_FIRST_LOOK_S = 600.0
_ONE_POLL_S = 10_800.0
_LONGEST_PROBLEM = 500
_AUDIT_FROM = 0.5  # of the time between audits: then one may be made if there is nothing better to do
USUAL_PLACE = "usual-place"
"""Found by a guess: what is not there is given up at once."""


_BY_USER = ("user", "import")


def is_named(page: PageRow) -> bool:
    """Whether the user named a page, rather than a source."""
    return page.source in _BY_USER


def is_found(page: PageRow) -> bool:
    """Whether a source led to a page."""
    return page.source.startswith(("http://", "https://"))


@dataclass(slots=True)
class Source:
    """One source.

    Args:
        row: as stored, without its memory.
        url: of its page.
        host: whose pacing it shares.
        memory: what is remembered, but for the list.
        importance: of the pages that it finds.
        precision: share of its signals that are true, as far as is known.
        told: its worth as the scheduler knows it.
        held_until: it may not be fetched before, as its page has it; 0 for no such time.
        failures: fetches in a row that brought nothing.
        news_at: when the index above it was last read that says it changed; 0 for never.
    """

    row: SourceRow
    url: str
    host: str
    memory: Memory = field(default_factory=Memory)
    importance: float = 1.0
    precision: float = 0.1
    told: YieldModel | None = None
    held_until: float = 0.0
    failures: int = 0
    news_at: float = 0.0

    @property
    def is_active(self) -> bool:
        """Whether it is read, and not only audited."""
        return self.row.state == "active"

    @property
    def hits(self) -> HitCounts:
        """Hits of its pages."""
        if not self.memory.watched:
            return no_hits()
        return HitCounts(unpack_counts(self.memory.hits), unpack_counts(self.memory.watched))

    @property
    def polled_at(self) -> float:
        """When it was last read; 0 for never."""
        return self.memory.polls[-1][0] if self.memory.polls else 0.0

    @property
    def has_news(self) -> bool:
        """Whether someone else said that it changed since it was last read."""
        said = self.memory.said_at
        moved = said is not None and said > (self.memory.read_at or 0.0)
        return moved or self.memory.pushed_at > self.polled_at

    def is_pushed(self, now: float) -> bool:
        """Whether a WebSub hub tells of its changes."""
        subscription = unpack_subscription(self.memory.subscription) if self.memory.subscription else None
        return subscription is not None and subscription.is_active(now)


class SourceBook:
    """All sources, by page, by address, by host, and by the index that names them."""

    def __init__(self) -> None:
        self._by_page: dict[int, Source] = {}
        self._by_url: dict[str, Source] = {}
        self._by_host: dict[str, list[Source]] = {}
        self._by_index: dict[str, list[Source]] = {}
        self._hits: dict[str, HitCounts] = {}
        self._interest: dict[str, dict[tuple[int, float, float], tuple[float, float]]] = {}
        self._refused: Counter[str] = Counter()
        self._problems: dict[int, Source] = {}  # by page

    def put(self, source: Source) -> None:
        """Add a source."""
        self._by_page[source.row.page_id] = source
        self._by_url[source.url] = source
        self._by_host.setdefault(source.host, []).append(source)
        if source.memory.parent:
            self._by_index.setdefault(source.memory.parent, []).append(source)
        if source.memory.watched:
            self.counted(source)
        self._refused.update(source.memory.refused)
        if source.memory.problem:
            self._problems[source.row.page_id] = source

    def __iter__(self) -> Iterator[Source]:
        return iter(list(self._by_page.values()))

    def __len__(self) -> int:
        return len(self._by_page)

    def of_page(self, page_id: int) -> Source | None:
        """The source that is read from a page."""
        return self._by_page.get(page_id)

    def at(self, url: str) -> Source | None:
        """The source at an address."""
        return self._by_url.get(url)

    def of_host(self, host: str) -> list[Source]:
        """Sources of a host."""
        return self._by_host.get(host, [])

    def adopt(self, sitemap: Source, index: Source) -> None:
        """An index names a sitemap that was known before, or from another index."""
        if sitemap.memory.parent == index.url:
            return
        if sitemap in self._by_index.get(sitemap.memory.parent, []):
            self._by_index[sitemap.memory.parent].remove(sitemap)
        sitemap.memory.parent = index.url
        self._by_index.setdefault(index.url, []).append(sitemap)

    def below(self, index: Source) -> list[Source]:
        """Sitemaps that an index names."""
        return self._by_index.get(index.url, [])

    def counted(self, source: Source) -> None:
        """Hits of the pages of a source were counted."""
        self._hits.pop(source.host, None)
        self._interest.pop(source.host, None)

    def was_read(self, source: Source, problem: str, refused: Mapping[str, int], now: float) -> None:
        """Note what is wrong with a source that was read, and how many addresses of it were not taken, by rule. O(1).

        Args:
            source: which.
            problem: one sentence, "" for nothing.
            refused: all that are known of, not only those of this poll.
            now: Unix seconds.
        """
        memory = source.memory
        self._refused.subtract(memory.refused)
        self._refused.update(refused)
        memory.refused = {rule: count for rule, count in refused.items() if count}
        memory.problem, memory.problem_at = problem[:_LONGEST_PROBLEM], now if problem else 0.0
        self._problems.pop(source.row.page_id, None)
        if problem:
            self._problems[source.row.page_id] = source

    @property
    def refused(self) -> dict[str, int]:
        """Addresses that sources named and that were not taken, by rule, the most frequent first."""
        return {rule: count for rule, count in self._refused.most_common() if count > 0}

    @property
    def problems(self) -> list[Source]:
        """Sources with which something was wrong when they were last read, the latest first."""
        return sorted(self._problems.values(), key=lambda each: -each.memory.problem_at)

    def hits_of(self, host: str) -> HitCounts:
        """Hits of the pages of all sources of a host."""
        known = self._hits.get(host)
        if known is None:
            known = no_hits()
            for source in self.of_host(host):
                if source.memory.watched:
                    known += source.hits
            self._hits[host] = known
        return known

    def interest_in(self, source: Source, profit: float, decay: float) -> tuple[float, float]:
        """Profit and decay of a new page of a source, where these are expected; fitted once for the same hits."""
        fitted = self._interest.setdefault(source.host, {})
        key = (source.row.page_id, profit, decay)
        if key not in fitted:
            fitted[key] = interest_in(source.hits, self.hits_of(source.host), profit, decay)
        return fitted[key]


def kinds_of_source(kind: SourceKind) -> tuple[str, ...]:
    """The kinds of signals that a source of this kind tells by."""
    return (FEED, WEBSUB) if kind == "feed" else (SITEMAP,)


def after_poll(source: Source, now: float, found: int, told: int, size: int, began_at: float | None = None) -> None:
    """Note what a poll brought: pages that are new to everyone, changes of tracked pages; and its bytes.

    What its index or its hub says of it after the poll began is still news.
    """
    memory = source.memory
    first = not memory.polls
    memory.polls, memory.told = _with(memory.polls, now, found), _with(memory.told, now, told)
    memory.size = float(size) if first or not size else _KEEP * memory.size + (1.0 - _KEEP) * size
    if began_at is None or began_at >= source.news_at:
        memory.read_at = memory.said_at
    if began_at is not None and began_at < memory.pushed_at <= now:
        memory.pushed_at = math.nextafter(now, math.inf)  # after this poll: what it read may be older than the push
    useful = found > 0 or told > 0
    memory.idle = 0 if useful else memory.idle + 1
    source.row = replace(
        source.row,
        polls=source.row.polls + 1,
        found=source.row.found + found,
        signals=source.row.signals + told,
        useful_at=now if useful else source.row.useful_at,
    )


def _with(polls: Sequence[tuple[float, int]], now: float, count: int) -> list[tuple[float, int]]:
    """The last polls and one more. Polls that follow each other closely count as one.

    Else the last few would cover minutes of a source that is polled often, and say nothing of a day.
    """
    if len(polls) > 1 and now - polls[-2][0] < _ONE_POLL_S:
        return [*polls[:-1], (now, polls[-1][1] + count)]
    return [*polls, (now, count)][-POLLS:]


def note_changes(memory: Memory, gains: Iterable[tuple[float, float]]) -> None:
    """Note changes that a source announced: importance of the page, and the days since it was last crawled.

    The time since the last crawl is on average what is left until the next, so it estimates the wait that is saved.
    """
    for importance, days in gains:
        gain = importance * days
        memory.gain = gain if memory.gain == 0.0 else _KEEP * memory.gain + (1.0 - _KEEP) * gain
        memory.wait = days if memory.wait == 0.0 else _KEEP * memory.wait + (1.0 - _KEEP) * days


def note_first_fetch(memory: Memory, is_there: bool) -> None:
    """Note whether a page that the source led to was there when it was first fetched."""
    memory.there = _FADED * memory.there + (1.0 if is_there else 0.0)
    memory.dead = _FADED * memory.dead + (0.0 if is_there else 1.0)


def share_there(memory: Memory) -> float:
    """The share of new pages of a source that are worth a fetch: those that are there. All, until some are not.

    >>> share_there(Memory()), share_there(Memory(there=4.0, dead=15.0))
    (1.0, 0.25)
    """
    return (memory.there + 1.0) / (memory.there + memory.dead + 1.0)


def new_pages_per_day(source: Source) -> float:
    """How many new pages a day a source leads to that are there."""
    return share_there(source.memory) * rate_of(source.memory.polls)


def interest_of(source: Source, book: SourceBook, rules: DiscoveryRules) -> tuple[float, float]:
    """Profit and decay of a new page of a source."""
    return book.interest_in(source, rules.profit * source.importance, rules.decay)


def worth_of(source: Source, book: SourceBook, rules: DiscoveryRules, now: float) -> YieldModel:
    """What polling a source is worth, by unit of cost; see `value.py`."""
    memory = source.memory
    if not source.is_active:
        return YieldModel(FLOOR, FLOOR, 1.0)
    profit, decay = interest_of(source, book, rules)
    # An index says which of the sitemaps below it to read: it is worth what they are.
    below = [each for each in book.below(source) if each.is_active and each.memory.said_at is not None]
    pages = YieldModel(profit, sum(new_pages_per_day(each) for each in (source, *below)), decay)
    streams: list[YieldModel | None] = [] if rules.found == "none" else [pages]
    streams += [
        changes_told(each.memory.told, each.memory.gain, each.memory.wait, each.precision) for each in (source, *below)
    ]
    stream = together([each for each in streams if each is not None])
    if source.has_news:
        counts = [found + told for (_, found), (_, told) in zip(memory.polls, memory.told, strict=True)]
        stream = waiting(stream, max(sum(counts[1:]) / max(len(counts) - 1, 1), 1.0))
    elif memory.said_at is not None:
        stream = YieldModel(FLOOR, FLOOR, 1.0)  # the index would say
    elif source.is_pushed(now):
        stream = stream._replace(rate=stream.rate * _WHILE_TOLD)
    return for_cost(stream, cost_of(source, rules))


def cost_of(source: Source, rules: DiscoveryRules) -> float:
    """What a poll costs, in requests: one, and its bytes."""
    return 1.0 + source.memory.size / rules.poll_bytes


def waits_s(source: Source, rules: DiscoveryRules) -> tuple[float, float]:
    """Between two polls of a source, at least, and at most whatever it is worth.

    One that is retired, or whose index says that it has not changed, is only audited, however low the price is. While
    its server calls a source fresh it is left alone, unless somebody says that it changed, or the user wants it polled
    more often.
    """
    quiet = source.memory.said_at is not None and not source.has_news
    if quiet or not source.is_active:
        longest_s = max(rules.audit_s, rules.min_interval_s)
        shortest_s = max(_AUDIT_FROM * longest_s, rules.min_interval_s)
    else:
        shortest_s, longest_s = rules.min_interval_s, _longest_s(source, rules)
    if not source.has_news:
        shortest_s = max(shortest_s, min(source.memory.fresh_s, longest_s))
    return shortest_s, longest_s


def _longest_s(source: Source, rules: DiscoveryRules) -> float:
    if not source.row.polls and not source.memory.parent:  # a user who asks for new pages wants to see some soon
        return max(min(_FIRST_LOOK_S, rules.max_interval_s), rules.min_interval_s)
    if source.precision == 0.0 and not any(found for _at, found in source.memory.polls[1:]):
        return max(rules.max_interval_s, min(_USELESS_TIMES * rules.max_interval_s, rules.audit_s))
    return rules.max_interval_s


def idle_reason(source: Source, rules: DiscoveryRules, now: float) -> str:
    """Why a source is to be retired, "" if it is not: many polls over a long time that brought nothing."""
    since = max(source.row.useful_at or 0.0, source.row.added_at)
    if not source.is_active or source.memory.idle < rules.idle_polls or now - since < rules.idle_s:
        return ""
    return f"brought nothing in {source.memory.idle} polls over {(now - since) / 86_400.0:.0f} days"
