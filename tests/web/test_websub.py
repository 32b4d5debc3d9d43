"""WebSub as a subscriber: hubs are found, asked and answered as the recommendation says, and strangers ignored."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.errors import InvalidInput
from recrawl.web.content.page import read_page
from recrawl.web.feeds.feed import parse_feed
from recrawl.web.push.websub import (
    ASKED_LEASE_S,
    LONGEST_LEASE_S,
    LONGEST_RETRY_S,
    Subscription,
    hub_links,
    is_genuine,
    new_subscription,
    pack_subscription,
    subscription_form,
    unpack_subscription,
    verification,
)
from recrawl.web.url.address import Address, read_address

TOPIC, HUB, CALLBACK, SECRET = (
    "https://a.example/feed?x=1&y",
    "https://hub.example/",
    "https://me.example/w/1",
    "s3cret",
)
HOUR, DAY = 3600.0, 86_400.0
WANTED = new_subscription(TOPIC, HUB, CALLBACK, SECRET)
LIVE = WANTED.asked(0.0).granted(10 * DAY, 0.0, 0.5)


def page(url: str = "https://a.example/feed") -> Address:
    address = read_address(url)
    assert isinstance(address, Address)
    return address


def found(headers: list[bytes], body: bytes = b"") -> tuple[list[str], str]:
    is_feed = body.startswith((b"<feed", b"<rss"))
    elements = parse_feed(body, page(), 0.0).elements if is_feed else read_page(body, "text/html").elements
    links = hub_links(headers, elements, page())
    return [hub.url for hub in links.hubs], links.topic.url


def asked(subscription: Subscription | None, now: float = 10.0, **changes: str) -> tuple[int, bytes, Any]:
    given_fields = {"hub.mode": "subscribe", "hub.topic": TOPIC, "hub.challenge": "c+/=", "hub.lease_seconds": "864000"}
    fields = given_fields | {f"hub.{name}": value for name, value in changes.items()}
    answer, after = verification(subscription, urlencode(fields), now, 0.5)
    return answer.status, answer.body, after


def test_hub_and_topic_are_found_in_headers_pages_and_feeds() -> None:
    expected = (["https://hub.example/"], "https://a.example/self")
    assert found([b'<https://hub.example/>; rel="hub", </self>; rel="self"']) == expected
    assert found([b"<https://hub.example/>;rel=HUB", b'</self>; title="a, <b>"; rel="self alternate"']) == expected
    assert found([], b"<html><head><LINK REL=hub HREF='https://hub.example/'><link href=/self rel=self>") == expected
    atom = b'<feed xmlns="x"><link rel="hub" href="https://hub.example/"/><link rel="self" href="/self"/><entry>'
    assert found([], atom) == expected
    rss = b'<rss><channel><atom:link rel="hub" href="https://hub.example/"/><atom10:link rel="self" href="/self" />'
    assert found([], rss) == expected


def test_headers_come_before_elements_and_a_page_without_self_is_its_own_topic() -> None:
    body = b'<link rel="hub" href="https://other.example/">'
    assert found([b"<https://hub.example/>; rel=hub"], body) == (["https://hub.example/"], "https://a.example/feed")


def test_a_page_cannot_have_us_listen_for_another_host() -> None:
    assert (
        found([b"<https://hub.example/>; rel=hub, <https://victim.example/>; rel=self"])[1] == "https://a.example/feed"
    )


def test_links_of_entries_comments_and_scripts_are_no_hubs() -> None:
    entry = b'<feed><entry><link rel="self" href="/e"/><link rel="hub" href="https://evil.example/"/></entry></feed>'
    assert found([], entry) == ([], "https://a.example/feed")
    for start, end in ((b"<!--", b"-->"), (b"<script>", b"</script>"), (b"<![CDATA[", b"]]>"), (b'<p title="', b'">')):
        assert found([], start + b"<link rel=hub href=https://evil.example/>" + end)[0] == []


def test_hubs_that_cannot_be_addresses_are_left_out_and_their_number_is_bounded() -> None:
    assert (
        found([b"<javascript:1>; rel=hub, <http://localhost/>; rel=hub, <>; rel=hub, <ftp://a.example/>; rel=hub"])[0]
        == []
    )
    many = b", ".join(b"<https://hub%d.example/>; rel=hub" % number for number in range(100))
    assert len(found([many])[0]) == 5


def test_the_form_asks_for_a_lease_with_a_secret_and_takes_leave_without() -> None:
    assert parse_qs(subscription_form(WANTED).decode(), strict_parsing=True) == {
        "hub.mode": ["subscribe"], "hub.topic": [TOPIC], "hub.callback": [CALLBACK],
        "hub.lease_seconds": ["864000"], "hub.secret": [SECRET],
    }  # fmt: skip
    leaving = parse_qs(subscription_form(LIVE.ending(1.0)).decode())
    assert leaving == {"hub.mode": ["unsubscribe"], "hub.topic": [TOPIC], "hub.callback": [CALLBACK]}


def test_a_verification_that_we_asked_for_is_echoed_and_begins_the_lease() -> None:
    status, body, after = asked(WANTED.asked(0.0))
    assert (status, body) == (200, b"c+/=")
    assert after.is_active(10.0 + 10 * DAY - 1)
    assert not after.is_active(10.0 + 10 * DAY)


@pytest.mark.parametrize(
    ("subscription", "changes"),
    [
        (None, {}),
        (WANTED, {}),
        (WANTED.asked(0.0), {"topic": "https://a.example/other"}),
        (WANTED.asked(0.0), {"mode": "unsubscribe"}),
        (WANTED.asked(0.0), {"mode": "publish"}),
        (WANTED.asked(0.0), {"challenge": ""}),
        (WANTED.asked(0.0), {"challenge": "x" * 5000}),
        (LIVE, {"mode": "unsubscribe"}),
        (LIVE.ending(0.0), {}),
        (None, {"mode": "denied"}),
        (LIVE, {"mode": "denied", "topic": "x"}),
    ],
)
def test_what_we_did_not_ask_for_is_not_found_and_changes_nothing(
    subscription: Subscription | None, changes: dict[str, str]
) -> None:
    assert asked(subscription, 10.0, **changes) == (404, b"", subscription)


def test_a_second_verification_is_echoed_but_does_not_lengthen_the_lease() -> None:
    assert asked(LIVE, 5 * DAY) == (200, b"c+/=", LIVE)


@pytest.mark.parametrize(
    ("lease", "seconds"),
    [("60", 60.0), ("0", 1.0), ("", ASKED_LEASE_S), ("-5", ASKED_LEASE_S), ("1e9", ASKED_LEASE_S), ("٣", ASKED_LEASE_S),
     ("9" * 10, LONGEST_LEASE_S), ("9" * 5000, ASKED_LEASE_S)],
)  # fmt: skip
def test_no_lease_is_believed_without_bounds(lease: str, seconds: float) -> None:
    assert asked(WANTED.asked(0.0), lease_seconds=lease)[2].lease_until == 10.0 + seconds


def test_a_denial_ends_the_lease_and_the_hub_is_left_alone_for_a_day() -> None:
    status, _, after = asked(LIVE, DAY, mode="denied", reason="no \x1b[31m more")
    assert status == 200
    assert not after.is_active(DAY)
    assert "no" in after.problem
    assert after.problem.isprintable()
    assert after.next_step(DAY)[1] == ("wait", 2 * DAY)


@pytest.mark.parametrize("method", ["sha1", "sha256", "sha384", "sha512"])
def test_a_push_is_genuine_only_with_the_right_signature(method: str) -> None:
    right = hmac.new(SECRET.encode(), b"news", getattr(hashlib, method)).hexdigest()
    assert is_genuine(SECRET, f"{method}={right}", b"news")
    assert is_genuine(SECRET, f"{method.upper()}={right.upper()}", b"news")
    assert not is_genuine(SECRET, f"{method}={right}", b"news!")
    assert not is_genuine("other", f"{method}={right}", b"news")
    assert not is_genuine(SECRET, f"{method}={right[:-2]}", b"news")
    assert not is_genuine(SECRET, f"md5={right}", b"news")
    assert not is_genuine(SECRET, right, b"news")


def test_the_signature_of_another_key_and_method_is_as_computed_by_hand() -> None:
    """The vector of RFC 4231, case 2."""
    expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert is_genuine("Jefe", f"sha256={expected}", b"what do ya want for nothing?")


def test_a_new_subscription_is_asked_for_at_once_and_then_waits_an_hour() -> None:
    assert WANTED.next_step(5.0) == (WANTED, ("subscribe", 5.0))
    waiting = WANTED.asked(5.0)
    assert waiting.answered(202, 6.0) == waiting
    assert waiting.next_step(6.0) == (waiting, ("wait", 5.0 + HOUR))
    assert not waiting.is_active(6.0)


def test_without_a_verification_within_an_hour_it_is_tried_again_ever_more_rarely() -> None:
    state, now, waits = WANTED, 0.0, []
    for _ in range(12):
        state, step = state.asked(now).next_step(now + HOUR, chance=1.0)
        assert step.kind == "wait"
        assert not state.is_active(now)
        waits.append(step.at - now - HOUR)
        now = step.at
        assert state.next_step(now)[1].kind == "subscribe"
    assert waits[:4] == [HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR]
    assert waits[-1] == LONGEST_RETRY_S
    assert "did not verify" in state.problem


@pytest.mark.parametrize("status", [0, 300, 400, 404, 410, 429, 500, 503])
def test_a_hub_that_refuses_is_asked_again_later(status: int) -> None:
    state, step = WANTED.asked(0.0).answered(status, 1.0, chance=0.0).next_step(1.0)
    assert step == ("wait", 1.0 + 0.75 * HOUR)
    assert state.problem


def test_a_hub_may_verify_before_it_answers() -> None:
    assert LIVE.answered(500, 1.0) == LIVE


def test_a_lease_is_renewed_before_it_ends_at_times_that_are_spread() -> None:
    times = [WANTED.asked(0.0).granted(10 * DAY, 0.0, chance).next_step(0.0)[1].at for chance in (0.0, 0.5, 1.0)]
    assert times == pytest.approx([7 * DAY, 8 * DAY, 9 * DAY])
    assert LIVE.next_step(8 * DAY)[1].kind == "subscribe"


def test_the_old_lease_goes_on_while_it_is_renewed_and_failures_use_what_is_left_of_it() -> None:
    state, now, tries = LIVE, 8 * DAY, 0
    while state.is_active(now):
        state, step = state.next_step(now)
        if step.kind == "subscribe":
            tries += 1
            state = state.asked(now).answered(503, now)
        else:
            now = step.at
    assert tries >= 4
    polling, step = state.next_step(now)
    assert polling.lease_until is None
    assert step.kind in ("subscribe", "wait")
    renewed = polling.asked(now).granted(DAY, now, 0.5)
    assert renewed.is_active(now)
    assert (renewed.failures, renewed.problem) == (0, "")


def test_a_hub_with_leases_of_seconds_cannot_make_us_ask_without_end() -> None:
    state = WANTED.asked(0.0).granted(1.0, 0.0, 0.5)
    assert state.next_step(0.5)[1] == ("wait", 300.0)
    now, tries = 0.0, 0
    while now < HOUR:
        state, step = state.next_step(now)
        if step.kind == "subscribe":
            tries += 1
            state = state.asked(now).granted(1.0, now, 0.5)
        now = max(step.at, now + 1.0)
    assert tries <= 13


def test_an_end_is_told_to_the_hub_until_it_verifies_or_a_few_tries_failed() -> None:
    leaving = LIVE.ending(DAY)
    assert not leaving.is_active(DAY)
    assert leaving.next_step(DAY)[1].kind == "unsubscribe"
    status, body, after = asked(leaving.asked(DAY), DAY, mode="unsubscribe")
    assert (status, body) == (200, b"c+/=")
    assert after.next_step(DAY)[1].kind == "done"
    assert WANTED.ending(0.0).next_step(0.0)[1].kind == "done"
    for now in (DAY, 2 * DAY, 3 * DAY):
        leaving = leaving.asked(now).answered(500, now)
    assert leaving.next_step(3 * DAY)[1].kind == "done"


def test_a_clock_that_goes_back_leaves_nothing_waiting_for_ever() -> None:
    far = 100 * 365 * DAY
    for state in (WANTED.asked(far), WANTED.asked(far).granted(DAY, far, 0.5), WANTED.asked(far).answered(500, far)):
        after, step = state.next_step(0.0)
        assert step.at <= LONGEST_RETRY_S
        assert after.lease_until is None or after.lease_until <= LONGEST_LEASE_S


def test_a_subscription_survives_a_restart_and_damage_is_noticed() -> None:
    for state in (WANTED, WANTED.asked(5.0), LIVE, LIVE.ending(7.0), LIVE.denied("no", 3.0, 0.5)):
        assert unpack_subscription(pack_subscription(state)) == state
    packed = pack_subscription(LIVE)
    damaged = (b"", b"{}", packed[:-1], packed + b"x", packed.replace(b"subscribe", b"x"), b"\xff", b"[" * 9999)
    assert [unpack_subscription(each) for each in damaged] == [None] * len(damaged)


def test_a_secret_is_short_enough_for_every_hub() -> None:
    for secret in ("", "x" * 200, "é" * 100):
        with pytest.raises(InvalidInput, match="secret"):
            new_subscription(TOPIC, HUB, CALLBACK, secret)


steps = st.lists(
    st.tuples(
        st.sampled_from(["ask", "answer", "grant", "deny", "end", "wait"]), st.floats(-1e5, 1e6), st.floats(0, 1)
    ),
    max_size=12,
)


@settings(max_examples=200, deadline=None)
@given(steps)
def test_whatever_happens_there_is_always_a_next_step_in_finite_time(happened: list[tuple[str, float, float]]) -> None:
    state, now = WANTED, 1e9
    for what, later, chance in happened:
        now += later
        if what == "ask":
            state = state.asked(now)
        elif what == "answer":
            state = state.answered(503, now, chance)
        elif what == "end":
            state = state.ending(now)
        elif what == "wait":
            state, _ = state.next_step(now, chance)
        elif not state.is_over:
            mode = {"grant": state.mode, "deny": "denied"}[what]
            state = asked(state, now, mode=mode, lease_seconds=str(int(later)))[2]
        after, step = state.next_step(now, chance)
        assert now <= step.at <= now + max(LONGEST_LEASE_S, LONGEST_RETRY_S)
        assert unpack_subscription(pack_subscription(after)) == after


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80), st.text(max_size=40), st.binary(max_size=40))
def test_no_query_and_no_signature_raises(query: str, signature: str, body: bytes) -> None:
    assert verification(LIVE, query, 1.0, 0.5)[1] is LIVE
    assert verification(LIVE, "&".join([query] * 100), 1.0, 0.5)[0].status == 404
    assert not is_genuine(SECRET, signature, body)
    assert not is_genuine(SECRET, f"sha256={signature}", body)
