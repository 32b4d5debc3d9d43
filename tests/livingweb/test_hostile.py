"""The hostile web itself: what it writes down and how it misbehaves, seen from a bare socket."""

from __future__ import annotations

import asyncio
import gzip
import socket

import pytest

from recrawl.lab.livingweb.hostile import (
    BOMBS,
    MIB,
    HostileWeb,
    ScriptedNames,
    Visit,
    answers,
    gzip_again,
    page,
    redirects_onward,
    sends_and_hangs_up,
    sends_and_resets,
)


async def _ask(web: HostileWeb, *targets: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", web.port)
    for target in targets:
        writer.write(f"GET {target} HTTP/1.1\r\nHost: a.hostile.test\r\nX-Odd: 1\r\n\r\n".encode())
    writer.write_eof()
    try:
        return await reader.read()
    finally:
        writer.close()


def test_it_writes_down_who_asked_for_what_and_when() -> None:
    async def main() -> HostileWeb:
        async with HostileWeb() as web:
            web.on("/a", answers(page(b"one"), page(b"two")))
            first = await _ask(web, "/a?x=1", "/a")
            assert first.endswith(page(b"one") + page(b"two"))
            assert b"404" in await _ask(web, "/b")
            return web

    web = asyncio.run(main())
    assert [(visitor.target, visitor.connection) for visitor in web.log] == [("/a?x=1", 0), ("/a", 0), ("/b", 1)]
    assert [visitor.target for visitor in web.seen("/a")] == ["/a?x=1", "/a"]
    assert web.log[0].headers == {"host": "a.hostile.test", "x-odd": "1"}
    assert web.log[0].at <= web.log[1].at <= web.log[2].at
    assert (web.connections, web.failures) == (2, [])


def test_a_script_may_break_the_promise_or_the_connection() -> None:
    async def main() -> bytes:
        async with HostileWeb() as web:
            web.on("/short", sends_and_hangs_up(b"half"))
            web.on("/reset", sends_and_resets(b"half"))
            with pytest.raises(ConnectionResetError):
                await _ask(web, "/reset")
            return await _ask(web, "/short", "/short")

    assert asyncio.run(main()) == b"half"


def test_a_fault_of_a_script_is_shown_to_the_test() -> None:
    async def script(visit: Visit) -> None:
        raise ZeroDivisionError(visit.visitor.target)

    async def main() -> HostileWeb:
        async with HostileWeb() as web:
            web.on("/", script)
            await _ask(web, "/")
            return web

    assert [type(failure) for failure in asyncio.run(main()).failures] == [ZeroDivisionError]


def test_closing_the_server_ends_visits_that_would_last_for_ever() -> None:
    async def main() -> bool:
        entered = asyncio.Event()

        async def script(_: Visit) -> None:
            entered.set()
            await asyncio.Event().wait()

        async with HostileWeb() as web:
            web.on("/", script)
            asking = asyncio.create_task(_ask(web, "/"))
            await entered.wait()
        return await asking == b""

    assert asyncio.run(main())


def test_a_redirect_onward_never_repeats_itself() -> None:
    async def main() -> bytes:
        async with HostileWeb() as web:
            web.on("/x", redirects_onward(302, "/x"))
            return await _ask(web, "/x", "/x", "/x")

    assert [f"turn={n}".encode() in asyncio.run(main()) for n in range(4)] == [True, True, True, False]


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_small_on_the_wire(name: str) -> None:
    assert len(BOMBS[name](4)) < 4 * MIB / 200


def test_gzip_of_gzip_of_gzip_unfolds_to_the_text() -> None:
    data = gzip_again(b"text", 3)
    for _ in range(3):
        data = gzip.decompress(data)
    assert data == b"text"


def test_names_answer_as_scripted_one_look_up_after_the_other() -> None:
    async def main() -> list[list[str]]:
        names = ScriptedNames()
        names.on("a.test", ["93.184.216.34"], ["127.0.0.1", "::1"])
        found = [[answer["host"] for answer in await names.resolve("a.test", 80)] for _ in range(3)]
        for host, script in (("b.test", "missing"), ("c.test", "failed")):
            names.on(host, script)  # type: ignore[arg-type]
            with pytest.raises(socket.gaierror):
                await names.resolve(host)
        with pytest.raises(socket.gaierror):
            await names.resolve("unknown.test")
        assert names.log == ["a.test"] * 3 + ["b.test", "c.test", "unknown.test"]
        return found

    assert asyncio.run(main()) == [["93.184.216.34"], ["127.0.0.1", "::1"], ["127.0.0.1", "::1"]]
