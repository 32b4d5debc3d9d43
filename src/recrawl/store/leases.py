"""Leases and results: who fetches which page, under a token that rises with every lease, and what came of it.

`complete` is the hot path: all results of a batch share each of its statements.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from operator import attrgetter

from recrawl.store.admin import write_hosts
from recrawl.store.changes import write_changes
from recrawl.store.history import write_tallies
from recrawl.store.rows import Answer, HostRow, LeaseRow, PageRow, Result, began
from recrawl.store.sources import write_sources
from recrawl.store.steps import (
    CrashPoints,
    Each,
    Many,
    Operations,
    Rows,
    Steps,
    Take,
    clean,
    reads,
    writes,
    writes_past,
)

_LEASE_POINTS = CrashPoints("lease-selected", "lease-committed")
_RESULT_POINTS = CrashPoints("before-txn", "after-txn")
_LEASE = attrgetter(*(field.name for field in fields(LeaseRow)))


class LeaseStore(Operations):
    """Leases and results."""

    @writes_past(_LEASE_POINTS)
    def lease(
        self, ids: Sequence[int], worker: str, at: float, until: float, hosts: Sequence[HostRow] = ()
    ) -> Steps[list[tuple[PageRow, LeaseRow]]]:
        """Lease pages to a worker and note what their hosts allow next; durable when it returns.

        A page that is retired, unknown, or leased to someone already is left out.
        """
        name = clean(worker)
        found = yield Each("lease_candidate", [(page_id,) for page_id in dict.fromkeys(ids)])
        yield from write_hosts(hosts)
        if not found:
            return []
        first = yield Take("token", len(found))
        leases = [LeaseRow(row[0], token, name, at, until) for token, row in enumerate(found, first)]
        yield Many("lease_insert", map(_LEASE, leases))
        # The last fields of a page are its tokens.
        return [(PageRow(*(*row[:-2], lease.token, row[-1])), lease) for row, lease in zip(found, leases, strict=True)]

    @writes
    def heartbeat(self, tokens: Sequence[int], until: float) -> Steps[list[int]]:
        """Prolong leases; the tokens of those that are still good."""
        found = yield Each("lease_prolong", [(token, until) for token in tokens])
        good = {token for (token,) in found}
        return [token for token in tokens if token in good]

    @writes
    def release(self, tokens: Sequence[int]) -> Steps[int]:
        """Give leases back without a result; how many there were."""
        return len((yield from end_leases("lease_end", tokens)))

    @reads
    def leases(self) -> Steps[list[LeaseRow]]:
        """All leases."""
        return [LeaseRow(*row) for row in (yield Rows("leases_all"))]

    @writes
    def crashed(self, tokens: Sequence[int]) -> Steps[list[PageRow]]:
        """End the leases of workers that died, and count a crash for each page; the rows from then on."""
        ended = yield from end_leases("lease_end", tokens)
        pages = {token: page_id for page_id, token in ended}
        ids = [(pages[token],) for token in dict.fromkeys(tokens) if token in pages]
        yield Many("page_count_crash", ids)
        return [PageRow(*row) for row in (yield Each("page_read", ids))]

    async def complete(self, results: Sequence[Result], tallies: Mapping[str, int] | None = None) -> list[Answer]:
        """Write results: observation, page, host, events, version, source; the lease ends. One answer each.

        Args:
            results: any number, of different pages or not; applied in the order given.
            tallies: counters to raise in the same transaction, by name; only if a result is applied, or there is none,
                so that a batch that is sent again does not count twice.
        """
        answers = await self._complete(results, tallies or {})
        # Of refused results too: no version will ever name their bodies.
        bodies = {result.version.body_digest for result in results if result.version is not None}
        self.backend.bodies_decided({digest for digest in bodies if digest is not None})
        return answers

    @writes_past(_RESULT_POINTS)
    def _complete(self, results: Sequence[Result], tallies: Mapping[str, int]) -> Steps[list[Answer]]:
        answers = yield from _judge(results)
        applied = [result for result, answer in zip(results, answers, strict=True) if answer == "applied"]
        if applied:
            yield from _write_results(applied)
        if applied or not results:
            yield from write_tallies(tallies)
        return answers

    @reads
    def answer_for(self, token: int) -> Steps[Answer]:
        """Return `duplicate` if a result with this token was applied, else `stale`; for tokens that hold no lease."""
        return "duplicate" if (yield Rows("token_seen", (token,))) else "stale"


def end_leases(query: str, keys: Sequence[int]) -> Steps[list[tuple[int, int]]]:
    """End leases without a result: pages and tokens of those that there were."""
    ended = [(page_id, token) for page_id, token in (yield Each(query, [(key,) for key in keys]))]
    yield Many("lease_note_token", ended)
    return ended


def _judge(results: Sequence[Result]) -> Steps[list[Answer]]:
    """Say of each result what it is: only the first under the token of its page's lease is applied."""
    keys = [(result.observation.page_id, result.observation.token) for result in results]
    if not keys:
        return []
    good = {(page_id, token) for page_id, token in (yield Each("lease_claim", keys))}
    if len(good) == len(keys):
        return ["applied"] * len(keys)
    settled = {(page_id, token) for page_id, token in (yield Each("result_settled", keys))}
    answers: list[Answer] = []
    for key in keys:
        if key in good:
            good.remove(key)
            settled.add(key)
            answers.append("applied")
        else:
            answers.append("duplicate" if key in settled else "stale")
    return answers


def _write_results(applied: Sequence[Result]) -> Steps[None]:
    first = yield Take("observation", len(applied))
    numbers = range(first, first + len(applied))
    observations = [result.observation for result in applied]
    pages = [result.page for result in applied]
    ends = [began(result) if result.ends_signals else -math.inf for result in applied]
    yield Many("result_end_lease", ((seen.page_id, seen.token) for seen in observations))
    yield Many("result_observation", observations, [(number,) for number in numbers])
    tokens = [seen.token for seen in observations]
    yield Many("result_page", pages, list(zip(numbers, tokens, ends, strict=True)))
    yield Many("result_copy", pages)
    yield Many("result_end_signals", ((page.id, end) for page, end in zip(pages, ends, strict=True)))
    named = [(result.page.id, began(result), result.answered) for result in applied if result.answered]
    yield Many("result_end_signals_of", named)
    yield from write_hosts([result.host for result in applied if result.host is not None])
    yield from write_changes([change for result in applied for change in result.changes])
    yield from write_sources([result.source for result in applied if result.source is not None])
    published = [result for result in applied if result.version is not None]
    yield Many("result_version", published)
