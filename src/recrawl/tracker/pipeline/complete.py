"""Complete visits: what they say of hosts and network, what the scheduler and signals learn, the way to the commit.

Visits that end within a moment (64, or 10 ms) are completed together: most of what that costs is the same for one and
for a hundred. A visit can be withdrawn until its batch starts; from then on nothing awaits until it is queued for
commit. The scheduler is told before the store, so that what it learned is written in the same transaction; if the
process ends before that, both are forgotten together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from recrawl.log import room_log
from recrawl.store.rows import Answer, ChangeKind, NewChange, edited
from recrawl.tracker.clock import TIMING, Timing, TrackerClock
from recrawl.tracker.discovery.discovery import Discovery
from recrawl.tracker.hosts import HostBook, HostState, NetworkHealth
from recrawl.tracker.pipeline.commit import Committer
from recrawl.tracker.pipeline.decide import decide
from recrawl.tracker.schedule import Schedule
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.signals.signals import SignalTracker
from recrawl.tracker.usage import Usage
from recrawl.tracker.visit import InFlight, Visit
from recrawl.web.change.digests import raw_digest

_LOG = room_log("tracker")
ENOUGH = 64
CRAWLED_ONCE = "crawled once"


@dataclass(slots=True, kw_only=True)
class Completer:
    """Completes visits in batches.

    Args:
        schedule: told how visits ended.
        in_flight: all visits.
        hosts: whose health is judged.
        network: the same.
        signals: audited by what came.
        discovery: learns how sources and the pages that they found were answered.
        usage: charged.
        committer: writes what was decided.
        settings: rules of decisions, and whether bodies are kept.
        clock: of the tracker.
        timing: how long visits wait for others.
    """

    schedule: Schedule
    in_flight: InFlight
    hosts: HostBook
    network: NetworkHealth
    signals: SignalTracker
    discovery: Discovery
    usage: Usage
    committer: Committer
    settings: Settings
    clock: TrackerClock
    timing: Timing = TIMING
    _ended: list[Visit] = field(default_factory=list)
    _timer: asyncio.TimerHandle | None = None

    async def complete(self, visit: Visit) -> Answer | None:
        """Complete an examined visit and wait until it is durable; None if it was withdrawn, or its lease ran out."""
        visit.ended_at = self.clock.now()
        if visit.durable is None:
            visit.durable = asyncio.get_running_loop().create_future()
        self._ended.append(visit)
        if len(self._ended) >= ENOUGH:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.timing.together_s, self.flush)
        return await asyncio.shield(visit.durable)  # it is written, also if the caller is cancelled

    def flush(self) -> None:
        """Complete all visits that have ended, and queue them for commit."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch, self._ended = self._ended, []
        started = [visit for visit in batch if self._start(visit)]
        try:
            failed = self._tell(started)
            beliefs = self.schedule.beliefs([visit.page for visit in started])
        except Exception as error:  # callers must not wait without end
            for visit in started:
                _refuse(visit, error)
            return
        for visit in started:
            if visit in failed:
                _refuse(visit, failed[visit])
                continue
            try:
                self._queue(visit, beliefs)
            except Exception as error:
                _refuse(visit, error)

    def _start(self, visit: Visit) -> bool:
        """Decide what follows from a visit; return whether there is something to be told."""
        assert visit.durable is not None
        try:
            if not self.in_flight.start_completion(visit):
                self.usage.charge_wasted(visit.answer, *visit.refetched)
                if not visit.durable.done():
                    visit.durable.set_result(None)
                return False
            visit.durable.add_done_callback(lambda _: self.in_flight.remove(visit))
            if visit.is_remote:
                self.hosts.returned(visit.page.host)
            self._decide(visit)
        except Exception as error:  # the others must not suffer
            _refuse(visit, error)
            return False
        return True

    def _decide(self, visit: Visit) -> None:
        hosts = self.hosts
        state, quiet = hosts.of(visit.page.host), None
        if visit.outcome == "rate-limited":
            quiet = hosts.passing(hosts.name_of(visit.answer.final)).blocked_until
        ill = state.is_ill(visit.ended_at) or self.network.down
        decide(visit, ill=ill, quiet_until=quiet, settings=self.settings)
        self._judge_health(visit, state)

    def _judge_health(self, visit: Visit, state: HostState) -> None:
        """Note what the answer says of the health of its host and of the network; events of that."""
        seen, known_good = visit.seen, visit.page.visits > 0
        turn = state.health.hear(seen.page_id, seen.outcome, known_good=known_good)
        if turn is not None:
            state.degraded_since = seen.at if turn == "fell-ill" else None
            kind: ChangeKind = "host_degraded" if turn == "fell-ill" else "host_recovered"
            visit.events.append(NewChange(kind, seen.at, state.name))
        turn = self.network.hear(state.name, seen.outcome, seen.fault, known_good=known_good)
        if turn is not None:
            kind = "network_down" if turn == "fell-ill" else "network_up"
            visit.events.append(NewChange(kind, seen.at, "network"))
            if turn == "fell-ill":
                _LOG.warning("the network is down: hosts cannot be reached")
            else:
                _LOG.info("the network is back")

    def _tell(self, visits: Sequence[Visit]) -> dict[Visit, Exception]:
        """Tell the scheduler, signals and discovery how visits ended; return why some could not be told. O(visits)."""
        came = [visit for visit in visits if visit.brought_copy]
        stayed = [visit.page.id for visit in came if self.schedule.stay(visit.row)]
        self.signals.entered(np.array(stayed, dtype=np.int64), self.clock.now())
        errors = self.schedule.crawled([visit.entry for visit in came], [visit.changed for visit in came])
        failed = {visit: error for visit, error in zip(came, errors, strict=True) if error is not None}
        for visit in visits:
            if visit not in failed:
                try:
                    self._tell_one(visit)
                except Exception as error:  # the others must not suffer
                    failed[visit] = error
        return failed

    def _tell_one(self, visit: Visit) -> None:
        page = visit.page
        if visit.brought_copy:
            self._tell_copy(visit)
            self.hosts.of(page.host).failures = 0
        elif visit.settle_as == "retired":
            self.schedule.leave(page.id)
        else:  # a host that asked for quiet is left alone already
            self.schedule.failed(page.id, visit.entry, visit.row.failures, visit.held_until)
            self.signals.held.discard(page.id)
        self.discovery.completed(visit)

    def _tell_copy(self, visit: Visit) -> None:
        page, seen = visit.page, visit.seen
        self.schedule.also_seen(page, visit.entry, seen.gap_s, visit.changed)
        if visit.is_page:
            self.signals.crawled(page, seen.at, visit.began_at, visit.changed, visit.heard)
            if visit.fresh_until is not None:
                self.signals.hold(page.id, visit.fresh_until)
        if page.objective == "once":
            self.schedule.crawled_once(page.id)
            visit.after = edited(visit.row, state="retired", reason=CRAWLED_ONCE)

    def _queue(self, visit: Visit, beliefs: dict[int, bytes]) -> None:
        """Charge a visit, and queue it for commit."""
        seen, page_id = visit.seen, visit.page.id
        self.usage.charge(seen.requests, seen.wire_bytes, prepaid=1)
        self.usage.end("retired" if visit.settle_as == "retired" else "fetched", seen.outcome)
        if page_id in beliefs:
            visit.after = edited(visit.row, belief=beliefs[page_id])
        if visit.version is not None and self.settings.retention.bodies:
            visit.version = replace(visit.version, body_digest=raw_digest(visit.answer.body))
        self.committer.put(visit)


def _refuse(visit: Visit, error: Exception) -> None:
    """Tell the caller that a visit came to nothing."""
    if visit.durable is not None and not visit.durable.done():
        visit.durable.set_exception(error)
