"""Signed pings: only who knows the secret is heard, once, and about now."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.errors import InvalidInput
from recrawl.web.push.webhook import ReplayMemory, SignedPing, headers, read_secret, read_signed_ping, verified_id
from recrawl.web.refused import Refused

SECRET, OTHER = bytes(range(32)), bytes(range(1, 33))
NOW = 1_700_000_000.0
BODY = b'{"urls": ["https://a.example/x", "https://a.example/x#top", "ftp://a.example/"]}'


def read(body: bytes = BODY, memory: ReplayMemory | None = None, **changes: Any) -> SignedPing | Refused:
    """A message signed by us, with some of its headers changed."""
    secret, at, message_id = changes.pop("secret", SECRET), changes.pop("at", NOW), changes.pop("id", "msg_1")
    signed = headers(secret, message_id, int(at), body) | {f"webhook-{name}": value for name, value in changes.items()}
    return read_signed_ping(signed, body, [OTHER, SECRET], NOW, ReplayMemory() if memory is None else memory)


def rule(found: SignedPing | Refused) -> str:
    return found.rule if isinstance(found, Refused) else "taken"


def test_a_signed_ping_is_read() -> None:
    ping = read()
    assert isinstance(ping, SignedPing)
    assert (ping.id, ping.kind, ping.urls.urls) == ("msg_1", "webhook", ("https://a.example/x",))
    assert (ping.urls.repeated, ping.urls.refused) == (1, {"scheme": 1})


def test_a_ping_may_name_its_kind() -> None:
    ping = read(b'{"urls": [], "kind": "cms-publish"}')
    assert isinstance(ping, SignedPing)
    assert ping.kind == "cms-publish"


def test_the_vector_of_the_specification_is_taken() -> None:
    """From the reference libraries of Standard Webhooks."""
    message_id = "msg_p5jXN8AQM9LWM0D4loKWxJek"
    signed = {
        "webhook-id": message_id,
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    secret = read_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "secret")
    assert verified_id(signed, b'{"test": 2432232314}', [secret], 1_614_265_330.0) == message_id


def test_any_of_several_signatures_and_secrets_may_fit() -> None:
    right = headers(SECRET, "msg_1", int(NOW), BODY)["webhook-signature"]
    assert rule(read(signature=f"v1a,AAAA v2,xx {right}")) == "taken"
    assert rule(read(secret=OTHER)) == "taken"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"secret": bytes(31)}, "signature"),
        ({"signature": "v1,"}, "signature"),
        ({"signature": "v1,AAAA"}, "signature"),
        ({"signature": " " * 50}, "signature"),
        ({"signature": ""}, "headers"),
        ({"signature": "v1,é"}, "headers"),
        ({"signature": "v1,A " * 10_000}, "headers"),
        ({"at": NOW - 301}, "time"),
        ({"at": NOW + 301}, "time"),
        ({"at": NOW - 299}, "taken"),
        ({"timestamp": "1e9"}, "headers"),
        ({"timestamp": "\u0661\u0667"}, "headers"),
        ({"timestamp": "-1"}, "headers"),
        ({"timestamp": "9" * 5000}, "headers"),
        ({"timestamp": str(int(NOW) + 1)}, "signature"),
        ({"id": "msg_1", "signature": headers(SECRET, "msg_2", int(NOW), BODY)["webhook-signature"]}, "signature"),
        ({"id": ""}, "headers"),
        ({"id": "a.1"}, "headers"),
        ({"id": "x" * 257}, "headers"),
    ],
)
def test_what_is_not_signed_now_by_one_who_knows_the_secret_is_refused(changes: dict[str, Any], expected: str) -> None:
    assert rule(read(**changes)) == expected


def test_headers_that_are_missing_are_refused() -> None:
    assert rule(read_signed_ping({}, BODY, [SECRET], NOW, ReplayMemory())) == "headers"
    assert rule(read_signed_ping(headers(None, "a", int(NOW), BODY), BODY, [SECRET], NOW, ReplayMemory())) == "headers"


def test_without_a_secret_nobody_is_heard() -> None:
    signed = headers(b"", "a", int(NOW), BODY)
    assert rule(read_signed_ping(signed, BODY, [], NOW, ReplayMemory())) == "signature"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", "body"),
        (b"[]", "body"),
        (b"{}", "body"),
        (b'{"urls": "https://a.example/"}', "body"),
        (b'{"urls": [1]}', "body"),
        (b'{"urls": [], "kind": "No Such"}', "body"),
        (b'{"urls": [], "kind": ""}', "body"),
        (b'{"urls": ["\xff"]}', "body"),
        (b'{"urls": ["\\ud800"]}', "body"),
        (b'{"urls": ' + b"[" * 100_000, "body"),
        (json.dumps({"urls": ["a"] * 10_001}).encode(), "too-long"),
        (json.dumps({"urls": ["a"] * 300_000}).encode(), "too-long"),
        (b" " * 10_000_001, "too-long"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_and_its_id_not_remembered(body: bytes, expected: str) -> None:
    memory = ReplayMemory()
    assert rule(read(body, memory)) == expected
    assert memory.kept == 0


def test_a_message_counts_once_and_a_forged_one_cannot_use_up_its_id() -> None:
    memory = ReplayMemory()
    assert rule(read(memory=memory, signature="v1,AAAA")) == "signature"
    assert rule(read(memory=memory)) == "taken"
    assert rule(read(memory=memory)) == "replay"
    assert rule(read(memory=memory, id="msg_2")) == "taken"


def test_an_id_is_remembered_for_as_long_as_its_message_would_be_taken() -> None:
    memory = ReplayMemory()
    assert memory.is_new("a", 0.0)
    assert not memory.is_new("a", 599.0)
    assert memory.is_new("b", 600.0)
    assert memory.kept == 1
    assert memory.is_new("a", 600.0)


def test_the_memory_of_ids_is_bounded() -> None:
    memory = ReplayMemory(most=100)
    assert all(memory.is_new(str(number), 0.0) for number in range(1000))
    assert memory.kept == 100
    assert not memory.is_new("999", 1.0)
    with pytest.raises(InvalidInput, match="most"):
        ReplayMemory(most=0)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=60), st.binary(max_size=60))
def test_no_message_raises(message_id: str, timestamp: str, signature: str, body: bytes) -> None:
    given_headers = {"webhook-id": message_id, "webhook-timestamp": timestamp, "webhook-signature": signature}
    assert isinstance(read_signed_ping(given_headers, body, [SECRET], NOW, ReplayMemory()), Refused)
    assert rule(read(body)) in ("taken", "body")
