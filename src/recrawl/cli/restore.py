"""`recrawl restore`: a store from a backup, in a place that holds none."""

from __future__ import annotations

from pathlib import Path

import click

from recrawl.cli.terminal import print_json
from recrawl.extras import need


@click.command(name="restore")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--store", required=True, metavar="WHERE", help="A new folder, or postgresql://… without a store.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
def command(path: Path, store: str, as_json: bool) -> None:
    """Make a store of a backup. It is checked first; nothing that is there is overwritten.

    A backup goes back into the kind of store that it is of: SQLite or PostgreSQL.

    \b
    Example:
      recrawl restore monday.backup --store restored-data
    """
    from recrawl._event_loop import run

    pages, shown = run(_restore(path, store))
    if as_json:
        print_json({"store": shown, "pages": pages})
    else:
        click.echo(f"{pages} pages are back in {shown}")


async def _restore(path: Path, where: str) -> tuple[int, str]:
    from recrawl.store.opening import open_store

    if where.startswith(("postgresql://", "postgres://")):
        need("asyncpg", "a PostgreSQL store")
        from recrawl.store.postgres.backup import restore_postgres

        await restore_postgres(path, where)
    else:
        from recrawl.store.sqlite.backup import restore_sqlite

        await restore_sqlite(path, Path(where))
    store = await open_store(where, owner=False, create=False)
    try:
        return sum((await store.counts()).pages.values()), store.name
    finally:
        await store.close()
