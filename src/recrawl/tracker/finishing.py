"""A fetch that ended, carried to its end: what it says of hosts and network, what the scheduler learns, the commit."""

from __future__ import annotations

from dataclasses import replace

from recrawl.errors import StoreError
from recrawl.store.rows import Answer, ChangeKind, NewChange, Result, SourceRow, edited
from recrawl.tracker.captures import CAPTURES
from recrawl.tracker.desk import Desk
from recrawl.tracker.examination import Examined
from recrawl.tracker.fetching import Flight
from recrawl.tracker.hosts import HostState
from recrawl.tracker.settlement import Circumstances, Settled, settle
from recrawl.tracker.telling import tell
from recrawl.web.digests import raw_digest
from recrawl.web.fetch_result import FetchResult


async def finish(
    desk: Desk, flight: Flight, result: FetchResult, examined: Examined, source: SourceRow | None = None
) -> tuple[Settled, Answer]:
    """Settle a fetch in memory, write it, and wait until it is durable; `source` is what `harvest` gave before.

    The scheduler is told first, so that what it learned is written in the same transaction. Should the process end
    before that, both are forgotten together. Until it is told nothing is waited for: nobody may withdraw the page.
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
    if flight.page.role == "source":  # nobody tracks it: it is no news that it changes
        page = edited(settled.page, version=flight.page.version)
        settled = replace(settled, page=page, changes=(), version=None, moved_to=None)
    if settled.told == "rate-limited":
        quiet = desk.hosts.of(desk.hosts.name_of(result.final)).blocked_until
        settled = replace(settled, page=edited(settled.page, not_before=quiet), held_until=quiet)
    events = _hear(desk, flight, settled, state)
    settled = tell(desk, flight, settled, state)
    _charge(desk, settled)
    page, scheduled = settled.page, desk.index.scheduled(flight.page.id)
    if page.objective == CAPTURES:
        page = edited(page, belief=desk.captures.belief(page.id))
    elif scheduled is not None:
        page = edited(page, belief=desk.scheduler.beliefs([scheduled]).tobytes())
    version, body = settled.version, None
    if version is not None and desk.settings.retention.bodies:
        version, body = replace(version, body_digest=raw_digest(result.body)), result.body
    written = Result(settled.observation, page, state.row(), (*settled.changes, *events), version, source)
    desk.unwritten.add(flight.page.id)
    try:
        answer = await desk.committer.put(written, body)
    finally:
        desk.unwritten.discard(flight.page.id)
    return settled, answer


async def harvest(desk: Desk, flight: Flight, result: FetchResult, examined: Examined) -> SourceRow | None:
    """Add what a page leads to if it is a source; its row from then on, None if it is none, or nothing came.

    To be called while the page is in flight. What is added twice, after a crash, is added once.
    """
    if desk.sources is None or examined.verdict is None:
        return None
    try:
        return await desk.sources.harvest(flight, result, examined)
    except StoreError:
        raise
    except Exception as error:  # a source that cannot be read is still a page
        desk.say(f"{flight.page.url} could not be read as a source: {error!r}")
        return None


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
