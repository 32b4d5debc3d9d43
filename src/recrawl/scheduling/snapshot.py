"""Snapshots: a scheduler to bytes or a file, and back. The only module of this room that does IO.

A snapshot is an archive of plain columns, as `numpy.savez` writes and `numpy.load` reads them:

    facts             all that is not a column, as JSON: format, settings, clock, budget, names, numbers of the policy
    pages.*           a row for each slot; beside it limits.*, signals.* and beliefs.*, or empty
    hosts.*           a row for each host
    flights.*         a row for each page in flight, in order of slots
    free              the free slots, in the order in which they are given out
    profiles, prior   the tables of kinds of signals and of change rates, row after row

Queues and links are not written: they follow from the columns and are rebuilt. With the policy `price`, and with all
that value every page each time, a restored scheduler does exactly what the other would have done. Policies that follow
a plan (`edf`, `lds`, `poisson`) make a new plan.

Kernels trust the tables: a host beyond the end of its table would read foreign memory, and a number that no page can
have might keep a search busy for ever. So everything that decides where kernels go is checked before it is used. Other
numbers need not be true: who writes a snapshot decides what is crawled. The archive has a checksum of each column, and
columns are stored as they are, so that none is larger than the file.
"""

# ruff: noqa: SLF001 - the one module that looks into the scheduler and its parts, so that they need no doors for it

from __future__ import annotations

import io
import json
import math
import os
import re
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any, cast

import msgspec
import numpy as np
from msgspec import Meta
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from recrawl._atomic import open_atomic
from recrawl.errors import InvalidFile, InvalidInput
from recrawl.learning.filter_state import PAGE_STATE, Memory, check_memory
from recrawl.learning.grid import RateGrid, RatePrior
from recrawl.pages import LARGEST, SMALLEST
from recrawl.scheduling.budget import TURN
from recrawl.scheduling.columns import PageObjective
from recrawl.scheduling.scheduler import Scheduler
from recrawl.scheduling.table import records
from recrawl.scheduling.table.pages import aligned_records
from recrawl.scheduling.table.records import HostName, Records
from recrawl.scheduling.table.signals import MOST_KINDS
from recrawl.scheduling.types import Counts, Tuning

VERSION = 2
"""Of the format; raised when an older recrawl could no longer read it."""

FilePath = str | os.PathLike[str]
Source = bytes | bytearray | memoryview | FilePath | IO[bytes]
"""What a scheduler is restored from."""
Column = NDArray[Any]

_FORMAT_1 = b"\x89RECRAWL"
_START, _END, _END_SIZE = b"PK\x03\x04", b"PK\x05\x06", 22  # of an archive without a comment
_HEADER = re.compile(  # of a column: its type and length
    rb"\x93NUMPY\x01\x00(..)\{'descr': '([^']+)', 'fortran_order': False, 'shape': \((\d{1,18}),\), \} *\n", re.DOTALL
)
_DAMAGE = (zipfile.BadZipFile, EOFError, NotImplementedError, OSError, RuntimeError, ValueError, struct.error)
_LEAST_DECAY = 1e-61  # above 0
_TOGETHER = 1 << 16  # pages that are checked together: they fit into the cache
_MOST_SINGLE = float(np.finfo(np.float32).max)
_AMOUNT, _UP, _ANY = (0.0, _MOST_SINGLE), (0.0, math.inf), (-math.inf, math.inf)  # none is NaN
_SHARE, _CLOCK, _WHOLE = (0.0, 1.0), (-LARGEST, LARGEST), (0, 2**31 - 1)

