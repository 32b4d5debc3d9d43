"""A store by its address: a folder for SQLite, `postgresql://…` for PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from recrawl.errors import InvalidInput
from recrawl.store.contract import Store

DEFAULT_STORE = "recrawl-data"


async def open_store(where: str = DEFAULT_STORE, *, owner: bool, create: bool = True) -> Store:
    """Open a store.

    Args:
        where: a folder, or an address that begins with `postgresql://`.
        owner: to write; there is one owner at a time. Others read, and leave orders.
        create: make a store if there is none, if we are to own it.
    """
    if where.startswith(("postgresql://", "postgres://")):
        from recrawl.store.postgres import open_postgres

        return await open_postgres(where, owner=owner, create=create)
    if not where or "://" in where or "\0" in where:
        raise InvalidInput(
            f"is {where!r}, but must be a folder or an address like postgresql://host/name", field="store"
        )
    from recrawl.store.sqlite import open_sqlite

    folder = Path(where)
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"is {where!r}, which is a file, but must be a folder", field="store")
    return await open_sqlite(folder, owner=owner, create=create)
