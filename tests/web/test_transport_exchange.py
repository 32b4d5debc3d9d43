"""Kept connections, deadlines by one timer, and what a request may not hold."""

from __future__ import annotations

import asyncio

import pytest
from hostile_ground import AllAllowed, fetch, guarded, settings_for

from patience import PATIENCE_S
from recrawl.livingweb.hostile import HostileWeb, Visit
from recrawl.livingweb.hostile_scripts import answers, head, page, sends_and_hangs_up
from recrawl.web.fetch_result import FetchResult
from recrawl.web.fetch_steps import Fault, Send
from recrawl.web.transport import Transport
from recrawl.web.transport_deadlines import Deadlines
from recrawl.web.transport_exchange import Exchange


def test_a_connection_is_kept_for_the_next_request() -> None:
    async def main() -> HostileWeb:
        async with HostileWeb() as web, Transport(settings_for(web), keeper=AllAllowed()) as transport:
            web.on("/page", answers(page(b"x" * 100_000)))
            web.on("/empty", answers(head(204)))
            for target in ("/page", "/empty", "/missing", "/page"):
                await fetch(transport, web.url(target))
            return web

    web = guarded(main())
    assert len(web.log) == 4
    assert web.connections == 1


def test_a_kept_connection_that_the_server_has_closed_is_replaced() -> None:
    """A server may close a connection while a request is on its way; that is no fault of the page."""

    async def main() -> tuple[HostileWeb, FetchResult]:
        async with HostileWeb() as web, Transport(settings_for(web), keeper=AllAllowed()) as transport:

            async def second_time(visit: Visit) -> None:
                if len(web.seen("/page")) == 1:
                    visit.hang_up()
                else:
                    await visit.send(page(b"here"))

            web.on("/page", second_time)
            await fetch(transport, web.url("/other"))
            return web, await fetch(transport, web.url("/page"))

    web, result = guarded(main())
    assert result.body == b"here"
    assert [visitor.connection for visitor in web.seen("/page")] == [0, 1]


def test_a_new_connection_that_the_server_closes_is_a_fault_and_not_asked_again() -> None:
    async def main() -> tuple[HostileWeb, FetchResult]:
        async with HostileWeb() as web, Transport(settings_for(web), keeper=AllAllowed()) as transport:
            web.on("/page", sends_and_hangs_up())
            return web, await fetch(transport, web.url("/page"))

    web, result = guarded(main())
    assert (result.outcome, result.fault) == ("network-error", "closed")
    assert len(web.seen("/page")) == 1


def test_interim_answers_are_passed_over() -> None:
    async def main() -> FetchResult:
        async with HostileWeb() as web, Transport(settings_for(web), keeper=AllAllowed()) as transport:
            early_hints = head(103, [("Link", "</a.css>; rel=preload")])
            web.on("/page", answers(early_hints + head(100) + page(b"here")))
            return await fetch(transport, web.url("/page"))

    assert guarded(main()).body == b"here"


@pytest.mark.parametrize("value", ["a\r\nHost: evil.example", "a\nb", "a\rb", "a\0b"])
def test_a_header_with_a_line_break_is_never_sent(value: str) -> None:
    async def main() -> tuple[HostileWeb, object]:
        async with HostileWeb() as web, Transport(settings_for(web), keeper=AllAllowed()) as transport:
            result = await fetch(transport, web.url("/before"))
            exchange = Exchange(transport._open_line())
            deadline = asyncio.get_running_loop().time() + PATIENCE_S
            return web, await exchange.send(Send(result.address, (("X-Own", value),), deadline, PATIENCE_S))

    web, event = guarded(main())
    assert isinstance(event, Fault)
    assert [visitor.target for visitor in web.log] == ["/before"]


def test_work_that_ends_in_time_gives_its_result() -> None:
    async def main() -> int:
        loop = asyncio.get_running_loop()
        deadlines = Deadlines(loop)
        result = await deadlines.keep(loop.time() + 60.0, asyncio.sleep(0, 7))
        deadlines.close()
        return result

    assert guarded(main()) == 7


def test_each_wait_ends_at_its_own_deadline_whatever_the_order() -> None:
    """The far one is asked for first, so the timer has to be set nearer; the task lives on."""

    async def main() -> list[str]:
        loop = asyncio.get_running_loop()
        deadlines, ended = Deadlines(loop), list[str]()
        never = loop.create_future()

        async def wait(name: str, deadline: float) -> None:
            try:
                await deadlines.keep(deadline, asyncio.shield(never))
            except TimeoutError:
                ended.append(name)
                await asyncio.sleep(0)  # a cancellation that was left over would strike here

        now = loop.time()
        far = asyncio.create_task(wait("far", now + 3600.0))
        await asyncio.sleep(0)
        await asyncio.gather(wait("later", now + 0.02), wait("past", now - 1.0))
        assert not far.done()
        far.cancel()
        await asyncio.gather(far, return_exceptions=True)
        assert far.cancelled()
        deadlines.close()
        never.cancel()
        return ended

    assert guarded(main()) == ["past", "later"]


def test_a_cancellation_from_outside_is_no_timeout() -> None:
    async def main() -> bool:
        loop = asyncio.get_running_loop()
        deadlines = Deadlines(loop)
        task = asyncio.create_task(deadlines.keep(loop.time() + 3600.0, asyncio.Event().wait()))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        deadlines.close()
        return task.cancelled()

    assert guarded(main())
