"""`recrawl status`: how a store and its tracker are."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from recrawl.cli.store_options import chosen_settings, settings_option
from recrawl.cli.terminal import clean, print_json


@click.command(name="status")
@settings_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
def command(settings_path: Path | None, store: str | None, as_json: bool) -> None:
    """Say how it is: pages by state, how crawls ended, hosts in trouble, and whether a tracker runs.

    \b
    Example:
      recrawl status --json
    """
    from recrawl._event_loop import run
    from recrawl.tracker.commands.status import status_lines

    where = chosen_settings(settings_path, {"store": store}).settings.store
    status = run(_status(where))
    if as_json:
        print_json(status)
        return
    for line in status_lines(status):
        click.echo(clean(line))


async def _status(where: str) -> dict[str, Any]:
    from recrawl.store.opening import open_store
    from recrawl.tracker.commands.status import status_of

    store = await open_store(where, owner=False, create=False)
    try:
        return await status_of(store, time.time())
    finally:
        await store.close()
