"""All pages as columns, for the scheduler to start from: one pass over the narrow rows of `pages`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.store.rows import ScheduleColumns
from recrawl.store.sqlite_session import Session, url_hash

# Rows turned into arrays at a time: few enough to stay in the processor's cache, which halves the time.
_CHUNK = 500
_QUARANTINED, _REMOVED = 1, 2
# Of the columns of `schedule_all` up to the group.
_KINDS: tuple[type, ...] = (
    np.int64, np.int64, np.float64, np.float64, np.float64, np.float64, np.float64, np.float64, np.int32, np.int8,
    np.int64,
)  # fmt: skip


def read_schedule(session: Session) -> ScheduleColumns:
    """The columns of all pages that are not retired, as they are at one moment. O(pages)."""
    with session.snapshot():
        columns, beliefs = _read_columns(session)
        page_id, host, importance, objective, shortest, longest, fetched_at, not_before, failures, state, group = (
            columns
        )
        host_places, hosts = _places(session, host)
        held = (state == _QUARANTINED) | _paused(session, page_id, host, group)
        longest[np.isnan(longest)] = np.inf
        objective_places, objectives = _objective_places(session, objective)
        return ScheduleColumns(
            page_id=page_id,
            host=host_places,
            importance=importance,
            objective=objective_places,
            min_interval_s=shortest,
            max_interval_s=longest,
            fetched_at=fetched_at,
            not_before=not_before,
            failures=failures,
            held=held,
            removed=state == _REMOVED,
            belief=beliefs,
            hosts=hosts,
            objectives=objectives,
        )


def _read_columns(session: Session) -> tuple[list[NDArray[Any]], NDArray[np.uint8]]:
    pieces: list[list[NDArray[Any]]] = [[np.empty(0, kind)] for kind in _KINDS]
    beliefs: list[Sequence[bytes | None]] = []
    rows = session.cursor("schedule_all")
    while chunk := list(islice(rows, _CHUNK)):
        *numbers, belief = zip(*chunk, strict=True)
        for piece, column, kind in zip(pieces, numbers, _KINDS, strict=True):
            piece.append(np.array(column, dtype=kind))  # None becomes NaN
        beliefs.append(belief)
    return [np.concatenate(piece) for piece in pieces], _join_beliefs(beliefs)


def _join_beliefs(chunks: Sequence[Sequence[bytes | None]]) -> NDArray[np.uint8]:
    """A row of bytes for each page, as wide as the widest."""
    count = sum(map(len, chunks))
    width = max((len(belief) for chunk in chunks for belief in chunk if belief), default=0)
    if width == 0:
        return np.zeros((count, 0), np.uint8)
    nothing = bytes(width)
    joined = b"".join([_padded(belief, nothing, width) for chunk in chunks for belief in chunk])
    return np.frombuffer(joined, np.uint8).reshape(count, width)


def _padded(belief: bytes | None, nothing: bytes, width: int) -> bytes:
    if not belief:
        return nothing
    return belief if len(belief) == width else belief.ljust(width, b"\0")


def _places(session: Session, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """The place of each name's number among those that occur, and the names."""
    known, places = np.unique(numbers, return_inverse=True)
    return places.astype(np.int32), tuple(_names(session, known.tolist()))


def _objective_places(
    session: Session, numbers: NDArray[np.float64]
) -> tuple[NDArray[np.int16], tuple[str | None, ...]]:
    """The same for objectives, where NaN stands for that of the tracker."""
    known, places = np.unique(np.nan_to_num(numbers, nan=0.0), return_inverse=True)
    names = tuple(None if number == 0 else next(iter(_names(session, [int(number)]))) for number in known.tolist())
    return places.astype(np.int16), names


def _names(session: Session, numbers: Iterable[int]) -> list[str]:
    return [name for (name,) in session.rows_each("names_of", [(number,) for number in numbers])]


def _paused(
    session: Session, page_id: NDArray[np.int64], host: NDArray[np.int64], group: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which pages are paused by themselves, their group or their host."""
    held = np.zeros(len(page_id), np.bool_)
    paused = session.rows("pauses_all")
    for kind, column in (("host", host), ("group", group)):
        named = [session.value("name_find", (name,)) for its_kind, name in paused if its_kind == kind]
        if named:
            held |= np.isin(column, [number for number in named if number is not None])
    pages = paused_pages(session)
    if pages:
        held |= np.isin(page_id, pages)
    return held


def paused_pages(session: Session) -> list[int]:
    """Ids of the pages that are paused by themselves."""
    urls = [name for kind, name in session.rows("pauses_all") if kind == "page"]
    found = session.rows_each("page_find_tracked", [(url_hash(url), url) for url in urls])
    return [page_id for _url, page_id in found]
