"""`recrawl import` and `recrawl hits`: what other programs know of pages, from files or from the web."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recrawl.cli.options import Place, read_store, say, store_command
from recrawl.cli.terminal import Report, clean, progress
from recrawl.errors import InvalidFile, InvalidInput

if TYPE_CHECKING:
    from recrawl.store.store import Store
    from recrawl.tracker.commands.commands import SourceHits
    from recrawl.tracker.importers.from_web import Spent
    from recrawl.tracker.importers.importer import Defaults, Importer
    from recrawl.tracker.importers.rows import Hints, Item
    from recrawl.tracker.settings.settings import Settings

STANDARD_INPUT = "-"


class _Format(click.Option):
    """`--format`, whose help names the formats of the table when help is asked for."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option and its help."""
        from recrawl.tracker.importers.formats import FORMATS

        *names, last = FORMATS
        self.help = f"{', '.join(names)} or {last}; by default told from name and content."
        return super().get_help_record(ctx)


@store_command("import")
@click.argument("sources", nargs=-1, required=True, metavar="FILE|URL...")
@click.option("--format", "form", cls=_Format, metavar="NAME")
@click.option("--group", help="A group of the settings, for rows that name none.")
@click.option("--importance", type=float, help="What pages are worth whose rows do not say.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--strict", is_flag=True, help="Import nothing if a row cannot be used.")
def import_pages(
    place: Place,
    sources: tuple[str, ...],
    form: str | None,
    group: str | None,
    importance: float | None,
    dry_run: bool,
    strict: bool,
) -> None:
    """Track the pages of files, or of sitemaps on the web. Done again, it adds nothing more.

    Rows that cannot be used are left out and named. An import that was interrupted is simply done again.

    \b
    Example:
      recrawl import pages.csv subscriptions.opml --dry-run
      recrawl import https://example.com/sitemap.xml --group shop
    """
    from recrawl._event_loop import run
    from recrawl.tracker.importers.formats import chosen_format
    from recrawl.tracker.importers.importer import Defaults

    chosen_format(form)
    settings = place.settings
    if group and group not in {each.name for each in settings.groups}:
        raise InvalidInput(f"is {group!r}, which is no group of the settings", field="--group")
    defaults = Defaults(importance, group)
    importer, requests = run(_import(sources, settings, form, defaults, dry_run=dry_run, strict=strict))
    _tell(place, importer, requests, dry_run=dry_run)


async def _import(
    sources: tuple[str, ...], settings: Settings, form: str | None, defaults: Defaults, *, dry_run: bool, strict: bool
) -> tuple[Importer, int]:
    """Import files and sitemaps; return what was done and the requests that it took."""
    from recrawl.tracker.commands.commands import Command, CommandClient, Reply, Spend
    from recrawl.tracker.importers.from_web import Spent
    from recrawl.tracker.importers.importer import Importer

    async def nothing(_command: Command) -> Reply:
        return Reply()

    spent = Spent()
    gathered = await _gather(sources, settings, form, spent)
    async with CommandClient(settings, time.time) as errands:
        importer = Importer(errands.carry_out, settings, defaults, dry_run=dry_run)
        passes = [importer]
        if strict:  # all is looked at before anything is written
            passes.insert(0, Importer(nothing, settings, defaults, strict=True))
        for each in passes:
            for source in sources:
                with progress(f"importing {clean(source)}") as report:
                    items = _again(gathered[source]) if source in gathered else _file(source, settings, form, report)
                    await each.take(clean(source), items)
        if spent.requests and (importer.done.added or importer.done.known) and not dry_run:
            await errands.carry_out(Spend(spent.requests, spent.wire_bytes))
    return importer, spent.requests


async def _gather(
    sources: tuple[str, ...], settings: Settings, form: str | None, spent: Spent
) -> dict[str, list[Item]]:
    """Fetch what is on the web, once."""
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


async def _file(source: str, settings: Settings, form: str | None, report: Report) -> AsyncIterator[Item]:
    from recrawl.tracker.importers.formats import FORMATS, LOOKED_AT_BYTES, tell_format

    path = Path(source)
    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "does not exist: check the name and the folder"
        raise InvalidFile(source, problem)
    size = path.stat().st_size
    with path.open("rb") as stream:
        chosen = form or tell_format(path.name, stream.read(LOOKED_AT_BYTES))
        stream.seek(0)
        for count, item in enumerate(FORMATS[chosen].read(stream, _hints(settings))):
            if count % 1000 == 0:
                report(stream.tell(), size)
            yield item


