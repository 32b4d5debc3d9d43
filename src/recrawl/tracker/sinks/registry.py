"""Sinks by the rules of the settings; the table of their kinds is in `kinds.py`."""

from __future__ import annotations

import asyncio
from functools import cache
from importlib import import_module
from typing import cast

from recrawl.errors import InvalidInput
from recrawl.store.rows import CHANGE_KINDS
from recrawl.tracker.kinds import SINKS
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.sinks.sink import SinkContext, SinkModule, run_sink
from recrawl.tracker.tracker import Tracker


@cache
def sink_module(name: str) -> SinkModule:
    """Load the module of a kind of sink.

    Raises:
        ImportError: if there is no such module, or it lacks what every sink has.
    """
    module = import_module(name)
    for part in ("check", "make"):
        if not hasattr(module, part):
            raise ImportError(f"{name} has no function {part!r}, which every sink has: see sinks/sink.py", name=name)
    return cast(SinkModule, module)


for _name in SINKS.values():  # a kind that is named and not written must not wait for the first user
    sink_module(_name)


def check_sinks(settings: Settings) -> None:
    """Refuse what no sink could be made from."""
    for rule in settings.sinks:
        where = f"sinks.{rule.name}"
        if rule.kind not in SINKS:
            raise InvalidInput(f"is {rule.kind!r}, but must be one of {', '.join(SINKS)}", field=f"{where}.kind")
        for kind in rule.kinds:
            if kind not in CHANGE_KINDS:
                raise InvalidInput(f"has the kind {kind!r}, but there are {', '.join(CHANGE_KINDS)}", field=where)
        sink_module(SINKS[rule.kind]).check(rule, settings, where)


async def run_sinks(tracker: Tracker) -> None:
    """Drive all sinks of a tracker until it stops."""
    around = SinkContext(tracker.clock.now, tracker.pause, lambda: tracker.stopping, tracker.timing.sink_s)
    drivers = []
    for rule in tracker.settings.sinks:
        module = sink_module(SINKS[rule.kind])
        sink = await module.make(rule, tracker.settings, tracker.store, tracker.clock.now)
        drivers.append(run_sink(rule.name, sink, tracker.store, frozenset(rule.kinds), around))
    await asyncio.gather(*drivers)