TABLES: dict[str, tuple[np.dtype[np.void], dict[str, tuple[float, float]]]] = {
    "pages": (
        records.PAGE,
        {
            "gain": (0.0, 1e181),  # importance × change rate / cost, each as large as it may be
            "decay": (0.0, 1e62),
            "last": _CLOCK,
            **dict.fromkeys(("wait", "not_before", "signals"), _UP),
            "host": (-1, 2**31 - 1),
            "generation": (0, 2**31 - 2),
            "law": (0, len(records.NAMES) - 1),
            "state": (0, records.STATES - 1),
            "failures": (0, records.MOST_FAILURES),
            "flags": (0, 31),
            "belief": (0.0, 1e10),
        },
    ),
    "limits": (records.LIMITS, {"cost": _AMOUNT, "min_interval": _AMOUNT, "max_interval": _UP, "profit": _UP}),
    "signals": (
        records.SIGNALS,
        {"recall": _SHARE, "precision": _SHARE, "threshold": _ANY, "profile": (records.NO_KIND, 2**31 - 1)},
    ),
    "beliefs": (
        PAGE_STATE,
        {
            **dict.fromkeys(("unchanged_time", "changes", "gap_mean", "gap_variance"), _AMOUNT),
            "gap_skew": (-_MOST_SINGLE, _MOST_SINGLE),
            **dict.fromkeys(("recent_unchanged_time", "recent_changes", "recent_gap_mean"), _AMOUNT),
            **dict.fromkeys(("turn_evidence", "log_rate_before"), (-(2**15), 2**15 - 1)),
            "prior_row": _WHOLE,
        },
    ),
    "hosts": (
        records.HOST,
        {
            "min_gap": (0.0, LARGEST),
            "rate_cap": _UP,
            **dict.fromkeys(("blocked_until", "next_start", "cap_time"), _ANY),
            **dict.fromkeys(("price", "built_price"), (0.0, 1e300)),
            "max_in_flight": _WHOLE,
            "sold": (0, 2**31 - 2),
            "paced": (0, 1),
        },
    ),
    "flights": (records.FLIGHT, {"taken_at": (0, TURN - 1), "latest_signal": _CLOCK, "signals": (0.0, 1e6)}),
}
"""The tables, and of each the columns that are written, with the least and the most that an entry can be."""
_BESIDE = {"limits": "limits.cost", "signals": "signals.recall", "beliefs": "beliefs.changes"}
"""Tables beside that of the pages, which are empty if no page needs them, and one column of each."""

COLUMNS: dict[str, np.dtype[Any]] = {
    "facts": np.dtype("u1"),
    **{
        f"{table}.{name}": dtype[name].newbyteorder("<") for table, (dtype, ranges) in TABLES.items() for name in ranges
    },
    "free": np.dtype("<i4"),
    "profiles": np.dtype("<f4"),
    "prior": np.dtype("<f8"),
}
"""The columns of a snapshot, and their types."""

_Amount = Annotated[float, Meta(ge=0.0, le=LARGEST)]
_Time = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]


class Facts(msgspec.Struct):
    """What is not a column; ranges are checked when it is read."""

    format: int
    policy: str
    state: dict[str, float]  # of the policy, which checks it
    objective: PageObjective
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    now: _Time
    budget: _Amount
    burst: Annotated[float, Meta(ge=SMALLEST, le=LARGEST)]
    tokens: Annotated[float, Meta(le=LARGEST)]
    filled: _Time
    clock: Annotated[int, Meta(ge=0, lt=TURN)]
    counts: Counts
    least_cost: Annotated[float, Meta(ge=SMALLEST, le=1.0)]
    hosts: list[HostName]
    kinds: Annotated[list[str], Meta(max_length=MOST_KINDS)]
    signal_delay: _Amount
    shortest_retry: _Amount
    longest_retry: _Amount
    memory: Memory
    grid: RateGrid | None  # of the prior
    prior_rows: list[tuple[HostName, Annotated[int, Meta(ge=0)]]]  # of hosts


def to_bytes(scheduler: Scheduler) -> bytes:
    """Return the snapshot of a scheduler. O(pages)."""
    stream = io.BytesIO()
    _write(scheduler, stream)
    return stream.getvalue()


def to_file(scheduler: Scheduler, path: FilePath) -> None:
    """Write the snapshot of a scheduler to a file, whole or not at all. O(pages)."""
    goal = _checked_path(path)
    try:
        with open_atomic(goal) as stream:
            _write(scheduler, stream)
    except OSError as error:
        raise InvalidFile(str(goal), f"cannot be written: {error.strerror or error}") from None


def _checked_path(path: Any) -> Path:
    known = isinstance(path, (str, os.PathLike)) and isinstance(os.fspath(path), str)
    if not known or not Path(path).name or "\0" in os.fspath(path):
        raise InvalidInput(f"is {path!r}, but must be the path of a file", field="path")
    return Path(path)


