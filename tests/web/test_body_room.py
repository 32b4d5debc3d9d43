"""Large pages on their way share one room, and a fetch that finds it full is put off without a word on the page."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from flow_ground import NOW, PAGE, SETTINGS, Web, address
from hostile_ground import MIB, PATIENT, AllAllowed, fetch, guarded, settings_for

from recrawl.lab.livingweb.hostile import HostileWeb, Visit, answers, head, page
from recrawl.outcomes import settles_as
from recrawl.web.fetch.flow import fetch_flow
from recrawl.web.fetch.protocol import BodyEnd, Chunk, Event, FetchJob, FetchResult
from recrawl.web.fetch.settings import (
    FREE_BYTES,
    MAX_SHARED_BYTES,
    UNLIMITED,
    FetchLimits,
    MemoryBudget,
    sitemap_limits,
)
from recrawl.web.fetch.transport import Transport


class RoomyWeb(Web):
    """The table web with a room that fetches share."""

    def fetch_in(self, room: MemoryBudget) -> FetchResult:
        flow = fetch_flow(FetchJob(address(PAGE)), SETTINGS, lambda: self.clock, NOW, room)
        try:
            step = next(flow)
            while True:
                step = flow.send(self._event(step))
        except StopIteration as end:
            result: FetchResult = end.value
            return result


def _body(mebibytes: int) -> list[Event]:
    return [*(Chunk(bytes(MIB // 2)) for _ in range(2 * mebibytes)), BodyEnd()]


@pytest.mark.parametrize(
    ("mebibytes", "taken", "outcome"), [(1, 3, "ok"), (4, 0, "ok"), (3, 1, "ok"), (4, 1, "deferred")]
)
def test_what_lies_beyond_the_first_mebibyte_comes_out_of_the_room_and_goes_back(
    mebibytes: int, taken: int, outcome: str
) -> None:
    room = MemoryBudget(3 * MIB)
    assert room.acquire(taken * MIB)
    result = RoomyWeb({PAGE: (200, {}, _body(mebibytes))}).fetch_in(room)
    assert result.outcome == outcome
    assert len(result.body) == (mebibytes * MIB if outcome == "ok" else 0)
    assert room.held_bytes == taken * MIB


@pytest.mark.parametrize("most_body_bytes", [0, 10 * MIB, 258 * MIB, 1 << 30])
def test_the_room_of_a_transport_holds_at_least_one_body_of_the_largest_size(most_body_bytes: int) -> None:
    """A page that fits into the settings must not be put off for ever."""
    limits = FetchLimits(most_body_bytes=most_body_bytes)
    room = Transport(replace(SETTINGS, limits=limits))._budget
    assert room.max_bytes >= MAX_SHARED_BYTES
    assert room.acquire(most_body_bytes)
    room.release(most_body_bytes)
    largest_sitemap = sitemap_limits(limits).most_body_bytes
    assert room.acquire(largest_sitemap)


def test_a_fetch_that_is_put_off_settles_nothing() -> None:
    assert settles_as("deferred") is None
    assert UNLIMITED.acquire(1 << 50)


def test_a_flow_that_is_given_up_gives_its_room_back() -> None:
    room = MemoryBudget()
    web = RoomyWeb({PAGE: (200, {}, _body(9))})
    flow = fetch_flow(FetchJob(address(PAGE)), SETTINGS, lambda: 0.0, NOW, room)
    step = next(flow)
    while room.held_bytes == 0:
        step = flow.send(web._event(step))
    flow.close()
    assert room.held_bytes == 0


def test_bodies_that_stall_just_below_their_cap_never_hold_more_than_the_room() -> None:
    """Twenty servers send nine mebibytes and then nothing, until one fetch has found the room full."""
    most = 20 * MIB

    async def main() -> tuple[list[FetchResult], FetchResult, int, int]:
        async with HostileWeb() as web:
            full = asyncio.Event()
            limits = FetchLimits(total_s=PATIENT.total_s, connect_s=PATIENT.connect_s)

            async def script(visit: Visit) -> None:
                await visit.send(head(200, [("Content-Length", str(9 * MIB + 1))]) + bytes(9 * MIB))
                await full.wait()
                visit.hang_up()

            web.on("/stall", script)
            web.on("/fine", answers(page(bytes(MIB))))
            async with Transport(settings_for(web, limits=limits), keeper=AllAllowed()) as transport:
                transport._budget = room = MemoryBudget(most)
                held = 0

                async def watch() -> None:
                    nonlocal held
                    while True:
                        held = max(held, room.held_bytes)
                        await asyncio.sleep(0)

                watching = asyncio.create_task(watch())
                fetches = [asyncio.create_task(fetch(transport, web.url("/stall"))) for _ in range(20)]
                await asyncio.wait(fetches, return_when=asyncio.FIRST_COMPLETED)
                full.set()
                stalled = await asyncio.gather(*fetches)
                watching.cancel()
                fine = await fetch(transport, web.url("/fine"))
                return stalled, fine, held, room.held_bytes

    stalled, fine, held, left = guarded(main())
    assert {result.outcome for result in stalled} == {"deferred", "truncated"}
    assert sum(result.outcome == "deferred" for result in stalled) >= 1
    assert FREE_BYTES < held <= most
    assert left == 0
    assert len(fine.body) == MIB
