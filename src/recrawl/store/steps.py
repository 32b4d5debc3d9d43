"""Operations of a store as generators of steps: what is asked and written, and in which order, but no IO.

A method that yields steps is written once for both databases. It is sent the answer to each step, and returns the value
of the operation. SQLite drives it inside the thread of the writer or of the reader, PostgreSQL with awaits:

    @writes
    def save_sink(self, row: SinkRow, dead: Sequence[DeadLetter] = ()) -> Steps[None]:
        yield Rows("sink_save", astuple(row))
        yield Many("dead_letter_add", dead)

A step of many rows is one statement for each row in SQLite, and one statement of arrays, or COPY, in PostgreSQL. So
rows of one `Many` must not share a key: PostgreSQL would refuse them, and SQLite keep the last.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Coroutine, Generator, Iterable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any, Concatenate, Literal, NamedTuple, ParamSpec, Protocol, TypeVar

from recrawl.store.columns import ScheduleColumns

Value = TypeVar("Value")
Params = ParamSpec("Params")

_NOT_TEXT = re.compile("[\0\ud800-\udfff]")


class Rows(NamedTuple):
    """All rows of a query; a list among its values is one parameter. Answer: a list of rows."""

    query: str
    values: Sequence[Any] = ()


class Each(NamedTuple):
    """The rows of a query for each of some keys; in PostgreSQL in any order. Answer: a list of rows."""

    query: str
    keys: Iterable[Sequence[Any]]


class Many(NamedTuple):
    """A statement for each of some rows, each led by its `heads`, if there are any. Answer: None.

    Rows are tuples, or objects whose fields the statement names (`-- takes:`).
    """

    query: str
    rows: Iterable[Any]
    heads: Sequence[tuple[Any, ...]] = ()


class Count(NamedTuple):
    """A statement that changes rows. Answer: how many rows it touched."""

    query: str
    values: Sequence[Any] = ()


class Take(NamedTuple):
    """So many numbers that follow each other. Answer: the first; 0 for observations that the database numbers."""

    counter: Literal["token", "cursor", "observation", "page"]
    size: int


class Names(NamedTuple):
    """How pages refer to hosts and to other names, which are added if they are new. Answer: references by name."""

    hosts: Collection[str]
    others: Collection[str]


Step = Rows | Each | Many | Count | Take | Names
Steps = Generator[Step, Any, Value]
"""An operation whose value is `Value`."""
Start = Callable[[], Steps[Value]]
"""Begins an operation, a second time if the first was undone."""


class CrashPoints(NamedTuple):
    """Points passed just before and just after the commit of a call."""

    before: str
    after: str


class Backend(Protocol):
    """A database that drives operations; `SqliteBackend` and `PostgresBackend`.

    `generation` is 0 for a visitor; `name` is the address without a password.
    """

    name: str
    generation: int
    store_id: str

    async def read(self, start: Start[Value], *, snapshot: bool = False) -> Value:
        """Run an operation that only reads; with `snapshot` all its steps see one moment."""

    async def write(self, start: Start[Value], points: CrashPoints | None = None, *, visitor: bool = False) -> Value:
        """Run an operation in a transaction that is durable when it returns; only `visitor` calls need no owner."""

    def address_keys(self, urls: Iterable[str]) -> list[Any]:
        """What addresses are found by, in the order given."""

    async def load_schedule(self) -> ScheduleColumns:
        """All tracked pages as columns."""

    async def put_body(self, digest: bytes, body: bytes) -> None:
        """Keep a body."""

    async def read_body(self, digest: bytes) -> bytes | None:
        """A body, if it is kept and whole."""

    def bodies_decided(self, digests: Collection[bytes]) -> None:
        """Results that name these bodies were applied or refused: bodies that no version names may be deleted."""

    async def sweep_bodies(self) -> None:
        """Delete bodies that no version names and no result under way may name."""

    async def check(self, start: Start[list[str]]) -> list[str]:
        """Run an operation that looks for faults in one moment, and look at what is outside of tables."""

    async def backup(self, path: Path) -> None:
        """Write a consistent copy."""

    async def close(self) -> None:
        """Finish calls under way, then release the connections and the lock."""


class Operations:
    """A part of a store: operations on a backend."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend


Part = TypeVar("Part", bound=Operations)
Operation = Callable[Concatenate[Part, Params], Steps[Value]]
Method = Callable[Concatenate[Part, Params], Coroutine[Any, Any, Value]]


def reads(operation: Operation[Part, Params, Value]) -> Method[Part, Params, Value]:
    """Make a method of an operation that reads."""

    @wraps(operation)
    async def method(part: Part, /, *args: Params.args, **options: Params.kwargs) -> Value:
        return await part.backend.read(partial(operation, part, *args, **options))

    return method


def reads_at_once(operation: Operation[Part, Params, Value]) -> Method[Part, Params, Value]:
    """Make a method of an operation whose steps read one moment."""

    @wraps(operation)
    async def method(part: Part, /, *args: Params.args, **options: Params.kwargs) -> Value:
        return await part.backend.read(partial(operation, part, *args, **options), snapshot=True)

    return method


def writes(operation: Operation[Part, Params, Value]) -> Method[Part, Params, Value]:
    """Make a method of an operation that writes, as owner."""
    return writes_past(None)(operation)


def writes_past(
    points: CrashPoints | None, *, visitor: bool = False
) -> Callable[[Operation[Part, Params, Value]], Method[Part, Params, Value]]:
    """The same with crash points, or for a visitor."""

    def decorate(operation: Operation[Part, Params, Value]) -> Method[Part, Params, Value]:
        @wraps(operation)
        async def method(part: Part, /, *args: Params.args, **options: Params.kwargs) -> Value:
            return await part.backend.write(partial(operation, part, *args, **options), points, visitor=visitor)

        return method

    return decorate


def clean(text: str) -> str:
    r"""A text that both databases can hold: without NUL and halves of surrogate pairs.

    >>> clean("a\0b"), clean("whole")
    ('a\ufffdb', 'whole')
    """
    return text if text.isascii() and "\0" not in text else _NOT_TEXT.sub("\ufffd", text)


def is_clean(text: str) -> bool:
    """Return True if a text can be held as it is."""
    return "\0" not in text and (text.isascii() or _NOT_TEXT.search(text) is None)


async def uncancellable(work: Coroutine[Any, Any, Value]) -> tuple[Value, bool]:
    """Run work to its end even if the caller is cancelled; its value, and whether the caller was cancelled meanwhile.

    The caller puts things in order and then raises `CancelledError`. What the work raises is raised.
    """
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise
            cancelled = True
        except BaseException:
            break  # raised below, as is all that the work raises
    return task.result(), cancelled
