"""Fetches that ended, carried to their end: what they say of hosts and network, what the scheduler learns, the commit.

Those that end within a moment are settled together: most of what that costs is the same for one and for a hundred.
Until then a page is in flight, and may be withdrawn; from then on nothing is waited for until its result is on its way
to the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from recrawl.errors import StoreError
from recrawl.store.rows import Answer, ChangeKind, NewChange, Result, SourceRow, edited
from recrawl.tracker.desk import Desk
from recrawl.tracker.hosts import HostState
from recrawl.tracker.kinds import NOW
from recrawl.tracker.pipeline.decide import Circumstances, Settled, settle
from recrawl.tracker.pipeline.examine import Examined
from recrawl.tracker.pipeline.fetch import Flight
from recrawl.tracker.telling import Landed, tell
from recrawl.web.digests import raw_digest
from recrawl.web.fetch_result import FetchResult

ENOUGH = 64


@dataclass(slots=True)
class Ended:
    """A fetch that has ended at a time, what came of it, and who waits until that is durable."""

    flight: Flight
    result: FetchResult
    examined: Examined
    source: SourceRow | None
    at: float
    landed: Landed | None = None
    events: list[NewChange] = field(default_factory=list)
    written: asyncio.Future[Answer | None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Landing:
    """Where flights end.

    Args:
        desk: what they touch.
        landed: lets a flight end by its token; whether it had not been withdrawn, or run out.
        in_vain: told of an answer that nobody waits for any more.
    """

    def __init__(self, desk: Desk, landed: Callable[[int], bool], in_vain: Callable[[FetchResult], None]) -> None:
        self._desk = desk
        self._landed = landed
        self._in_vain = in_vain
        self._ended: list[Ended] = []
        self._timer: asyncio.TimerHandle | None = None

    async def finish(
        self, flight: Flight, result: FetchResult, examined: Examined, source: SourceRow | None = None
    ) -> tuple[Settled, Answer] | None:
        """Settle a fetch, write it, and wait until it is durable; None if its page was withdrawn, or its lease ran out.

        The scheduler is told first, so that what it learned is written in the same transaction. Should the process end
        before that, both are forgotten together. `source` is what `harvest` gave before.
        """
        desk = self._desk
        ended = Ended(flight, result, examined, source, desk.clock.now())
        self._ended.append(ended)
        if len(self._ended) >= ENOUGH:
            self.settle()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(desk.timing.together_s, self.settle)
        answer = await asyncio.shield(ended.written)  # it is written, whoever waits for it
        return None if answer is None or ended.landed is None else (ended.landed.settled, answer)

    def settle(self) -> None:
        """Settle all that have ended, and hand them in to be written."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch, self._ended = self._ended, []
        landed = [ended for ended in batch if self._lands(ended)]
        try:
            tell(self._desk, [ended.landed for ended in landed if ended.landed is not None])
            beliefs = self._desk.schedule.beliefs([ended.flight.page for ended in landed])
        except Exception as error:  # whatever it is, nobody may wait for ever
            for ended in landed:
                _refuse(ended, error)
            return
        for ended in landed:
            try:
                self._hand_in(ended, beliefs)
            except Exception as error:
                _refuse(ended, error)

    def _lands(self, ended: Ended) -> bool:
        """Let a flight end, and see what follows from it; whether there is something to be told."""
        try:
            if not self._landed(ended.flight.lease.token):
                for sent in (ended.result, *ended.examined.again):
                    self._in_vain(sent)
                if not ended.written.done():
                    ended.written.set_result(None)
                return False
            ended.landed = _settled(self._desk, ended)
        except Exception as error:  # the others must not suffer
            _refuse(ended, error)
        return ended.landed is not None

    def _hand_in(self, ended: Ended, beliefs: dict[int, bytes]) -> None:
        desk, landed = self._desk, ended.landed
        assert landed is not None
        if landed.error is not None:
            raise landed.error
        settled = landed.settled
        _charge(desk, settled)
        page = settled.page
        if page.id in beliefs:
            page = edited(page, belief=beliefs[page.id])
        version, body = settled.version, None
        if version is not None and desk.settings.retention.bodies:
            version, body = replace(version, body_digest=raw_digest(ended.result.body)), ended.result.body
        events = (*settled.changes, *ended.events)
        answered = NOW if ended.flight.trigger == NOW else ""
        result = Result(
            settled.observation,
            page,
            landed.state.row(),
            events,
            version,
            ended.source,
            answered,
            ended.flight.began_at,
        )
        desk.unwritten.add(page.id)
        ended.written.add_done_callback(lambda _: desk.unwritten.discard(page.id))
        desk.committer.put(result, body, ended.written)


