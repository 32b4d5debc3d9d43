"""The fetch flow without a network: order, outcomes, robots, conditions, bodies."""

from __future__ import annotations

import gzip
from dataclasses import replace

import pytest
from flow_ground import NOW, PAGE, SETTINGS, Web, address, answering, rules

from recrawl.errors import InvalidInput
from recrawl.lab.livingweb.hostile import gzip_bomb
from recrawl.outcomes import OUTCOMES, Outcome, settles_as
from recrawl.web.conditional import NO_VALIDATORS, Validators
from recrawl.web.feeds.sitemap import MAX_BYTES
from recrawl.web.fetch.protocol import (
    BodyEnd,
    Channel,
    Chunk,
    Drop,
    Event,
    Fault,
    NeedRobots,
    Read,
    Send,
    Slot,
    WaitForSlot,
)
from recrawl.web.fetch.settings import FetchLimits
from recrawl.web.robots.entry import RobotsEntry, unreachable
from recrawl.web.url.address import AddressRules


def test_a_page_comes_whole_with_its_validators_and_its_freshness() -> None:
    body = gzip.compress(b"<p>hello", mtime=0)
    headers = {"ETag": '"v1"', "Content-Encoding": "gzip", "Cache-Control": "max-age=60"}
    result = Web({PAGE: (200, headers, body)}).fetch()
    assert (result.outcome, result.status, result.body) == ("ok", 200, b"<p>hello")
    assert result.validators == Validators(b'"v1"')
    assert result.fresh_for_s == 60.0
    assert (result.requests, result.wire_bytes, result.final.url) == (1, len(body), PAGE)
    assert result.has_page
    assert result.moved_to is None


def test_the_life_of_a_page_counts_from_the_date_of_the_answer() -> None:
    """Both clocks of the server may be wrong, by as much."""
    web = answering(200, Expires="Sun, 06 Nov 1994 08:59:37 GMT", Date="Sun, 06 Nov 1994 08:49:37 GMT")
    assert web.fetch().fresh_for_s == 600.0


@pytest.mark.parametrize("codings", ["gzip, chunked", "gzip", "chunked, chunked", "x-own"])
def test_a_body_that_is_packed_for_the_transfer_is_not_taken_as_it_is(codings: str) -> None:
    web = answering(200, Transfer_Encoding=codings)
    result = web.fetch()
    assert (result.outcome, result.fault, result.body) == ("network-error", "protocol", b"")
    assert isinstance(web.steps[-1], Drop)
    assert answering(404, Transfer_Encoding=codings).fetch().outcome == "missing"


@pytest.mark.parametrize("codings", ["chunked", " Chunked ", "identity", "identity, chunked"])
def test_a_body_in_chunks_is_the_body(codings: str) -> None:
    assert answering(200, Transfer_Encoding=codings).fetch().body == b"a page"


def test_the_order_is_robots_turn_request_body() -> None:
    web = answering(200)
    web.robots = rules("User-agent: *\nCrawl-delay: 3")
    web.fetch()
    assert [type(step) for step in web.steps] == [NeedRobots, WaitForSlot, Send, Read, Read]
    assert web.steps[1] == WaitForSlot(address(PAGE), 3.0, 0)


def test_the_request_is_honest_about_who_asks() -> None:
    web = answering(200)
    web.fetch()
    assert web.header(0, "User-Agent") == "recrawl/1.0 (+https://example.org/bot)"
    assert web.header(0, "Accept-Encoding") == "gzip, deflate, br, zstd"
    assert web.header(0, "Cookie") is None


@pytest.mark.parametrize(
    ("status", "headers", "outcome"),
    [
        (200, {}, "ok"),
        (203, {}, "ok"),
        (202, {"x_amzn_waf_action": "challenge"}, "blocked-page"),
        (403, {"cf_mitigated": "challenge"}, "blocked-page"),
        (400, {}, "forbidden"),
        (401, {}, "forbidden"),
        (403, {}, "forbidden"),
        (451, {}, "forbidden"),
        (404, {}, "missing"),
        (410, {}, "gone"),
        (408, {}, "server-error"),
        (425, {}, "server-error"),
        (429, {}, "rate-limited"),
        (500, {}, "server-error"),
        (503, {}, "server-error"),
        (503, {"retry_after": "7"}, "rate-limited"),
        (599, {}, "server-error"),
        (201, {}, "network-error"),
        (202, {}, "network-error"),
        (204, {}, "network-error"),
        (206, {}, "network-error"),
        (300, {}, "network-error"),
        (305, {}, "network-error"),
        (600, {}, "network-error"),
        (999, {}, "network-error"),
        (101, {}, "network-error"),
        (0, {}, "network-error"),
    ],
)
def test_each_status_has_its_outcome(status: int, headers: dict[str, str], outcome: Outcome) -> None:
    result = answering(status, **headers).fetch()
    assert (result.outcome, result.status) == (outcome, status)
    assert result.has_page == (outcome == "ok")


