"""Sources in the scheduler: each is an entry of its own that competes at what polling it is worth."""

from __future__ import annotations

from recrawl.store.rows import PageRow
from recrawl.tracker.clock import TrackerClock
from recrawl.tracker.discovery.source import Source, SourceBook, waits_s, worth_of
from recrawl.tracker.discovery.value import differs
from recrawl.tracker.schedule import Schedule
from recrawl.tracker.settings.settings import DiscoveryRules


class SourceMarket:
    """Enters sources, and tells the scheduler what they are worth.

    Args:
        schedule: where they compete.
        book: all sources.
        rules: of discovery.
        clock: of the tracker.
    """

    def __init__(self, schedule: Schedule, book: SourceBook, rules: DiscoveryRules, clock: TrackerClock) -> None:
        self._schedule = schedule
        self._book = book
        self._rules = rules
        self._clock = clock
        self._bounds: dict[int, tuple[float, float]] = {}  # by page: the waits that were told

    def enter(self, source: Source, page: PageRow) -> None:
        """Let a source compete. O(1)."""
        if self._schedule.has_source(page.id):
            return
        worth = worth_of(source, self._book, self._rules, self._clock.now())
        waits = waits_s(source, self._rules)
        self._schedule.enter_source(page, worth, waits)
        source.told = worth
        source.held_until, source.failures = page.not_before or 0.0, page.failures
        self._hold(source)
        self._bounds[source.row.page_id] = waits

    def appraise(self, source: Source) -> None:
        """Tell the scheduler what a source is worth now, if that is not what it was told. O(1)."""
        page_id, now = source.row.page_id, self._clock.now()
        if not self._schedule.has_source(page_id):
            return
        worth = worth_of(source, self._book, self._rules, now)
        waits = waits_s(source, self._rules)
        same = source.told is not None and not differs(source.told, worth)
        if same and self._bounds.get(page_id) == waits:
            return
        self._schedule.update_source(page_id, worth, waits)
        source.told = worth
        self._bounds[page_id] = waits
        if source.held_until > now:  # an update has let go of it
            self._hold(source)

    def _hold(self, source: Source) -> None:
        """Keep a source from being polled too soon; one in flight is held when it lands."""
        if source.failures or source.held_until:
            self._schedule.hold_source(source.row.page_id, source.failures, source.held_until or None)
