"""`recrawl fetch`: have pages fetched as soon as their hosts allow."""

from __future__ import annotations

from pathlib import Path

import click

from recrawl.cli.store_commands import do
from recrawl.cli.store_options import settings_option


@click.command(name="fetch")
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@settings_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
def command(urls: tuple[str, ...], settings_path: Path | None, store: str | None, as_json: bool) -> None:
    """Fetch tracked pages before all others, as soon as their hosts allow.

    Gaps hold, and the budget pays.

    The wish is kept until it is granted, also over a restart; without a tracker it waits for the next one.

    \b
    Example:
      recrawl fetch https://example.com/news
    """
    from recrawl.tracker.commands.commands import FetchNow

    do(FetchNow(list(urls)), settings_path, store, as_json=as_json)
