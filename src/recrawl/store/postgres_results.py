"""Results in PostgreSQL: a batch of finished fetches as one transaction, with one statement for each kind of row.

Wide rows go by COPY, which costs the client half of what arrays cost; what is then done with them is one statement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from recrawl.store.crash_points import crash_point
from recrawl.store.postgres.backend import PostgresLink, Writing
from recrawl.store.postgres_columns import clean, columns, records
from recrawl.store.postgres_connection import SQL
from recrawl.store.postgres_sources import save_source_rows
from recrawl.store.row_checks import began
from recrawl.store.rows import Answer, HostRow, NewChange, Observation, PageRow, Result

_PAGE = tuple(field.name for field in fields(PageRow))
_DESK = "settled_pages"
_SETTLED = ("observation.page_id", "observation.token", *(f"page.{name}" for name in _PAGE[_PAGE.index("state") : -2]))
"""What a result writes of its page: all but what users decide, and the tokens."""
_OBSERVATION_COLUMNS = tuple(field.name for field in fields(Observation))
_OBSERVATION = tuple(f"observation.{name}" for name in _OBSERVATION_COLUMNS)
_HOST = tuple(field.name for field in fields(HostRow))
_CHANGE = tuple(field.name for field in fields(NewChange))
_VERSION = (
    "observation.page_id", "version.version", "version.at", "version.digest", "version.text", "version.body_digest",
)  # fmt: skip


class PostgresResults(PostgresLink):
    """What became of fetches."""

    async def complete(self, results: Sequence[Result], tallies: Mapping[str, int] | None = None) -> list[Answer]:
        """Write results whose leases are good; one answer each.

        Counters are raised unless there are results and none is applied: so a batch that is submitted again, because
        its answer was lost, does not count twice.
        """
        async with self.writing() as writing:
            answers = await _answer(writing, results)
            applied = [result for result, answer in zip(results, answers, strict=True) if answer == "applied"]
            await _apply(writing, applied)
            if tallies and (applied or not results):
                await raise_counters(writing, tallies)
            crash_point("before-txn")
        crash_point("after-txn")
        # Of refused results too: no version will ever name their bodies.
        decided = {result.version.body_digest for result in results if result.version is not None}
        self.awaited_bodies.difference_update(digest for digest in decided if digest is not None)
        return answers

    async def answer_for(self, token: int) -> Answer:
        """What a result under a token would be answered that is not leased now: `duplicate` if it was applied."""
        return "duplicate" if await self.fetch("token_seen", token) else "stale"

    async def raise_tallies(self, tallies: Mapping[str, int]) -> None:
        """Raise counters by name."""
        async with self.writing() as writing:
            await raise_counters(writing, tallies)

    async def append_changes(self, changes: Sequence[NewChange]) -> list[int]:
        """Append events that come from no fetch; their cursors."""
        async with self.writing() as writing:
            return await append_events(writing, changes)


async def save_host_rows(writing: Writing, hosts: Sequence[HostRow]) -> None:
    """Write hosts, as if one after the other; what is None of robots and what was learned is left as it is."""
    last: dict[str, HostRow] = {}
    for host in hosts:
        name = clean(host.name)
        last[name] = _over(last[name], host) if name in last else host
    if last:
        await writing.connection.execute(SQL["save_hosts"], *columns(list(last.values()), _HOST))


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


async def raise_counters(writing: Writing, tallies: Mapping[str, int]) -> None:
    """Raise counters by name."""
    if tallies:
        names = [clean(name) for name in tallies]
        await writing.connection.execute(SQL["raise_tallies"], names, list(tallies.values()))


async def append_events(writing: Writing, changes: Sequence[NewChange]) -> list[int]:
    """Append events to the log; their cursors."""
    first = writing.last_cursor + 1
    cursors = list(range(first, first + len(changes)))
    if changes:
        await writing.connection.execute(SQL["append_changes"], cursors, *columns(changes, _CHANGE))
        writing.last_cursor = cursors[-1]
    return cursors


async def _answer(writing: Writing, results: Sequence[Result]) -> list[Answer]:
    """End the leases of results, and say of each what it is."""
    fetch = writing.connection.fetch
    keys = [(result.observation.page_id, result.observation.token) for result in results]
    pairs = [[page for page, _ in keys], [token for _, token in keys]]
    good = set(map(tuple, await fetch(SQL["end_leases"], *pairs)))
    settled: set[tuple[int, ...]] = set()
    if len(good) < len(keys):
        settled = set(map(tuple, await fetch(SQL["settled_tokens"], *pairs)))
    answers: list[Answer] = []
    for key in keys:
        answers.append("applied" if key in good else "duplicate" if key in settled else "stale")
        if key in good:
            good.remove(key)
            settled.add(key)
    return answers


async def _apply(writing: Writing, results: Sequence[Result]) -> None:
    if not results:
        return
    execute, copy = writing.connection.execute, writing.connection.copy_records_to_table
    starts = [(began(result) if result.ends_signals else -math.inf,) for result in results]
    laid_out = records(results, _SETTLED)
    await copy(_DESK, records=[row[:2] + start + row[2:] for row, start in zip(laid_out, starts, strict=True)])
    # Prepared, which `execute` without values would not be: planning costs as much as doing it.
    await writing.connection.fetch(SQL["settle_pages"])
    named = [result for result in results if result.answered]
    if named:
        pages, kinds = columns(named, ("observation.page_id", "answered"))
        await execute(SQL["end_signals_of"], pages, [began(result) for result in named], kinds)
    await copy(
        "observations",
        schema_name="recrawl",
        columns=_OBSERVATION_COLUMNS,
        records=records(results, _OBSERVATION),
    )
    writing.observations += len(results)
    await save_host_rows(writing, [result.host for result in results if result.host is not None])
    await append_events(writing, [change for result in results for change in result.changes])
    await save_source_rows(writing, [result.source for result in results if result.source is not None])
    published = [result for result in results if result.version is not None]
    if published:
        await execute(SQL["add_versions"], *columns(published, _VERSION))
