"""`recrawl remove`: stop tracking pages; what was seen of them stays."""

from __future__ import annotations

from pathlib import Path

import click

from recrawl.cli.store_commands import do
from recrawl.cli.store_options import settings_option


@click.command(name="remove")
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@settings_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
def command(urls: tuple[str, ...], settings_path: Path | None, store: str | None, as_json: bool) -> None:
    """Stop tracking pages. Their history stays; added again, they go on from it.

    \b
    Example:
      recrawl remove https://example.com/old
    """
    from recrawl.tracker.commands.commands import Remove

    do(Remove(list(urls)), settings_path, store, as_json=as_json)
