"""robots.txt: RFC 9309 as a table, and what a site cannot do to us with one."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from recrawl.web.robots.entry import (
    RobotsAnswer,
    RobotsEntry,
    confirm,
    renew,
    robots_address,
    robots_answer,
    unreachable,
)
from recrawl.web.robots.rules import MAX_BYTES, ParsedRules, parse_robots
from recrawl.web.url.address import Address, read_address

HOUR = 3600.0


def _page(target: str) -> Address:
    address = read_address("https://example.com" + target)
    assert isinstance(address, Address), address
    return address


BASE = _page("/robots.txt")


def _read(text: str | bytes, status: int = 200) -> RobotsAnswer:
    return robots_answer(status, text.encode() if isinstance(text, str) else text, "recrawl", BASE)


# robots.txt, path, whether recrawl may fetch it
CASES = [
    # Groups and product tokens (2.2.1).
    ("", "/x", True),
    ("User-agent: *\nDisallow: /", "/x", False),
    ("User-agent: *\nDisallow:", "/x", True),
    ("User-agent: recrawl\nDisallow: /\n\nUser-agent: *\nDisallow:", "/x", False),
    ("User-agent: *\nDisallow: /\n\nUser-agent: recrawl\nAllow: /", "/x", True),
    ("User-agent: RECRAWL\nDisallow: /", "/x", False),
    ("user-agent: Recrawl\ndisallow: /", "/x", False),
    ("User-agent: recrawl/1.0\nDisallow: /", "/x", False),
    ("User-agent: recrawl bot\nDisallow: /", "/x", False),
    ("User-agent: rec\nDisallow: /", "/x", True),
    ("User-agent: recrawlbot\nDisallow: /", "/x", True),
    ("User-agent: my-recrawl\nDisallow: /", "/x", True),
    ("User-agent: other\nDisallow: /", "/x", True),
    ("User-agent: * bots\nDisallow: /", "/x", False),
    ("User-agent: a\nUser-agent: recrawl\nDisallow: /x", "/x", False),
    ("User-agent: recrawl\nUser-agent: a\nDisallow: /x", "/x", False),
    ("User-agent: recrawl\nDisallow: /a\nUser-agent: b\nDisallow: /\nUser-agent: recrawl\nDisallow: /c", "/a", False),
    ("User-agent: recrawl\nDisallow: /a\nUser-agent: b\nDisallow: /\nUser-agent: recrawl\nDisallow: /c", "/c", False),
    ("User-agent: recrawl\nDisallow: /a\nUser-agent: b\nDisallow: /\nUser-agent: recrawl\nDisallow: /c", "/b", True),
    ("User-agent: recrawl\nDisallow:\n\nUser-agent: *\nDisallow: /", "/x", True),
    ("Disallow: /\nUser-agent: other\nDisallow: /y", "/x", True),
    # Lines that are no rules do not end a run of user-agent lines.
    ("User-agent: recrawl\nCrawl-delay: 5\nUser-agent: a\nDisallow: /", "/x", False),
    ("User-agent: recrawl\nFoo: bar\nUser-agent: a\nDisallow: /", "/x", False),
    ("User-agent: recrawl\nSitemap: https://example.com/s\nUser-agent: a\nDisallow: /", "/x", False),
    ("User-agent: recrawl\n\n\n# words\nUser-agent: a\n\nDisallow: /", "/x", False),
    ("User-agent: recrawl\nNoindex: /\nDisallow: /x", "/x", False),
    # Longest match, ties to allow (2.2.2).
    ("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c", True),
    ("User-agent: *\nAllow: /a\nDisallow: /a/b", "/a/b/c", False),
    ("User-agent: *\nAllow: /page\nDisallow: /page", "/page", True),
    ("User-agent: *\nDisallow: /page\nAllow: /page", "/page", True),
    ("User-agent: *\nAllow: /\nDisallow: /x", "/x", False),
    ("User-agent: *\nDisallow: /X", "/x", True),
    ("User-agent: *\nDisallow: /x", "/xyz", False),
    # Special characters (2.2.3).
    ("User-agent: *\nDisallow: /*.php", "/a/b.php?x", False),
    ("User-agent: *\nDisallow: /*.php$", "/a/b.php", False),
    ("User-agent: *\nDisallow: /*.php$", "/a/b.php?x", True),
    ("User-agent: *\nDisallow: /a*z", "/abcz", False),
    ("User-agent: *\nDisallow: /a*z", "/abc", True),
    ("User-agent: *\nDisallow: /*?sort=", "/list?sort=up", False),
    ("User-agent: *\nDisallow: /x # secret", "/x", False),
    ("User-agent: *\nDisallow: /#x", "/y", False),
    ("User-agent: *\nDisallow: /caf%C3%A9", "/café", False),
    ("User-agent: *\nDisallow: /café", "/caf%c3%a9", False),
    ("User-agent: *\nDisallow: /%61%62", "/ab", False),
    ("User-agent: *\nDisallow: /a%2Fb", "/a/b", True),
    ("User-agent: *\nDisallow: /", "/robots.txt", True),
    # Forms seen in the wild.
    ("User-agent: *\rDisallow: /x\r", "/x", False),
    ("User-agent: *\r\nDisallow: /x\r\n", "/x", False),
    ("\ufeffUser-agent: *\nDisallow: /x", "/x", False),
    ("  User-agent : *  \n  Disallow :  /x  ", "/x", False),
    ("User-agent *\nDisallow /x", "/x", False),
    ("User-agent: *\nDissallow: /x", "/x", False),
    ("User-agent: *\nDisallow: /a\u2028Allow: /x\nDisallow: /x", "/x", False),
    ("<html><body><h1>Not here</h1>\n<p>Disallow: /</p></body></html>", "/x", True),
]


@pytest.mark.parametrize(("text", "target", "allowed"), CASES)
def test_a_page_is_allowed_or_not_as_the_rfc_says(text: str, target: str, allowed: bool) -> None:
    assert _read(text).allows(_page(target)) is allowed


@pytest.mark.parametrize(
    ("status", "kind", "allowed"),
    [
        (200, "rules", False),
        (204, "rules", False),
        (301, "unavailable", True),  # one that could not be followed, or the sixth
        (400, "unavailable", True),
        (401, "unavailable", True),
        (403, "unavailable", True),
        (404, "unavailable", True),
        (410, "unavailable", True),
        (429, "unreachable", False),
        (500, "unreachable", False),
        (502, "unreachable", False),
        (503, "unreachable", False),
        (999, "unreachable", False),
        (0, "unreachable", False),
    ],
)
def test_the_status_decides_before_the_body(status: int, kind: str, allowed: bool) -> None:
    answer = _read("User-agent: *\nDisallow: /", status)
    assert answer.kind == kind
    assert answer.allows(_page("/x")) is allowed


def test_an_error_page_with_a_server_error_is_not_read_as_no_rules() -> None:
    assert not _read("<html>Sorry</html>", 500).allows(_page("/x"))


def test_a_site_that_cannot_be_reached_may_not_be_crawled() -> None:
    answer = unreachable("timeout")
    assert not answer.allows(_page("/x"))
    assert answer.reason == "timeout"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_rules_in_utf_16_are_read(encoding: str) -> None:
    mark = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}[encoding]
    body = "User-agent: *\nDisallow: /x".encode(encoding)
    assert not _read(mark + body).allows(_page("/x"))
    assert not _read(body).allows(_page("/x"))


@pytest.mark.parametrize(
    ("line", "delay_s"),
    [
        ("2.5", 2.5),
        ("0", 0.0),
        ("30", 30.0),
        ("31", 30.0),
        ("1000000000", 30.0),
        ("1e9", 30.0),
        ("1e999", 30.0),
        ("9" * 350, 30.0),
        ("-1", None),
        ("NaN", None),
        ("inf", None),
        ("٣", None),
        ("soon", None),
        ("", None),
    ],
)
def test_a_crawl_delay_is_held_between_0_and_30_seconds(line: str, delay_s: float | None) -> None:
    answer = _read(f"User-agent: *\nCrawl-delay: {line}\nDisallow: /x")
    assert answer.crawl_delay_s == delay_s


def test_a_delay_among_user_agent_lines_holds_for_all_of_them() -> None:
    own = "User-agent: other\nCrawl-delay: 3\nUser-agent: recrawl\nDisallow: /x\n"
    assert _read(own + "User-agent: *\nCrawl-delay: 9\nDisallow: /").crawl_delay_s == 3.0


def test_a_delay_for_everyone_does_not_hold_for_who_has_a_group_of_their_own() -> None:
    assert _read("User-agent: *\nCrawl-delay: 9\nDisallow: /a\nUser-agent: recrawl\nDisallow: /b").crawl_delay_s is None


def test_sitemap_lines_count_wherever_they_stand_and_bad_ones_are_ignored() -> None:
    answer = _read(
        "Sitemap: https://example.com/a.xml\nUser-agent: other\nDisallow: /\nsitemap: https://cdn.example.net/b.xml\n"
        "Sitemap: /c.xml\nSitemap: not an address\nSitemap: file:///etc/passwd\nSitemap: http://a@b.example/\n"
        "Sitemap:\nSitemap: https://example.com/a.xml\nSitemap: http://127.1/x\n"
    )
    assert [address.url for address in answer.sitemaps] == [
        "https://example.com/a.xml",
        "https://cdn.example.net/b.xml",
        "https://example.com/c.xml",
    ]


def test_sitemap_lines_are_capped() -> None:
    assert len(_read("".join(f"Sitemap: https://example.com/{n}\n" for n in range(2000))).sitemaps) == 500


def test_a_file_is_cut_at_500_kib_and_never_inside_a_line() -> None:
    filler = b"# " + b"x" * 61 + b"\n"
    head = b"User-agent: *\nDisallow: /first\n"
    start = head + filler * ((MAX_BYTES - len(head)) // len(filler) - 1)
    cut_line = b"Disallow: /" + b"y" * 200 + b"\n"
    answer = _read(start + cut_line + b"Disallow: /late\n" + filler * 10)
    assert not answer.allows(_page("/first"))
    assert len(start) < MAX_BYTES < len(start + cut_line)
    assert answer.allows(_page("/" + "y" * 150 + "z"))
    assert answer.allows(_page("/late"))


@pytest.mark.parametrize(
    "body",
    [
        b"User-agent: *\n" + b"".join(b"Disallow: /%d\n" % number for number in range(100_000)),
        b"User-agent: *\n" + b"Disallow: /" + b"*a" * 240_000 + b"z\n",
        b"User-agent: *\n" + b"".join(b"Disallow: /*a*a*a*a*%d\n" % number for number in range(20_000)),
        b"User-agent: *\nDisallow: /" + b" " * 480_000 + b"x",
        b"a" + b" " * 500_000,
        b"User-agent: *\n" * 30_000,
        b"\x00" * 500_000,
        b":" * 500_000,
    ],
    ids=["100k rules", "wildcard bomb", "wildcard storm", "blanks", "one word", "agents", "NULs", "colons"],
)
def test_no_file_within_the_limit_makes_matching_slow(body: bytes) -> None:
    """Each of these takes a fraction of a second; a matcher that backtracks would never come back."""
    assert _read(body).allows(_page("/" + "a" * 2000)) is True


PIECES = [
    "/", "/", "a", "b", "*", "**", "//", "$", "%", "=", "?", "&", "é", "ツ", "~", ".", "-", "(", ")", ";", "[", "]",
    "'", "index.html", "/index.html", "http://", "%2F", "%2f", "%61", "%3D", "%C3%A9", "%c3%a9", "%E9", "%7e", "%25",
    "%2A", "%24", "%zz", "%2",
]  # fmt: skip
PATTERN = st.builds("".join, st.tuples(st.sampled_from(["/", "", "*"]), *[st.sampled_from(["", *PIECES])] * 6))
TARGET = st.builds("/".__add__, st.builds("".join, st.lists(st.sampled_from([p for p in PIECES if p.isascii()]))))


@given(st.lists(st.tuples(st.sampled_from(["Allow", "Disallow"]), PATTERN), max_size=5), TARGET)
def test_rules_match_as_protego_matches_them(rules: list[tuple[str, str]], target: str) -> None:
    """Scrapy's parser is a second opinion: another program, the same answers for any rules and any path."""
    protego = pytest.importorskip("protego")
    text = "\n".join(f"{verb}: {pattern.strip()}" for verb, pattern in rules)
    theirs = protego.Protego.parse("User-agent: *\n" + text).can_fetch("http://host" + target, "recrawl")
    assert ParsedRules().allows(text, target) == theirs


