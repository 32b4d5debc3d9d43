"""Work that must come to its end although whoever waits for it gives up: taking a lock and letting go of it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Value = TypeVar("Value")


async def to_the_end(work: Coroutine[Any, Any, Value]) -> tuple[Value, bool]:
    """Wait until work has ended; its value, and whether the caller was cancelled meanwhile.

    The caller puts things in order and then raises `CancelledError`. What the work raises is raised.
    """
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise
            cancelled = True
        except BaseException:
            break  # raised below, as is all that the work raises
    return task.result(), cancelled