def test_every_outcome_settles_or_is_left_to_detection() -> None:
    assert {outcome for outcome in OUTCOMES if settles_as(outcome) is None} == {"ok", "moved", "deferred"}
    assert settles_as("truncated") == settles_as("server-error") == "failed"


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [("120", 120.0), ("9" * 5000, 86_400.0), ("-5", 0.0), ("soon", None), ("\u0663", None), ("", None)],
)
def test_a_wait_that_the_server_asks_for_is_read_and_capped(value: str, wait_s: float | None) -> None:
    assert answering(429, Retry_After=value).fetch().retry_after_s == wait_s


def test_an_error_page_is_kept_if_small_and_dropped_if_broken_or_a_bomb() -> None:
    assert Web({PAGE: (404, {}, b"not here")}).fetch().body == b"not here"
    for headers, body in (
        ({"Content-Encoding": "gzip"}, gzip_bomb(2)),
        ({"Content-Encoding": "gzip"}, b"garbage"),
        ({"Content-Encoding": "gzip, gzip, gzip"}, b"x"),
        ({}, bytes(100_000)),
    ):
        result = Web({PAGE: (404, headers, body)}).fetch()
        assert (result.outcome, result.body) == ("missing", b"")


def test_robots_are_asked_and_obeyed() -> None:
    web = answering(200)
    web.robots = rules("User-agent: *\nDisallow: /news/")
    result = web.fetch()
    assert (result.outcome, result.requests, result.status) == ("robots-denied", 0, None)
    assert web.sent == []


def test_a_host_that_cannot_be_reached_for_its_robots_is_a_network_fault_of_the_page() -> None:
    web = answering(200)
    web.robots = Fault("dns-missing", "the name does not exist")
    result = web.fetch()
    assert (result.outcome, result.fault, result.requests) == ("network-error", "dns-missing", 0)


def test_robots_that_nobody_can_read_deny_everything() -> None:
    web = answering(200)
    web.robots = RobotsEntry(unreachable("robots.txt answered 503"), NOW, NOW + 300.0)
    result = web.fetch()
    assert (result.outcome, result.reason) == ("robots-denied", "robots.txt answered 503")


def test_a_robots_txt_needs_no_leave_of_itself_and_is_cut_at_500_kib() -> None:
    url = "https://example.com/robots.txt"
    web = Web({url: (200, {}, b"#" * (600 * 1024))})
    result = web.fetch(url, channel="robots")
    assert (result.outcome, len(result.body)) == ("ok", 500 * 1024)
    assert not any(isinstance(step, NeedRobots) for step in web.steps)


def test_a_turn_that_is_not_granted_defers_the_fetch() -> None:
    web = answering(200)
    web.turn = lambda _: Slot(False, "the host rests until noon")
    result = web.fetch()
    assert (result.outcome, result.reason, result.requests) == ("deferred", "the host rests until noon", 0)


def test_an_opted_out_host_is_not_asked_not_even_for_its_robots() -> None:
    web = answering(200)
    result = web.fetch(settings=replace(SETTINGS, opted_out=frozenset({"example.com"})))
    assert (result.outcome, web.steps) == ("opted-out", [])


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("Example.com", "https://example.com/"),
        ("example.com.", "https://example.com/"),
        (" *.EXAMPLE.com.", "https://www.example.com/"),
        ("Bücher.example", "https://xn--bcher-kva.example/"),
        ("[2606:4700::AB]", "https://[2606:4700::ab]/"),
    ],
)
def test_an_opted_out_host_may_be_spelled_in_any_way(written: str, url: str) -> None:
    web = answering(200)
    assert web.fetch(url, settings=replace(SETTINGS, opted_out=frozenset({written}))).outcome == "opted-out"
    assert not web.sent


@pytest.mark.parametrize(
    "written", ["https://example.com/", "example.com/a", "a b.example", "", "*.", "a..b", "\ud800"]
)
def test_an_opted_out_name_that_can_be_no_host_is_refused_at_once(written: str) -> None:
    with pytest.raises(InvalidInput, match="opted_out holds"):
        replace(SETTINGS, opted_out=frozenset({written}))


