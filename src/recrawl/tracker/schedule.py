"""The scheduler in page ids and Unix seconds: no other module knows what its entries are, or that it counts in days.

A page is an entry of the scheduler, and so is a source. A page that is tracked for itself and is a source as well has
two entries: whichever is due first is fetched, and the other one is told that a copy came. A page that was found may
first compete for one crawl alone (`once`), and becomes a page like others while it is in flight. Outside, an entry is a
number that `take` and `claim` give and that is handed back as it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import RecrawlError, UnknownPage
from recrawl.learning.filter_state import PAGE_STATE
from recrawl.scheduling.columns import PageColumns, PageObjective
from recrawl.scheduling.explain import Explanation
from recrawl.scheduling.scheduler import Scheduler
from recrawl.scheduling.types import Signal, Tuning
from recrawl.store.columns import ScheduleColumns
from recrawl.store.rows import PageRow
from recrawl.tracker.admission import LARGEST_IMPORTANCE, SMALLEST_IMPORTANCE, any_follows, is_held
from recrawl.tracker.captures import CAPTURES, CaptureBook, Numbers
from recrawl.tracker.clock import DAY_S, TIMING, TrackerClock
from recrawl.tracker.hosts import HostBook, HostState
from recrawl.tracker.settings.settings import LONGEST_INTERVAL_S, Settings

_BELIEF_BYTES = PAGE_STATE.itemsize
_NO_BELIEF = bytes(_BELIEF_BYTES)
_SLOT = np.int64(0xFFFFFFFF)
_NONE = -1
_SLACK = 1e-6  # of a token


class EntryIndex:
    """Which entry is which page: page ids rise and are never reused, entries carry a dense slot."""

    def __init__(self) -> None:
        self._entries = np.full(1024, _NONE, dtype=np.int64)  # of pages, by page id
        self._pages = np.full(1024, _NONE, dtype=np.int64)  # of all entries, by slot
        self._sources: dict[int, int] = {}  # entries of pages as sources

    def put(self, pages: Numbers, entries: Numbers) -> None:
        """Remember entries of pages. O(pages), amortised."""
        if len(pages):
            self._entries = _with_room(self._entries, int(pages.max()))
            self._entries[pages] = entries
            self._note(pages, entries)

    def put_source(self, page_id: int, entry: int) -> None:
        """Remember the entry of a page as a source."""
        self._sources[page_id] = entry
        self._note(np.array([page_id]), np.array([entry]))

    def _note(self, pages: Numbers, entries: Numbers) -> None:
        slots = entries & _SLOT
        self._pages = _with_room(self._pages, int(slots.max()))
        self._pages[slots] = pages

    def drop(self, page_id: int) -> int | None:
        """Forget the entry of a page; return it."""
        entry = self.entry(page_id)
        if entry is not None:
            self._entries[page_id] = _NONE
        return entry

    def drop_source(self, page_id: int) -> int | None:
        """Forget the entry of a page as a source; return it."""
        return self._sources.pop(page_id, None)

    def page_of(self, entry: int) -> int:
        """Return the page of an entry that the scheduler has."""
        return int(self._pages[entry & int(_SLOT)])

    def entry(self, page_id: int) -> int | None:
        """Return the entry of a page, None if it is not scheduled."""
        found = int(self._entries[page_id]) if 0 <= page_id < len(self._entries) else _NONE
        return None if found == _NONE else found

    def source(self, page_id: int) -> int | None:
        """Return the entry of a page as a source, None if it has none."""
        return self._sources.get(page_id)

    def all_of(self, page_id: int) -> list[int]:
        """Return all entries of a page."""
        return [entry for entry in (self.entry(page_id), self.source(page_id)) if entry is not None]

    def entries(self, pages: Numbers) -> Numbers:
        """Return the entries of pages, -1 for those that are not scheduled. O(pages)."""
        found = np.full(len(pages), _NONE, dtype=np.int64)
        held = (pages >= 0) & (pages < len(self._entries))
        found[held] = self._entries[pages[held]]
        return found


def _with_room(column: Numbers, place: int) -> Numbers:
    if place < len(column):
        return column
    larger = np.full(max(2 * len(column), place + 1), _NONE, dtype=np.int64)
    larger[: len(column)] = column
    return larger


class Schedule:
    """The pages and sources of a tracker in its scheduler.

    Args:
        scheduler: has the entries, and counts in days.
        hosts: of the tracker.
        clock: of the tracker.
        settings: least intervals, and what is expected of new pages.
    """

    def __init__(self, scheduler: Scheduler, hosts: HostBook, clock: TrackerClock, settings: Settings) -> None:
        self.scheduler = scheduler
        self.index = EntryIndex()
        self.captures = CaptureBook(scheduler, settings)
        self.unvalued: set[int] = set()
        """Pages to be crawled once that compete at what is expected of any page: their sources were not looked at."""
        self.on_left: Callable[[int], None] = lambda _page_id: None
        """Told of every page that leaves the scheduler."""
        self._once: set[int] = set()  # pages that compete for their first crawl alone, and are tracked afterwards
        self._hosts = hosts
        self._clock = clock
        self._settings = settings
        self._finds = any_follows(settings)

    def __len__(self) -> int:
        """Entries of pages and sources."""
        return len(self.scheduler)

    # pages

    def load(self, columns: ScheduleColumns) -> Numbers:
        """Add pages of the store that are not held, where they were, learned rates included; return them. O(pages).

        The scheduler gets no tokens for them, so that a restart is no burst.
        """
        states = [self._hosts.of(name) for name in columns.hosts]
        numbers = np.array([state.number for state in states], dtype=np.int64)
        self.scheduler.set_hosts(
            numbers.tolist(),
            min_gap=np.array([state.min_gap_s for state in states]) / DAY_S,
            max_in_flight=np.array([self._hosts.max_in_flight(state.name) for state in states]),
            blocked_until=np.array([max(state.blocked_until, state.next_at) for state in states]) / DAY_S,
        )
        hosts = numbers[columns.host] if len(columns) else np.empty(0, dtype=np.int64)
        wanted = np.flatnonzero(~columns.held)
        for code, objective in enumerate(columns.objectives):
            rows = wanted[columns.objective[wanted] == code]
            if objective == "once":
                self._add_once(columns, rows[np.isnan(columns.fetched_at[rows])], hosts)
            elif objective == CAPTURES and len(rows):
                for chosen, terms in self.captures.entries(columns.page_id[rows], columns.belief[rows]):
                    self._add(columns, rows[chosen], hosts, terms)
            elif len(rows):
                self._add(columns, rows, hosts, {"objective": _objective(objective)})
        joined: Numbers = columns.page_id[wanted]
        return joined

    def note_captures(self, pages: Sequence[PageRow]) -> None:
        """Note the groups of pages whose changes are to be captured, before they are loaded. O(pages)."""
        captured = [page for page in pages if page.objective == CAPTURES]
        if captured:
            self.captures.note(captured)

    def _add(self, columns: ScheduleColumns, rows: Numbers, hosts: Numbers, terms: PageColumns) -> None:
        """Add pages of one objective, and let them go on where they were."""
        entered = terms.copy()
        entered["importance"] = _sane(columns.importance[rows])
        entered["host"] = hosts[rows]
        entered["last_crawled"] = columns.fetched_at[rows] / DAY_S
        least_s = self._settings.min_interval_s
        entered.update(_bounds(columns.min_interval_s[rows], columns.max_interval_s[rows], least_s))
        self._put(columns, rows, self.scheduler.add(**entered))

    def _add_once(self, columns: ScheduleColumns, rows: Numbers, hosts: Numbers) -> None:
        """Add found pages that are to be crawled once, at what is expected of any; not if no site is followed."""
        if not len(rows) or not self._finds:
            return
        rules = self._settings.discovery
        entries = self.scheduler.add(
            objective="once",
            profit=rules.profit * np.maximum(columns.importance[rows], SMALLEST_IMPORTANCE),
            decay=rules.decay,
            host=hosts[rows],
            last_crawled=min(self._clock.days(), self.scheduler.now),
        )
        self._put(columns, rows, entries)
        self.unvalued.update(columns.page_id[rows].tolist())

    def _put(self, columns: ScheduleColumns, rows: Numbers, entries: Numbers) -> None:
        self.index.put(columns.page_id[rows], entries)
        _resume(self.scheduler, columns, rows, entries)

    def has(self, page_id: int, entry: int | None = None) -> bool:
        """Return whether the scheduler has a page, or an entry of it."""
        return self.index.entry(page_id) is not None if entry is None else entry in self.index.all_of(page_id)

    def leave(self, page_id: int) -> None:
        """Remove all entries of a page: the one way in which a page leaves. O(1)."""
        entries = self.index.all_of(page_id)
        if entries:
            self.scheduler.remove(entries)
        self.index.drop(page_id)
        self.index.drop_source(page_id)
        self._once.discard(page_id)
        self.unvalued.discard(page_id)
        self.on_left(page_id)

    def space_out(self, page_id: int, least_s: float) -> None:
        """Set the least interval of a page; one that is crawled once has none yet. O(1)."""
        entry = self.index.entry(page_id)
        if entry is not None and page_id not in self._once:
            self.scheduler.update([entry], min_interval=least_s / DAY_S)

    @property
    def once(self) -> set[int]:
        """Pages that compete for their first crawl alone, and are tracked afterwards."""
        return self._once

    def value_first_crawls(self, pages: Sequence[int], profit: Sequence[float], decay: float) -> None:
        """Let pages without a copy compete for one crawl, at a profit that fades by `decay` a day. O(pages)."""
        entries = self.index.entries(np.array(pages, dtype=np.int64))
        self.scheduler.update(entries, objective="once", profit=profit, decay=decay)

    def track_after(self, pages: Iterable[int]) -> None:
        """Track pages that compete for one crawl when it was made."""
        self._once.update(pages)

    def stay(self, page: PageRow) -> bool:
        """Let a page in flight that competed for its first crawl be a page like others; return whether it is one."""
        entry = self.index.entry(page.id) if page.id in self._once else None
        if entry is None:
            return False
        columns = columns_of([page])
        entered = _bounds(columns.min_interval_s, columns.max_interval_s, self._settings.min_interval_s)
        entered["objective"] = _objective(page.objective or self._settings.objective)
        entered["importance"] = _sane(columns.importance)
        if page.objective == CAPTURES:
            self.captures.note([page])
            ((_, terms),) = self.captures.entries(columns.page_id, columns.belief)
            entered.update(terms)
        self.scheduler.update([entry], **entered)
        self._once.discard(page.id)
        return True

    # sources

    def has_source(self, page_id: int) -> bool:
        """Return whether a page competes as a source."""
        return self.index.source(page_id) is not None

    def enter_source(self, page: PageRow, worth: tuple[float, float, float], waits_s: tuple[float, float]) -> None:
        """Let a page compete as a source. O(1).

        Args:
            page: its row.
            worth: profit of a new page, new pages a day, decay of the profit a day.
            waits_s: between two polls, at least and at most.
        """
        state = self._hosts.of(page.host)
        self.pace(state)
        fetched = None if page.fetched_at is None else min(page.fetched_at / DAY_S, self.scheduler.now)
        columns = _source_columns(worth, waits_s)
        columns["objective"], columns["host"], columns["last_crawled"] = "news", state.number, fetched
        (entry,) = self.scheduler.add(**columns).tolist()
        self.index.put_source(page.id, entry)

    def update_source(self, page_id: int, worth: tuple[float, float, float], waits_s: tuple[float, float]) -> None:
        """Change what polls of a source are worth. O(1)."""
        entry = self.index.source(page_id)
        if entry is not None:
            self.scheduler.update([entry], **_source_columns(worth, waits_s))

    def hold_source(self, page_id: int, failures: int, held_until: float | None) -> None:
        """Keep a source from being polled before a time; one in flight is held when it lands. O(1)."""
        entry = self.index.source(page_id)
        if entry is not None and not self.scheduler.in_flight(entry):
            self.scheduler.resume([entry], failures=failures, held_until=_days(held_until))

    # taking and giving back

    def take(self, now: float, most: int) -> list[int]:
        """Take at most `most` entries that are worth the price of the budget."""
        taken: list[int] = self.scheduler.take(now / DAY_S, most).ids.tolist()
        return taken

    def claim(self, entry: int, now: float) -> None:
        """Take one entry, whatever it is worth."""
        self.scheduler.claim([entry], now / DAY_S)

    def has_token(self, now: float) -> bool:
        """Return whether the budget pays for one more crawl."""
        self.scheduler.spend(0.0, now / DAY_S)  # for the tokens of now
        return self.scheduler.tokens + _SLACK >= 1.0

    def entry_of(self, page_id: int) -> int | None:
        """Return the entry by which a page is fetched on request: its own, or else that of the source; None if none."""
        return next(iter(self.index.all_of(page_id)), None)

    def page_of(self, entry: int) -> int:
        """Return the page of an entry."""
        return self.index.page_of(entry)

    def give_back(self, entries: Sequence[int], held_until: float | None = None) -> None:
        """Give back entries that were taken and not fetched, not to be taken before a time."""
        self.scheduler.release(entries, self._clock.days())
        if held_until is not None:
            self.scheduler.resume(entries, held_until=held_until / DAY_S)

    def copied(self, most: int) -> list[int]:
        """Return entries of pages with a copy that were not crawled again, `most` of them."""
        found: list[int] = self.scheduler.copied(most).tolist()
        return found

    def is_waiting(self, entry: int) -> bool:
        """Return whether an entry is there and not in flight."""
        try:
            return not self.scheduler.in_flight(entry)
        except UnknownPage:
            return False

    def host_number(self, entry: int) -> int | None:
        """Return the number of the host of an entry."""
        number = self.scheduler.host_of(entry)
        return None if number is None else int(number)

    def is_held(self, entry: int, now: float) -> bool:
        """Return whether an entry may not be taken yet."""
        return self.scheduler.is_held(entry, now / DAY_S)

    # what became of visits

    def crawled(self, entries: Sequence[int], changed: Sequence[bool | None]) -> list[Exception | None]:
        """Learn from visits that brought a copy, `changed` None for first ones; return why one could not be told.

        First copies are told in one call and later ones in another: all together, or one by one if one is in the way.
        """
        errors: list[Exception | None] = [None] * len(entries)
        firsts = [place for place, each in enumerate(changed) if each is None]
        for places in (firsts, [place for place, each in enumerate(changed) if each is not None]):
            try:
                self._crawled([entries[place] for place in places], [changed[place] for place in places])
            except RecrawlError:
                for place in places:
                    try:
                        self._crawled([entries[place]], [changed[place]])
                    except RecrawlError as error:
                        errors[place] = error
        return errors

    def _crawled(self, entries: Sequence[int], changed: Sequence[bool | None]) -> None:
        if entries:
            flags = None if changed[0] is None else np.array(changed, dtype=np.bool_)
            self.scheduler.crawled(np.array(entries, dtype=np.int64), self._clock.days(), flags)

    def also_seen(self, page: PageRow, entry: int, gap_s: float | None, changed: bool | None) -> None:
        """Tell the other entry of a page that a copy came; a copy of a page for captures teaches its rate. O(1)."""
        own = self.index.entry(page.id)
        for other in self.index.all_of(page.id):
            if other != entry:
                told = changed if other == own else None
                self.scheduler.seen([other], self._clock.days(), changed=None if told is None else [told])
        if page.objective == CAPTURES and own is not None:
            self.captures.crawled(page, own, gap_s, changed)

    def failed(self, page_id: int, entry: int, failures: int, held_until: float | None) -> None:
        """Let all entries of a page wait after a visit that brought no copy. O(1)."""
        self.scheduler.failed([entry], self._clock.days())
        others = [other for other in self.index.all_of(page_id) if other != entry]
        self.scheduler.resume([entry, *others], failures=failures, held_until=_days(held_until))

    def crawled_once(self, page_id: int) -> None:
        """Forget a page that was crawled once: the scheduler has forgotten it. O(1)."""
        self.index.drop(page_id)
        self.leave(page_id)

    def beliefs(self, pages: Sequence[PageRow]) -> dict[int, bytes]:
        """Return what is believed of pages, as bytes to be kept with them; without those of which nothing is."""
        ids = [page.id for page in pages]
        entries = self.index.entries(np.array(ids, dtype=np.int64))
        known = entries >= 0
        found: dict[int, bytes] = {}
        if known.any():
            kept = self.scheduler.beliefs(entries[known]).tobytes()
            numbers = [page_id for page_id, there in zip(ids, known.tolist(), strict=True) if there]
            starts = range(0, len(kept), _BELIEF_BYTES)
            found = {page: kept[start : start + _BELIEF_BYTES] for page, start in zip(numbers, starts, strict=True)}
        found |= {page.id: self.captures.belief(page.id) for page in pages if page.objective == CAPTURES}
        return found

    # signals

    def signal(self, pages: Numbers, times: Numbers, kind: str, now: float) -> None:
        """Tell that pages were signalled, each `times` times. O(signals)."""
        entries = self.index.entries(pages)
        known = entries >= 0
        if known.any():
            self.scheduler.signal(np.repeat(entries[known], times[known]), now / DAY_S, kind)

    def listening(self, pages: Numbers) -> Numbers:
        """Return the places of those of these pages that can use signals. O(pages)."""
        entries = self.index.entries(pages)
        known: Numbers = np.flatnonzero(entries >= 0)
        taking: Numbers = known[self.scheduler.takes_signals(entries[known])]
        return taking

    def trust(self, pages: Numbers, quality: Mapping[str, Signal]) -> None:
        """Set how far pages trust each kind of signal. O(pages)."""
        self.scheduler.trust(self.index.entries(pages), quality)

    def hold(self, page_id: int, until: float) -> bool:
        """Leave a page alone until a time; return whether the scheduler has it. O(1)."""
        entry = self.index.entry(page_id)
        if entry is None:
            return False
        self.scheduler.resume([entry], held_until=until / DAY_S)
        return True

    def let_go(self, pages: Iterable[int]) -> None:
        """Let pages be crawled again that were held. O(pages)."""
        entries = self.index.entries(np.array(sorted(pages), dtype=np.int64))
        self.scheduler.let_go(entries[entries >= 0])

    # hosts and budget

    def pace(self, state: HostState) -> None:
        """Tell the pace of a host. O(1)."""
        self.scheduler.set_host(
            state.number,
            min_gap=state.min_gap_s / DAY_S,
            max_in_flight=self._hosts.max_in_flight(state.name),
            blocked_until=max(state.blocked_until, state.next_at) / DAY_S,
        )

    def spend(self, requests: float) -> None:
        """Pay for requests from the budget."""
        self.scheduler.spend(requests, self._clock.days())

    def set_budget(self, per_day: float, tick_s: float) -> None:
        """Change the budget, and the burst that goes with it."""
        burst = burst_of(self._settings.burst, per_day, self._clock, tick_s)
        self.scheduler.set_budget(per_day, self._clock.days(), burst)

    def explain(self, page_id: int, now: float) -> Explanation | None:
        """Explain when a page is crawled next, and why, in days; None if it is not scheduled."""
        entry = self.index.entry(page_id)
        return None if entry is None else self.scheduler.explain(entry, now / DAY_S)

    def explain_source(self, page_id: int, now: float) -> Explanation | None:
        """Explain when a source is polled next, in days; None if it is not scheduled."""
        entry = self.index.source(page_id)
        return None if entry is None else self.scheduler.explain(entry, now / DAY_S)


def _days(seconds: float | None) -> float:
    return math.nan if seconds is None else seconds / DAY_S


def _source_columns(worth: tuple[float, float, float], waits_s: tuple[float, float]) -> PageColumns:
    profit, rate, decay = worth
    return {
        "profit": profit,
        "new_page_rate": rate,
        "decay": decay,
        "min_interval": waits_s[0] / DAY_S,
        "max_interval": waits_s[1] / DAY_S,
    }


def new_scheduler(
    settings: Settings, clock: TrackerClock, seed: int, tokens: float = 0.0, tick_s: float = TIMING.tick_s
) -> Scheduler:
    """Make an empty scheduler with these tokens, and never more than it may hold, so that a restart is no burst."""
    now = clock.now()
    burst = burst_of(settings.burst, settings.budget_per_day, clock, tick_s)
    # How long a page waits after a failure is decided, and stored, here.
    tuning = Tuning(longest_retry=0.0, signal_delay=settings.signals.delay_s / DAY_S)
    scheduler = Scheduler(
        settings.budget_per_day, settings.objective, now / DAY_S, burst=burst, seed=seed, tuning=tuning
    )
    scheduler.spend(burst - min(tokens, burst), now / DAY_S)
    return scheduler


def burst_of(least: float, budget_per_day: float, clock: TrackerClock, tick_s: float) -> float:
    """What may be made at once: at least what comes in a tick of the loop, else the loop could not keep the rate."""
    return max(least, 2.0 * tick_s * clock.pace * budget_per_day / DAY_S)


def columns_of(pages: Sequence[PageRow]) -> ScheduleColumns:
    """Rows of pages as the columns that the scheduler takes. O(pages)."""
    hosts = tuple(dict.fromkeys(page.host for page in pages))
    objectives = tuple(dict.fromkeys(page.objective for page in pages))
    host_places = {name: place for place, name in enumerate(hosts)}
    objective_places = {name: place for place, name in enumerate(objectives)}
    beliefs = b"".join(page.belief or _NO_BELIEF for page in pages)
    return ScheduleColumns(
        page_id=np.array([page.id for page in pages], dtype=np.int64),
        host=np.array([host_places[page.host] for page in pages], dtype=np.int32),
        importance=np.array([page.importance for page in pages], dtype=np.float64),
        objective=np.array([objective_places[page.objective] for page in pages], dtype=np.int16),
        min_interval_s=_or(math.nan, [page.min_interval_s for page in pages]),
        max_interval_s=_or(math.inf, [page.max_interval_s for page in pages]),
        fetched_at=_or(math.nan, [page.fetched_at for page in pages]),
        not_before=_or(math.nan, [page.not_before for page in pages]),
        failures=np.array([page.failures for page in pages], dtype=np.int32),
        held=np.array([is_held(page) for page in pages], dtype=np.bool_),
        belief=np.frombuffer(beliefs, dtype=np.uint8).reshape(len(pages), -1),
        hosts=hosts,
        objectives=objectives,
    )


def _or(missing: float, column: list[float | None]) -> NDArray[np.float64]:
    return np.array([missing if value is None else value for value in column], dtype=np.float64)


def _sane(importance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Importances that a scheduler takes: one bad row must not keep a tracker from starting."""
    known = np.nan_to_num(importance, nan=0.0)
    return np.where(known > 0, np.clip(known, SMALLEST_IMPORTANCE, LARGEST_IMPORTANCE), 0.0)


