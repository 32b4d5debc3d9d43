"""Sites of the living web that tell a tracker of changes over HTTP, honestly or not.

They are as honest or useless as the hosts of the simulated worlds (`lab/worlds/announcing.py`). Sites tell the
service of the tracker (`POST /api/v1/signals`), or wish that a page is fetched at once (`POST /api/v1/fetch-now`).
"""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from recrawl.bench.living_run import DAY_S, LivingRun

if TYPE_CHECKING:
    from recrawl.lab.livingweb.server import LivingWeb
    from recrawl.lab.worlds.world import World
    from recrawl.pages import Floats
    from recrawl.tracker.tracker import Tracker

TOLD_AS = "webhook"
"""The kind of signal that the tracker hears."""
_TELL_S = 0.02  # of real time between two messages
_WAITED_S = 60.0
_MOST_AT_ONCE = 1000


class Said(NamedTuple):
    """What sites say in order of time: when, in days from the start, and of which page."""

    times: Floats
    page: NDArray[np.int64]


def telling(truth: World, hosts: NDArray[np.int64], shares: tuple[float, float], seed: int) -> World:
    """The same pages with what their sites say. O(changes · log changes).

    Sites become honest or useless in an order that the seed decides, as long as the share of pages is not exceeded.

    Args:
        truth: when pages changed.
        hosts: number of the host of each page.
        shares: of the pages, of honest and of useless sites.
        seed: another seed, other announcements.
    """
    from recrawl.lab.worlds.signals import told_of

    order = np.random.default_rng([seed, 11]).permutation(np.unique(hosts))
    honest = _pages_of_some(hosts, order, shares[0])
    useless = _pages_of_some(np.where(honest, -1, hosts), order, shares[1])
    return told_of(truth, honest, useless, seed)


def said_in(world: World) -> Said:
    """All that is said in a world. O(signals · log signals)."""
    from recrawl.lab.worlds.signals import KIND

    events = world.signals[KIND].events
    page = np.repeat(np.arange(len(world)), np.diff(events.offsets))
    in_time = np.argsort(events.times, kind="stable")
    return Said(events.times[in_time], page[in_time])


def _pages_of_some(hosts: NDArray[np.int64], order: NDArray[np.int64], share: float) -> NDArray[np.bool_]:
    """Pages of the first hosts that together have this share of the pages, or a little less; -1 is no host."""
    chosen = np.zeros(len(hosts), dtype=np.bool_)
    for host in order.tolist():
        here = hosts == host
        if chosen.sum() + here.sum() <= share * len(hosts):
            chosen |= here
    return chosen


class Teller:
    """Sites that tell; runs beside a tracker with its service.

    Args:
        living: the run.
        said: what is told, and when.
        urls: of the pages.
        wishes: whether they wish for a fetch at once instead.
    """

    def __init__(self, living: LivingRun, said: Said, urls: list[str], *, wishes: bool) -> None:
        self._living, self._said, self._urls, self._wishes = living, said, urls, wishes
        self.told = 0

    async def __call__(self, tracker: Tracker, _web: LivingWeb) -> None:
        """Start the service, and tell it what is said until this is cancelled."""
        from recrawl.service.auth.access import Access
        from recrawl.service.listening import Listening
        from recrawl.service.server import service

        key, _ = await Access(tracker.store, Listening(), time.time).make(["write"], "bench")
        listens: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = asyncio.ensure_future(
            service(Listening(port=0), told=lambda address, _: listens.set_result(address))(tracker)
        )
        try:
            address = urlsplit(await listens).netloc
            with closing(http.client.HTTPConnection(address, timeout=_WAITED_S)) as connection:
                await self._tell(tracker, connection, key)
        except OSError:
            if self._now(tracker) < self._living.days:  # else the tracker has ended, and its service with it
                raise
        finally:
            tracker.stop()
            while not serving.done():  # it ends with the tracker, and needs the store until then
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([serving])

    def _now(self, tracker: Tracker) -> float:
        """Days from the start."""
        return (tracker.clock.now() - self._living.start) / DAY_S

    async def _tell(self, tracker: Tracker, connection: http.client.HTTPConnection, key: str) -> None:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
        path = "/api/v1/fetch-now" if self._wishes else "/api/v1/signals"
        more: dict[str, Any] = {} if self._wishes else {"kind": TOLD_AS}
        while True:
            await asyncio.sleep(_TELL_S)
            end = int(np.searchsorted(self._said.times, self._now(tracker), side="right"))
            end = min(end, self.told + _MOST_AT_ONCE)
            if end == self.told:
                continue
            urls = sorted({self._urls[page] for page in self._said.page[self.told : end].tolist()})
            await asyncio.to_thread(_post, connection, path, json.dumps({"urls": urls, **more}).encode(), headers)
            self.told = end


def _post(connection: http.client.HTTPConnection, path: str, body: bytes, headers: dict[str, str]) -> None:
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    said = answer.read()
    if answer.status != http.client.OK:
        raise RuntimeError(f"the tracker answered {answer.status} {said[:200]!r} to {path}")
