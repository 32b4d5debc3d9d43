"""What a scheduler counts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counts:
    """What happened so far."""

    taken: int = 0
    crawled: int = 0
    failed: int = 0
    released: int = 0
    seen: int = 0
    signals_heard: int = 0
    signals_ignored: int = 0
    clock_went_back: int = 0
