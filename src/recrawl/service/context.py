"""What handlers work with: one `Service`, which they ask for as `service: InService`."""

from __future__ import annotations

from dataclasses import dataclass

from litestar.di import NamedDependency
from litestar.params import SkipValidation

from recrawl.service.auth.access import Access
from recrawl.service.monitor.change_feed import ChangeFeed
from recrawl.service.monitor.health import Pulse
from recrawl.service.monitor.monitor import Watch
from recrawl.store.store import Store
from recrawl.tracker.commands.commands import Command, CommandHandler, Reply
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.tracker import Tracker


@dataclass(frozen=True, slots=True)
class Service:
    """A tracker over HTTP.

    Args:
        tracker: runs in this loop.
        access: says who may do what.
        watch: measures the tracker.
        pulse: measures the loop.
        feed: gives events to streams.
        hand: carries out commands.
    """

    tracker: Tracker
    access: Access
    watch: Watch
    pulse: Pulse
    feed: ChangeFeed
    hand: CommandHandler

    @property
    def store(self) -> Store:
        """The store of the tracker."""
        return self.tracker.store

    @property
    def settings(self) -> Settings:
        """The settings of the tracker."""
        return self.tracker.settings

    def now(self) -> float:
        """Return the time by the tracker's clock."""
        return self.tracker.clock.now()

    async def run(self, command: Command) -> Reply:
        """Carry out a command now."""
        return await self.hand.do(command, self.now())


InService = NamedDependency[SkipValidation[Service]]