def test_a_redirect_to_an_opted_out_host_is_not_followed() -> None:
    web = Web({PAGE: (302, {"Location": "https://www.shy.example/"}, b"")})
    result = web.fetch(settings=replace(SETTINGS, opted_out=frozenset({"*.shy.example"})))
    assert (result.outcome, result.requests) == ("opted-out", 1)


@pytest.mark.parametrize(
    ("tag", "outcome"),
    [
        ("noindex", "opted-out"),
        ("NOINDEX, nofollow", "opted-out"),
        ("none", "opted-out"),
        ("recrawl: noindex", "opted-out"),
        ("otherbot: noindex", "ok"),
        ("otherbot: nofollow, noindex", "ok"),
        ("nofollow", "ok"),
        ("unavailable_after: 25 Jun 2030 15:00:00 GMT, noindex", "opted-out"),
        ("max-snippet: 10", "ok"),
    ],
)
def test_noindex_is_honoured_where_it_is_meant_for_this_crawler(tag: str, outcome: Outcome) -> None:
    result = answering(200, X_Robots_Tag=tag).fetch()
    assert result.outcome == outcome
    assert result.body == (b"" if outcome == "opted-out" else b"a page")


@pytest.mark.parametrize("channel", ["robots", "sitemap", "feed"])
def test_noindex_on_what_is_no_page_does_not_hide_it(channel: Channel) -> None:
    assert answering(200, X_Robots_Tag="noindex").fetch(channel=channel).outcome == "ok"


def test_noindex_can_be_left_to_the_user() -> None:
    result = answering(200, X_Robots_Tag="noindex").fetch(settings=replace(SETTINGS, honour_noindex=False))
    assert result.outcome == "ok"
    assert result.directives.noindex


def test_validators_are_sent_back_byte_for_byte_and_a_304_is_believed() -> None:
    known = Validators(b'W/"odd', b"yesterday")
    web = answering(304)
    result = web.fetch(validators=known)
    assert (result.outcome, result.sent) == ("not-modified", known)
    assert web.header(0, "If-None-Match") == 'W/"odd'
    assert web.header(0, "If-Modified-Since") == "yesterday"


def test_a_304_that_nobody_asked_for_is_a_fault() -> None:
    result = answering(304).fetch()
    assert (result.outcome, result.fault) == ("network-error", "protocol")


def test_a_304_for_another_version_is_followed_by_a_request_for_the_page() -> None:
    web = Web({PAGE: [(304, {"ETag": '"other"'}, b""), (200, {}, b"the page")]})
    result = web.fetch(validators=Validators(b'"mine"'))
    assert (result.outcome, result.body, result.requests) == ("ok", b"the page", 2)
    assert web.header(1, "If-None-Match") is None
    assert result.sent == NO_VALIDATORS


@pytest.mark.parametrize(("size", "outcome"), [(52_428_800, "ok"), (52_428_801, "too-large")])
def test_a_sitemap_may_have_the_50_mebibytes_of_the_protocol(size: int, outcome: str) -> None:
    """As many as its reader takes (`feeds/sitemap.py`)."""
    assert MAX_BYTES == 52_428_800
    chunk = bytes(1 << 20)
    body: list[Event] = [*[Chunk(chunk)] * (size >> 20), Chunk(bytes(size % (1 << 20))), BodyEnd()]
    result = Web({PAGE: (200, {}, body)}).fetch(channel="sitemap")
    assert (result.outcome, len(result.body)) == (outcome, size if outcome == "ok" else 0)


def test_a_last_modified_within_the_second_of_the_answer_is_no_validator() -> None:
    when, later = "Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:38 GMT"
    fresh = Web({PAGE: (200, {"Last-Modified": when, "Date": when}, b"text")}).fetch()
    assert fresh.validators == Validators()
    settled = Web({PAGE: (200, {"Last-Modified": when, "Date": later}, b"text")}).fetch()
    assert settled.validators == Validators(None, when.encode())


def test_validators_do_not_travel_with_a_redirect() -> None:
    web = Web({PAGE: (302, {"Location": "/b"}, b""), "https://example.com/b": (200, {}, b"b")})
    web.fetch(validators=Validators(b'"v"'))
    assert web.header(0, "If-None-Match") == '"v"'
    assert web.header(1, "If-None-Match") is None


