"""What PostgreSQL and the network say, told once in the words of `errors.py`; passwords are never among them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from recrawl.errors import InvalidInput, RecrawlError, StoreBusy, StoreDamaged, StoreError, StoreFull, StoreLost
from recrawl.store.postgres.address import UNREADABLE

_UNKNOWN_OUTCOME = "whether the last call was written is not known: submit it again"

_BY_STATE: dict[str, tuple[type[StoreError], str]] = {
    "28P01": (StoreError, "refuses the password: correct it in the address of the store, or in ~/.pgpass"),
    "28000": (StoreError, "does not let this user in: check the user of the address, and the server's pg_hba.conf"),
    "3D000": (StoreError, "has no such database: make it with `createdb`, or correct the name in the address"),
    "42501": (StoreError, "does not let this user write: GRANT it CREATE on the database and its schema recrawl"),
    "25006": (StoreError, "is read-only: name the primary server in the address, not a standby"),
    "53100": (StoreFull, "has no space left: nothing was written; make room on its disk and try again"),
    "53200": (StoreBusy, "is out of memory: nothing was written; try again later"),
    "53300": (StoreBusy, "has too many connections: end some, or raise its max_connections, and try again"),
    "55P03": (StoreBusy, "is locked by another session for longer than we wait: nothing was written; try again"),
    "57014": (StoreBusy, "took longer than a statement may: nothing was written; try again when it has less to do"),
    "40001": (StoreBusy, "had two sessions in each other's way: nothing was written; try again"),
    "40P01": (StoreBusy, "had two sessions wait for each other: nothing was written; try again"),
    "42P01": (StoreDamaged, "lacks a table of the schema recrawl: restore a backup into an empty database"),
    "42703": (StoreDamaged, "lacks a column in the schema recrawl: restore a backup into an empty database"),
    "XX001": (StoreDamaged, "reports damaged data: check its disk and restore a backup"),
    "XX002": (StoreDamaged, "reports a damaged index: rebuild it with REINDEX, or restore a backup"),
}
FOREIGN_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, OverflowError)
_LOST_CLASSES = ("08", "57")
"""Connection exceptions; operator intervention: shutdown, crash, not up yet."""


@contextmanager
def store_errors(name: str) -> Iterator[None]:
    """Raise what goes wrong inside as one of ours; `name` is safe to print."""
    try:
        yield
    except RecrawlError:
        raise
    except FOREIGN_ERRORS as error:
        # The cause is kept out of the chain: a client's error may quote the address with its password.
        raise in_our_words(error, name) from None


def in_our_words(error: BaseException, name: str) -> RecrawlError:
    """An error of the server, the driver or the network as one sentence of ours."""
    if isinstance(error, asyncpg.DataError | OverflowError):
        return InvalidInput(f"a value cannot be stored: {_one_line(error)}")
    if isinstance(error, asyncpg.PostgresError):
        return _of_the_server(error, name)
    if isinstance(error, ValueError):
        # The address, of which only the driver knows all options.
        return InvalidInput(UNREADABLE, field="store")
    if isinstance(error, TimeoutError):
        return StoreLost(f"{name} does not answer in time; {_UNKNOWN_OUTCOME}")
    if isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError):
        return StoreLost(f"The connection to {name} is gone; {_UNKNOWN_OUTCOME}")
    reason = getattr(error, "strerror", None) or type(error).__name__
    return StoreLost(f"Cannot reach {name} ({reason}): check that the server runs and that the address is right")


def _of_the_server(error: asyncpg.PostgresError, name: str) -> StoreError:
    state = str(getattr(error, "sqlstate", None) or "")
    if state in _BY_STATE:
        kind, says = _BY_STATE[state]
        return kind(f"{name} {says}")
    if state[:2] in _LOST_CLASSES:
        return StoreLost(f"{name} has ended the connection ({_one_line(error)}); {_UNKNOWN_OUTCOME}")
    return StoreError(f"{name} refuses: {_one_line(error)} ({state or 'no code'}); nothing was written")


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
