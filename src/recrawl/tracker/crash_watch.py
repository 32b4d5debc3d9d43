"""Crash points inside a fetch: the steps of the web layer, which knows nothing of stores, told to the plan of a crash.

Without a plan there is no watch, and a fetch pays nothing for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from recrawl.store.crash_points import crash_planned, crash_point
from recrawl.web.fetch_steps import NeedRobots, Read, Send, Step

_HALF_READ = 2


def crash_watch() -> Callable[[Step], None] | None:
    """What a transport tells its steps to, if a crash is planned."""
    return CrashWatch().see if crash_planned() else None


class CrashWatch:
    """Passes the points of a fetch; fetches that run at once are told apart by their tasks."""

    def __init__(self) -> None:
        self._reads: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()

    def see(self, step: Step) -> None:
        """A step is about to be answered."""
        task = asyncio.current_task()
        assert task is not None, "fetches run in tasks"
        match step:
            case NeedRobots():
                crash_point("robots")
            case Send():
                self._reads[task] = 0
                crash_point("connect")
            case Read():
                self._reads[task] = self._reads.get(task, 0) + 1
                if self._reads[task] == _HALF_READ:
                    crash_point("mid-body")
