"""A store: what is known of pages and hosts, what was seen, what changed. SQLite and PostgreSQL keep it.

- A call that returns is durable: it outlives `kill -9`, and with `synchronous=FULL` the loss of power.
- A call is one transaction: all of it happens, or nothing, whatever is raised.
- One owner at a time: `open_store(…, owner=True)` takes the lock and a generation number that rises with every owner.
  Writes of an owner that has lost its place raise `StoreLost`. Others read, and leave orders.
- A lease has a token that rises over the whole life of the store. A result is applied once, and only if its token is
  that of the page's lease. The same result again is `duplicate`; one whose lease is gone or whose page was leased
  again is `stale`. Neither changes anything.
- Cursors of the change log count 1, 2, 3 … in the order of commits: who has read up to a cursor misses nothing.
- What is in the way is a sentence: `StoreBusy`, `StoreFull`, `StoreDamaged`, `StoreNewer`, `StoreLost` (`errors.py`).
"""

from __future__ import annotations

from pathlib import Path

from recrawl.errors import InvalidInput
from recrawl.extras import need
from recrawl.log import room_log
from recrawl.store.admin import OwnerStore
from recrawl.store.changes import ChangeStore, SignalStore
from recrawl.store.history import HistoryStore
from recrawl.store.leases import LeaseStore
from recrawl.store.pages import PageStore
from recrawl.store.sources import SourceStore

_LOG = room_log("store")
DEFAULT_STORE = "recrawl-data"


class Store(PageStore, LeaseStore, HistoryStore, ChangeStore, SourceStore, SignalStore, OwnerStore):
    """All operations, on the backend of one database."""

    @property
    def name(self) -> str:
        """The address without a password, safe to print."""
        return self.backend.name

    @property
    def generation(self) -> int:
        """The number of this owner; 0 for a visitor."""
        return self.backend.generation

    @property
    def store_id(self) -> str:
        """What tells one store from another; part of the ids of events."""
        return self.backend.store_id


async def open_store(where: str = DEFAULT_STORE, *, owner: bool, create: bool = True) -> Store:
    """Open a store.

    Args:
        where: a folder, or an address that begins with `postgresql://`.
        owner: to write; there is one owner at a time. Others read, and leave orders.
        create: make a store if there is none, if we are to own it.
    """
    store = await _open(where, owner=owner, create=create)
    _LOG.debug("opened %s", store.name, extra={"owner": owner})
    return store


async def _open(where: str, *, owner: bool, create: bool) -> Store:
    if _is_postgres(where):
        from recrawl.store.postgres.backend import open_postgres

        return await open_postgres(where, owner=owner, create=create)
    if not where or "://" in where or "\0" in where:
        raise InvalidInput(
            f"is {where!r}, but must be a folder or an address like postgresql://host/name", field="store"
        )
    from recrawl.store.sqlite.backend import open_sqlite

    folder = Path(where)
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"is {where!r}, which is a file, but must be a folder", field="store")
    return await open_sqlite(folder, owner=owner, create=create)


async def restore_store(backup: Path, where: str) -> None:
    """Make a store of a backup where there is none; the backup is checked first, and kept. O(everything)."""
    if _is_postgres(where):
        from recrawl.store.postgres.backup import restore_postgres

        await restore_postgres(backup, where)
    else:
        from recrawl.store.sqlite.backup import restore_sqlite

        await restore_sqlite(backup, Path(where))


def _is_postgres(where: str) -> bool:
    """Return True for the address of a PostgreSQL server, if its driver is installed."""
    if not where.startswith(("postgresql://", "postgres://")):
        return False
    need("asyncpg", "a PostgreSQL store")
    return True
