"""Events as lines of JSON: appended to a file, on disk before the cursor moves on, or to standard output."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from recrawl.store.rows import Change
from recrawl.store.store import Store
from recrawl.tracker.settings.settings import Settings, SinkRule
from recrawl.tracker.sinks.event import event_json
from recrawl.tracker.sinks.sink import Delivery, Sink, check_file


def check(rule: SinkRule, settings: Settings, where: str) -> None:  # noqa: ARG001 - by the contract
    """Refuse what is neither a file nor standard output."""
    check_file(rule, where)


async def make(rule: SinkRule, settings: Settings, store: Store, now: Callable[[], float]) -> Sink:  # noqa: ARG001
    """Make the sink of a rule."""
    return JsonlSink(rule.target)


class JsonlSink:
    """Appends to a file, which it opens for each batch so that it may be rotated away; `-` is standard output."""

    def __init__(self, target: str) -> None:
        self._path = None if target == "-" else Path(target)

    async def take(self, changes: Sequence[Change], attempt: int) -> Delivery:  # noqa: ARG002 - all are alike
        """Append a line for each."""
        lines = "".join(event_json(change) + "\n" for change in changes).encode("utf-8", "replace")
        try:
            await asyncio.to_thread(self._write, lines)
        except (OSError, ValueError) as error:  # ValueError: standard output was closed
            return Delivery(0, failed=f"cannot write to {self._path or 'standard output'}: {error}")
        return Delivery(len(changes))

    def _write(self, lines: bytes) -> None:
        if self._path is None:
            sys.stdout.buffer.write(lines)
            sys.stdout.buffer.flush()
            return
        with self._path.open("ab") as file:
            _begin_line(file, self._path)
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())

    async def close(self) -> None:
        """Nothing is kept open."""


def _begin_line(file: BinaryIO, path: Path) -> None:
    """End a line that a crash cut short, so that the next is whole; its event comes again."""
    if file.tell():
        with path.open("rb") as reading:
            reading.seek(-1, os.SEEK_END)
            if reading.read(1) != b"\n":
                file.write(b"\n")
