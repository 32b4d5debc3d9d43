"""`recrawl import`: pages from files of other programs, or from a sitemap on the web."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recrawl.cli.store_options import chosen_settings, settings_option
from recrawl.cli.terminal import Report, clean, print_json, progress
from recrawl.errors import InvalidFile, InvalidInput

if TYPE_CHECKING:
    from recrawl.tracker.importers.importer import Importer
    from recrawl.tracker.importers.rows import Item
    from recrawl.tracker.settings.settings import Settings

_FORMATS = "list, csv, opml, urlwatch, changedetection or sitemap"


@click.command(name="import")
@click.argument("sources", nargs=-1, required=True, metavar="FILE|URL...")
@settings_option
@click.option("--format", "form", metavar="NAME", help=f"{_FORMATS}; by default told from name and content.")
@click.option("--group", help="A group of the settings, for rows that name none.")
@click.option("--importance", type=float, help="What pages are worth whose rows do not say.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--strict", is_flag=True, help="Import nothing if a row cannot be used.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
def command(sources: tuple[str, ...], settings_path: Path | None, store: str | None, **options: Any) -> None:
    """Track the pages of files, or of sitemaps on the web. Done again, it adds nothing more.

    Rows that cannot be used are left out and named. An import that was interrupted is simply done again.

    \b
    Example:
      recrawl import pages.csv subscriptions.opml --dry-run
      recrawl import https://example.com/sitemap.xml --group shop
    """
    from recrawl._event_loop import run
    from recrawl.tracker.importers.formats import chosen_format

    chosen_format(options["form"])
    settings = chosen_settings(settings_path, {"store": store}).settings
    if options["group"] and options["group"] not in {group.name for group in settings.groups}:
        raise InvalidInput(f"is {options['group']!r}, which is no group of the settings", field="--group")
    importer, requests = run(_import(sources, settings, options))
    _tell(importer, requests, dry_run=options["dry_run"], as_json=options["as_json"])


async def _import(sources: tuple[str, ...], settings: Settings, options: dict[str, Any]) -> tuple[Importer, int]:
    from recrawl.tracker.commands.client import Errands
    from recrawl.tracker.commands.commands import Command, Reply, Spend
    from recrawl.tracker.importers.from_web import Spent
    from recrawl.tracker.importers.importer import Defaults, Importer

    async def nothing(_command: Command) -> Reply:
        return Reply()

    spent, dry_run = Spent(), options["dry_run"]
    defaults = Defaults(options["importance"], options["group"])
    gathered = await _gather(sources, settings, options["form"], spent)
    async with Errands(settings, time.time) as errands:
        importer = Importer(errands.carry_out, settings, defaults, dry_run=dry_run)
        passes = [importer]
        if options["strict"]:  # all is looked at before anything is written
            passes.insert(0, Importer(nothing, settings, defaults, strict=True))
        for each in passes:
            for source in sources:
                with progress(f"importing {clean(source)}") as report:
                    items = _again(gathered[source]) if source in gathered else _file(source, settings, options, report)
                    await each.take(clean(source), items)
        if spent.requests and (importer.done.added or importer.done.known) and not dry_run:
            await errands.carry_out(Spend(spent.requests, spent.wire_bytes))
    return importer, spent.requests


async def _gather(sources: tuple[str, ...], settings: Settings, form: str | None, spent: Any) -> dict[str, list[Item]]:
    """What is on the web, fetched once."""
    from recrawl.tracker.importers.from_web import fetched_items

    hints = _hints(settings)
    return {
        source: [item async for item in fetched_items(source, settings, hints, spent, form)]
        for source in sources
        if _is_address(source)
    }


def _is_address(source: str) -> bool:
    return source.lower().startswith(("http://", "https://"))


async def _again(items: list[Item]) -> AsyncIterator[Item]:
    for item in items:
        yield item


async def _file(source: str, settings: Settings, options: dict[str, Any], report: Report) -> AsyncIterator[Item]:
    from recrawl.tracker.importers.formats import FORMATS, LOOKED_AT_BYTES, tell_format

    path = Path(source)
    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "does not exist: check the name and the folder"
        raise InvalidFile(source, problem)
    size = path.stat().st_size
    with path.open("rb") as stream:
        form = options["form"] or tell_format(path.name, stream.read(LOOKED_AT_BYTES))
        stream.seek(0)
        for count, item in enumerate(FORMATS[form].read(stream, _hints(settings))):
            if count % 1000 == 0:
                report(stream.tell(), size)
            yield item


def _hints(settings: Settings) -> Any:
    from recrawl.tracker.importers.rows import Hints

    return Hints(frozenset(group.name for group in settings.groups), time.time())


def _tell(importer: Importer, requests: int, *, dry_run: bool, as_json: bool) -> None:
    done = importer.done
    counts = {name: getattr(done, name) for name in ("rows", "added", "known", "same", "refused", "paused")}
    if as_json:
        refused = [{"file": name, "row": row or None, "reason": clean(reason)} for name, row, reason in done.refusals]
        print_json({**counts, "requests": requests, "dry_run": dry_run, "refusals": refused})
    else:
        shown = [f"{count} {name}" for name, count in counts.items() if count and name != "rows"]
        click.echo(
            f"{'would import' if dry_run else 'imported'} {counts['rows']} rows: {', '.join(shown) or 'nothing'}"
        )
        for name, row, reason in done.refusals:
            click.echo(clean(f"{name}{f' row {row}' if row else ''}: {reason}"), file=sys.stderr)
        left = done.refused - len(done.refusals)
        if left > 0:
            click.echo(f"and {left} rows more", file=sys.stderr)
    if not done.added and not done.known and done.refusals:
        raise InvalidInput(f"nothing could be imported: {done.refusals[0][0]} {done.refusals[0][2]}")
