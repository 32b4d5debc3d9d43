"""Lists of addresses from outside: the short way gives what the parser and the canonical form give."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.web.refused import Refused
from recrawl.web.url import address as url_address
from recrawl.web.url.address import DEFAULT_RULES, Address, AddressRules, join_address, read_address
from recrawl.web.url.canonical import TRACKING_PARAMETERS, canonical_form, canonical_url, read_urls

ORIGINS = [
    "https://www.example.com", "http://a.example:8080", "http://127.0.1.5:40001", "http://[2606:4700::1]",
    "https://a.example:443", "HTTPS://a.example", "https://A.example", "http://bücher.example", "http://a.example.",
    "http://localhost", "http://user@a.example", "http://0x7f.1", "https:", "https:/a", "ftp://a.example", "",
]  # fmt: skip
PIECES = [
    "/", "/", "a", "b.html", ".", "..", "...", "?", "?", "&", "&", "=", "a=1", "b=2", "id", "utm_source=x", "UTM_a",
    "_ga", "fbclid", "page=2", "#", "%2e", "%2E", "%41", "%7E", "%C3%A9", "%c3%a9", "%2F", "%20", "%00", "%", "%2",
    "%5C", "%utm", "utm%5Fsource=1", ";", ";jsessionid=7", ";JSESSIONID=", "~", "!", "*", "'", "+", ",", ":", "@",
    "|", "\\", " ", "\t", "\0", "é", "\ud800", "\u200b", "//", "http://b.example/",
]  # fmt: skip
RULES = [DEFAULT_RULES, AddressRules(max_length=40), AddressRules(local_names=frozenset({"localhost"}))]
addresses = st.builds(
    lambda origin, pieces: origin + "".join(pieces),
    st.sampled_from(ORIGINS),
    st.lists(st.sampled_from(PIECES), max_size=8),
)


def slowly(text: str, rules: AddressRules = DEFAULT_RULES) -> str | Refused:
    address = url_address._read(text.strip(), rules)
    return address if isinstance(address, Refused) else canonical_form(address).url


@settings(max_examples=1200, deadline=None)
@given(addresses, st.sampled_from(RULES))
def test_the_short_way_gives_what_the_long_way_gives(text: str, rules: AddressRules) -> None:
    assert canonical_url(text, rules) == slowly(text, rules)
    assert read_address(text, rules) == url_address._read(text, rules)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(ORIGINS[:3]), st.text(max_size=40))
def test_any_text_after_an_origin_gives_what_the_long_way_gives(origin: str, text: str) -> None:
    assert canonical_url(f"{origin}/{text}") == slowly(f"{origin}/{text}")
    assert read_address(f"{origin}/{text}") == url_address._read(f"{origin}/{text}", DEFAULT_RULES)


LINKS = [piece for piece in PIECES if "://" not in piece] + ["../", "../", "x/", "./", "..//"]


@settings(max_examples=1200, deadline=None)
@given(st.lists(st.sampled_from(LINKS), max_size=8), st.sampled_from(["/dir/page?q=1", "/", "/a/b/c/", "/x;y//z"]))
def test_a_link_is_joined_as_by_the_long_way(pieces: list[str], page: str) -> None:
    base, link = read_address("http://a.example:8080" + page), "".join(pieces).strip("\t ")
    assert isinstance(base, Address)
    if not link.startswith("//") and not url_address._SCHEME.match(link):
        slow = url_address._check_characters(link, DEFAULT_RULES) or url_address._joined(base, link, DEFAULT_RULES)
        assert join_address(base, link) == slow


def test_each_escape_is_kept_or_resolved_as_by_the_long_way() -> None:
    for octet in range(256):
        for place in ("/a%{:02X}b", "/%{:02X}", "/a?x%{:02X}=1", "/%{:02x}?%{:02x}", "/a;%{:02X}"):
            text = "http://a.example" + place.format(octet, octet)
            assert canonical_url(text) == slowly(text)


def test_each_tracking_parameter_is_dropped_wherever_it_stands() -> None:
    for name in TRACKING_PARAMETERS:
        for query in (name.replace("*", "x"), f"a=1&{name}=2&z", f"{name.upper()}=1"):
            text = f"https://a.example/p?{query}"
            assert canonical_url(text) == slowly(text)


def test_addresses_of_the_usual_kinds_take_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else pings would cost ten times as much, and nothing would show it."""
    usual = [
        "https://www.example.com/", "https://www.example.com/news/2024/05/story-7.html", "http://a.example:8080/x?a=1&b=2",
        "http://127.0.1.5:40001/p/7.html", "https://www.example.com/%E4%BD%A0%20x/?q=%C3%A9", "https://www.example.com/a#b",
    ]  # fmt: skip
    expected = [slowly(url) for url in usual]
    for url in usual:
        canonical_url(url)  # the origin is read once

    def never(*_: object) -> Address | Refused:
        raise AssertionError("the parser was asked")

    monkeypatch.setattr(url_address, "_read", never)
    assert [canonical_url(url) for url in usual] == expected
    assert isinstance(read_address(usual[0]), Address)


def test_repeats_are_one_address_and_refusals_are_counted_by_rule() -> None:
    texts = ["http://a.example/x", " http://a.example/x#top ", "http://a.example/x?utm_source=1", "http://b.example/",
             "javascript:alert(1)", "", "http://a.example/y", "http://10.0.0.1\\@a.example/"]  # fmt: skip
    found = read_urls(texts, ("http://a.example/",))
    assert found.urls == ("http://a.example/x", "http://a.example/y")
    assert found.repeated == 2
    assert found.refused == {"other-site": 1, "scheme": 1, "no-scheme": 1, "backslash": 1}


def test_an_address_with_hundreds_of_parameters_is_refused() -> None:
    query = "&".join(f"p{number}" for number in range(101))
    found = read_urls([f"http://a.example/?{query}", f"http://a.example/?{query.rpartition('&')[0]}"])
    assert len(found.urls) == 1
    assert found.refused == {"many-parameters": 1}


def test_a_long_address_that_fits_no_pattern_takes_no_time() -> None:
    """Patterns that try again and again would take hours here."""
    for long in ("/a" * 1000 + "\\", "/?" + "a&" * 1000 + '"', "/%41" * 500, "/" + "%C3" * 650 + "%"):
        assert canonical_url("http://a.example" + long) == slowly("http://a.example" + long)