def from_source(source: Source) -> Scheduler:
    """Return the scheduler of a snapshot: bytes, the path of a file, or a file opened for reading bytes. O(pages).

    Raises:
        InvalidInput: if it is not a snapshot, or damaged; `InvalidFile` if it was named by its path.
    """
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        try:
            with Path(path).open("rb") as file:
                return _read(file)
        except InvalidInput as error:
            raise InvalidFile(path, _problem(error)) from None
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            raise InvalidFile(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        return _read(_stream_of(source))
    except InvalidInput as error:
        raise InvalidInput(_problem(error), field="snapshot") from None


def _problem(error: InvalidInput) -> str:
    return error.problem if error.field is None else f"is damaged: {error}"


def _stream_of(source: bytes | bytearray | memoryview | IO[bytes]) -> IO[bytes]:
    if isinstance(source, (bytes, bytearray, memoryview)):
        return io.BytesIO(source)
    if not hasattr(source, "read"):
        raise InvalidInput(f"is {type(source).__name__}, but must be bytes, a path or an open file")
    if not isinstance(source.read(0), bytes):
        raise InvalidInput("was opened as text: open it for reading bytes")
    return source if source.seekable() else io.BytesIO(source.read())


def _write(scheduler: Scheduler, stream: IO[bytes]) -> None:
    """Write the columns, those of pages straight from the table."""
    table, used, prior = scheduler._table, scheduler._table.used, scheduler._tuning.prior
    flights = table.flights[table.pages["next"][:used][table.pages["state"][:used] == records.IN_FLIGHT]]
    flights["latest_signal"][flights["signals"] == 0] = 0  # left from an earlier page
    tables = {name: getattr(table, name)[:used] for name in ("pages", *_BESIDE)}
    tables |= {"hosts": table.hosts.records, "flights": flights}
    facts = msgspec.to_builtins(_facts_of(scheduler), enc_hook=np.generic.item)  # numbers may be NumPy's
    columns = {
        "facts": np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8),
        **{f"{table}.{name}": tables[table][name] for table, (_, ranges) in TABLES.items() for name in ranges},
        "free": table.free_slots(),
        "profiles": scheduler._kinds.profiles.reshape(-1),
        "prior": np.empty(0) if prior is None else np.append(prior.weights, prior.host_weights),
    }
    typed: dict[str, Any] = {name: np.asarray(column, dtype=COLUMNS[name]) for name, column in columns.items()}
    np.savez(stream, **typed)


def _facts_of(scheduler: Scheduler) -> Facts:
    bucket, tuning = scheduler._bucket, scheduler._tuning
    rows = {} if tuning.prior is None else tuning.prior.host_rows
    return Facts(
        format=VERSION,
        policy=scheduler._policy_name,
        state=scheduler._policy.state(),
        objective=scheduler._objective,
        seed=scheduler._seed,
        now=scheduler.now,
        budget=bucket.rate,
        burst=bucket.burst,
        tokens=bucket.tokens,
        filled=bucket.filled,
        clock=bucket.clock,
        counts=scheduler.counts,
        least_cost=scheduler._table.least_cost,
        hosts=scheduler._table.hosts.names,
        kinds=scheduler._kinds.names,
        signal_delay=tuning.signal_delay,
        shortest_retry=tuning.shortest_retry,
        longest_retry=tuning.longest_retry,
        memory=tuning.memory,
        grid=None if tuning.prior is None else tuning.prior.grid,
        prior_rows=[
            (key if isinstance(key, str) else int(key), row)
            for key, row in rows.items()
            if isinstance(key, str) or (isinstance(key, (int, float, np.integer, np.floating)) and key % 1 == 0)
        ],
    )


def _read(stream: IO[bytes]) -> Scheduler:
    """Restore from a stream, from its position to its end."""
    here = stream.tell()
    start = stream.read(len(_FORMAT_1))
    if start == _FORMAT_1:
        raise InvalidInput("is of format 1, which this recrawl does not read: add the pages to a new scheduler")
    if not start.startswith(_START):
        raise InvalidInput("is not a snapshot of a scheduler")
    size = stream.seek(0, os.SEEK_END) - here
    stream.seek(here + max(size - _END_SIZE, 0))
    if stream.read(len(_END)) != _END:
        raise InvalidInput("is cut short, or goes on after its end")
    stream.seek(here)
    with _damage_refused():
        archive = np.load(stream, allow_pickle=False)
    with archive:
        return _restored(_Archive(archive, size))


