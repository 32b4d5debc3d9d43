"""`recrawl pause`: hold back pages, groups or hosts until they are resumed."""

from __future__ import annotations

from pathlib import Path

import click

from recrawl.cli.pause_options import do_each, pause_options
from recrawl.cli.store_options import settings_option


@click.command(name="pause")
@settings_option
@pause_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
def command(settings_path: Path | None, store: str | None, as_json: bool, **names: tuple[str, ...]) -> None:
    """Hold back pages, groups or hosts until `recrawl resume`. Fetches under way are in vain.

    \b
    Example:
      recrawl pause --host shop.example.com --group archive
    """
    from recrawl.tracker.commands.commands import Pause

    do_each(Pause, names, settings_path, store, as_json=as_json)