@given(st.binary(max_size=300) | st.text(alphabet="User-agent: *\nDisallow: /$%#\r", max_size=200).map(str.encode))
def test_any_bytes_leave_robots_txt_open_and_what_follows_them_in_force(body: bytes) -> None:
    """The file itself may always be fetched, and a group after a blank line holds for a product that it names."""
    assert _read(body).allows(_page("/robots.txt"))
    assume(not body.startswith((b"\xfe\xff", b"\xff\xfe")))  # in UTF-16 the rest is other text
    rules = parse_robots(body + b"\n\nUser-agent: somebody-else\nDisallow: /only\n", "somebody-else").rules
    assert "Disallow: /only" in rules


def test_other_crawlers_groups_are_not_kept() -> None:
    text = b"User-agent: a\nDisallow: /a\nUser-agent: *\nDisallow: /b\nUser-agent: recrawl\nDisallow: /c"
    assert parse_robots(text, "recrawl").rules == ("Disallow: /c",)
    assert parse_robots(text, "someone").rules == ("Disallow: /b",)


def test_an_answer_holds_for_a_day_at_most_and_five_minutes_at_least() -> None:
    answer = _read("User-agent: *\nDisallow: /x")
    assert renew(None, answer, now=0.0).expires_at == 24 * HOUR
    assert renew(None, answer, now=0.0, max_age_s=1e9).expires_at == 24 * HOUR
    assert renew(None, answer, now=0.0, max_age_s=HOUR).expires_at == HOUR
    assert renew(None, answer, now=0.0, max_age_s=0.0).expires_at == 300.0
    assert renew(None, _read("", 404), now=0.0).expires_at == 24 * HOUR


