"""The service on a real socket: events as they happen, slow and endless clients, addresses, and its end."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from service_ground import SETTINGS, Ground

from patience import PATIENCE_S, patience
from recrawl.errors import InvalidInput
from recrawl.service import server
from recrawl.service.listening import Listening
from recrawl.service.server import service
from recrawl.store.rows import NewChange
from recrawl.tracker.process import serving
from recrawl.tracker.tracker import Tracker


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[Tracker, str, str, list[str]]]:
    """A tracker and its service on loopback: tracker, address, token, what was said."""
    said: list[str] = []
    listens: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with patience(), serving(replace(SETTINGS, store=str(folder)), said.append) as tracker:
        beside = service(
            Listening(port=0, fixed=True),
            link=True,
            told=lambda address, _link: listens.set_result(address),
            fetches=False,
        )
        running = asyncio.ensure_future(beside(tracker))
        try:
            both: list[asyncio.Future[Any]] = [running, listens]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            token = said[0].rpartition(" ")[2]
            yield tracker, listens.result(), token, said
        finally:
            tracker.stop()
            await running


async def events(client: httpx.AsyncClient, wanted: int, **options: Any) -> list[dict[str, Any]]:
    """The first events of a stream."""
    found: list[dict[str, Any]] = []
    async with client.stream("GET", "/api/v1/changes/stream", **options) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        async for line in answer.aiter_lines():
            if line.startswith(":"):
                continue
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "data" in fields:
                found.append({**json.loads(fields["data"]), "id": int(fields["id"]), "event": fields["event"]})
                fields = {}
                if len(found) == wanted:
                    return found
    return found


async def happen(tracker: Tracker, *paths: str) -> None:
    await tracker.store.append_changes([NewChange("changed", 1e9, f"https://sse.example/{path}") for path in paths])


def test_it_can_be_reached_as_soon_as_its_address_is_told(tmp_path: Path) -> None:
    """Whoever reads the address and connects at once waits in the queue, and is not refused."""
    reached: list[str] = []

    def told(address: str, _link: str) -> None:
        port = int(address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S):
            reached.append(address)

    async def run() -> None:
        async with patience(), serving(replace(SETTINGS, store=str(tmp_path)), print) as tracker:
            beside = service(Listening(port=0, fixed=True), told=told, fetches=False)
            running = asyncio.ensure_future(beside(tracker))
            while not reached and not running.done():
                await asyncio.sleep(0)
            tracker.stop()
            await running

    asyncio.run(run())
    assert len(reached) == 1


def test_events_come_as_they_happen_and_go_on_where_they_were(tmp_path: Path) -> None:
    """From the cursor that a client has seen: nothing twice, nothing missing; by kind if that is asked for."""

    async def main() -> None:
        async with served(tmp_path) as (tracker, address, token, _):
            headers = {"Authorization": f"Bearer {token}"}
            async with httpx.AsyncClient(timeout=PATIENCE_S, base_url=address, headers=headers) as client:
                await happen(tracker, "a", "b", "c")
                first = await events(client, 2, params={"after": 0})
                assert [each["url"][-1] for each in first] == ["a", "b"]
                seen = {"Last-Event-ID": str(first[-1]["id"])}
                waiting = asyncio.ensure_future(events(client, 3, headers=seen, params={"after": 0}))
                await happen(tracker, "d", "e")
                assert [each["url"][-1] for each in await waiting] == ["c", "d", "e"]
                await tracker.store.append_changes([NewChange("removed", 1e9, "https://sse.example/f")])
                (removed,) = await events(client, 1, params={"after": 0, "kinds": "removed"})
                assert removed["event"] == "removed"
                paged = (await client.get("/api/v1/changes", params={"after": 2, "limit": 2})).json()
                assert [each["url"][-1] for each in paged["changes"]] == ["c", "d"]
                assert (paged["next"], paged["last"]) == (4, 6)
                assert (await client.get("/api/v1/changes/stream?kinds=nonsense")).status_code == 422

    asyncio.run(main())


def test_the_token_is_said_once_and_the_link_signs_in_once(tmp_path: Path) -> None:
    """A second life of the same store says no token."""

    async def main() -> None:
        async with served(tmp_path) as (_, address, token, said):
            assert token.startswith("recrawl-")
            link = next(each for each in said if "/login#" in each).split()[2]
            assert link.startswith(address)
            async with httpx.AsyncClient(timeout=PATIENCE_S, base_url=address) as client:
                form = {"key": link.partition("#")[2]}
                assert (await client.post("/login", data=form)).status_code == 303
                assert (await client.get("/api/v1/status")).status_code == 200
                assert (await client.post("/login", data=form)).status_code == 401
        async with served(tmp_path) as (_, _, _, said):
            assert not [each for each in said if "recrawl-" in each]

    asyncio.run(main())


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 100_000,
        b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(1000)),
        b"POST /api/v1/pages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{",
    ],
    ids=["nothing", "half a head", "a long header", "many headers", "half a body"],
)
def test_clients_that_send_no_whole_request_are_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    """In a bounded time, and with a bounded memory."""
    monkeypatch.setattr(server, "HEAD_S", 0.2)
    monkeypatch.setattr(server, "BODY_S", 0.2)

    async def main() -> None:
        async with served(tmp_path) as (_, address, _, _):
            host, _, port = address.removeprefix("http://").partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(sent)
            try:
                answer = await reader.read()
            except ConnectionError:
                answer = b""
            assert b" 200 " not in answer
            writer.close()

    asyncio.run(main())


def test_connections_beyond_the_most_are_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are there stay."""
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 2)

    async def main() -> None:
        async with served(tmp_path) as (_, address, _, _):
            host, _, port = address.removeprefix("http://").partition(":")
            opened = [await asyncio.open_connection(host, int(port)) for _ in range(3)]
            with suppress(ConnectionError):
                assert await opened[2][0].read() == b""
            opened[0][1].write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            assert b" 200 " in await opened[0][0].read()
            for _, writer in opened:
                writer.close()

    asyncio.run(main())


def test_a_port_that_is_taken_is_a_sentence_or_another_port(ground: Ground) -> None:
    """If it was asked for, it is an error; if not, any other does."""
    from recrawl.service.server import _bound

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InvalidInput, match="cannot be had"):
            _bound(Listening(port=port, fixed=True), ground.said.append)
        other = _bound(Listening(port=port), ground.said.append)
        assert other.getsockname()[1] != port
        other.close()