def test_validators_go_to_the_end_of_the_redirects_where_they_came_from() -> None:
    end = "https://en.example/b"
    web = Web({PAGE: (302, {"Location": end}, b""), end: (304, {}, b"")})
    result = web.fetch(validators=Validators(b'"v"'), validated_at=address(end))
    assert (result.outcome, result.final.url) == ("not-modified", end)
    assert web.header(0, "If-None-Match") is None
    assert web.header(1, "If-None-Match") == '"v"'


@pytest.mark.parametrize("kind", ["closed", "reset"])
def test_a_body_that_is_cut_off_is_truncated_and_not_kept(kind: str) -> None:
    cut: list[Event] = [Chunk(b"half of"), Fault(kind, "cut")]  # type: ignore[arg-type]
    result = Web({PAGE: (200, {}, cut)}).fetch()
    assert (result.outcome, result.fault, result.body) == ("truncated", kind, b"")
    assert not result.has_page


def test_a_body_that_takes_too_long_is_a_failure() -> None:
    slow: list[Event] = [Chunk(b"half of"), Fault("timeout", "too slow")]
    result = Web({PAGE: (200, {}, slow)}).fetch()
    assert (result.outcome, result.fault, result.body) == ("network-error", "timeout", b"")


def test_a_body_over_the_cap_is_dropped_as_soon_as_it_is_known() -> None:
    endless: list[Event] = [Chunk(bytes(600)), Chunk(bytes(600))]
    settings = replace(SETTINGS, limits=FetchLimits(most_body_bytes=1000))
    web = Web({PAGE: (200, {}, endless)})
    result = web.fetch(settings=settings)
    assert (result.outcome, result.body) == ("too-large", b"")
    assert isinstance(web.steps[-1], Drop)


def test_a_body_that_announces_too_much_is_not_read_at_all() -> None:
    unread: list[Event] = []
    for length, outcome in (("100000000", "too-large"), ("9" * 18, "too-large")):
        result = Web({PAGE: (200, {"Content-Length": length}, unread)}).fetch()
        assert (result.outcome, result.wire_bytes) == (outcome, 0)
    assert Web({PAGE: (200, {"Content-Length": "12345, 9"}, b"x")}).fetch().outcome == "ok"
    error = Web({PAGE: (404, {"Content-Length": "100000000"}, unread)}).fetch()
    assert (error.outcome, error.body) == ("missing", b"")


@pytest.mark.parametrize(
    ("encoding", "body", "outcome", "fault"),
    [
        ("gzip", gzip.compress(b"hello" * 9, mtime=0)[:-3], "truncated", "closed"),
        ("gzip", b"no gzip", "network-error", "coding"),
        ("gzip, gzip, gzip", b"x", "network-error", "coding"),
        ("compress", b"x", "network-error", "coding"),
    ],
)
def test_a_body_that_cannot_be_decoded_has_its_outcome(
    encoding: str, body: bytes, outcome: Outcome, fault: str
) -> None:
    result = Web({PAGE: (200, {"Content-Encoding": encoding}, body)}).fetch()
    assert (result.outcome, result.fault, result.body) == (outcome, fault, b"")


def test_too_many_headers_and_headers_too_long_are_faults() -> None:
    many = Web({PAGE: (200, {f"h{n}": "v" for n in range(129)}, b"")}).fetch()
    long = Web({PAGE: (200, {"h": "v" * 9000}, b"")}).fetch()
    assert [(result.outcome, result.fault) for result in (many, long)] == [("network-error", "headers")] * 2


def test_a_fault_before_the_answer_is_its_own_outcome() -> None:
    refused = Web({PAGE: Fault("refused", "the gate is shut")}).fetch()
    missing = Web({PAGE: Fault("dns-missing", "no such name")}).fetch()
    assert (refused.outcome, refused.reason) == ("refused", "the gate is shut")
    assert (missing.outcome, missing.fault, missing.status) == ("network-error", "dns-missing", None)


def test_limits_out_of_all_reason_are_refused_by_name() -> None:
    for name, value in (("total_s", 0.0), ("total_s", float("nan")), ("most_redirects", 21), ("most_codings", -1)):
        with pytest.raises(InvalidInput, match=name):
            FetchLimits(**{name: value})  # type: ignore[arg-type]


def test_a_longer_address_is_followed_where_the_user_allows_it() -> None:
    far = "https://example.com/" + "a" * 3000
    web = Web({PAGE: (302, {"Location": far}, b""), far: (200, {}, b"x")})
    assert web.fetch().outcome == "refused"
    web = Web({PAGE: (302, {"Location": far}, b""), far: (200, {}, b"x")})
    assert web.fetch(settings=replace(SETTINGS, address_rules=AddressRules(max_length=4096))).outcome == "ok"
