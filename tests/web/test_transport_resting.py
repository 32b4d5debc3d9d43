"""Between two requests nothing may come over a kept connection: an answer is never read as that of another request."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from hostile_ground import AllAllowed, address, fetch, settings_for

from patience import patience
from recrawl.lab.livingweb.hostile import HostileWeb, Visit, answers, head, page
from recrawl.web.conditional import Validators
from recrawl.web.fetch.protocol import FetchJob, FetchResult
from recrawl.web.fetch.transport import Transport

TLS = Path(__file__).parent.parent / "livingweb" / "tls"
POISON = page(b"meant for nobody")
Loop = Callable[[], asyncio.AbstractEventLoop]


def _fast_loop() -> asyncio.AbstractEventLoop:
    import uvloop

    return uvloop.new_event_loop()


_FAST = pytest.param(_fast_loop, id="uvloop", marks=pytest.mark.skipif(sys.platform == "win32", reason="has no wheel"))
both_loops = pytest.mark.parametrize("loop", [pytest.param(asyncio.new_event_loop, id="asyncio"), _FAST])


def _run(loop: Loop, main: Coroutine[Any, Any, list[tuple[bytes, int]]]) -> list[tuple[bytes, int]]:
    async def bounded() -> list[tuple[bytes, int]]:
        async with patience():
            return await main

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(bounded())


def _seen(web: HostileWeb, *results: FetchResult) -> list[tuple[bytes, int]]:
    """The bodies, and the numbers of the connections that they came over."""
    return [(result.body, visitor.connection) for result, visitor in zip(results, web.log, strict=True)]


def _contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(TLS / "good.pem")
    return serving, ssl.create_default_context(cafile=TLS / "authority.pem")


async def _fetches_around(
    first: bytes, late: bytes, *, sent: Validators | None = None, tls: bool = False
) -> list[tuple[bytes, int]]:
    """Two fetches; the late bytes come after the first has its answer, and the second waits until all is over."""
    serving, trusting = _contexts() if tls else (None, None)
    async with (
        HostileWeb(tls=serving) as web,
        Transport(settings_for(web), keeper=AllAllowed(), tls=trusting) as transport,
    ):
        is_answered, is_gone = asyncio.Event(), asyncio.Event()

        async def script(visit: Visit) -> None:
            await visit.send(first)
            await is_answered.wait()
            await visit.send(late)
            with contextlib.suppress(ConnectionError):
                await visit.until_gone()
            is_gone.set()

        web.on("/first", script)
        web.on("/next", answers(page(b"next")))
        one = await transport.fetch(FetchJob(address(web.url("/first")), sent or Validators()))
        is_answered.set()
        await is_gone.wait()
        return _seen(web, one, await fetch(transport, web.url("/next")))


@both_loops
@pytest.mark.parametrize(
    ("first", "late", "body"),
    [
        pytest.param(page(b"first"), POISON, b"first", id="a second answer"),
        pytest.param(head(200, [("Content-Length", "5")]) + b"first", b"and more" + POISON, b"first", id="a long body"),
        pytest.param(head(204), POISON, b"", id="a body where none may be"),
        pytest.param(page(b"first"), b"\r\n", b"first", id="an empty line"),
        pytest.param(page(b"first"), head(103), b"first", id="an interim answer"),
    ],
)
def test_what_comes_unasked_ends_the_connection_and_answers_nothing(
    loop: Loop, first: bytes, late: bytes, body: bytes
) -> None:
    assert _run(loop, _fetches_around(first, late)) == [(body, 0), (b"next", 1)]


@both_loops
def test_the_late_body_of_a_304_is_no_answer_to_the_next_request(loop: Loop) -> None:
    not_modified = head(304, [("ETag", '"x"'), ("Content-Length", str(len(POISON)))])
    assert _run(loop, _fetches_around(not_modified, POISON, sent=Validators(b'"x"'))) == [(b"", 0), (b"next", 1)]


@both_loops
def test_what_comes_unasked_over_a_secure_connection_ends_it_too(loop: Loop) -> None:
    assert _run(loop, _fetches_around(page(b"first"), POISON, tls=True)) == [(b"first", 0), (b"next", 1)]


@both_loops
def test_a_silent_secure_connection_is_used_again(loop: Loop) -> None:
    async def main() -> list[tuple[bytes, int]]:
        serving, trusting = _contexts()
        async with (
            HostileWeb(tls=serving) as web,
            Transport(settings_for(web), keeper=AllAllowed(), tls=trusting) as transport,
        ):
            web.on("/", answers(page(b"x")))
            return _seen(web, *[await fetch(transport, web.url("/")) for _ in range(3)])

    assert _run(loop, main()) == [(b"x", 0)] * 3


@both_loops
def test_bytes_that_wait_unread_when_a_connection_is_taken_up_again_answer_nothing(loop: Loop) -> None:
    """The loop has not looked at the socket since they came, so nothing but the socket itself knows of them."""

    async def main() -> list[tuple[bytes, int]]:
        async with HostileWeb() as web, Transport(settings_for(web), keeper=AllAllowed()) as transport:
            files: list[int] = []

            async def script(visit: Visit) -> None:
                files.append(visit._writer.get_extra_info("socket").fileno())
                await visit.send(page(b"first"))

            web.on("/first", script)
            web.on("/next", answers(page(b"next")))
            one = await fetch(transport, web.url("/first"))
            os.write(files[0], POISON)
            return _seen(web, one, await fetch(transport, web.url("/next")))

    assert _run(loop, main()) == [(b"first", 0), (b"next", 1)]


@both_loops
@pytest.mark.parametrize("begun", [POISON, POISON[:1], POISON[:20], POISON[:-3]])
def test_a_connection_on_which_another_answer_has_begun_is_not_kept(loop: Loop, begun: bytes) -> None:
    async def main() -> list[tuple[bytes, int]]:
        async with HostileWeb() as web, Transport(settings_for(web), keeper=AllAllowed()) as transport:
            web.on("/first", answers(page(b"first") + begun))
            web.on("/next", answers(page(b"next")))
            return _seen(web, *[await fetch(transport, web.url(target)) for target in ("/first", "/next")])

    assert _run(loop, main()) == [(b"first", 0), (b"next", 1)]


@both_loops
def test_any_number_of_kept_connections_that_cannot_be_used_cost_no_fetch(loop: Loop) -> None:
    """Bytes wait on each of them; none is asked, and a new one is made."""

    async def main() -> list[tuple[bytes, int]]:
        async with HostileWeb() as web, Transport(settings_for(web), keeper=AllAllowed()) as transport:
            files: list[int] = []
            all_here = asyncio.Barrier(3)

            async def script(visit: Visit) -> None:
                files.append(visit._writer.get_extra_info("socket").fileno())
                await all_here.wait()
                await visit.send(page(b"first"))

            web.on("/first", script)
            web.on("/next", answers(page(b"next")))
            three = await asyncio.gather(*(fetch(transport, web.url("/first")) for _ in range(3)))
            for file in files:
                os.write(file, POISON)
            return _seen(web, *three, await fetch(transport, web.url("/next")))

    *three, last = _run(loop, main())
    assert sorted(three) == [(b"first", 0), (b"first", 1), (b"first", 2)]  # who comes first is anybody's guess
    assert last == (b"next", 3)
