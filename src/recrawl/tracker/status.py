"""How a store and its tracker are, in plain values: counts, pauses, hosts in trouble, how crawls ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recrawl.store.contract import Store
from recrawl.store.rows import HostRow
from recrawl.tracker.accounts import ROBOTS_REQUESTS
from recrawl.tracker.sinks.event_json import iso
from recrawl.tracker.status_note import from_facts, runs

SHOWN = 20
_ENDS = ("fetched", "deferred", "retired")


async def status_of(store: Store, now: float) -> dict[str, Any]:
    """All of it. O(hosts)."""
    counts, facts = await store.counts(), await store.facts()
    tallies, paused = await store.tallies(), await store.paused()
    troubled = [host for host in await store.hosts() if _in_trouble(host, now)]
    troubled.sort(key=lambda host: (host.degraded_since is None, -host.failures))
    note = from_facts(facts)
    return {
        "store": store.name,
        "pages": dict(counts.pages),
        "paused_pages": counts.paused,
        "pauses": [{"kind": kind, "name": name} for kind, name in paused[:SHOWN]],
        "leases": counts.leases,
        "hosts": counts.hosts,
        "hosts_in_trouble": len(troubled),
        "troubled": [_host(host) for host in troubled[:SHOWN]],
        "observations": counts.observations,
        "last_cursor": counts.last_cursor,
        "crawls": _crawls(tallies),
        "signals": len(await store.pending_signals()),
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
        },
    }


def _in_trouble(host: HostRow, now: float) -> bool:
    return host.degraded_since is not None or host.failures > 0 or (host.blocked_until or 0.0) > now


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
    lines = [f"store    {status['store']}", f"pages    {pages}", _tracker_line(status)]
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
    return lines


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
