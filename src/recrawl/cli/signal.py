"""`recrawl signal`: tell the tracker that pages are said to have changed."""

from __future__ import annotations

import re
from pathlib import Path

import click

from recrawl.cli.store_commands import do
from recrawl.cli.store_options import settings_option
from recrawl.errors import InvalidInput

_KIND = re.compile(r"[a-z][a-z0-9-]{0,39}")


@click.command(name="signal")
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@settings_option
@click.option("--kind", default="user", metavar="NAME", help="Who says so.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
def command(urls: tuple[str, ...], settings_path: Path | None, store: str | None, kind: str, as_json: bool) -> None:
    """Say that pages have changed. Signals are kept with a page until its next fetch; `explain` shows them.

    \b
    Example:
      recrawl signal https://example.com/news --kind cms
    """
    from recrawl.tracker.commands import Signal

    if not _KIND.fullmatch(kind):
        problem = f"is {kind!r}, but must be small letters, digits and -, at most 40"
        raise InvalidInput(problem, field="--kind")
    do(Signal(list(urls), kind), settings_path, store, as_json=as_json)
