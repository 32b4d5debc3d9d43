"""All pages as columns, for the scheduler to start from: one pass over the narrow rows of `pages`.

Most pages have nothing out of the common: no bounds, no objective of their own, no failure. So the pass reads only
what every page has, and whether there is more; the rest is read for those pages alone. That halves the time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.store.columns import ScheduleColumns
from recrawl.store.sqlite.session import Row, Session, url_hash
from recrawl.store.steps import is_clean

# Rows turned into arrays at a time: few enough to stay in the processor's cache.
_CHUNK = 500


class _Common(NamedTuple):
    """What every page has; `more` says which have more."""

    page_id: NDArray[np.int64]
    host: NDArray[np.int64]
    importance: NDArray[np.float64]
    fetched_at: NDArray[np.float64]
    more: NDArray[np.bool_]
    belief: NDArray[np.uint8]


class _More(NamedTuple):
    """What few pages have, with the default where they do not."""

    objective: NDArray[np.int64]
    min_interval_s: NDArray[np.float64]
    max_interval_s: NDArray[np.float64]
    not_before: NDArray[np.float64]
    failures: NDArray[np.int32]
    quarantined: NDArray[np.bool_]


def read_schedule(session: Session) -> ScheduleColumns:
    """The columns of all pages that are tracked, as they are at one moment. O(pages)."""
    with session.snapshot():
        common = _read_common(session)
        more = _read_more(session, common)
        host_places, hosts = _places(session, common.host)
        objective_places, objectives = _places(session, more.objective)
        return ScheduleColumns(
            page_id=common.page_id,
            host=host_places.astype(np.int32),
            importance=common.importance,
            objective=objective_places.astype(np.int16),
            min_interval_s=more.min_interval_s,
            max_interval_s=more.max_interval_s,
            fetched_at=common.fetched_at,
            not_before=more.not_before,
            failures=more.failures,
            held=more.quarantined | _paused(session, common),
            belief=common.belief,
            hosts=tuple(name for name in hosts if name is not None),
            objectives=objectives,
        )


def _read_common(session: Session) -> _Common:
    none, no = np.empty(0, np.int64), np.empty(0)
    chunks = [_Common(none, none, no, no, np.empty(0, np.bool_), np.empty((0, 0), np.uint8))]
    rows = session.cursor("schedule_common")
    while chunk := list(islice(rows, _CHUNK)):
        ids, host, importance, fetched_at, more, belief = zip(*chunk, strict=True)
        count = len(ids)
        chunks.append(
            _Common(
                # Ids that rise by one need not be looked at, nor do flags of which none is set.
                np.arange(ids[0], ids[-1] + 1) if ids[-1] - ids[0] == count - 1 else np.array(ids),
                np.fromiter(host, np.int64, count),
                np.fromiter(importance, np.float64, count),
                np.array(fetched_at, dtype=np.float64),  # None becomes NaN
                np.array(more, dtype=np.bool_) if any(more) else np.zeros(count, np.bool_),
                _beside(belief),
            )
        )
    *columns, beliefs = zip(*chunks, strict=True)
    page_id, hosts, importances, times, flags = map(np.concatenate, columns)
    return _Common(page_id, hosts, importances, times, flags, _on_end(beliefs))


def _beside(beliefs: Sequence[bytes | None]) -> NDArray[np.uint8]:
    """Beliefs as rows of bytes, as wide as the widest."""
    try:
        widths = set(map(len, beliefs))  # type: ignore[arg-type]  # None raises, which is rare in a store that is large
    except TypeError:
        beliefs = [belief or b"" for belief in beliefs]
        widths = set(map(len, beliefs))  # type: ignore[arg-type]
    width = max(widths)
    if len(widths) > 1:
        beliefs = [belief.ljust(width, b"\0") for belief in beliefs if belief is not None]
    joined = b"".join(beliefs)  # type: ignore[arg-type]
    return np.frombuffer(joined, np.uint8).reshape(len(beliefs), width)


def _on_end(chunks: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Chunks one after the other, all as wide as the widest."""
    width = max((chunk.shape[1] for chunk in chunks), default=0)
    joined = np.zeros((sum(map(len, chunks)), width), np.uint8)
    row = 0
    for chunk in chunks:
        joined[row : row + len(chunk), : chunk.shape[1]] = chunk
        row += len(chunk)
    return joined


def _read_more(session: Session, common: _Common) -> _More:
    """Columns of defaults, and what few pages have written into them. O(pages), little for most of them."""
    count = len(common.page_id)
    more = _More(
        np.zeros(count, np.int64),
        np.full(count, np.nan),
        np.full(count, np.inf),
        np.full(count, np.nan),
        np.zeros(count, np.int32),
        np.zeros(count, np.bool_),
    )
    places = np.flatnonzero(common.more)
    for start in range(0, len(places), _CHUNK):
        chosen = places[start : start + _CHUNK]
        ids = json.dumps(common.page_id[chosen].tolist())
        columns: Iterable[NDArray[Any]] = more
        for column, values in zip(columns, zip(*session.rows("schedule_more", (ids,)), strict=True), strict=True):
            column[chosen] = values
    return more


def _places(session: Session, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], tuple[str | None, ...]]:
    """The place of each name's number among those that occur, and the names; None for the number 0."""
    known = np.flatnonzero(np.bincount(numbers)) if len(numbers) else np.empty(0, np.int64)
    places = np.zeros(int(known[-1]) + 1 if len(known) else 0, np.int64)
    places[known] = np.arange(len(known))
    named: dict[int, str] = dict(session.rows_each("names_of", [(number,) for number in known.tolist()]))
    return places[numbers], tuple(named.get(number) for number in known.tolist())


def _paused(session: Session, common: _Common) -> NDArray[np.bool_]:
    """Which pages are paused by themselves, their group or their host."""
    paused: list[Row] = session.rows("pauses_all")
    held = np.zeros(len(common.page_id), np.bool_)
    kinds = {kind for kind, _name in paused}
    if "host" in kinds:
        named = (session.value("name_find", (name,)) for kind, name in paused if kind == "host")
        held |= np.isin(common.host, [number for number in named if number is not None])
    if "group" in kinds:
        held |= np.isin(common.page_id, _ids(session.rows("schedule_paused_groups")))
    if "page" in kinds:
        held |= np.isin(common.page_id, _paused_pages(session, {name for kind, name in paused if kind == "page"}))
    return held


def _ids(rows: Iterable[Row]) -> list[int]:
    return [page_id for (page_id,) in rows]


def _paused_pages(session: Session, urls: set[str]) -> list[int]:
    """Ids of the pages that are paused by themselves."""
    wanted = json.dumps(sorted(url_hash(url) for url in urls if is_clean(url)))
    return [page_id for url, page_id in session.rows("pages_find", (wanted, False, "page")) if url in urls]
