"""`recrawl sources`: hubs, feeds and sitemaps, and what they bring."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

import click

from recrawl.cli.store_commands import ask
from recrawl.cli.store_options import settings_option
from recrawl.cli.terminal import clean, is_terminal, print_json, show

_COLUMNS = ("kind", "state", "polls", "found", "not taken", "per day", "signals", "trust", "worth/day", "cost", "next")
_NARROW = frozenset({"kind", "state", "found", "not taken", "worth/day", "next"})
"""Columns that fit into a narrow terminal; --json has everything."""
_WIDE = 140


@click.command(name="sources")
@settings_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
def command(settings_path: Path | None, store: str | None, as_json: bool) -> None:
    """List hubs, feeds and sitemaps: what each brings, what is wrong with it, what it is worth and costs.

    \b
    Example:
      recrawl sources --json
    """
    from recrawl.tracker.commands.commands import ListSources

    facts = ask(ListSources(), settings_path, store).facts
    sources: list[dict[str, Any]] = facts["sources"]
    if as_json:
        print_json(facts)
        return
    if not sources:
        click.echo("there are no sources: `discover = true` in the settings, or --discover, follows sites")
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("source", overflow="fold", min_width=24)
    narrow = is_terminal(sys.stdout) and get_terminal_size().columns < _WIDE
    shown = [place for place, name in enumerate(_COLUMNS, 1) if not narrow or name in _NARROW]
    for place in shown:
        table.add_column(_COLUMNS[place - 1], no_wrap=True)
    for each in sources:
        cells = list(map(clean, _cells(each)))
        table.add_row(cells[0], *(cells[place] for place in shown))
    lines = [f"{each['url']} is retired: {each['reason']}" for each in sources if each["reason"]]
    lines += [f"{each['url']}: {each['problem']}, read {each['problem_at']}" for each in sources if each["problem"]]
    if facts["refused"]:
        counts = ", ".join(f"{count:,} {rule}" for rule, count in facts["refused"].items())
        lines.append(f"addresses that were not taken, by rule: {counts}")
    show(table, *map(clean, lines), width=2 * _WIDE)


def _cells(source: Mapping[str, Any]) -> list[str]:
    trust = source["trust"]
    return [
        source["url"],
        source["kind"],
        source["state"],
        str(source["polls"]),
        str(source["found"]),
        str(sum(source["refused"].values())),
        f"{source['new_pages_per_day']:.3g}",
        str(source["signals"]),
        "" if trust is None else f"{trust['precision']:.0%} of {trust['audits']}",
        f"{source['worth_per_day']:.3g}",
        f"{source['cost']:.3g}",
        (source["due_at"] or "").replace("T", " ")[5:16],
    ]
