"""A scheduler from what the store knows: every page where it was, learned rates included. No burst: it starts empty."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recrawl.learning.filter_state import PAGE_STATE
from recrawl.scheduling.columns import PageColumns, PageObjective
from recrawl.scheduling.scheduler import Scheduler
from recrawl.scheduling.types import Tuning
from recrawl.store.overview import ScheduleColumns
from recrawl.store.rows import PageRow
from recrawl.tracker.admission import LARGEST_IMPORTANCE, LONGEST_INTERVAL_S, SMALLEST_IMPORTANCE
from recrawl.tracker.captures import CAPTURES
from recrawl.tracker.clock import DAY_S, TIMING, TrackerClock
from recrawl.tracker.desk import Desk
from recrawl.tracker.hosts import HostState
from recrawl.tracker.settings.settings import Settings

_NO_BELIEF = bytes(PAGE_STATE.itemsize)


def new_scheduler(
    settings: Settings, clock: TrackerClock, seed: int, tokens: float = 0.0, tick_s: float = TIMING.tick_s
) -> Scheduler:
    """An empty scheduler with so many tokens, and never more than it may hold, so that a restart is no burst."""
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


def tell_pace(scheduler: Scheduler, state: HostState, max_in_flight: int) -> None:
    """Tell the scheduler of the pace of a host."""
    scheduler.set_host(
        state.number,
        min_gap=state.min_gap_s / DAY_S,
        max_in_flight=max_in_flight,
        blocked_until=max(state.blocked_until, state.next_at) / DAY_S,
    )


def load_pages(desk: Desk, columns: ScheduleColumns) -> int:
    """Add pages of the store that are not held to the scheduler; how many. O(pages)."""
    book = desk.hosts
    states = [book.of(name) for name in columns.hosts]
    numbers = np.array([state.number for state in states], dtype=np.int64)
    desk.scheduler.set_hosts(
        numbers.tolist(),
        min_gap=np.array([state.min_gap_s for state in states]) / DAY_S,
        max_in_flight=np.array([book.max_in_flight(state.name) for state in states]),
        blocked_until=np.array([max(state.blocked_until, state.next_at) for state in states]) / DAY_S,
    )
    hosts = numbers[columns.host] if len(columns) else np.empty(0, dtype=np.int64)
    desk.hearing.enter(columns.page_id, hosts, columns.fetched_at)
    wanted = np.flatnonzero(~columns.held)
    new = _load_new(desk, columns, wanted, hosts)
    for code, objective in enumerate(columns.objectives):
        rows = wanted[(columns.objective[wanted] == code) & ~new[wanted]]
        if not len(rows) or objective == "once":
            continue
        if objective == CAPTURES:
            for chosen, terms in desk.captures.entries(columns.page_id[rows], columns.belief[rows]):
                _enter(desk, columns, rows[chosen], hosts, terms)
        else:
            _enter(desk, columns, rows, hosts, {"objective": _objective(objective)})
    desk.hearing.entered(columns.page_id[wanted], desk.clock.now())
    return len(wanted)


def _enter(
    desk: Desk, columns: ScheduleColumns, rows: NDArray[np.int64], hosts: NDArray[np.int64], terms: PageColumns
) -> None:
    """Add pages of one objective, and let them go on where they were."""
    entered = terms.copy()
    entered["importance"] = _sane(columns.importance[rows])
    entered["host"] = hosts[rows]
    entered["last_crawled"] = columns.fetched_at[rows] / DAY_S
    entered.update(_bounds(columns.min_interval_s[rows], columns.max_interval_s[rows], desk.settings.min_interval_s))
    ids = desk.scheduler.add(**entered)
    desk.index.put(columns.page_id[rows], ids)
    _resume(desk.scheduler, columns, rows, ids)


def _load_new(
    desk: Desk, columns: ScheduleColumns, wanted: NDArray[np.int64], hosts: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Enter found pages that are worth a first crawl by what their sources bring; which these are."""
    new = np.zeros(len(columns), dtype=np.bool_)
    rows = wanted[np.isnan(columns.fetched_at[wanted])]
    worth = desk.sources.worth_of(columns, rows) if len(rows) else None
    if worth is None:
        return new
    valued = ~np.isnan(worth.profit)
    rows = rows[valued]
    if len(rows):
        now = desk.scheduler.now
        ids = desk.scheduler.add(
            objective="once",
            profit=worth.profit[valued],
            decay=worth.decay[valued],
            host=hosts[rows],
            last_crawled=np.minimum(worth.found_at[valued] / DAY_S, now),
        )
        desk.index.put(columns.page_id[rows], ids)
        _resume(desk.scheduler, columns, rows, ids)
        once = [objective == "once" for objective in columns.objectives]
        stays = [not once[code] for code in columns.objective[rows].tolist()]
        desk.once.update(columns.page_id[rows][stays].tolist())
        new[rows] = True
    return new


def stay(desk: Desk, page: PageRow, scheduled: int) -> None:
    """Let a found page in flight, which was to be crawled once, be a page like others afterwards."""
    columns = columns_of([page])
    entered = _bounds(columns.min_interval_s, columns.max_interval_s, desk.settings.min_interval_s)
    entered["objective"] = _objective(page.objective or desk.settings.objective)
    entered["importance"] = _sane(columns.importance)
    if page.objective == CAPTURES:
        desk.captures.note([page])
        ((_, terms),) = desk.captures.entries(columns.page_id, columns.belief)
        entered.update(terms)
    desk.scheduler.update([scheduled], **entered)
    desk.once.discard(page.id)
    desk.hearing.entered(columns.page_id, desk.clock.now())


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
        held=np.array([page.state in ("quarantined", "retired") for page in pages], dtype=np.bool_),
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
