"""Sources in the scheduler: each is an entry of its own that competes at what polling it is worth."""

from __future__ import annotations

from recrawl.store.rows import PageRow
from recrawl.tracker.clock import DAY_S
from recrawl.tracker.desk import Desk
from recrawl.tracker.discovery.source import Source, SourceBook, waits_s, worth_of
from recrawl.tracker.discovery.value import differs
from recrawl.tracker.loading import tell_pace


class SourceMarket:
    """Enters sources, and tells the scheduler what they are worth.

    Args:
        desk: has the scheduler and the hosts.
        book: all sources.
    """

    def __init__(self, desk: Desk, book: SourceBook) -> None:
        self._desk = desk
        self._book = book
        self._pages: dict[int, int] = {}  # by entry
        self._bounds: dict[int, tuple[float, float]] = {}  # by page: the waits that were told

    def page_of(self, scheduled: int) -> int | None:
        """The page behind an entry; None if it is no source."""
        return self._pages.get(scheduled)

    def entry_of(self, page_id: int) -> int | None:
        """The entry of a source."""
        source = self._book.of_page(page_id)
        return None if source is None else source.entry

    def enter(self, source: Source, page: PageRow) -> None:
        """Let a source compete. O(1)."""
        desk, rules = self._desk, self._desk.settings.discovery
        if source.entry is not None:
            return
        state = desk.hosts.of(page.host)
        tell_pace(desk.scheduler, state, desk.hosts.max_in_flight(page.host))
        now = desk.clock.now()
        worth, (shortest_s, longest_s) = worth_of(source, self._book, rules, now), waits_s(source, rules)
        fetched = None if page.fetched_at is None else min(page.fetched_at / DAY_S, desk.scheduler.now)
        (entry,) = desk.scheduler.add(
            profit=worth.profit,
            new_page_rate=worth.rate,
            decay=worth.decay,
            host=state.number,
            last_crawled=fetched,
            objective="news",
            min_interval=shortest_s / DAY_S,
            max_interval=longest_s / DAY_S,
        ).tolist()
        source.entry, source.told = entry, worth
        source.held_until, source.failures = page.not_before or 0.0, page.failures
        self._hold(source)
        self._pages[entry] = source.row.page_id
        self._bounds[source.row.page_id] = shortest_s, longest_s

    def leave(self, source: Source) -> None:
        """Take a source out of the scheduler. O(1)."""
        if source.entry is None:
            return
        self._desk.scheduler.remove([source.entry])
        del self._pages[source.entry]
        source.entry = source.told = None

    def appraise(self, source: Source) -> None:
        """Tell the scheduler what a source is worth now, if that is not what it was told. O(1)."""
        desk, rules = self._desk, self._desk.settings.discovery
        if source.entry is None:
            return
        worth = worth_of(source, self._book, rules, desk.clock.now())
        shortest_s, longest_s = waits_s(source, rules)
        same = source.told is not None and not differs(source.told, worth)
        if same and self._bounds.get(source.row.page_id) == (shortest_s, longest_s):
            return
        desk.scheduler.update(
            [source.entry],
            profit=worth.profit,
            new_page_rate=worth.rate,
            decay=worth.decay,
            min_interval=shortest_s / DAY_S,
            max_interval=longest_s / DAY_S,
        )
        source.told = worth
        self._bounds[source.row.page_id] = shortest_s, longest_s
        if source.held_until > desk.clock.now():  # an update has let go of it
            self._hold(source)

    def _hold(self, source: Source) -> None:
        """Keep a source from being polled too soon; one in flight is held when it lands."""
        scheduler = self._desk.scheduler
        if (
            source.entry is not None
            and (source.failures or source.held_until)
            and not scheduler.in_flight(source.entry)
        ):
            held = source.held_until / DAY_S if source.held_until else float("nan")
            scheduler.resume([source.entry], failures=source.failures, held_until=held)