def test_an_unreachable_site_is_asked_again_soon_and_then_less_often() -> None:
    entry: RobotsEntry | None = None
    waits = []
    for _ in range(6):
        entry = renew(entry, unreachable("timeout"), now=1000.0)
        waits.append(entry.expires_at - 1000.0)
        assert not entry.allows(_page("/x"))
    assert waits == [300.0, 600.0, 1200.0, 2400.0, 3600.0, 3600.0]


def test_rules_once_read_stay_in_force_while_the_site_is_unreachable_for_30_days() -> None:
    good = renew(None, _read("User-agent: *\nDisallow: /x"), now=0.0)
    later = renew(good, _read("", 503), now=25 * HOUR)
    assert later.allows(_page("/y"))
    assert not later.allows(_page("/x"))
    assert later.failures == 1
    assert later.expires_at == 25 * HOUR + 300.0
    much_later = renew(later, _read("", 503), now=31 * 24 * HOUR)
    assert not much_later.allows(_page("/y"))


def test_an_absent_file_is_no_licence_while_the_site_is_down() -> None:
    absent = renew(None, _read("", 404), now=0.0)
    assert not renew(absent, unreachable("timeout"), now=25 * HOUR).allows(_page("/x"))


def test_recovery_clears_the_failures_and_not_modified_renews() -> None:
    failed = renew(None, unreachable("timeout"), now=0.0)
    good = renew(failed, _read("User-agent: *\nDisallow: /x"), now=300.0)
    assert good.failures == 0
    assert confirm(good, now=400.0).expires_at == 400.0 + 24 * HOUR


def test_the_rules_of_an_origin_lie_at_its_root() -> None:
    page = read_address("https://example.com:8443/a/b?c")
    assert isinstance(page, Address)
    assert robots_address(page).url == "https://example.com:8443/robots.txt"