def _hints(settings: Settings) -> Hints:
    from recrawl.tracker.importers.rows import Hints

    return Hints(frozenset(group.name for group in settings.groups), time.time())


def _tell(place: Place, importer: Importer, requests: int, *, dry_run: bool) -> None:
    done = importer.done
    counts = {name: getattr(done, name) for name in ("rows", "added", "known", "same", "refused", "paused")}
    refused = [{"file": name, "row": row or None, "reason": clean(reason)} for name, row, reason in done.refusals]
    shown = [f"{count} {name}" for name, count in counts.items() if count and name != "rows"]
    verb = "would import" if dry_run else "imported"
    place.print(
        {**counts, "requests": requests, "dry_run": dry_run, "refusals": refused},
        f"{verb} {counts['rows']} rows: {', '.join(shown) or 'nothing'}",
    )
    if not place.as_json:
        for name, row, reason in done.refusals:
            say(f"{name}{f' row {row}' if row else ''}: {reason}")
        left = done.refused - len(done.refusals)
        if left > 0:
            say(f"and {left} rows more")
    if not done.added and not done.known and done.refusals:
        raise InvalidInput(f"nothing could be imported: {done.refusals[0][0]} {done.refusals[0][2]}")


@store_command("hits")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--host", metavar="NAME", help="Whose log it is, where lines have paths only, such as example.com.")
@click.option("--robots", is_flag=True, help="Count hits of robots too.")
def hits(place: Place, files: tuple[str, ...], host: str | None, robots: bool) -> None:
    """Learn from access logs how much new pages are asked for, and for how long.

    Takes the common and the combined format of Apache and nginx, and CSV with columns url, time and hits; gzipped or
    not; - is standard input. Give logs in the order of time: hits from before those that were counted are left out, so
    the same log twice changes nothing.

    \b
    Example:
      recrawl hits access.log.1.gz access.log --host example.com
    """
    from recrawl._event_loop import run

    said = run(_count(files, place.settings, host, skip_robots=not robots))
    parts = [f"{said['lines']} lines", f"{said['counted']:g} hits counted of {said['sources']} sources"]
    parts += [f"{said[name]:g} {name}" for name in ("named", "unknown", "earlier") if said[name]]
    parts += [f"{sum(said['refused'].values())} lines that cannot be read"] if said["refused"] else []
    place.print(said, ", ".join(parts))
    if not place.as_json:
        for problem in said["problems"]:
            say(problem)


async def _count(files: Sequence[str], settings: Settings, host: str | None, *, skip_robots: bool) -> dict[str, Any]:
    """Read logs beside the tracker, have it count their hits, and return what became of the lines."""
    from recrawl.tracker.commands.commands import CountHits, carry_out
    from recrawl.tracker.commands.hits import LogReader
    from recrawl.tracker.signals.access_log import LogCounts, LogRules, site_of
    from recrawl.tracker.signals.hits_file import read_hits

    site = None if host is None else site_of(host, "--host", settings.address_rules)
    rules = LogRules(time.time(), site, skip_robots, settings.address_rules)
    logs = [(name, LogCounts()) for name in files]

    async def read(store: Store) -> tuple[LogReader, list[SourceHits]]:
        reader = LogReader(store)
        for name, counts in logs:
            if name == STANDARD_INPUT:
                await reader.read(read_hits(sys.stdin.buffer, rules, counts))
            else:
                with Path(name).open("rb") as stream:
                    await reader.read(read_hits(stream, rules, counts))
        return reader, await reader.counts()

    reader, counted = await read_store(settings.store, read)
    lines = sum(counts.lines for _, counts in logs)
    skipped = sum(counts.skipped.total() for _, counts in logs)
    refused = dict(sum((counts.refused for _, counts in logs), Counter[str]()))
    if lines and refused.get("no-site", 0) == lines - skipped:
        raise InvalidInput("is missing: the log has paths only, so say whose they are", field="--host")
    if counted:
        reply = await carry_out(CountHits(counted), settings, time.time)
        if reply.error:
            raise InvalidInput(reply.error)
    return {
        "lines": lines,
        **asdict(reader.report),
        "skipped": skipped,
        "refused": refused,
        "problems": [f"{name}: {counts.problem}" for name, counts in logs if counts.problem],
    }
