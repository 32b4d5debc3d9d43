"""The desk: what a fetch touches from the moment its page is taken until it is settled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recrawl.tracker.clock import TIMING, Timing, TrackerClock
from recrawl.tracker.hosts import HostBook, NetworkHealth
from recrawl.tracker.pipeline.commit import Committer
from recrawl.tracker.schedule import Schedule
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.signals.signals import HearingBook
from recrawl.tracker.usage import Accounts, ByteBudget

if TYPE_CHECKING:
    from recrawl.tracker.discovery.discovery import Sources


@dataclass(slots=True)
class Desk:
    """What a finished fetch touches.

    `unwritten` are pages whose last result is not durable yet.
    """

    schedule: Schedule
    hosts: HostBook
    network: NetworkHealth
    accounts: Accounts
    committer: Committer
    clock: TrackerClock
    settings: Settings
    say: Callable[[str], None]
    bytes_left: ByteBudget
    hearing: HearingBook
    timing: Timing = TIMING
    sources: Sources = field(init=False)
    unwritten: set[int] = field(default_factory=set)
