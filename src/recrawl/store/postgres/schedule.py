"""Reading the schedule of a store: a million pages as arrays, with no object for any of them.

`COPY … (FORMAT binary)` sends each row as the count of its fields and, before each field, its length. Where no field is
missing and each has one width, all rows look alike, and the stream is an array of records as it comes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import StoreDamaged
from recrawl.store.columns import ScheduleColumns
from recrawl.store.postgres.connection import SQL, Connection

_HEADER_BYTES = 19
_TRAILER_BYTES = 2
_PIECE_BYTES = 1 << 20
_FIELDS = (
    ("page_id", ">i8"), ("host", ">i4"), ("importance", ">f8"), ("objective", ">i2"), ("min_interval_s", ">f8"),
    ("max_interval_s", ">f8"), ("fetched_at", ">f8"), ("not_before", ">f8"), ("failures", ">i4"), ("held", "?"),
)  # fmt: skip


async def read_schedule(connection: Connection, timeout_s: float) -> ScheduleColumns:
    """The schedule as one snapshot sees it; the connection is inside a transaction that has one. O(pages)."""
    [(count, belief_bytes, found)] = await connection.fetch(SQL["schedule_shape"], timeout=timeout_s)
    objectives: list[str] = found or []
    hosts = await connection.fetch(SQL["schedule_hosts"], timeout=timeout_s)
    arriving = _Arriving(count, belief_bytes)
    await connection.copy_from_query(
        SQL["schedule_pages"],
        objectives,
        bytes(belief_bytes),
        output=arriving.take,
        format="binary",
        timeout=timeout_s,
    )
    columns = arriving.columns()
    numbers = np.fromiter((no for no, _ in hosts), dtype=np.int32, count=len(hosts))
    places, used = _places(columns.pop("host"), numbers)
    names = [name for _, name in hosts]
    return ScheduleColumns(
        **columns,
        host=places,
        hosts=tuple(names[place] for place in used.tolist()),
        objectives=(None, *objectives),
    )


class _Arriving:
    """Columns that are filled while rows arrive, so that no row is held twice."""

    def __init__(self, count: int, belief_bytes: int) -> None:
        self._kind = _record_type(belief_bytes)
        self._columns: dict[str, NDArray[Any]] = {
            name: np.empty(count, np.dtype(kind).newbyteorder("=")) for name, kind in _FIELDS
        }
        self._columns["belief"] = np.empty((count, belief_bytes), np.uint8)
        self._count = count
        self._filled = 0
        self._waiting = bytearray()
        self._header = _HEADER_BYTES

    async def take(self, data: bytes) -> None:
        """Take what has come."""
        self._waiting += data
        if len(self._waiting) >= _PIECE_BYTES:
            self._fill()

    def columns(self) -> dict[str, NDArray[Any]]:
        """All columns, in the order of ids."""
        self._fill()
        if self._filled != self._count or len(self._waiting) != _TRAILER_BYTES:
            raise StoreDamaged("the pages of the store were cut short on their way: try again, then `recrawl doctor`")
        ids = self._columns["page_id"]
        if np.any(ids[1:] < ids[:-1]):
            # Rows that were updated lie elsewhere; sorting here is cheaper than in the server.
            order = np.argsort(ids)
            for name in self._columns:
                self._columns[name] = self._columns[name][order]
        return self._columns

    def _fill(self) -> None:
        offset, self._header = self._header, 0
        count = min((len(self._waiting) - offset) // self._kind.itemsize, self._count - self._filled)
        end = offset + count * self._kind.itemsize
        rows = np.frombuffer(bytes(self._waiting[offset:end]), dtype=self._kind)
        for name, column in self._columns.items():
            column[self._filled : self._filled + count] = rows[name]
        self._filled += count
        del self._waiting[:end]


def _record_type(belief_bytes: int) -> np.dtype[np.void]:
    parts: list[Any] = [("field_count", ">i2")]
    for name, kind in (*_FIELDS, ("belief", f"({belief_bytes},)u1")):
        parts += [(f"{name}_bytes", ">i4"), (name, kind)]
    return np.dtype(parts)


def _places(hosts: NDArray[np.int32], numbers: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The place of each page's host among those that occur, and where these are among all."""
    among_all = np.searchsorted(numbers, hosts)
    occurs = np.zeros(len(numbers), dtype=np.bool_)
    occurs[among_all] = True
    places = np.cumsum(occurs, dtype=np.int32) - 1
    return places[among_all].astype(np.int32), np.flatnonzero(occurs)
