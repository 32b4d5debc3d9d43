"""A hub verifies a subscription at its callback, and tells of a change with its signature."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import replace

import pytest
from service_ground import SETTINGS, Ground, Service

from recrawl.store.rows import SourceRow
from recrawl.tracker.discovery.source import Source
from recrawl.tracker.settings.settings import SignalRules
from recrawl.web.push.websub import HubLinks, unpack_subscription
from recrawl.web.url.address import Address, read_address

FEED = "https://feed.example/atom"


@pytest.fixture(scope="module")
def listening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """A service that hubs can call."""
    signals = SignalRules(callback="https://crawl.example.com")
    service = Service(tmp_path_factory.mktemp("websub"), replace(SETTINGS, discover=True, signals=signals))
    try:
        yield service.begin()
    finally:
        service.end()


def subscribed(ground: Ground) -> tuple[Source, str, str]:
    """A source whose hub was asked: its callback's path and its secret."""
    sources = ground.harness.sources
    (number,) = ground.add(FEED)
    source = Source(SourceRow(number, "feed"), FEED, "feed.example")
    sources.book.put(source)
    hub, topic = read_address("https://hub.example/"), read_address(FEED)
    assert isinstance(hub, Address)
    assert isinstance(topic, Address)
    sources.subscriptions.found(source, HubLinks((hub,), topic))
    wanted = unpack_subscription(source.memory.subscription)
    assert wanted is not None
    sources.subscriptions._put(source, wanted.asked(ground.harness.now()))
    return source, wanted.callback.removeprefix("https://crawl.example.com"), wanted.secret


def test_a_hub_is_answered_and_believed_by_its_signature(listening: Ground) -> None:
    """What it did not sign changes nothing; every push is answered alike."""
    source, path, secret = subscribed(listening)
    asked = {"hub.mode": "subscribe", "hub.topic": FEED, "hub.challenge": "<script>", "hub.lease_seconds": "86400"}
    other = asked | {"hub.topic": "https://other.example/"}
    assert listening.ask("GET", path, None, params=other).status_code == 404
    answer = listening.ask("GET", path, None, params=asked)
    assert (answer.status_code, answer.text) == (200, "<script>")
    assert answer.headers["content-type"].startswith("text/plain")
    assert "sandbox" in answer.headers["content-security-policy"]
    body = b"<feed/>"
    for signature in ("", "sha256=" + "0" * 64, "sha256=" + hmac.new(b"other", body, hashlib.sha256).hexdigest()):
        assert (
            listening.ask("POST", path, None, content=body, headers={"X-Hub-Signature": signature}).status_code == 202
        )
        assert source.memory.pushed_at == 0.0
    right = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    assert listening.ask("POST", path, None, content=body, headers={"X-Hub-Signature": right}).status_code == 202
    assert source.memory.pushed_at > 0.0
