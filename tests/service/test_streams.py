"""Streams of changes: how many there may be, how they end, and that the store is read once for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from service_ground import Ground, statements_of
from test_served import happen, served

from patience import PATIENCE_S, ticks, until
from recrawl.errors import StoreBusy
from recrawl.service.auth.access import COOKIE, Access
from recrawl.service.listening import Listening
from recrawl.service.monitor import change_feed
from recrawl.service.monitor.change_feed import MOST_STREAMS, ChangeFeed
from recrawl.store.queries import load_queries
from recrawl.store.rows import Change

STREAMS = ("/api/v1/changes/stream", "/live")


def client_of(address: str, token: str) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {token}"}
    limits = httpx.Limits(max_connections=None)
    return httpx.AsyncClient(timeout=PATIENCE_S, base_url=address, headers=headers, limits=limits)


async def named_events(answer: httpx.Response) -> AsyncIterator[tuple[str, str]]:
    """Name and data of the events of a stream."""
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield fields.get("event", ""), fields.get("data", "")
            fields = {}


def test_requests_that_are_refused_take_no_stream_from_others(tmp_path: Path) -> None:
    """However many ask for a kind that does not exist."""

    async def main() -> None:
        async with served(tmp_path) as (_, address, token, _said), client_of(address, token) as client:
            for _ in range(MOST_STREAMS):
                assert (await client.get("/api/v1/changes/stream?kinds=nonsense")).status_code == 422
            async with client.stream("GET", "/api/v1/changes/stream") as answer:
                assert answer.status_code == 200

    asyncio.run(main())


@pytest.mark.parametrize("path", STREAMS)
def test_one_stream_more_than_there_may_be_is_refused(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is closed makes room; streams of the API and of the dashboard take nothing from each other."""
    monkeypatch.setattr(change_feed, "MOST_STREAMS", 2)
    (other,) = set(STREAMS) - {path}

    async def main() -> None:
        async with served(tmp_path) as (_, address, token, _said), client_of(address, token) as client:

            async def is_free() -> bool:
                async with client.stream("GET", path) as answer:
                    return answer.status_code == 200

            async with client.stream("GET", path) as first:
                one = first.aiter_bytes()  # kept: a reader that is let go closes its stream
                await anext(one)
                async with client.stream("GET", path) as second:
                    two = second.aiter_bytes()
                    await anext(two)
                    refused = await client.get(path)
                    assert (refused.status_code, refused.headers["retry-after"]) == (503, "30")
                    async with client.stream("GET", other) as beside:
                        assert beside.status_code == 200
                await until(is_free)

    asyncio.run(main())


@pytest.mark.parametrize("path", STREAMS)
def test_one_client_cannot_take_the_streams_of_others(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_feed, "MOST_OF_A_CLIENT", 1)

    async def main() -> None:
        async with served(tmp_path) as (tracker, address, token, _said), client_of(address, token) as client:
            other, _ = await Access(tracker.store, Listening(), lambda: 0.0).make(["read"], "other")
            async with client.stream("GET", path) as first:
                kept = first.aiter_bytes()
                await anext(kept)
                refused = await client.get(path)
                assert (refused.status_code, refused.headers["retry-after"]) == (503, "30")

                async def others_may() -> bool:  # tokens are read again every two seconds
                    headers = {"Authorization": f"Bearer {other}"}
                    async with client.stream("GET", path, headers=headers) as answer:
                        return answer.status_code == 200

                await until(others_may)

    asyncio.run(main())


@pytest.mark.parametrize("path", STREAMS)
def test_a_client_that_leaves_before_the_first_byte_leaves_no_stream_open(path: str, ground: Ground) -> None:
    """The stream is never begun, or ended while it waits."""
    app: Any = ground.app
    feed = app.state["service"].feed
    headers = [(b"host", b"127.0.0.1"), *((k.lower().encode(), v.encode()) for k, v in ground.headers("read").items())]

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(_message: Any) -> None:
        return

    async def main() -> None:
        for _ in range(MOST_STREAMS + 1):
            scope = {
                "type": "http", "http_version": "1.1", "method": "GET", "path": path, "raw_path": path.encode(),
                "query_string": b"", "headers": headers, "client": ("203.0.113.9", 1), "server": ("127.0.0.1", 80),
                "scheme": "http", "root_path": "",
            }  # fmt: skip
            await app(scope, receive, send)
        await until(lambda: feed.api_slots.open == feed.page_slots.open == 0)

    ground.run(main())