def _bounds(low_s: np.ndarray, high_s: np.ndarray, usual_s: float) -> PageColumns:
    """Bounds where there are any: pages without need no room for them. `usual_s`: least, where nothing is said."""
    high_s = np.maximum(np.nan_to_num(high_s, nan=math.inf, posinf=math.inf), 1.0)
    low_s = np.clip(np.where(np.isnan(low_s), np.minimum(high_s, usual_s), low_s), 0.0, LONGEST_INTERVAL_S)
    high_s = np.maximum(high_s, low_s)
    bounds: PageColumns = {}
    if low_s.any():
        bounds["min_interval"] = low_s / DAY_S
    if np.isfinite(high_s).any():
        bounds["max_interval"] = high_s / DAY_S
    return bounds


def _objective(name: str | None) -> PageObjective | None:
    return name  # type: ignore[return-value]  # the scheduler checks it


def _resume(scheduler: Scheduler, columns: ScheduleColumns, rows: np.ndarray, ids: np.ndarray) -> None:
    known = columns.belief.shape[-1] > 0
    waiting = ~np.isnan(columns.not_before[rows]) | (columns.failures[rows] > 0)
    if known:
        beliefs = columns.belief if len(rows) == len(columns) else columns.belief[rows]  # a million take their time
        scheduler.resume(
            ids,
            np.ascontiguousarray(beliefs),
            failures=columns.failures[rows],
            held_until=columns.not_before[rows] / DAY_S,
        )
    elif waiting.any():
        chosen = np.flatnonzero(waiting)
        scheduler.resume(
            ids[chosen],
            failures=columns.failures[rows[chosen]],
            held_until=columns.not_before[rows[chosen]] / DAY_S,
        )
