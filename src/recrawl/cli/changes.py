"""`recrawl changes`: the change log, from any point on, and as it grows."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recrawl.cli.store_options import chosen_settings, settings_option
from recrawl.cli.terminal import clean
from recrawl.errors import InvalidInput

if TYPE_CHECKING:
    from recrawl.store.contract import Store
    from recrawl.store.rows import Change

_BATCH = 1000
_FOLLOW_S = 0.5
_CURSOR = re.compile(r"[0-9]{1,18}")


@click.command(name="changes")
@settings_option
@click.option(
    "--since", metavar="WHEN", default="0", help="A cursor, a time such as 2026-11-01T08:00Z, or 6h for six hours ago."
)
@click.option("--limit", type=click.IntRange(min=1), help="Print so many at most.")
@click.option("--follow", is_flag=True, help="Go on with what is still to come, until interrupted.")
@click.option("--json", "as_json", is_flag=True, help="Print each event as a line of JSON.")
def command(
    settings_path: Path | None, store: str | None, since: str, limit: int | None, follow: bool, as_json: bool
) -> None:
    """Print what changed: each event once, in order, with a cursor to go on from.

    \b
    Example:
      recrawl changes --since 6h
      recrawl changes --since 1200 --follow --json
    """
    from recrawl._event_loop import run

    settings = chosen_settings(settings_path, {"store": store}).settings
    run(_print(settings.store, since, limit, follow=follow, as_json=as_json))


async def _print(where: str, since: str, limit: int | None, *, follow: bool, as_json: bool) -> None:
    from recrawl.store.opening import open_store

    store = await open_store(where, owner=False, create=False)
    try:
        cursor = await _cursor(store, since)
        left = limit
        while left is None or left > 0:
            changes = await store.changes(cursor, _BATCH if left is None else min(left, _BATCH))
            for change in changes:
                click.echo(_line(change, as_json=as_json))
                cursor = change.cursor
            left = None if left is None else left - len(changes)
            if not changes:
                if not follow:
                    return
                await asyncio.sleep(_FOLLOW_S)
    finally:
        await store.close()


async def _cursor(store: Store, since: str) -> int:
    if _CURSOR.fullmatch(since):
        return int(since)
    return await store.cursor_before(_time(since))


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
