"""Hosts, facts, the queue of commands, counts, and the check of a whole store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from recrawl.store.columns import StoreCounts
from recrawl.store.rows import PAGE_STATES, HostRow, Order
from recrawl.store.steps import Many, Operations, Rows, Steps, clean, reads, reads_at_once, writes, writes_past

_REPLIES_KEPT_S = 86_400.0
_CHECKS = {
    "check_lease_tokens": "{} leases have tokens that were never given out",
    "check_lease_pages": "{} leases are of pages that do not exist",
    "check_lease_retired": "{} leases are of pages that are no longer tracked",
    "check_lease_settled": "{} leases have a result already",
    "check_page_addresses": "{} pages or addresses are missing: their ids are there without them",
    "check_page_tokens": "{} pages have tokens that cannot be: a result is newer than the last lease",
    "check_page_tokens_given": "{} pages have a token that was never given out",
    "check_page_hosts": "{} pages have a host without a name",
    "check_cursors": "{} cursors are missing from the change log",
    "check_cursors_beyond": "{} events lie beyond the ends of the change log",
    "check_event_pages": "{} events are of pages that are unknown",
    "check_observation_tokens": "{} fetches are counted twice",
    "check_observation_pages": "{} observations are of pages that are unknown",
    "check_observation_count": "observations are counted wrong: their count is {} off",
    "check_observation_numbers": "{} observations have a number that was never given out",
    "check_version_pages": "{} versions are of pages that are unknown",
    "check_version_numbers": "{} versions are newer than their pages say",
    "check_version_bodies": "{} versions name a body that is not kept",
    "check_counts": "the counts of pages and hosts are {} off",
    "check_source_pages": "{} sources are of pages that are unknown",
    "check_source_memories": "{} memories belong to pages that are no sources",
    "check_sinks": "{} sinks have taken more than there is",
}
"""Queries that count what is wrong, with what to say of it. What one database cannot get wrong its SQL skips."""


class OwnerStore(Operations):
    """Hosts, facts, the queue of commands, counts and upkeep."""

    @reads
    def hosts(self, names: Sequence[str] | None = None) -> Steps[list[HostRow]]:
        """All hosts, or those of some names that are known, by name, with robots and all that was learned."""
        if names is None:
            rows = yield Rows("hosts_all")
        else:
            rows = yield Rows("hosts_named", ([clean(name) for name in names],))
        return sorted((HostRow(*row) for row in rows), key=lambda host: host.name)

    @reads
    def list_hosts(self, after: str = "", limit: int = 100) -> Steps[list[HostRow]]:
        """Hosts with names above `after`, by name, without robots and what was learned. O(limit)."""
        return [HostRow(*row) for row in (yield Rows("hosts_after", (after, limit)))]

    @reads
    def troubled_hosts(self, now: float) -> Steps[list[HostRow]]:
        """Hosts that fail, are degraded, or are left alone until after `now`, by name, as `list_hosts` gives them."""
        return sorted((HostRow(*row) for row in (yield Rows("hosts_troubled", (now,)))), key=lambda host: host.name)

    @writes
    def save_hosts(self, rows: Sequence[HostRow]) -> Steps[None]:
        """Write hosts whole; what is None of robots and of what was learned is left as it is."""
        yield from write_hosts(rows)

    @reads
    def facts(self) -> Steps[dict[str, str]]:
        """Small facts by name, such as the signature of the settings."""
        return dict(sorted(dict((yield Rows("facts_all"))).items()))

    @writes
    def save_facts(self, facts: Mapping[str, str]) -> Steps[None]:
        """Write facts."""
        yield Many("fact_save", list({clean(name): text for name, text in facts.items()}.items()))

    @writes_past(None, visitor=True)
    def post(self, kind: str, payload: bytes, at: float) -> Steps[int]:
        """Leave an order for the owner; its id. Anyone may."""
        return int((yield Rows("order_post", (kind, payload, at)))[0][0])

    @reads
    def orders(self, limit: int = 100) -> Steps[list[Order]]:
        """Orders not answered yet, the oldest first."""
        return [Order(*row) for row in (yield Rows("orders_waiting", (limit,)))]

    @writes
    def answer(self, order: int, reply: bytes, at: float) -> Steps[None]:
        """Answer an order; answers that are a day old are deleted."""
        yield Rows("order_answer", (order, reply, at))
        yield Rows("orders_forget", (at - _REPLIES_KEPT_S,))

    @reads
    def reply_to(self, order: int) -> Steps[bytes | None]:
        """The answer to an order, None while there is none."""
        rows = yield Rows("order_reply", (order,))
        return rows[0][0] if rows else None

    @reads_at_once
    def counts(self) -> Steps[StoreCounts]:
        """How many there are of everything; sources are not counted among pages. O(leases and sources)."""
        rows = dict((yield Rows("count_rows")))
        [(leases, observations, cursor, sources, last_page_id)] = yield Rows("count_rest")
        pages = {state: rows.get(f"page {state}", 0) for state in PAGE_STATES}
        return StoreCounts(pages, leases, observations, cursor, rows.get("hosts", 0), sources, last_page_id)

    async def check(self) -> list[str]:
        """What is wrong with the data, in sentences; empty if nothing is. O(everything)."""
        return await self.backend.check(_look)

    async def backup(self, path: Path) -> None:
        """Write a whole, consistent copy beside the running store; refused if something is there."""
        await self.backend.backup(path)

    async def close(self) -> None:
        """Finish calls under way, then release the store and its lock."""
        await self.backend.close()


def write_hosts(rows: Sequence[HostRow]) -> Steps[None]:
    """Write hosts, as if one after the other; what is None of robots and of what was learned is left as it is."""
    if not rows:
        return
    last: dict[str, HostRow] = {}
    for row in rows:
        name = clean(row.name)
        last[name] = _over(last[name], row) if name in last else row
    yield Many("host_save", last.values())
    noted = (row for row in last.values() if row.robots is not None or row.learned is not None)
    yield Many("host_save_notes", noted)


def _over(earlier: HostRow, later: HostRow) -> HostRow:
    """Two rows of one host as one."""
    if later.robots is not None and later.robots_until is not None and later.learned is not None:
        return later
    return replace(
        later,
        robots=earlier.robots if later.robots is None else later.robots,
        robots_until=earlier.robots_until if later.robots_until is None else later.robots_until,
        learned=earlier.learned if later.learned is None else later.learned,
    )


def _look() -> Steps[list[str]]:
    found = []
    for query, sentence in _CHECKS.items():
        rows = yield Rows(query)
        if rows and rows[0][0]:
            found.append(sentence.format(rows[0][0]))
    return found
