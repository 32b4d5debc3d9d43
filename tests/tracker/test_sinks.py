"""Sinks take every event in order, at least once, from where they were; a dead one stops nobody."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from small_site import Asked, Page, Site
from tracker_harness import logged

from recrawl.errors import InvalidInput
from recrawl.store.rows import Change, NewChange
from recrawl.store.store import Store, open_store
from recrawl.tracker.sinks.atom import AtomSink, feed
from recrawl.tracker.sinks.jsonl import JsonlSink
from recrawl.tracker.sinks.sink import Delivery, Sink, SinkContext, run_sink
from recrawl.tracker.sinks.webhook import MOST_ATTEMPTS, WebhookSink
from recrawl.web.fetch.settings import user_agent
from recrawl.web.push.delivery import WebhookLimits, WebhookTransport
from recrawl.web.push.webhook import headers, new_secret, read_secret
from recrawl.web.url.address import Address, read_address

ATOM = "{http://www.w3.org/2005/Atom}"
HOSTILE = "https://example.com/?q=</title><script>alert(1)</script>&\x00\ud800"


@dataclass(slots=True)
class Time:
    """A clock that moves when someone waits."""

    at: float = 1_790_000_000.0
    rounds: int = 0

    async def pause(self, seconds: float) -> None:
        self.at += seconds
        self.rounds -= 1
        await asyncio.sleep(0)

    def around(self, rounds: int) -> SinkContext:
        """For so many rounds of feeding."""
        self.rounds = rounds
        return SinkContext(lambda: self.at, self.pause, lambda: self.rounds <= 0)


async def _store(folder: Path, events: int) -> Store:
    store = await open_store(str(folder / "data"), owner=True)
    await append(store, range(events))
    return store


async def append(store: Store, numbers: Sequence[int]) -> None:
    await store.append_changes([NewChange("changed", 1_790_000_000.0 + n, f"https://example.com/{n}") for n in numbers])


def in_store(folder: Path, events: int, story: Callable[[Store], Awaitable[None]]) -> None:
    async def run() -> None:
        store = await _store(folder, events)
        try:
            await story(store)
        finally:
            await store.close()

    asyncio.run(run())


def test_a_file_has_every_event_once_over_restarts(tmp_path: Path) -> None:
    target = tmp_path / "events.jsonl"

    async def story(store: Store) -> None:
        for life in range(3):
            await run_sink("file", JsonlSink(str(target)), store, frozenset(), Time().around(2))
            await append(store, [1000 + life])
        await run_sink("file", JsonlSink(str(target)), store, frozenset(), Time().around(1))

    in_store(tmp_path, 250, story)
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    assert [line["cursor"] for line in lines] == list(range(1, 254))
    assert len({line["id"] for line in lines}) == 253


def test_a_line_that_a_crash_cut_short_does_not_spoil_the_next(tmp_path: Path) -> None:
    target = tmp_path / "events.jsonl"
    target.write_text('{"cursor": 1, "ki')

    async def story(store: Store) -> None:
        await run_sink("file", JsonlSink(str(target)), store, frozenset(), Time().around(1))

    in_store(tmp_path, 2, story)
    assert [json.loads(line)["cursor"] for line in target.read_text().splitlines()[1:]] == [1, 2]


def test_a_sink_takes_the_kinds_it_wants_and_moves_past_the_others(tmp_path: Path) -> None:
    target = tmp_path / "events.jsonl"

    async def story(store: Store) -> None:
        await run_sink("file", JsonlSink(str(target)), store, frozenset({"removed"}), Time().around(1))
        assert (await store.sink("file")).cursor == 5
        await store.append_changes([NewChange("removed", 1.0, "https://example.com/x")])
        await run_sink("file", JsonlSink(str(target)), store, frozenset({"removed"}), Time().around(1))

    in_store(tmp_path, 5, story)
    assert [json.loads(line)["kind"] for line in target.read_text().splitlines()] == ["removed"]


class Stubborn:
    """A sink that fails so many times before each event."""

    def __init__(self, failures: int) -> None:
        self.left = self.failures = failures
        self.taken: list[int] = []
        self.attempts: list[int] = []

    async def take(self, changes: Sequence[Change], attempt: int) -> Delivery:
        if self.left:
            self.left -= 1
            self.attempts.append(attempt)
            return Delivery(0, failed="not yet")
        self.left = self.failures
        self.taken.append(changes[0].cursor)
        return Delivery(1, failed="" if len(changes) == 1 else "one at a time")

    async def close(self) -> None:
        """Nothing to close."""


def test_what_fails_is_tried_again_later_each_time_and_nothing_is_lost(tmp_path: Path) -> None:
    sink, clock = Stubborn(3), Time()

    async def story(store: Store) -> None:
        await run_sink("slow", sink, store, frozenset(), clock.around(400))

    with logged() as said:
        in_store(tmp_path, 5, story)
    assert sink.taken == [1, 2, 3, 4, 5]
    assert sink.attempts == [0, 1, 2, *[1, 2, 3] * 4]
    assert clock.at > 1_790_000_000.0 + 5 * 3
    assert said[0] == "sink slow is tried again: not yet"


def test_a_feed_is_well_formed_whatever_the_pages_say_and_has_the_newest_hundred(tmp_path: Path) -> None:
    target = tmp_path / "changes.atom"

    async def story(store: Store) -> None:
        await run_sink("feed", AtomSink(str(target), store, "id"), store, frozenset(), Time().around(1))
        await store.append_changes([NewChange("changed", 2e9, HOSTILE.replace("\x00", ""), detail='{"a": "<b>"}')])
        await run_sink("feed", AtomSink(str(target), store, "id"), store, frozenset(), Time().around(1))

    in_store(tmp_path, 150, story)
    root = ET.fromstring(target.read_bytes())
    entries = root.findall(f"{ATOM}entry")
    assert len(entries) == 100
    assert len({entry.findtext(f"{ATOM}id") for entry in entries}) == 100
    assert "<script>" in (entries[0].findtext(f"{ATOM}title") or "")
    assert root.find(".//script") is None


def test_a_feed_of_some_kinds_has_the_newest_hundred_of_these_after_a_restart_too(tmp_path: Path) -> None:
    target, kinds = tmp_path / "removed.atom", frozenset({"removed"})

    async def story(store: Store) -> None:
        at = 1_800_000_000.0
        await store.append_changes([NewChange("removed", at, f"https://example.com/gone/{n}") for n in range(120)])
        await append(store, range(1500))
        for number in (120, 121):
            await store.append_changes([NewChange("removed", at, f"https://example.com/gone/{number}")])
            sink = AtomSink(str(target), store, "id", kinds)
            await run_sink("feed", sink, store, kinds, Time().around(20))

    in_store(tmp_path, 0, story)
    titles = [entry.findtext(f"{ATOM}title") for entry in ET.fromstring(target.read_bytes()).findall(f"{ATOM}entry")]
    assert titles == [f"Removed: https://example.com/gone/{n}" for n in range(121, 21, -1)]


def test_a_feed_without_events_is_well_formed_too() -> None:
    assert ET.fromstring(feed("id", [])).tag == f"{ATOM}feed"


SECRET = new_secret(b"s" * 32)


async def _post(site: Site, store: Store, clock: Time, rounds: int) -> None:
    address = read_address(site.url("/hook"))
    assert isinstance(address, Address)
    transport = WebhookTransport(user_agent("a@example.com"), site.egress, WebhookLimits(https_only=False))
    await transport.__aenter__()
    sink: Sink = WebhookSink(transport, address, read_secret(SECRET, "secret"), lambda: clock.at)
    await run_sink("hook", sink, store, frozenset(), clock.around(rounds))


def test_a_webhook_is_signed_so_that_its_target_can_tell(tmp_path: Path) -> None:
    seen: list[Asked] = []

    def hook(asked: Asked) -> Page:
        seen.append(asked)
        return (204, {}, b"")

    async def story(store: Store) -> None:
        async with Site({"/hook": hook}) as site:
            await _post(site, store, Time(), 1)

    in_store(tmp_path, 3, story)
    assert len(seen) == 3
    for asked in seen:
        signed = f"{asked.headers['webhook-id']}.{asked.headers['webhook-timestamp']}.".encode() + asked.body
        expected = base64.b64encode(hmac.new(b"s" * 32, signed, hashlib.sha256).digest()).decode()
        assert asked.headers["webhook-signature"] == f"v1,{expected}"
        assert json.loads(asked.body)["id"] == asked.headers["webhook-id"]


def test_an_event_that_is_wrong_to_its_target_is_a_dead_letter_and_the_next_goes_on(tmp_path: Path) -> None:
    def hook(asked: Asked) -> Page:
        return 422 if b"example.com/1" in asked.body else (200, {}, b"")

    async def story(store: Store) -> None:
        async with Site({"/hook": hook}) as site:
            await _post(site, store, Time(), 1)
            assert len(site.log) == 3
        assert [(letter.cursor, letter.reason) for letter in await store.dead_letters("hook")] == [
            (2, "its target answered 422")
        ]
        assert (await store.sink("hook")).cursor == 3

    in_store(tmp_path, 3, story)


def test_a_target_that_is_down_is_tried_again_until_it_is_given_up_for_an_event(tmp_path: Path) -> None:
    async def story(store: Store) -> None:
        clock = Time()
        async with Site({"/hook": 500}) as site:
            await _post(site, store, clock, 2000)
            assert len(site.log) == 2 * MOST_ATTEMPTS
        assert sorted(letter.cursor for letter in await store.dead_letters("hook")) == [1, 2]
        assert clock.at > 1_790_000_000.0 + 1800

    in_store(tmp_path, 2, story)


def test_a_target_that_wants_no_more_is_left_alone(tmp_path: Path) -> None:
    async def story(store: Store) -> None:
        async with Site({"/hook": 410}) as site:
            await _post(site, store, Time(), 5)
            assert len(site.log) == 1
        assert "410" in (await store.sink("hook")).stopped

    in_store(tmp_path, 3, story)


@pytest.mark.parametrize("secret", ["", "secret", "whsec_", "whsec_!!", "whsec_" + base64.b64encode(b"short").decode()])
def test_what_is_no_secret_is_refused(secret: str) -> None:
    with pytest.raises(InvalidInput, match="whsec_"):
        read_secret(secret, "secret")


def test_without_a_secret_there_is_no_signature() -> None:
    assert set(headers(None, "id", 1, b"")) == {"webhook-id", "webhook-timestamp"}
