"""The fetch flow without a network: redirects, and what does not travel with them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from flow_ground import NOW, PAGE, SETTINGS, Answer, Web, address, answering, rules

from recrawl.web.fetch.egress import egress_policy
from recrawl.web.fetch.flow import fetch_flow
from recrawl.web.fetch.protocol import (
    GRANTED,
    Channel,
    Dropped,
    Event,
    FetchJob,
    Head,
    NeedRobots,
    Slot,
    Step,
    WaitForSlot,
)
from recrawl.web.fetch.settings import FetchLimits, read_credentials


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_followed_and_its_body_never_read(status: int) -> None:
    never: list[Event] = []  # reading it would fail
    web = Web(
        {
            PAGE: (status, {"Location": "/b", "Content-Encoding": "gzip"}, never),
            "https://example.com/b": (200, {}, b"b"),
        }
    )
    result = web.fetch()
    assert result.body == b"b"
    assert result.outcome == ("moved" if status in (301, 308) else "ok")
    assert (None if result.moved_to is None else result.moved_to.target) == ("/b" if status in (301, 308) else None)


def test_a_page_has_moved_as_far_as_the_first_redirects_are_permanent() -> None:
    web = Web(
        {
            "http://example.com/": (301, {"Location": "https://example.com/"}, b""),
            "https://example.com/": (308, {"Location": "/en"}, b""),
            "https://example.com/en": (302, {"Location": "/en/login"}, b""),
            "https://example.com/en/login": (200, {}, b"log in"),
        }
    )
    result = web.fetch("http://example.com/")
    assert result.outcome == "moved"
    assert result.moved_to == address("https://example.com/en")
    assert [hop.status for hop in result.hops] == [301, 308, 302]


def test_each_hop_asks_robots_and_turn_anew() -> None:
    web = Web({PAGE: (302, {"Location": "https://b.example/"}, b""), "https://b.example/": (200, {}, b"b")})
    web.fetch()
    asked = [step.address.host for step in web.steps if isinstance(step, NeedRobots)]
    turns = [(step.address.host, step.hop) for step in web.steps if isinstance(step, WaitForSlot)]
    assert asked == ["example.com", "b.example"]
    assert turns == [("example.com", 0), ("b.example", 1)]


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/passwd",
        "data:text/html,hi",
        "ftp://example.com/",
        "gopher://example.com/",
        "javascript:alert(1)",
        "http://127.0.0.1/",
        "http://0x7f000001/",
        "http://2130706433/",
        "http://localhost/",
        "//10.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:169.254.169.254]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://example.com:22/",
        "http://169.254.169.254:8888\\@example.com/",
        "http://user:pw@example.com/",
        "https://example.com/" + "a" * 5000,
        "/a\tb",
        "/%00",
    ],
)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_where_no_crawl_may_go_is_refused(location: str, status: int) -> None:
    web = Web({PAGE: (status, {"Location": location}, b"")})
    result = web.fetch()
    assert (result.outcome, result.fault) == ("refused", "refused")
    assert "refused by the rule" in result.reason
    assert len(web.sent) == 1


@pytest.mark.parametrize("location", ["", "  "])
def test_a_redirect_without_a_place_to_go_is_a_fault_or_a_circle(location: str) -> None:
    result = Web({PAGE: (302, {"Location": location}, b"")}).fetch()
    assert (result.outcome, result.fault) == ("network-error", "redirect")
    assert Web({PAGE: (302, {}, b"")}).fetch().fault == "redirect"


def test_a_location_longer_than_any_address_is_not_even_parsed() -> None:
    result = Web({PAGE: (302, {"Location": "/" + "a" * 100_000}, b"")}).fetch()
    assert (result.outcome, result.fault) == ("network-error", "headers")


def test_of_two_locations_that_differ_none_is_followed() -> None:
    flow = fetch_flow(FetchJob(address(PAGE)), SETTINGS, lambda: 0.0, NOW)
    head = Head(302, ((b"Location", b"/a"), (b"location", b"/b")))
    next(flow)
    for event in (rules(), GRANTED, head):
        flow.send(event)
    with pytest.raises(StopIteration) as end:
        flow.send(Dropped())
    assert (end.value.value.outcome, end.value.value.fault) == ("network-error", "redirect")


def test_circles_are_seen_at_once() -> None:
    b = "https://example.com/b"
    itself = Web({PAGE: (301, {"Location": PAGE + "#x"}, b"")})
    flip = Web({PAGE: (301, {"Location": b}, b""), b: (302, {"Location": PAGE}, b"")})
    inner = Web({PAGE: (302, {"Location": b}, b""), b: (302, {"Location": b}, b"")})
    for web, requests in ((itself, 1), (flip, 2), (inner, 2)):
        result = web.fetch()
        assert (result.outcome, result.fault, result.requests) == ("network-error", "redirect", requests)
        assert "redirect loop" in result.reason


@pytest.mark.parametrize(("channel", "most"), [("page", 10), ("robots", 5)])
def test_a_chain_ends_at_ten_hops_and_at_five_for_robots(channel: Channel, most: int) -> None:
    def chain(length: int) -> Web:
        answers: dict[str, Answer | list[Answer]] = {
            f"https://example.com/{n}": (302, {"Location": f"/{n + 1}"}, b"") for n in range(length)
        }
        return Web({**answers, f"https://example.com/{length}": (200, {}, b"there")})

    assert chain(most).fetch("https://example.com/0", channel=channel).body == b"there"
    result = chain(most + 1).fetch("https://example.com/0", channel=channel)
    assert (result.outcome, result.fault, result.requests) == ("network-error", "redirect", most + 1)


def test_all_hops_share_one_deadline() -> None:
    web = Web({f"https://example.com/{n}": (302, {"Location": f"/{n + 1}"}, b"") for n in range(9)}, seconds_each=12.0)
    result = web.fetch("https://example.com/0")
    assert (result.outcome, result.fault, result.requests) == ("network-error", "timeout", 3)
    assert [step.deadline for step in web.sent] == [1030.0] * 3


def test_slow_robots_on_the_way_come_out_of_the_same_time_but_those_of_the_first_host_do_not() -> None:
    class SlowRobots(Web):
        def _event(self, step: Step) -> Event:
            self.clock += 12.0 if isinstance(step, NeedRobots) else 0.0
            return super()._event(step)

    web = SlowRobots(
        {f"https://h{n}.example/": (302, {"Location": f"https://h{n + 1}.example/"}, b"") for n in range(9)}
    )
    result = web.fetch("https://h0.example/")
    assert (result.outcome, result.fault, result.requests) == ("network-error", "timeout", 3)
    assert web.clock == 1000.0 + 4 * 12.0


def test_two_kinds_of_redirect_that_point_at_each_other_are_a_circle() -> None:
    web = Web({PAGE: (301, {"Location": "/b"}, b""), "https://example.com/b": (302, {"Location": "/news/today"}, b"")})
    result = web.fetch()
    assert (result.outcome, result.fault, result.requests) == ("network-error", "redirect", 2)


def test_the_wait_for_a_turn_does_not_count_against_the_deadline() -> None:
    web = answering(200)

    def turn(_: WaitForSlot) -> Slot:
        web.clock += 500.0
        return GRANTED

    web.turn = turn
    assert web.fetch().outcome == "ok"
    assert web.sent[0].deadline == 1530.0


def test_a_connection_gets_no_more_time_than_the_fetch_has_left() -> None:
    web = answering(200)
    web.fetch(settings=replace(SETTINGS, limits=FetchLimits(total_s=2.0, connect_s=10.0)))
    assert web.sent[0].connect_s == 2.0


@pytest.mark.parametrize(
    ("path", "target", "hint"),
    [
        ("/news/today", "/", True),
        ("/news/today", "/404", True),
        ("/news/today", "/errors/not-found.html", True),
        ("/news/today", "/news/2024", False),
        ("/news/today", "/terrors", False),
        ("/news/today", "/index.php", True),
        ("/news/today", "/Home/", True),
        ("/news/today", "/news/404-page", True),
        ("/news/today", "/page_not_found.html", True),
        ("/news/today?id=3", "/", True),
        ("/docs/index.html", "/", True),
        ("/page", "/page-not-found", True),
        ("/home", "/404", True),
        ("/room", "/404/room", True),
        ("/errors", "/404", True),
        ("/", "/home", False),
        ("/index.html", "/", False),
        ("/Index.HTML", "/", False),
        ("/home", "/", False),
        ("/default.aspx?a=1", "/", False),
        ("/?p=12", "/index.php", False),
        ("/docs/index.html", "/docs/", False),
        ("/api/errors", "/api/errors/", False),
        ("/api/errors", "/api/v2/errors.html", False),
        ("/trial-and-error", "/trial-and-error/", False),
        ("/trial-and-error", "/blog/trial-and-error", False),
        ("/room", "/room-404", False),
        ("/http-404-explained", "/blog/http-404-explained", False),
    ],
)
def test_a_redirect_to_the_front_page_or_an_error_page_hints_that_the_page_is_gone(
    path: str, target: str, hint: bool
) -> None:
    web = Web(
        {
            f"https://example.com{path}": (302, {"Location": target}, b""),
            f"https://example.com{target}": (200, {}, b"front"),
        }
    )
    assert web.fetch(f"https://example.com{path}").soft_404 is hint


def test_the_front_page_under_another_host_and_scheme_is_the_front_page() -> None:
    web = Web(
        {
            "http://example.com/index.php": (301, {"Location": "https://www.example.com/"}, b""),
            "https://www.example.com/": (200, {}, b"front"),
        }
    )
    assert not web.fetch("http://example.com/index.php").soft_404


OWN = replace(
    SETTINGS,
    credentials=read_credentials(
        {
            "https://example.com": {"Authorization": "Bearer s3cret", "Cookie": "a=b", "X-Key": "k"},
            "https://b.example": {"Authorization": "Bearer other"},
        }
    ),
)
SECRETS = ("Authorization", "Cookie", "X-Key")


def test_own_headers_go_to_their_origin_and_stay_with_it_on_hops_within() -> None:
    web = Web({PAGE: (302, {"Location": "/b"}, b""), "https://example.com/b": (200, {}, b"b")})
    web.fetch(settings=OWN)
    assert web.header(0, "Authorization") == web.header(1, "Authorization") == "Bearer s3cret"
    assert web.header(1, "X-Key") == "k"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("elsewhere", ["http://example.com/", "https://www.example.com/", "https://b.example/x"])
def test_nothing_of_ones_own_crosses_to_another_origin_nor_comes_back(status: int, elsewhere: str) -> None:
    back = "https://example.com/back"
    web = Web(
        {PAGE: (status, {"Location": elsewhere}, b""), elsewhere: (302, {"Location": back}, b""), back: (200, {}, b"x")}
    )
    result = web.fetch(settings=OWN)
    assert result.outcome in ("ok", "moved")
    assert web.header(0, "Authorization") == "Bearer s3cret"
    assert [web.header(hop, name) for hop in (1, 2) for name in SECRETS] == [None] * 6


def test_another_port_is_another_origin() -> None:
    settings = replace(OWN, egress=egress_policy(ports=[80, 443, 8443]))
    elsewhere = "https://example.com:8443/"
    web = Web({PAGE: (307, {"Location": elsewhere}, b""), elsewhere: (200, {}, b"x")})
    web.fetch(settings=settings)
    assert [web.header(1, name) for name in SECRETS] == [None] * 3


def test_tls_is_verified_unless_the_user_names_the_origin() -> None:
    web = Web({PAGE: (302, {"Location": "https://b.example/"}, b""), "https://b.example/": (200, {}, b"x")})
    web.fetch(settings=replace(SETTINGS, unverified_tls=frozenset({"https://example.com"})))
    assert [step.verify_tls for step in web.sent] == [False, True]
