"""Kept connections, deadlines by one timer, and what a request may not hold."""

from __future__ import annotations

import asyncio
import socket

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from hostile_ground import AllAllowed, address, fetch, guarded, settings_for

from patience import PATIENCE_S
from recrawl.lab.livingweb.hostile import HostileWeb, Visit, answers, head, page, sends_and_hangs_up
from recrawl.web.fetch.connection import WIRE_ERRORS, Deadlines, Exchange, _Dial
from recrawl.web.fetch.protocol import FetchResult, Read, Send
from recrawl.web.fetch.transport import Transport


def _soon() -> float:
    """A deadline on the clock of the loop."""
    return asyncio.get_running_loop().time() + PATIENCE_S


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
    """Who puts one there has made a mistake in this program: that is no fault of the site."""

    async def main() -> HostileWeb:
        async with HostileWeb() as web, Transport(settings_for(web), keeper=AllAllowed()) as transport:
            result = await fetch(transport, web.url("/before"))
            exchange = Exchange(transport.pool)
            with pytest.raises(ValueError, match="line break"):
                await exchange.send(Send(result.address, (("X-Own", value),), _soon(), PATIENCE_S))
            return web

    web = guarded(main())
    assert [visitor.target for visitor in web.log] == ["/before"]


class BrokenNames(AbstractResolver):
    """A resolver with a mistake in it."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        raise TypeError(f"a mistake at {host}:{port}, {family}")

    async def close(self) -> None:
        pass


def test_a_mistake_of_this_program_is_raised_and_not_a_fault_of_the_site() -> None:
    async def main() -> None:
        async with HostileWeb() as web:
            settings = settings_for(web)
            async with Transport(settings, keeper=AllAllowed(), resolver=BrokenNames()) as transport:
                with pytest.raises(TypeError, match="a mistake"):
                    await fetch(transport, f"http://elsewhere.example:{web.port}/page")

    guarded(main())


def test_two_who_read_one_body_at_once_are_a_mistake_and_not_a_fault_of_the_site() -> None:
    async def main() -> None:
        async with HostileWeb() as web, Transport(settings_for(web), keeper=AllAllowed()) as transport:

            async def script(visit: Visit) -> None:
                await visit.send(head(200, [("Content-Length", "4")]))
                await visit.until_gone()

            web.on("/page", script)
            exchange = Exchange(transport.pool)
            await exchange.send(Send(address(web.url("/page")), (), _soon(), PATIENCE_S))
            first = asyncio.create_task(exchange.read(Read(_soon())))
            await asyncio.sleep(0)  # it waits for the body from now on
            with pytest.raises(RuntimeError, match="waiting for incoming data"):
                await exchange.read(Read(_soon()))
            with pytest.raises(RuntimeError, match="waiting for incoming data"):
                exchange.read_now()
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            exchange.close()

    guarded(main())


def test_a_connection_that_closes_before_the_request_is_written_is_a_fault_of_the_wire() -> None:
    """The loop may have closed it already, and tells its owner only when it comes round."""

    async def main() -> HostileWeb:
        async with HostileWeb() as web, Transport(settings_for(web), keeper=AllAllowed()) as transport:
            page = address(web.url("/page"))
            line = transport.pool
            connection = await line.connect(_Dial(page, True), PATIENCE_S)
            assert connection.transport is not None
            connection.transport.abort()
            with pytest.raises(WIRE_ERRORS):
                await line.ask(connection, Send(page, (), _soon(), PATIENCE_S))
            connection.close()
            return web

    assert not guarded(main()).log


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
