"""`recrawl add`: track pages, beside a tracker that runs or before one does."""

from __future__ import annotations

from pathlib import Path

import click

from recrawl.cli.store_commands import do
from recrawl.cli.store_options import settings_option


@click.command(name="add")
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@settings_option
@click.option("--importance", type=float, help="What the pages are worth, compared with others; 1 by default.")
@click.option("--group", help="A group of the settings; by default the first whose patterns fit.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
def command(
    urls: tuple[str, ...],
    settings_path: Path | None,
    store: str | None,
    importance: float | None,
    group: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Track pages from now on. One that is tracked already stays as it is.

    \b
    Example:
      recrawl add https://example.com/news https://example.com/prices --importance 5
    """
    from recrawl.tracker.commands import Add
    from recrawl.tracker.newcomers import Wanted

    wanted = [Wanted(url, importance=importance, group=group) for url in urls]
    do(Add(wanted, dry_run=dry_run), settings_path, store, as_json=as_json)
