"""`recrawl resume`: end pauses, and quarantines of pages."""

from __future__ import annotations

from pathlib import Path

import click

from recrawl.cli.pause_options import do_each, pause_options
from recrawl.cli.store_options import settings_option


@click.command(name="resume")
@settings_option
@pause_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
def command(settings_path: Path | None, store: str | None, as_json: bool, **names: tuple[str, ...]) -> None:
    """Crawl again what was paused, or a page that was quarantined.

    \b
    Example:
      recrawl resume --page https://example.com/news
    """
    from recrawl.tracker.commands.commands import Resume

    do_each(Resume, names, settings_path, store, as_json=as_json)
