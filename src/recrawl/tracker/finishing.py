"""A fetch that ended, carried to its end: what it says of hosts and network, what the scheduler learns, the commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from recrawl.scheduling.scheduler import Scheduler
from recrawl.store.rows import Answer, ChangeKind, NewChange, Result, edited
from recrawl.tracker.accounts import Accounts
from recrawl.tracker.byte_budget import ByteBudget
from recrawl.tracker.clock import DAY_S, TrackerClock
from recrawl.tracker.committer import Committer
from recrawl.tracker.examination import Examined
from recrawl.tracker.fetching import Flight
from recrawl.tracker.health import NetworkHealth
from recrawl.tracker.hosts import HostBook, HostState
from recrawl.tracker.page_index import PageIndex
from recrawl.tracker.settings import Settings
from recrawl.tracker.settlement import Circumstances, Settled, settle
from recrawl.web.digests import raw_digest
from recrawl.web.fetch_result import FetchResult


@dataclass(slots=True)
class Desk:
    """What a finished fetch touches."""

    scheduler: Scheduler
    index: PageIndex
    hosts: HostBook
    network: NetworkHealth
    accounts: Accounts
    committer: Committer
    clock: TrackerClock
    settings: Settings
    say: Callable[[str], None]
    bytes_left: ByteBudget
    unwritten: set[int] = field(default_factory=set)  # pages whose last result is not durable yet


async def finish(desk: Desk, flight: Flight, result: FetchResult, examined: Examined) -> tuple[Settled, Answer]:
    """Settle a fetch in memory, write it, and wait until it is durable.

    The scheduler is told first, so that what it learned is written in the same transaction. Should the process end
    before that, both are forgotten together.
    """
    state = desk.hosts.of(flight.page.host)
    ill = state.is_ill(desk.clock.now()) or desk.network.down
    around = Circumstances(
        desk.clock.now(),
        flight.lease.token,
        flight.lease.worker,
        flight.trigger,
        ill,
        desk.settings.removal,
        desk.settings.retry,
    )
    settled = settle(flight.page, examined, result, around)
    if settled.told == "rate-limited":
        quiet = desk.hosts.of(desk.hosts.name_of(result.final)).blocked_until
        settled = replace(settled, page=edited(settled.page, not_before=quiet), held_until=quiet)
    events = _hear(desk, flight, settled, state)
    tell(desk, flight, settled, state)
    _charge(desk, settled)
    page = settled.page
    if settled.told != "retired":
        page = edited(page, belief=desk.scheduler.beliefs([flight.scheduled]).tobytes())
    version, body = settled.version, None
    if version is not None and desk.settings.retention.bodies:
        version, body = replace(version, body_digest=raw_digest(result.body)), result.body
    written = Result(settled.observation, page, state.row(), (*settled.changes, *events), version)
    desk.unwritten.add(flight.page.id)
    try:
        answer = await desk.committer.put(written, body)
    finally:
        desk.unwritten.discard(flight.page.id)
    return settled, answer


def tell(desk: Desk, flight: Flight, settled: Settled, state: HostState) -> None:
    """Tell the scheduler how a crawl ended."""
    ids, now = [flight.scheduled], desk.clock.days()
    if settled.told in ("first", "unchanged", "changed"):
        changed = None if settled.told == "first" else [settled.told == "changed"]
        desk.scheduler.crawled(ids, now, changed=changed)
        state.failures = 0
    elif settled.told == "retired":
        desk.scheduler.remove(ids)
        desk.index.drop(flight.page.id)
    else:  # a host that asked for quiet is left alone already
        desk.scheduler.failed(ids, now)
        held = float("nan") if settled.held_until is None else settled.held_until / DAY_S
        desk.scheduler.resume(ids, failures=settled.page.failures, held_until=held)


def _charge(desk: Desk, settled: Settled) -> None:
    """Every request counts against the budget; the first was paid when the page was taken."""
    seen = settled.observation
    if seen.requests > 1:
        desk.scheduler.spend(float(seen.requests - 1), desk.clock.days())
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