@pytest.mark.parametrize("path", STREAMS)
def test_a_stream_ends_when_the_session_does(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who signed in with a token that is revoked hears nothing more."""
    monkeypatch.setattr(change_feed, "CHECK_S", 0.01)

    async def main() -> None:
        async with served(tmp_path) as (tracker, address, token, _said):
            access = Access(tracker.store, Listening(), lambda: 0.0)
            async with client_of(address, "none") as client:
                signed_in = await client.post("/login", data={"key": token})
                headers = {"Cookie": f"{COOKIE}={signed_in.cookies[COOKIE]}"}
                del client.headers["Authorization"]
                async with client.stream("GET", path, headers=headers) as answer:
                    assert answer.status_code == 200
                    await access.revoke(token.split("-")[1])
                    async for _ in answer.aiter_bytes():
                        pass  # it ends by itself

    asyncio.run(main())


def test_an_open_page_of_the_dashboard_hears_of_changes(tmp_path: Path) -> None:
    """A greeting with the last cursor, then the cursor of what changed."""

    async def main() -> None:
        async with served(tmp_path) as (tracker, address, token, _said), client_of(address, token) as client:
            await happen(tracker, "before")
            async with client.stream("GET", "/live") as answer:
                news = named_events(answer)
                assert await anext(news) == ("hello", "1")
                await happen(tracker, "after")
                assert await anext(each async for each in news if each[0] != "tick") == ("change", "2")

    asyncio.run(main())


def test_the_store_is_read_as_often_for_many_streams_as_for_one(tmp_path: Path) -> None:
    """Each event is read once, and every stream has it."""
    many = 20
    reading = load_queries("sqlite")["changes_after"]

    async def main() -> None:
        async with served(tmp_path) as (tracker, address, token, _said), AsyncExitStack() as stack:
            client = await stack.enter_async_context(client_of(address, token))
            streams = []
            for _ in range(many):
                answer = await stack.enter_async_context(client.stream("GET", "/api/v1/changes/stream?after=0"))
                streams.append(answer.aiter_lines())
                await anext(streams[-1])
            await heard(streams, tracker, "first")
            read = await statements_of(tracker.store)
            await heard(streams, tracker, "second")
            watching = 1 + read.count(
                load_queries("sqlite")["tallies_all"]
            )  # each look of the monitor reads the log too
            assert read.count(reading) <= 1 + watching

    async def heard(streams: list[Any], tracker: Any, path: str) -> None:
        await happen(tracker, path)
        for each in streams:
            async for line in each:
                if path in line:
                    break

    asyncio.run(main())


class DownStore:
    """A store that answers where its log ends, and fails to read it."""

    def __init__(self) -> None:
        self.reads = 0

    async def last_cursor(self) -> int:
        return 5000

    async def changes(self, *_: Any) -> list[Change]:
        self.reads += 1
        await asyncio.sleep(0)
        raise StoreBusy("the store is busy")


class WaitingTracker:
    """As much of a tracker as a feed needs; its pauses do not end."""

    stopping = False

    def __init__(self) -> None:
        self.store = DownStore()
        self.paused = 0

    async def pause(self, _seconds: float) -> None:
        self.paused += 1
        await asyncio.Event().wait()


def test_a_client_that_is_behind_asks_a_store_that_fails_only_after_a_pause() -> None:
    async def allowed() -> bool:
        return True

    async def main() -> None:
        tracker = WaitingTracker()
        feed = ChangeFeed(tracker)  # type: ignore[arg-type]
        following = asyncio.ensure_future(anext(feed.follow(0, allowed)))
        await until(lambda: tracker.paused >= 2)  # the client, and the task that looks for news
        await ticks(200)
        assert tracker.store.reads == 1
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)

    asyncio.run(main())