@contextmanager
def _damage_refused() -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise InvalidInput(f"is damaged: {error}") from None


class _Archive:
    """The columns of an archive, each read when it is asked for; facts and lengths are known from the beginning."""

    def __init__(self, archive: NpzFile, size: int) -> None:
        self._archive, self._zip = archive, cast(zipfile.ZipFile, archive.zip)
        listed = self._zip.infolist()
        members = {member.filename.removesuffix(".npy"): member for member in listed}
        if "facts" not in members:
            raise InvalidInput("is not a snapshot of a scheduler")
        plain = all(member.compress_type == zipfile.ZIP_STORED for member in listed)
        if not plain or len(members) < len(listed) or sum(member.file_size for member in listed) > size:
            raise InvalidInput("is damaged: columns come twice, are compressed or are larger than the file")
        self._check_form("facts", members["facts"])
        self.facts = _parsed(self.column("facts").tobytes())
        if different := members.keys() ^ COLUMNS.keys():
            raise InvalidInput(f"is damaged: the column {min(different)[:40]!r} is missing or unknown")
        self.lengths = {name: self._check_form(name, members[name]) for name in COLUMNS}

    def _check_form(self, name: str, member: zipfile.ZipInfo) -> int:
        """Check that a column is stored as plain numbers of its type, and return its length."""
        with _damage_refused(), self._zip.open(member) as file:
            found = _HEADER.match(file.read(256))
        dtype = COLUMNS[name]
        if found is None or found[2] != dtype.str.encode():
            raise InvalidInput(f"is damaged: {name} is not stored as plain numbers of type {dtype}")
        start, count = found.end(), int(found[3])
        if start != 10 + int.from_bytes(found[1], "little") or member.file_size != start + count * dtype.itemsize:
            raise InvalidInput(f"is damaged: {name} is not as long as it says")
        return count

    def column(self, name: str) -> Column:
        """Read a column and compare its checksum."""
        with _damage_refused():
            column: Column = self._archive[name]
        return column

    def table(self, name: str, count: int) -> Records:
        """Read a table of `count` rows; fields that are not written are 0."""
        dtype, ranges = TABLES[name]
        if any(self.lengths[f"{name}.{field}"] != count for field in ranges):
            raise InvalidInput(f"is damaged: not all columns of {name} have {count} rows")
        rows = aligned_records(count, dtype)
        for field, (low, high) in ranges.items():
            column = self.column(f"{name}.{field}")
            if count and not (column.min() >= low and column.max() <= high):
                row = int(np.argmin((column >= low) & (column <= high)))
                raise InvalidInput(f"is damaged: {name}.{field} of row {row} is {column[row]}")
            rows[field] = column
        return rows


def _parsed(content: bytes) -> Facts:
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError):
        raise InvalidInput("is damaged: its facts are not JSON") from None
    version = parsed.get("format") if isinstance(parsed, dict) else None
    if isinstance(version, int) and version > VERSION:
        problem = f"was written by a newer recrawl, in format {version} (this one reads {VERSION}): update recrawl"
        raise InvalidInput(problem)
    try:
        return msgspec.convert(parsed, Facts)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"is damaged: {error}") from None


def _restored(archive: _Archive) -> Scheduler:
    facts = archive.facts
    tuning = _tuning(facts, archive.column("prior"))
    scheduler = Scheduler(facts.budget, facts.objective, facts.now, facts.burst, facts.seed, facts.policy, tuning)
    if facts.tokens > facts.burst or facts.filled > facts.now:
        raise InvalidInput("is damaged: it has more budget than there can be")
    scheduler._bucket.resume(facts.tokens, facts.filled, facts.clock)
    scheduler.counts = facts.counts
    _restore_kinds(scheduler, facts.kinds, archive.column("profiles"))
    if len(set(facts.hosts)) < len(facts.hosts):
        raise InvalidInput("is damaged: two hosts have the same name")
    scheduler._table.hosts.resume(facts.hosts, archive.table("hosts", len(facts.hosts)))
    _restore_pages(scheduler, archive)
    if len(scheduler._table.beliefs):
        scheduler._get_learner()
    scheduler._policy.restore(facts.state)
    return scheduler


