"""`recrawl signal`: tell the tracker that pages are said to have changed."""

from __future__ import annotations

from pathlib import Path

import click

from recrawl.cli.store_commands import do
from recrawl.cli.store_options import settings_option
from recrawl.errors import InvalidInput


@click.command(name="signal")
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@settings_option
@click.option("--kind", default="manual", metavar="NAME", help="Who says so; default manual.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
def command(urls: tuple[str, ...], settings_path: Path | None, store: str | None, kind: str, as_json: bool) -> None:
    """Say that pages have changed. A signal raises the odds of a crawl as far as its kind was found true on the host.

    Signals are kept with a page until its next fetch; `explain` shows them, and how far they are trusted. To have a
    page fetched whatever it is worth, use `recrawl fetch`.

    \b
    Example:
      recrawl signal https://example.com/news --kind cms
    """
    from recrawl.tracker.commands.commands import Signal
    from recrawl.tracker.kinds import OURS, check_kind

    check_kind(kind, "--kind")
    if kind in OURS:
        raise InvalidInput(f"is {kind!r}, which the tracker tells itself: use another name", field="--kind")
    do(Signal(list(urls), kind), settings_path, store, as_json=as_json)
