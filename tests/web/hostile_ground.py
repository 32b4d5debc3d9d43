"""A transport with the hostile web at the other end, by settings that any user could write."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, TypeVar

from patience import PATIENCE_S, patience
from recrawl._event_loop import run
from recrawl.lab.livingweb.hostile import HostileWeb
from recrawl.web.fetch.egress import egress_policy
from recrawl.web.fetch.protocol import GRANTED, Channel, FetchJob, FetchResult, NeedRobots, Slot, WaitForSlot
from recrawl.web.fetch.settings import FetchLimits, FetchSettings, user_agent
from recrawl.web.fetch.transport import Transport
from recrawl.web.robots.entry import RobotsEntry, robots_answer
from recrawl.web.url.address import Address, read_address

T = TypeVar("T")
MIB = 1 << 20
# Shorter than the patience of a test, so that a fetch that hangs is told as one.
PATIENT = FetchLimits(total_s=PATIENCE_S / 3, connect_s=PATIENCE_S / 3, most_body_bytes=MIB)
HASTY = replace(PATIENT, total_s=0.2, connect_s=0.2)


def settings_for(*webs: HostileWeb, limits: FetchLimits = PATIENT) -> FetchSettings:
    """Settings that open the ports of these servers on 127.0.0.1 and lead `*.hostile.test` there."""
    ports = ",".join(str(web.port) for web in webs)
    egress = egress_policy(allow={"hostile": f"127.0.0.1/32:{ports}"}, resolve={"*.hostile.test": "127.0.0.1"})
    return FetchSettings(user_agent("https://example.org/bot"), limits, egress)


def address(url: str) -> Address:
    """An address that must be fine."""
    read = read_address(url)
    assert isinstance(read, Address), read
    return read


async def fetch(
    transport: Transport, url: str, channel: Channel = "page", limits: FetchLimits | None = None
) -> FetchResult:
    """Fetch one address."""
    return await transport.fetch(FetchJob(address(url), channel=channel, limits=limits))


class AllAllowed:
    """A keeper that knows without asking: robots allow everything, and it is always one's turn."""

    async def robots(self, need: NeedRobots) -> RobotsEntry:
        return RobotsEntry(robots_answer(404, b"", "recrawl", need.address), 0.0, 1e12)

    async def turn(self, need: WaitForSlot) -> Slot:  # noqa: ARG002
        return GRANTED

    async def close(self) -> None:
        pass


def guarded(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end on the fast loop; what does not end fails instead of hanging."""

    async def bounded() -> T:
        async with patience():
            return await main

    return run(bounded())
