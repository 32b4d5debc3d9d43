"""What a sink is, and who drives it: events in order, at least once, from a cursor that is kept in the store.

A sink takes a batch and says how far it came. What it could not take is tried again, later each time; what it never
will is noted as a dead letter, and the rest goes on. It runs on its own: however slow or dead, crawling never waits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from recrawl.errors import InvalidInput, StoreError
from recrawl.log import room_log
from recrawl.store.crash_points import crash_point
from recrawl.store.rows import Change, DeadLetter, SinkRow
from recrawl.store.store import Store
from recrawl.tracker.clock import TIMING
from recrawl.tracker.settings.settings import Settings, SinkRule
from recrawl.web.fetch.retry import BackoffRules, backoff_s, seeded_uniform

_LOG = room_log("tracker")
BATCH = 100
RETRY = BackoffRules(first_s=1.0, longest_s=3600.0)


@dataclass(frozen=True, slots=True)
class Delivery:
    """How far a sink came with a batch.

    Args:
        count: of events from the front that it took, or never will.
        dead: places among them that it never will take, and why.
        failed: why it did not go on; "" if it took all.
        retry_after_s: how long its target asks to be left alone.
        stopped: why it takes no more at all; "" if it does.
    """

    count: int
    dead: tuple[tuple[int, str], ...] = ()
    failed: str = ""
    retry_after_s: float | None = None
    stopped: str = ""


class Sink(Protocol):
    """Somewhere events go."""

    async def take(self, changes: Sequence[Change], attempt: int) -> Delivery:
        """Take events, in order, the first for the attempt-th time in a row (from 0)."""

    async def close(self) -> None:
        """Let go of files and connections."""


class SinkModule(Protocol):
    """What the module of a kind of sink has."""

    def check(self, rule: SinkRule, settings: Settings, where: str) -> None:
        """Refuse a rule that no sink can be made from, with `where` as the field of the error."""

    async def make(self, rule: SinkRule, settings: Settings, store: Store, now: Callable[[], float]) -> Sink:
        """Make the sink of a rule that was checked."""


def check_file(rule: SinkRule, where: str) -> None:
    """Refuse a target that cannot be a file."""
    if not rule.target or (rule.target != "-" and Path(rule.target).is_dir()):
        raise InvalidInput(f"is {rule.target!r}, but must be a file", field=f"{where}.target")


async def run_sink(name: str, sink: Sink, store: Store, kinds: frozenset[str], surroundings: SinkContext) -> None:
    """Feed a sink until told to stop; at the end once more with what is there."""
    try:
        while True:
            stopping = surroundings.stopping()
            wait_s = await _feed(name, sink, store, kinds, surroundings)
            if stopping:
                return
            await surroundings.pause(wait_s)
    finally:
        await sink.close()


@dataclass(frozen=True, slots=True)
class SinkContext:
    """What a driver is told by the process it runs in.

    Args:
        now: Unix seconds.
        pause: waits, unless it is time to stop.
        stopping: whether that is so.
        poll_s: between two looks for events.
    """

    now: Callable[[], float]
    pause: Callable[[float], Awaitable[None]]
    stopping: Callable[[], bool]
    poll_s: float = TIMING.sink_s


async def _feed(name: str, sink: Sink, store: Store, kinds: frozenset[str], around: SinkContext) -> float:
    """Feed what there is; seconds until there may be more."""
    try:
        row = await store.sink(name)
        while not row.stopped and (row.retry_at or 0.0) <= around.now():
            changes = await store.changes(row.cursor, BATCH)
            if not changes:
                return around.poll_s
            row = await _hand_over(row, sink, store, changes, kinds, around)
            if row.failures:
                break
    except StoreError as error:
        _LOG.warning("sink %s waits for the store: %s", name, error)
        return 5.0
    return around.poll_s if row.retry_at is None else min(max(row.retry_at - around.now(), around.poll_s), 60.0)


async def _hand_over(
    row: SinkRow,
    sink: Sink,
    store: Store,
    changes: Sequence[Change],
    kinds: frozenset[str],
    around: SinkContext,
) -> SinkRow:
    wanted = [change for change in changes if not kinds or change.event.kind in kinds]
    try:
        taken = await sink.take(wanted, row.failures) if wanted else Delivery(0)
    except Exception as error:  # whatever a sink does, crawling goes on
        taken = Delivery(0, failed=f"it broke: {error!r}")
    crash_point("webhook-acked")
    whole = taken.count == len(wanted) and not taken.failed
    cursor = changes[-1].cursor if whole else (wanted[taken.count - 1].cursor if taken.count else row.cursor)
    now = around.now()
    dead = [DeadLetter(row.name, wanted[place].cursor, now, why[:500]) for place, why in taken.dead]
    if taken.failed:
        failures = 1 if taken.count else row.failures + 1
        wait_s = backoff_s(failures, seeded_uniform(len(row.name), row.name, failures), RETRY)
        retry_at = now + max(wait_s, taken.retry_after_s or 0.0)
        if failures in (1, 5, 20):
            _LOG.warning("sink %s is tried again: %s", row.name, taken.failed, extra={"failures": failures})
        row = replace(row, cursor=cursor, failures=failures, retry_at=retry_at)
    else:
        row = replace(row, cursor=cursor, failures=0, retry_at=None)
    if taken.stopped:
        _LOG.error("sink %s is stopped: %s", row.name, taken.stopped)
        row = replace(row, stopped=taken.stopped[:500])
    await store.save_sink(row, dead)
    return row
