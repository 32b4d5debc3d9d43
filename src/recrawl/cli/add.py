"""`recrawl add`: track pages, beside a tracker that runs or before one does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from recrawl.cli.store_commands import do
from recrawl.cli.store_options import settings_option


@click.command(name="add")
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@settings_option
@click.option("--importance", type=float, help="What the pages are worth, compared with others; 1 by default.")
@click.option("--group", help="A group of the settings; by default the first whose patterns fit.")
@click.option("--min-interval", metavar="TIME", help="Between two crawls of each page, at least, such as 10min or 0.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
def command(
    urls: tuple[str, ...], settings_path: Path | None, store: str | None, dry_run: bool, as_json: bool, **said: Any
) -> None:
    """Track pages from now on. One that is tracked already stays as it is, but for --min-interval.

    \b
    Example:
      recrawl add https://example.com/news https://example.com/prices --importance 5
    """
    from recrawl.tracker.admission import Wanted
    from recrawl.tracker.commands.commands import Add
    from recrawl.tracker.settings.readers import seconds
    from recrawl.tracker.settings.settings import LONGEST_INTERVAL_S

    if said["min_interval"] is not None:
        said["min_interval"] = seconds(0, LONGEST_INTERVAL_S)(said["min_interval"], "--min-interval")
    wanted = [Wanted(url, said["importance"], said["group"], said["min_interval"]) for url in urls]
    do(Add(wanted, dry_run=dry_run), settings_path, store, as_json=as_json)
