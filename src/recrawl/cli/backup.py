"""`recrawl backup`: a whole copy of a store, also while a tracker runs on it."""

from __future__ import annotations

from pathlib import Path

import click

from recrawl.cli.store_options import chosen_settings, settings_option
from recrawl.cli.terminal import print_json
from recrawl.errors import InvalidInput


@click.command(name="backup")
@click.argument("path", type=click.Path(path_type=Path))
@settings_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
def command(path: Path, settings_path: Path | None, store: str | None, as_json: bool) -> None:
    """Write a copy of the store into one file, as it is at one moment, also while a tracker runs.

    \b
    Example:
      recrawl backup monday.backup
    """
    from recrawl._event_loop import run

    where = chosen_settings(settings_path, {"store": store}).settings.store
    if not path.parent.is_dir():
        raise InvalidInput(
            f"is {str(path)!r}, but there is no folder {str(path.parent)!r}: make it first", field="PATH"
        )
    run(_back_up(where, path))
    size = path.stat().st_size
    if as_json:
        print_json({"backup": path, "bytes": size})
    else:
        click.echo(f"{path}: {size:,} bytes")


async def _back_up(where: str, path: Path) -> None:
    from recrawl.store.opening import open_store

    store = await open_store(where, owner=False, create=False)
    try:
        await store.backup(path)
    finally:
        await store.close()