def _tuning(facts: Facts, weights: Column) -> Tuning:
    prior = None
    if facts.grid is not None:
        rows = len(weights) // facts.grid.points
        if not 0 < rows * facts.grid.points == len(weights) or any(row > rows - 2 for _, row in facts.prior_rows):
            raise InvalidInput("is damaged: the prior of change rates does not fit its grid or hosts")
        if not (weights.min() >= 0 and weights.max() <= LARGEST):
            raise InvalidInput("is damaged: the prior of change rates has impossible weights")
        weights = weights.reshape(rows, -1)
        prior = RatePrior(facts.grid, weights[0], weights[1:], dict(facts.prior_rows))
    return Tuning(facts.signal_delay, facts.shortest_retry, facts.longest_retry, prior, check_memory(facts.memory))


def _restore_kinds(scheduler: Scheduler, kinds: list[str], profiles: Column) -> None:
    rows = len(profiles) // max(len(kinds), 1)
    if len(set(kinds)) < len(kinds) or rows * len(kinds) != len(profiles):
        raise InvalidInput("is damaged: its profiles do not fit its kinds of signals")
    profiles = profiles.reshape(rows, len(kinds))
    if len({row.tobytes() for row in profiles}) < rows or not ((profiles >= 0) & (profiles <= 1)).all():
        raise InvalidInput("is damaged: its profiles of signals are impossible")
    scheduler._kinds.resume(kinds, profiles)


def _restore_pages(scheduler: Scheduler, archive: _Archive) -> None:
    table, used = scheduler._table, archive.lengths["pages.gain"]
    pages = archive.table("pages", used)
    for name, column in _BESIDE.items():
        setattr(table, name, archive.table(name, used if archive.lengths[column] else 0))
    flights = archive.table("flights", int(np.count_nonzero(pages["state"] == records.IN_FLIGHT)))
    free = archive.column("free").astype(np.int64)
    if not np.array_equal(np.sort(free), np.flatnonzero(pages["state"] == records.FREE)):
        raise InvalidInput("is damaged: its free slots do not fit its pages")
    for start in range(0, used, _TOGETHER):
        for problem, wrong in _page_problems(scheduler, pages, slice(start, start + _TOGETHER)):
            if wrong.any():
                raise InvalidInput(f"is damaged: page {start + int(np.argmax(wrong))} {problem}")
    table.least_cost = archive.facts.least_cost
    table.resume(pages, flights, free)


def _page_problems(scheduler: Scheduler, pages: Records, part: slice) -> Iterator[tuple[str, Column]]:
    """Yield what may be wrong with some pages whose numbers are all within their ranges, and where it is."""
    table, hosts = scheduler._table, scheduler._table.hosts.records
    law, flags, state, host, decay = (pages[name][part] for name in ("law", "flags", "state", "host", "decay"))
    live = state != records.FREE
    has = {flag: live & (flags & flag != 0) for flag in (records.LIMITED, records.LISTENS, records.LEARNS)}
    limited, listens, learns = has.values()
    yield "has no limits", limited & (not len(table.limits))
    yield "has no signals", listens & (not len(table.signals))
    yield "has no beliefs", learns & (not len(table.beliefs))
    yield "is of an unknown host", live & (host >= len(hosts))
    at_host = (state == records.AT_HOST) | (state == records.BY_VALUE)
    paced = np.append(hosts["paced"], 0)[np.where(at_host, host, -1)] != 0
    yield "waits at a host without limits", at_host & ~paced
    learned = live & ((law == records.LEARNED_FRESHNESS) | (law == records.LEARNED_HARMONIC))
    yield "has a law that needs limits", live & (law == records.SOURCE) & ~limited
    yield "has a law that needs learning", learned & ~(learns & (pages["belief"][part] > 0))
    yield "has a law that does not fit its signals", live & ((law >= records.NOISY_FRESHNESS) != listens)
    yield "changes at an impossible rate", live & (decay < _LEAST_DECAY) & ((decay > 0) | learned)
    if len(table.signals):
        kinds, profile = scheduler._kinds, table.signals["profile"][part]
        known = (profile == records.NO_KIND) | ((profile >= -len(kinds.names)) & (profile < len(kinds.profiles)))
        yield "trusts unknown signals", listens & ~(known & (table.signals["precision"][part] > 0))
    if len(table.beliefs):
        prior = scheduler._tuning.prior
        rows = 0 if prior is None else len(prior.host_weights)
        yield "has an unknown prior", learns & (table.beliefs["prior_row"][part] > rows)