async def harvest(desk: Desk, flight: Flight, result: FetchResult, examined: Examined) -> SourceRow | None:
    """Add what a page leads to if it is a source; return its row from then on, None if nothing is to be written.

    To be called while the page is in flight. What is added twice, after a crash, is added once.
    """
    try:
        return await desk.sources.harvest(flight, result, examined)
    except StoreError:
        raise
    except Exception as error:  # a source that cannot be read is still a page
        desk.say(f"{flight.page.url} could not be read as a source: {error!r}")
        return None


def _settled(desk: Desk, ended: Ended) -> Landed:
    """What follows from a fetch for its page, its host and the network; the scheduler is not told yet."""
    flight, result = ended.flight, ended.result
    state = desk.hosts.of(flight.page.host)
    around = Circumstances(
        ended.at,
        flight.began_at,
        flight.lease.token,
        flight.lease.worker,
        flight.trigger,
        state.is_ill(ended.at) or desk.network.down,
        desk.settings.removal,
        desk.settings.retry,
        desk.settings.respect_max_age,
    )
    settled = settle(flight.page, ended.examined, result, around)
    if flight.page.role == "source":  # nobody tracks it: it is no news that it changes
        page = edited(settled.page, version=flight.page.version)
        settled = replace(settled, page=page, changes=(), version=None, moved_to=None)
    if settled.told == "rate-limited":
        quiet = desk.hosts.passing(desk.hosts.name_of(result.final)).blocked_until
        settled = replace(settled, page=edited(settled.page, not_before=quiet), held_until=quiet)
    ended.events = _hear(desk, flight, settled, state)
    return Landed(flight, settled, state)


def _refuse(ended: Ended, error: Exception) -> None:
    """Tell who waits that it came to nothing."""
    ended.landed = None
    if not ended.written.done():
        ended.written.set_exception(error)


def _charge(desk: Desk, settled: Settled) -> None:
    """Every request counts against the budget; the first was paid when the page was taken."""
    seen = settled.observation
    if seen.requests > 1:
        desk.schedule.spend(float(seen.requests - 1))
    desk.accounts.count("requests", seen.requests)
    desk.accounts.count("wire_bytes", seen.wire_bytes)
    desk.bytes_left.spend(seen.wire_bytes)
    desk.accounts.end("retired" if settled.told == "retired" else "fetched", seen.outcome)


def _hear(desk: Desk, flight: Flight, settled: Settled, state: HostState) -> list[NewChange]:
    """What the answer says of the health of its host and of the network; events of that."""
    seen = settled.observation
    events = []
    turn = state.health.hear(seen.page_id, seen.outcome, known_good=flight.page.visits > 0)
    if turn is not None:
        state.degraded_since = seen.at if turn == "fell-ill" else None
        kind: ChangeKind = "host_degraded" if turn == "fell-ill" else "host_recovered"
        events.append(NewChange(kind, seen.at, state.name))
    turn = desk.network.hear(state.name, seen.outcome, seen.fault, known_good=flight.page.visits > 0)
    if turn is not None:
        kind = "network_down" if turn == "fell-ill" else "network_up"
        events.append(NewChange(kind, seen.at, "network"))
        desk.say("the network is down: hosts cannot be reached" if turn == "fell-ill" else "the network is back")
    return events
