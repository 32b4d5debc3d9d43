"""Imports: a file of any format that `recrawl import` knows, as the body of a request; the same rules, row by row."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
from litestar import Router, post
from litestar.params import FromQuery, QueryParameter

from recrawl.service.context import InHand, InTracker
from recrawl.service.errors import Asked, Refusal
from recrawl.tracker.commands.commands import Command, Reply
from recrawl.tracker.importers.formats import FORMATS, LOOKED_AT_BYTES, tell_format
from recrawl.tracker.importers.importer import Defaults, Importer
from recrawl.tracker.importers.rows import Hints, Item
from recrawl.tracker.settings.settings import Settings

MOST_BYTES = 16 << 20


class RefusedRow(msgspec.Struct):
    """A row that cannot be used; None for the file as a whole."""

    row: int | None
    reason: str


class ImportDone(msgspec.Struct):
    """rows = added + known + same + refused; the first twenty refusals."""

    rows: int
    added: int
    known: int
    same: int
    refused: int
    paused: int
    refusals: list[RefusedRow]


@post("/import", opt={"scope": "write"}, status_code=200, request_max_body_size=MOST_BYTES)
async def import_pages(
    request: Asked,
    tracker: InTracker,
    hand: InHand,
    form: Annotated[str | None, QueryParameter(name="format", description="; ".join(FORMATS))] = None,
    group: FromQuery[str | None] = None,
    importance: FromQuery[float | None] = None,
    dry_run: FromQuery[bool] = False,
) -> ImportDone:
    """Track the pages of a file: the body, as it is."""
    settings = tracker.settings
    if form is not None and form not in FORMATS:
        raise Refusal(422, f"is {form!r}, but must be one of {', '.join(FORMATS)}", "format")
    if group is not None and group not in {each.name for each in settings.groups}:
        raise Refusal(422, f"is {group[:100]!r}, which is no group of the settings", "group")

    async def carry(command: Command) -> Reply:
        return await hand.do(command, tracker.clock.now())

    importer = Importer(carry, settings, Defaults(importance, group), dry_run=dry_run)
    await importer.take("body", _items(plain(await request.body()), form, settings, tracker.clock.now()))
    done = importer.done
    refusals = [RefusedRow(row or None, reason) for _, row, reason in done.refusals]
    return ImportDone(done.rows, done.added, done.known, done.same, done.refused, done.paused, refusals)


def plain(body: bytes) -> bytes:
    """A body that is not compressed."""
    if body.startswith(b"\x1f\x8b"):
        raise Refusal(415, "compressed bodies are not read: send it as it is")
    return body


async def _items(body: bytes, form: str | None, settings: Settings, now: float) -> AsyncIterator[Item]:
    hints = Hints(frozenset(group.name for group in settings.groups), now)
    chosen = form or tell_format("body", body[:LOOKED_AT_BYTES])
    stream: Any = io.BytesIO(body)
    for item in FORMATS[chosen].read(stream, hints):
        yield item


ROUTES = Router("/api/v1", tags=["pages"], route_handlers=[import_pages])
