"""What handlers ask for by name: the tracker, its commands, measurements and change feed, and who may do what."""

from __future__ import annotations

from litestar.di import NamedDependency
from litestar.params import SkipValidation

from recrawl.service.auth.access import Access
from recrawl.service.monitor.change_feed import ChangeFeed
from recrawl.service.monitor.monitor import Watch
from recrawl.tracker.commands.commands import CommandHandler
from recrawl.tracker.tracker import Tracker

InTracker = NamedDependency[SkipValidation[Tracker]]
InAccess = NamedDependency[SkipValidation[Access]]
InHand = NamedDependency[SkipValidation[CommandHandler]]
InWatch = NamedDependency[SkipValidation[Watch]]
InFeed = NamedDependency[SkipValidation[ChangeFeed]]
