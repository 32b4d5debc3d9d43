"""The server speaks HTTP/1.1 on loopback, keeps its time, and is reached through the gate like any private network."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
from contextlib import suppress
from email.utils import parsedate_to_datetime

import pytest
from living_client import Client, small, visit

from recrawl.errors import InvalidInput
from recrawl.lab.livingweb.__main__ import main
from recrawl.lab.livingweb.clock import HandClock, RunningClock
from recrawl.lab.livingweb.server import LivingWeb
from recrawl.lab.livingweb.world import LivingWorld
from recrawl.lab.livingweb.world_settings import WorldSettings
from recrawl.web.fetch.egress import check_address, check_target, egress_policy
from recrawl.web.refused import Refused
from recrawl.web.url.address import address_or_raise


def test_one_connection_serves_many_hosts_and_the_date_is_that_of_the_web() -> None:
    async def talk(client: Client) -> None:
        for host in range(5):
            got = await client.get(f"site-{host}.living.test", "/")
            assert (got.status, got.headers["content-type"]) == (200, "text/html; charset=utf-8")
            assert f"<title>site-{host}.living.test</title>".encode() in got.body
            assert parsedate_to_datetime(got.headers["date"]).timestamp() == int(client.clock())
            client.clock.advance(100)
        assert (await client.get("SITE-1.Living.Test", "/")).status == 200

    visit(small(), talk)


def test_unknown_hosts_are_misdirected() -> None:
    async def talk(client: Client) -> None:
        assert (await client.get("site-99.living.test", "/")).status == 421
        assert (await client.get("elsewhere.test", "/robots.txt")).status == 421
        assert (await client.get("truth.living.test", "/elsewhere")).status == 404

    visit(small(), talk)


def test_head_has_the_headers_of_get_and_no_body() -> None:
    async def talk(client: Client) -> None:
        name, path = client.host_of(3), client.web.world.path(3)
        head = await client.get(name, path, method="HEAD")
        assert head.headers == (await client.get(name, path)).headers
        assert int(head.headers["content-length"]) > 1000

    visit(small(), talk)


def test_requests_may_come_in_pieces_or_together() -> None:
    async def talk(client: Client) -> None:
        request = f"GET / HTTP/1.1\r\nHost: site-1.living.test:{client.web.port}\r\n\r\n".encode()
        client.writer.write(request + request[:30])
        first = await client.read()
        client.writer.write(request[30:])
        assert (await client.read()).body == first.body

    visit(small(), talk)


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET http://site-1.living.test/ HTTP/1.1\r\nHost: site-1.living.test\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: site-1.living.test:x\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: site-1.living.test\r\nContent-Length: 3\r\n\r\nabc", 405),
        (b"GET / HTTP/1.1\r\nHost: site-1.living.test\r\nX: " + b"x" * 20_000, 431),
        (b"GET / HTTP/1.1\r\nHost: site-1.living.test\r\nConnection: close\r\n\r\n", 200),
        (b"GET / HTTP/1.0\r\nHost: site-1.living.test\r\n\r\n", 200),
    ],
)
def test_what_cannot_be_served_or_is_asked_to_be_the_last_closes_the_connection(raw: bytes, status: int) -> None:
    async def talk(client: Client) -> None:
        client.writer.write(raw)
        got = await client.read()
        assert (got.status, got.headers["connection"]) == (status, "close")
        assert await client.reader.read() == b""

    visit(small(), talk)


def test_stopping_ends_open_connections_and_the_port() -> None:
    async def run() -> None:
        web = LivingWeb(LivingWorld(small()), HandClock(2e9))
        await web.start()
        port = web.port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: site-1.living.test\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        await web.stop()
        with suppress(ConnectionResetError):
            await reader.read()
        assert reader.at_eof() or isinstance(reader.exception(), ConnectionResetError)
        writer.close()
        with pytest.raises(ConnectionError):
            await asyncio.open_connection("127.0.0.1", port)
        with pytest.raises(InvalidInput, match="start it first"):
            _ = web.port

    asyncio.run(run())


def test_the_gate_stays_shut_until_the_web_is_opened_by_name_and_port() -> None:
    async def talk(client: Client) -> None:
        web = client.web
        shut, opened = egress_policy(), egress_policy(allow=web.allow, resolve=web.resolve)
        assert isinstance(check_address("127.0.0.1", web.port, shut), Refused)
        assert check_address("127.0.0.1", web.port, opened) is None
        assert check_target(address_or_raise(web.url(3), field="url"), opened) is None
        assert isinstance(check_address("127.0.0.1", 22, opened), Refused)

    visit(small(), talk)


def test_running_clocks_made_from_the_same_numbers_show_the_same_accelerated_time() -> None:
    real = [500.0]
    clocks = [RunningClock(1000.0, 500.0, 60.0, lambda: real[0]) for _ in range(2)]
    real[0] = 502.0
    assert [clock() for clock in clocks] == [1120.0, 1120.0]
    real[0] = 400.0
    assert clocks[0]() == 1000.0
    with pytest.raises(InvalidInput, match="speedup"):
        RunningClock(0.0, 0.0, 0.0)


def test_the_process_prints_one_line_and_serves_until_it_is_told_to_stop() -> None:
    async def run() -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "recrawl.livingweb", "--port", "0", "--pages", "40", "--hosts", "4", "--seed", "1",
            "--speedup", "60", "--every-host", "trouble=calm", stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        facts = json.loads(await process.stdout.readline())
        world = LivingWorld(WorldSettings(**facts["settings"]))
        assert (len(world), len(world.hosts), facts["clock"]["speedup"]) == (40, 4, 60.0)
        reader, writer = await asyncio.open_connection("127.0.0.1", facts["port"])
        writer.write(b"GET /truth/clock HTTP/1.1\r\nHost: truth.living.test\r\nConnection: close\r\n\r\n")
        told = json.loads((await reader.read()).partition(b"\r\n\r\n")[2])
        assert told["settings"] == facts["settings"]
        writer.close()
        await writer.wait_closed()
        process.send_signal(signal.SIGTERM)
        rest = await process.stdout.read()
        assert (await process.wait(), rest) == (0, b"")
        assert world.epoch <= told["now"] <= RunningClock(**facts["clock"])()

    asyncio.run(run())


def test_the_process_ends_with_its_standard_input_if_asked_to() -> None:
    async def run() -> None:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "recrawl.livingweb", "--pages", "4", "--hosts", "2", "--with-stdin",
            stdin=pipe, stdout=pipe,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stdin is not None
        await process.stdout.readline()
        process.stdin.close()
        assert await process.wait() == 0

    asyncio.run(run())


def test_a_port_that_is_taken_is_told_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["--pages", "4", "--hosts", "2", "--port", str(taken.getsockname()[1])]) == 2
    assert "in use" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [["--port", "70000"], ["--pages", "0"], ["--every-host", "etag"], ["--every-host", "etag=x"], ["--speedup", "0"]],
)
def test_the_process_refuses_bad_settings(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(wrong) == 2
    assert capsys.readouterr().err.startswith("recrawl.lab.livingweb: ")
