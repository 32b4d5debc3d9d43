"""`recrawl hits`: access logs, so that sources are read for pages that people ask for."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recrawl.cli.store_options import chosen_settings, settings_option
from recrawl.cli.terminal import clean, print_json
from recrawl.errors import InvalidInput

if TYPE_CHECKING:
    from recrawl.tracker.settings.settings import Settings

STANDARD_INPUT = "-"


@click.command(name="hits")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@settings_option
@click.option("--host", metavar="NAME", help="Whose log it is, where lines have paths only, such as example.com.")
@click.option("--robots", is_flag=True, help="Count hits of robots too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
def command(
    files: tuple[str, ...],
    settings_path: Path | None,
    store: str | None,
    host: str | None,
    robots: bool,
    as_json: bool,
) -> None:
    """Learn from access logs how much new pages are asked for, and for how long.

    Takes the common and the combined format of Apache and nginx, and CSV with columns url, time and hits; gzipped or
    not; - is standard input. Give logs in the order of time: hits from before those that were counted are left out, so
    the same log twice changes nothing.

    \b
    Example:
      recrawl hits access.log.1.gz access.log --host example.com
    """
    from recrawl._event_loop import run

    settings = chosen_settings(settings_path, {"store": store}).settings
    said = run(_count(files, settings, host, skip_robots=not robots))
    if as_json:
        print_json(said)
        return
    parts = [f"{said['lines']} lines", f"{said['counted']:g} hits counted of {said['sources']} sources"]
    parts += [f"{said[name]:g} {name}" for name in ("named", "unknown", "earlier") if said[name]]
    parts += [f"{sum(said['refused'].values())} lines that cannot be read"] if said["refused"] else []
    click.echo(", ".join(parts))
    for problem in said["problems"]:
        click.echo(clean(problem), file=sys.stderr)


async def _count(files: Sequence[str], settings: Settings, host: str | None, *, skip_robots: bool) -> dict[str, Any]:
    from recrawl.store.opening import open_store
    from recrawl.tracker.commands.client import carry_out
    from recrawl.tracker.commands.commands import CountHits
    from recrawl.tracker.commands.hits import LogReader
    from recrawl.tracker.signals.access_log import LogCounts, LogRules, site_of
    from recrawl.tracker.signals.hits_file import read_hits

    site = None if host is None else site_of(host, "--host", settings.address_rules)
    rules = LogRules(time.time(), site, skip_robots, settings.address_rules)
    lines, skipped, refused, problems = 0, 0, dict[str, int](), list[str]()
    store = await open_store(settings.store, owner=False, create=False)
    try:
        reader = LogReader(store)
        for name in files:
            counts = LogCounts()
            if name == STANDARD_INPUT:
                await reader.read(read_hits(sys.stdin.buffer, rules, counts))
            else:
                with Path(name).open("rb") as stream:
                    await reader.read(read_hits(stream, rules, counts))
            lines, skipped = lines + counts.lines, skipped + counts.skipped.total()
            for rule, number in counts.refused.items():
                refused[rule] = refused.get(rule, 0) + number
            problems += [f"{name}: {counts.problem}"] if counts.problem else []
        counted = await reader.counts()
    finally:
        await store.close()
    if lines and refused.get("no-site", 0) == lines - skipped:
        raise InvalidInput("is missing: the log has paths only, so say whose they are", field="--host")
    if counted:
        reply = await carry_out(CountHits(counted), settings, time.time)
        if reply.error:
            raise InvalidInput(reply.error)
    report = reader.report
    return {
        "lines": lines,
        "counted": report.counted,
        "named": report.named,
        "unknown": report.unknown,
        "earlier": report.earlier,
        "skipped": skipped,
        "refused": refused,
        "sources": report.sources,
        "problems": problems,
    }
