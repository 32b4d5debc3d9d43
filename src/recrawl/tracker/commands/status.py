"""How a store and its tracker are, in plain values: what a running tracker notes of itself, and all of it for people.

Counts, pauses, hosts, how crawls ended, sources, sinks. The note is a fact of the store, written every few seconds.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from recrawl.store.rows import DeadLetter, HostRow, SinkRow
from recrawl.store.store import Store
from recrawl.tracker.clock import DAY_S, iso
from recrawl.tracker.usage import ROBOTS_REQUESTS
from recrawl.units import format_duration

if TYPE_CHECKING:
    from recrawl.tracker.tracker import Tracker

FACT = "status"
NEWEST = 10
"""Problems and dead letters that are told one by one; of the others the number is told."""
STALE_AFTER_S = 20.0


class SourceProblem(msgspec.Struct):
    """What was wrong with a source when it was last read."""

    url: str
    kind: str
    problem: str
    at: float


class StatusNote(msgspec.Struct):
    """A tracker as it was at a moment; times are Unix seconds, budget and price by day.

    `hosts_heard` sent signals, `hosts_believed` some that are listened to; `wishes` wait to be fetched now. `refused`
    are addresses that discovery did not take, by rule; of `source_problems` the newest are in `newest_problems`.
    `usable` is the share of the budget that the least intervals of pages let be used, `interval_s` the one of most.
    """

    at: float
    since: float
    pid: int
    machine: str
    price: float
    budget_per_day: float
    scheduled: int
    in_flight: int
    running: bool = True
    hosts_heard: int = 0
    hosts_believed: int = 0
    wishes: int = 0
    refused: dict[str, int] = msgspec.field(default_factory=dict)
    source_problems: int = 0
    newest_problems: list[SourceProblem] = msgspec.field(default_factory=list)
    usable: float = 1.0
    interval_s: float = 0.0


def note_of(tracker: Tracker, since: float) -> StatusNote:
    """What there is to note of a tracker. O(hosts that sent signals, and sources with problems)."""
    book = tracker.discovery.book
    troubled = book.problems
    return StatusNote(
        at=tracker.clock.now(),
        since=since,
        pid=os.getpid(),
        machine=socket.gethostname(),
        price=float(tracker.schedule.scheduler.price),
        budget_per_day=float(tracker.schedule.scheduler.budget),
        scheduled=len(tracker.schedule),
        in_flight=len(tracker.in_flight.open()),
        running=not tracker.stopping,
        hosts_heard=len(tracker.signals.trust.hosts),
        hosts_believed=tracker.signals.trust.believed,
        wishes=len(tracker.dispatcher.fetch_now),
        refused=book.refused,
        source_problems=len(troubled),
        newest_problems=[
            SourceProblem(each.url, each.row.kind, each.memory.problem, each.memory.problem_at)
            for each in troubled[:NEWEST]
        ],
        usable=usable_share(tracker),
        interval_s=tracker.settings.min_interval_s,
    )


def usable_share(tracker: Tracker) -> float:
    """The share of the budget that the least intervals of pages let be used. O(pages), or until that is all of it."""
    budget = float(tracker.schedule.scheduler.budget)
    most = tracker.schedule.scheduler.most_rate(budget)
    return most / budget if 0.0 < most < budget else 1.0


def usable_line(share: float, interval_s: float) -> str:
    """What to tell people of a budget that cannot be used; "" if all of it can.

    >>> usable_line(1 / 120, 60.0)
    'each page at most every minute: 0.83 % of the budget can be used'
    >>> usable_line(1.0, 60.0)
    ''
    """
    if share >= 1.0:
        return ""
    every = "minute" if interval_s == 60.0 else format_duration(interval_s / DAY_S)
    bound = f"each page at most every {every}" if interval_s > 0.0 else "pages have a min-interval"
    return f"{bound}: {100.0 * share:.2g} % of the budget can be used"


def to_fact(note: StatusNote) -> dict[str, str]:
    """The fact to save."""
    return {FACT: msgspec.json.encode(note).decode()}


def from_facts(facts: Mapping[str, str]) -> StatusNote | None:
    """The note among the facts of a store; None if it cannot be read."""
    with suppress(msgspec.MsgspecError, KeyError):
        return msgspec.json.decode(facts[FACT], type=StatusNote)
    return None


def runs(note: StatusNote | None, now: float) -> bool:
    """Whether the tracker of a note still runs, as far as can be told."""
    if note is None or not note.running or abs(now - note.at) > STALE_AFTER_S:
        return False
    return note.machine != socket.gethostname() or _lives(note.pid)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        return True
    return True


SHOWN = 20
MOST_COUNTED = 10_000
"""Dead letters of a sink that are counted; there may be more."""
_ENDS = ("fetched", "deferred", "retired")


async def status_of(store: Store, now: float) -> dict[str, Any]:
    """All of it. O(paused pages and hosts in trouble)."""
    counts, facts = await store.counts(), await store.facts()
    tallies, paused = await store.tallies(), await store.paused()
    troubled = sorted(await store.troubled_hosts(now), key=lambda host: (host.degraded_since is None, -host.failures))
    note = from_facts(facts)
    return {
        "store": store.name,
        "pages": dict(counts.pages),
        "paused_pages": await store.count_paused(),
        "pauses": [{"kind": kind, "name": name} for kind, name in paused[:SHOWN]],
        "leases": counts.leases,
        "hosts": counts.hosts,
        "hosts_in_trouble": len(troubled),
        "troubled": [_host(host) for host in troubled[:SHOWN]],
        "observations": counts.observations,
        "last_cursor": counts.last_cursor,
        "crawls": _crawls(tallies),
        "sources": _sources(note, counts.sources),
        "sinks": [_sink(each) for each in await read_sinks(store, counts.last_cursor)],
        "signals": await store.count_signals(),
        "orders": len(await store.orders()),
        "tracker_runs": runs(note, now),
        "tracker": None
        if note is None
        else {
            "noted_at": iso(note.at),
            "since": iso(note.since),
            "process": note.pid,
            "machine": note.machine,
            "price": note.price,
            "budget_per_day": note.budget_per_day,
            "scheduled": note.scheduled,
            "in_flight": note.in_flight,
            "hosts_heard": note.hosts_heard,
            "hosts_believed": note.hosts_believed,
            "wishes": note.wishes,
            "budget_usable": note.usable,
            "min_interval_s": note.interval_s,
        },
    }


class SinkState(NamedTuple):
    """Where a sink is.

    Args:
        row: as it is stored.
        behind: events that it has not taken.
        dead: how many events it could not take, counted up to `MOST_COUNTED`.
        newest: the newest of these.
    """

    row: SinkRow
    behind: int
    dead: int
    newest: list[DeadLetter]


async def read_sinks(store: Store, last_cursor: int, newest: int = NEWEST) -> list[SinkState]:
    """Where all sinks are, by name, and the newest events that they could not take. O(sinks · MOST_COUNTED)."""
    return [
        SinkState(
            row,
            max(last_cursor - row.cursor, 0),
            await store.count_dead_letters(row.name, MOST_COUNTED),
            await store.dead_letters(row.name, newest),
        )
        for row in await store.sinks()
    ]


def _sink(sink: SinkState) -> dict[str, Any]:
    return {
        "sink": sink.row.name,
        "cursor": sink.row.cursor,
        "behind": sink.behind,
        "failures": sink.row.failures,
        "retry_at": iso(sink.row.retry_at),
        "stopped": sink.row.stopped or None,
        "dead_letters": sink.dead,
        "newest_dead_letters": [
            {"event": each.cursor, "at": iso(each.at), "error": each.reason} for each in sink.newest
        ],
    }


def _sources(note: StatusNote | None, active: int) -> dict[str, Any]:
    """Sources as the tracker noted them last."""
    problems = [] if note is None else note.newest_problems
    return {
        "active": active,
        "refused": {} if note is None else note.refused,
        "problems": 0 if note is None else note.source_problems,
        "newest_problems": [
            {"url": each.url, "kind": each.kind, "problem": each.problem, "at": iso(each.at)} for each in problems
        ],
    }


def _host(host: HostRow) -> dict[str, Any]:
    return {
        "host": host.name,
        "failures": host.failures,
        "degraded_since": iso(host.degraded_since),
        "blocked_until": iso(host.blocked_until),
    }


def _crawls(tallies: Mapping[str, int]) -> dict[str, Any]:
    """Tallies as `Accounts` writes them, by how crawls ended and why."""
    ended: dict[str, dict[str, int]] = {end: {} for end in _ENDS}
    for name, count in sorted(tallies.items(), key=lambda item: -item[1]):
        end, _, reason = name.partition(":")
        if reason and end in ended:
            ended[end][reason] = count
    names = {"taken": "taken", "requests": "requests", "robots_requests": ROBOTS_REQUESTS, "wire_bytes": "wire_bytes"}
    plain = {name: tallies.get(tally, 0) for name, tally in names.items()}
    return {**plain, **{end: {"total": sum(reasons.values()), "reasons": reasons} for end, reasons in ended.items()}}


def status_lines(status: Mapping[str, Any]) -> list[str]:
    """The same for people."""
    pages = ", ".join(f"{count:,} {state}" for state, count in status["pages"].items() if count) or "none yet"
    lines = [f"store    {status['store']}", f"pages    {pages}", _tracker_line(status), *_usable(status)]
    if status["paused_pages"] or status["pauses"]:
        named = ", ".join(f"{each['kind']} {each['name']}" for each in status["pauses"])
        lines.append(f"paused   {status['paused_pages']:,} pages: {named}")
    lines.append(f"leases   {status['leases']:,}, signals that wait {status['signals']:,}{_heard(status)}")
    lines.append(f"changes  {status['last_cursor']:,} events; the last has cursor {status['last_cursor']}")
    crawls = status["crawls"]
    for end in _ENDS:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in crawls[end]["reasons"].items())
        lines.append(f"{end:<8} {crawls[end]['total']:,}{f': {reasons}' if reasons else ''}")
    lines.append(f"requests {crawls['requests']:,}, {crawls['wire_bytes'] / 1e6:,.1f} MB of bodies")
    lines.append(f"hosts    {status['hosts']:,}, {status['hosts_in_trouble']:,} in trouble")
    for host in status["troubled"]:
        since = f", degraded since {host['degraded_since']}" if host["degraded_since"] else ""
        until = f", left alone until {host['blocked_until']}" if host["blocked_until"] else ""
        lines.append(f"         {host['host']}: {host['failures']} failures in a row{since}{until}")
    return [*lines, *_source_lines(status["sources"]), *_sink_lines(status["sinks"])]


def _source_lines(sources: Mapping[str, Any]) -> list[str]:
    """Sources, if there are any: those that have a problem, and how many addresses were not taken."""
    lines = []
    if sources["active"] or sources["problems"] or sources["refused"]:
        lines.append(f"sources  {sources['active']:,}, {sources['problems']:,} with a problem")
    lines += [f"         {each['url']}: {each['problem']}, read {each['at']}" for each in sources["newest_problems"]]
    if sources["refused"]:
        counts = ", ".join(f"{count:,} {rule}" for rule, count in sources["refused"].items())
        lines.append(f"         addresses that were not taken, by rule: {counts}")
    return lines


def _sink_lines(sinks: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sinks: how far each is behind, and the newest events that it could not take."""
    lines = []
    for each in sinks:
        trouble = f", {each['failures']:,} failures in a row" if each["failures"] else ""
        stopped = f", stopped: {each['stopped']}" if each["stopped"] else ""
        more = " or more" if each["dead_letters"] >= MOST_COUNTED else ""
        dead = f", {each['dead_letters']:,}{more} {_letters(each['dead_letters'])}" if each["dead_letters"] else ""
        lines.append(f"sink     {each['sink']}: {each['behind']:,} events behind{trouble}{dead}{stopped}")
        lines += [
            f"         event {letter['event']} at {letter['at']}: {letter['error']}"
            for letter in each["newest_dead_letters"]
        ]
    return lines


def _letters(count: int) -> str:
    return "dead letter" if count == 1 else "dead letters"


def _usable(status: Mapping[str, Any]) -> list[str]:
    note = status["tracker"]
    line = usable_line(note["budget_usable"], note["min_interval_s"]) if status["tracker_runs"] else ""
    return [f"budget   {line}"] if line else []


def _heard(status: Mapping[str, Any]) -> str:
    note = status["tracker"]
    if note is None or not note["hosts_heard"]:
        return ""
    return f"; of {note['hosts_heard']:,} hosts that sent some {note['hosts_believed']:,} are believed"


def _tracker_line(status: Mapping[str, Any]) -> str:
    note = status["tracker"]
    if note is None:
        return "tracker  never ran on this store"
    if not status["tracker_runs"]:
        return f"tracker  does not run; last seen {note['noted_at']}"
    rate = f"budget {note['budget_per_day']:,.0f} a day, price {note['price']:.4g}"
    return f"tracker  runs since {note['since']} (process {note['process']}): {rate}, {note['in_flight']} in flight"
