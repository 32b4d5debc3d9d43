"""Commands that read a store and print what it holds: `status`, `sources`, `changes` and `export`."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import click

from recrawl.cli.options import Place, store_command
from recrawl.cli.terminal import clean, is_terminal, print_json, progress, show
from recrawl.errors import InvalidInput

if TYPE_CHECKING:
    from recrawl.store.rows import Change
    from recrawl.store.store import Store

_COLUMNS = ("kind", "state", "polls", "found", "not taken", "per day", "signals", "trust", "worth/day", "cost", "next")
_NARROW = frozenset({"kind", "state", "found", "not taken", "worth/day", "next"})
"""Columns that fit into a narrow terminal; --json has everything."""
_WIDE = 140
_BATCH = 1000
_FOLLOW_S = 0.5
_CURSOR = re.compile(r"[0-9]{1,18}")


@store_command("status")
def status(place: Place) -> None:
    """Say how it is: pages by state, how crawls ended, hosts in trouble, and whether a tracker runs.

    \b
    Example:
      recrawl status --json
    """
    from recrawl.tracker.commands.status import status_lines, status_of

    found = place.read(lambda store: status_of(store, time.time()))
    place.print(found, *status_lines(found))


@store_command("sources")
def sources(place: Place) -> None:
    """List hubs, feeds and sitemaps: what each brings, what is wrong with it, what it is worth and costs.

    \b
    Example:
      recrawl sources --json
    """
    from recrawl.tracker.commands.commands import ListSources

    facts = place.ask(ListSources()).facts
    listed: list[dict[str, Any]] = facts["sources"]
    if place.as_json:
        print_json(facts)
        return
    if not listed:
        click.echo("there are no sources: `discover = true` in the settings, or --discover, follows sites")
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("source", overflow="fold", min_width=24)
    narrow = is_terminal(sys.stdout) and get_terminal_size().columns < _WIDE
    shown = [number for number, name in enumerate(_COLUMNS, 1) if not narrow or name in _NARROW]
    for number in shown:
        table.add_column(_COLUMNS[number - 1], no_wrap=True)
    for each in listed:
        cells = list(map(clean, _cells(each)))
        table.add_row(cells[0], *(cells[number] for number in shown))
    lines = [f"{each['url']} is retired: {each['reason']}" for each in listed if each["reason"]]
    lines += [f"{each['url']}: {each['problem']}, read {each['problem_at']}" for each in listed if each["problem"]]
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


@store_command("changes", json_help="Print each event as a line of JSON.")
@click.option(
    "--since", metavar="WHEN", default="0", help="A cursor, a time such as 2026-11-01T08:00Z, or 6h for six hours ago."
)
@click.option("--limit", type=click.IntRange(min=1), help="Print at most this many events.")
@click.option("--follow", is_flag=True, help="Go on with what is still to come, until interrupted.")
def changes(place: Place, since: str, limit: int | None, follow: bool) -> None:
    """Print what changed: each event once, in order, with a cursor to go on from.

    \b
    Example:
      recrawl changes --since 6h
      recrawl changes --since 1200 --follow --json
    """
    place.read(lambda store: _print(store, since, limit, follow=follow, as_json=place.as_json))


async def _print(store: Store, since: str, limit: int | None, *, follow: bool, as_json: bool) -> None:
    cursor = int(since) if _CURSOR.fullmatch(since) else await store.cursor_before(_time(since))
    left = limit
    while left is None or left > 0:
        found = await store.changes(cursor, _BATCH if left is None else min(left, _BATCH))
        for change in found:
            click.echo(_line(change, as_json=as_json))
            cursor = change.cursor
        left = None if left is None else left - len(found)
        if not found:
            if not follow:
                return
            await asyncio.sleep(_FOLLOW_S)


def _time(since: str) -> float:
    from datetime import UTC, datetime

    from recrawl.units import parse_duration_days

    try:
        found = datetime.fromisoformat(since)
    except ValueError:
        try:
            return time.time() - parse_duration_days(since) * 86_400.0
        except InvalidInput:
            problem = f"is {since!r}, but must be a cursor, a time such as 2026-11-01T08:00Z, or a duration such as 6h"
            raise InvalidInput(problem, field="--since") from None
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()


def _line(change: Change, *, as_json: bool) -> str:
    from recrawl.tracker.clock import iso
    from recrawl.tracker.sinks.event import event_json

    if as_json:
        return event_json(change)
    event = change.event
    detail = "" if event.detail == "{}" else f"  {event.detail}"
    return clean(f"{change.cursor:>8}  {iso(event.detected_at)}  {event.kind:<14} {event.url}{detail}")


@store_command("export", json_help="With --out, print one JSON line on what was written.")
@click.option(
    "--format", "form", type=click.Choice(["csv", "jsonl"]), help="By default by the ending of --out, or csv."
)
@click.option("--observations", is_flag=True, help="Fetches instead of pages: those that are still kept.")
@click.option("--crawls", is_flag=True, help="Only fetches that brought a page: a crawl log for recrawl backtest.")
@click.option("--raw", is_flag=True, help="CSV without the ' that keeps spreadsheets from running text as a formula.")
@click.option("--out", type=click.Path(path_type=Path), help="File to write; by default standard output.")
def export(place: Place, form: str | None, observations: bool, crawls: bool, raw: bool, out: Path | None) -> None:
    """Write all pages, or all fetches that are kept, also while a tracker runs.

    \b
    Example:
      recrawl export --out pages.csv
      recrawl export --crawls --out crawls.csv
    """
    from recrawl.files.formats import FileKind
    from recrawl.files.page_file import replacing

    if form is None:
        form = "jsonl" if out is not None and out.suffix in (".jsonl", ".ndjson") else "csv"
    if place.as_json and out is None:
        raise InvalidInput("needs --out: standard output is taken by the rows", field="--json")
    rows_of = _rows(form, fetches=observations or crawls, crawls_only=crawls, raw=raw)
    if out is None:
        place.read(lambda store: rows_of(store, lambda text: click.echo(text, nl=False)))
        return
    if out.is_dir() or not out.parent.is_dir():
        raise InvalidInput(f"is {str(out)!r}, but must be a file in a folder that is there", field="--out")
    with replacing(out, FileKind("csv" if form == "csv" else "jsonl")) as file:
        rows = place.read(
            lambda store: rows_of(store, lambda text: file.write(text.encode("utf-8", "backslashreplace")))
        )
    place.print({"out": out, "format": form, "rows": rows}, f"{out}: {rows:,} rows")


def _rows(
    form: str, *, fetches: bool, crawls_only: bool, raw: bool
) -> Callable[[Store, Callable[[str], Any]], Awaitable[int]]:
    """Return what writes all pages or fetches of a store, piece by piece, and counts them."""
    from recrawl.tracker.commands import export as rows_of

    async def write_all(store: Store, write: Callable[[str], Any]) -> int:
        counts = await store.counts()
        total = counts.observations if fetches else sum(counts.pages.values())
        if form == "csv":
            write(",".join(rows_of.FETCH_COLUMNS if fetches else rows_of.PAGE_COLUMNS) + "\r\n")
        rows = rows_of.fetch_rows(store, crawls_only=crawls_only) if fetches else rows_of.page_rows(store)
        written = 0
        with progress("exporting") as report:
            async for row in rows:
                write(rows_of.csv_line(row, raw=raw) if form == "csv" else rows_of.json_line(row))
                written += 1
                if written % rows_of.BATCH == 0:
                    report(written, total)
        return written

    return write_all
