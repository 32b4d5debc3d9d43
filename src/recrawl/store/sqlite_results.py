"""Results of fetches written to SQLite: each once, if its lease is still good, and all of it or nothing.

This is the hot path: a result costs one look-up and about seven statements, each run for all results at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

from recrawl.store.row_checks import began
from recrawl.store.rows import Answer, HostRow, NewChange, Observation, Result, SourceRow
from recrawl.store.sqlite.session import Row, Session

_OBSERVATION = attrgetter(*(field.name for field in fields(Observation)))
_CHANGE = attrgetter(*(field.name for field in fields(NewChange)))
_PAGE = attrgetter(
    "id", "state", "reason", "attempted_at", "fetched_at", "changed_at", "outcome", "failures", "not_before", "missing",
    "missing_since", "crashes", "visits", "changes", "version", "belief",
)  # fmt: skip
_COPY = attrgetter(
    "id", "etag", "last_modified", "validated_url", "raw_digest", "text_digest", "links_digest", "metadata_digest",
    "memory",
)  # fmt: skip
_UNKNOWN: Row = (0, 0, 0, 0)
_HOST = attrgetter("name", "min_gap_s", "next_at", "blocked_until", "failures", "degraded_since", "robots_until")
_HOST_NOTES = attrgetter("name", "robots", "learned")
_SOURCE = attrgetter(*[field.name for field in fields(SourceRow)][:-1])
_VERSION = attrgetter("version", "at", "digest", "text", "body_digest")


def write_results(session: Session, results: Sequence[Result], tallies: Mapping[str, int]) -> list[Answer]:
    """Apply results in the order given, and raise counters; an answer for each."""
    answers, applied, previous = _judge(session, results)
    if applied:
        _write(session, applied, previous)
    if applied or not results:  # a batch that is sent again, since its answer was lost, does not count twice
        raise_tallies(session, tallies)
    return answers


def _judge(session: Session, results: Sequence[Result]) -> tuple[list[Answer], list[Result], list[int]]:
    """What becomes of each result; those to be applied, with the observation before each in its page's chain."""
    ids = {result.observation.page_id for result in results}
    found = session.rows_each("result_state", [(page_id,) for page_id in ids])
    states: dict[int, Row] = {row[0]: row for row in found}
    answers: list[Answer] = []
    applied: list[Result] = []
    previous: list[int] = []
    for result in results:
        page_id, token = result.observation.page_id, result.observation.token
        _id, leased, settled, last = states.get(page_id, _UNKNOWN)
        if token == leased and token:
            answers.append("applied")
            applied.append(result)
            previous.append(last)
            states[page_id] = (page_id, 0, token, last)
        else:
            answers.append("duplicate" if _was_applied(session, page_id, token, settled) else "stale")
    return answers, applied, previous


def _was_applied(session: Session, page_id: int, token: int, settled: int) -> bool:
    """Whether a result was written before: it is the page's last, or among those that are remembered."""
    if token >= settled:
        return 0 < token == settled
    return session.value("result_seen", (token, page_id)) is not None


def _write(session: Session, applied: Sequence[Result], previous: Sequence[int]) -> None:
    first = session.value("ledger_take_observations", (len(applied),)) - len(applied) + 1
    observations: list[tuple[Any, ...]] = []
    pages: list[tuple[Any, ...]] = []
    for number, result, before in zip(range(first, first + len(applied)), applied, previous, strict=True):
        seen = result.observation
        observations.append((number, before, *_OBSERVATION(seen)))
        pages.append((number, seen.token, *_PAGE(result.page)))
    session.run_many("result_observation", observations)
    session.run_many("result_page", pages)
    session.run_many("result_copy", [_COPY(result.page) for result in applied])
    session.run_many("result_end_lease", [(result.page.id,) for result in applied])
    told = [(result.page.id, began(result)) for result in applied if result.ends_signals]
    session.run_many("result_end_signals", told)
    named = [(result.page.id, began(result), result.answered) for result in applied if result.answered]
    session.run_many("result_end_signals_of", named)
    save_hosts(session, [result.host for result in applied if result.host is not None])
    append_changes(session, [change for result in applied for change in result.changes])
    save_sources(session, [result.source for result in applied if result.source is not None])
    versions = [(result.observation.page_id, *_VERSION(result.version)) for result in applied if result.version]
    session.run_many("result_version", versions)


def save_hosts(session: Session, rows: Sequence[HostRow]) -> None:
    """Write hosts, one after the other; what is None of robots and what was learned is left as it is."""
    session.run_many("host_save", map(_HOST, rows))
    session.run_many(
        "host_save_notes", [_HOST_NOTES(row) for row in rows if row.robots is not None or row.learned is not None]
    )


def save_sources(session: Session, rows: Sequence[SourceRow]) -> None:
    """Write sources, one after the other; a memory that is None is left as it is."""
    session.run_many("source_save", map(_SOURCE, rows))
    memories = [(row.page_id, row.memory) for row in rows if row.memory is not None]
    session.run_many("source_save_memory", memories)


def append_changes(session: Session, changes: Sequence[NewChange]) -> list[int]:
    """Append events to the log; their cursors, which follow the last one without a gap."""
    if not changes:
        return []
    first = session.value("change_last_cursor") + 1
    cursors = list(range(first, first + len(changes)))
    rows = [(cursor, *_CHANGE(change)) for cursor, change in zip(cursors, changes, strict=True)]
    session.run_many("change_append", rows)
    return cursors


def raise_tallies(session: Session, tallies: Mapping[str, int]) -> None:
    """Raise counters by name."""
    session.run_many("tally_raise", list(tallies.items()))
