"""Plain addresses and links without the parser: the same answers as with it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.web.url import address as address_module
from recrawl.web.url.address import DEFAULT_RULES, Address, AddressRules, join_address, read_address
from recrawl.web.url.link_urls import link_urls

BASES = [
    "http://127.0.1.5:40001/news/7/page.html",
    "https://example.com/",
    "https://a.example/x//y/z?q=1",
    "https://a.example/x/;p?a/b",
    "http://[2606:4700::1]:8080/a/b/",
]
PIECES = [
    "a", "b.html", ".", "..", "...", "..a", "a..", "/", "//", "?", "#", "%2e", "%41", "%00", ":", "@", "=", "&", ";",
    "~", "!", "*", "(", ")", "+", ",", "$", "_", "'", "|", "\\", " ", "é", "http:", "http://", "https://", "HTTP://",
    "javascript:", "mailto:", "www.example.org", "x-y.co", "-bad.com", "a--b.com", "xn--80ak6aa92e.com", "1.2.3.4",
    "01.2.3.4", "256.1.1.1", "127.0.0.1", "0x7f.1", "EXAMPLE.com", "localhost", "127.0.0.1.nip.io", "foo.local",
    "x_y.com", "1a.com", "a.1com", "a.b-.com", ".com", "com.", ":80", ":443", ":8080", ":0", ":008", ":70000",
]  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=5).map("".join)
rules_of_any_length = st.sampled_from([DEFAULT_RULES, AddressRules(max_length=30), AddressRules(max_length=40)])


def base_of(url: str) -> Address:
    base = read_address(url)
    assert isinstance(base, Address)
    return base


@settings(max_examples=2000, deadline=None)
@given(st.sampled_from(BASES), texts, rules_of_any_length)
def test_links_lead_where_the_parser_says(base: str, link: str, rules: AddressRules) -> None:
    expected = join_address(base_of(base), link, rules)
    assert link_urls(base_of(base), [link], rules) == [expected.url if isinstance(expected, Address) else None]


@settings(max_examples=2000, deadline=None)
@given(st.sampled_from(["", "http://", "https://"]), texts, rules_of_any_length)
def test_plain_addresses_are_read_as_the_parser_reads_them(start: str, text: str, rules: AddressRules) -> None:
    found = read_address(start + text, rules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(address_module, "_read_plain", lambda *_: None)
        assert read_address(start + text, rules) == found


@pytest.mark.parametrize(
    ("link", "url"),
    [
        ("/a/b.html?x=1#top", "https://a.example/a/b.html?x=1"),
        ("b.html", "https://a.example/x//y/b.html"),
        ("../b.html", "https://a.example/x//b.html"),
        ("../../../../../b", "https://a.example/b"),
        ("?part=2", "https://a.example/x//y/z?part=2"),
        ("#top", "https://a.example/x//y/z?q=1"),
        ("https://www.example.org", "https://www.example.org/"),
        ("http://localhost/", None),
        ("mailto:me@example.org", None),
    ],
)
def test_links_of_each_kind(link: str, url: str | None) -> None:
    assert link_urls(base_of(BASES[2]), [link]) == [url]


def test_a_long_link_of_many_segments_takes_no_time() -> None:
    """Patterns that try again and again would take hours here."""
    link = "/a" * 1000 + "\\"
    assert link_urls(base_of(BASES[1]), [link, "a." * 1000 + "é"])[0] is None
