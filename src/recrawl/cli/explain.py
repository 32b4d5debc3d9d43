"""`recrawl explain`: why a page is, or is not, crawled now."""

from __future__ import annotations

from pathlib import Path

import click

from recrawl.cli.store_commands import ask
from recrawl.cli.store_options import settings_option
from recrawl.cli.terminal import clean, print_json
from recrawl.errors import InvalidInput


@click.command(name="explain")
@click.argument("url", metavar="URL")
@settings_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
def command(url: str, settings_path: Path | None, store: str | None, as_json: bool) -> None:
    """Say why a page is, or is not, crawled now: what is known of it, believed, heard and waited for.

    \b
    Example:
      recrawl explain https://example.com/news
    """
    from recrawl.tracker.commands.commands import Explain
    from recrawl.tracker.commands.explain import sentences

    reply = ask(Explain(url), settings_path, store)
    if reply.rejected:
        raise InvalidInput(f"{reply.rejected[0].url!r} {reply.rejected[0].reason}")
    if as_json:
        print_json(reply.facts)
        return
    for line in sentences(reply.facts):
        click.echo(clean(line))
    if not reply.facts.get("tracker_runs"):
        click.echo("no tracker runs on this store: what it would do next is not known")
