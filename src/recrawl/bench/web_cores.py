"""Cores for the group `web`: the client on one, the page server on another."""

from __future__ import annotations

import os


def cores() -> tuple[int, int]:
    """The core of the client and that of the server, two different ones where there are two; -1 where none is chosen.

    The last core is the client's: the first often serves interrupts.
    """
    if not hasattr(os, "sched_getaffinity"):
        return -1, -1
    usable = sorted(os.sched_getaffinity(0))
    return (usable[-1], usable[0]) if len(usable) > 1 else (-1, -1)


def pin_to(core: int) -> None:
    """Keep this process on one core, where the system can; -1 leaves it free."""
    if core >= 0 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
