"""Canonical addresses: one page, one identity."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.web.url.address import Address, read_address
from recrawl.web.url.canonical import (
    SESSION_PARAMETERS,
    TRACKING_PARAMETERS,
    canonical_form,
    host_key,
    registered_domain,
)
from recrawl.web.url.traps import trap_sign


def _address(url: str) -> Address:
    address = read_address(url)
    assert isinstance(address, Address), address
    return address


def _canonical(url: str) -> str:
    return canonical_form(_address(url)).url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://example.com/?utm_source=a&utm_medium=b", "http://example.com/"),
        ("http://example.com/?UTM_Source=a&x=1", "http://example.com/?x=1"),
        ("http://example.com/?utm%5Fsource=a&x=1", "http://example.com/?x=1"),
        ("http://example.com/?gclid=1&fbclid=2&msclkid=3&id=4", "http://example.com/?id=4"),
        ("http://example.com/?PHPSESSID=abc", "http://example.com/"),
        ("http://example.com/a;jsessionid=AB12?x=1", "http://example.com/a?x=1"),
        ("http://example.com/a/..;jsessionid=1/b", "http://example.com/b"),
        ("http://example.com/a/%2e%2e;jsessionid=1/b", "http://example.com/b"),
        ("http://example.com/a/.;phpsessid=1/b?x=1", "http://example.com/a/b?x=1"),
        ("http://example.com/;jsessionid=1/x.test/", "http://example.com//x.test/"),
        ("http://example.com/a;%6Asessionid=1", "http://example.com/a"),
        ("http://example.com/%41;jsessionid=%zz", "http://example.com/A"),
        ("http://example.com/?b=2&a=1", "http://example.com/?a=1&b=2"),
        ("http://example.com/?a=2&a=1&B=0", "http://example.com/?B=0&a=2&a=1"),
        ("http://example.com/?a=1&&b=2&", "http://example.com/?a=1&b=2"),
        ("http://example.com/?", "http://example.com/"),
        ("http://example.com/?flag", "http://example.com/?flag"),
        ("http://example.com/?q=a+b%20c", "http://example.com/?q=a+b%20c"),
        ("http://example.com/?u=http%3a%2f%2fx", "http://example.com/?u=http%3A%2F%2Fx"),
        ("http://example.com/%7eann/%41", "http://example.com/~ann/A"),
        ("http://example.com/%2%35", "http://example.com/%2%35"),
        ("http://example.com/%zz", "http://example.com/%zz"),
        ("http://EXAMPLE.com:80/a#b", "http://example.com/a"),
        ("http://example.com/utm_source=1", "http://example.com/utm_source=1"),
        ("http://example.com/Page", "http://example.com/Page"),
    ],
)
def test_spellings_of_one_page_become_one(url: str, expected: str) -> None:
    assert _canonical(url) == expected


_PIECES = (";jsessionid=", ";%6asessionid=", ";PHPSESSID=1", "..", "/..;", "%2e", "%zz", "%7e", "utm_source=1", "/")


@given(st.lists(st.sampled_from(_PIECES) | st.text(alphabet="abz%27eE/?&=;.~+_", max_size=8), max_size=8))
def test_the_canonical_form_of_a_canonical_form_is_itself(pieces: list[str]) -> None:
    address = read_address("http://example.com/" + "".join(pieces))
    if isinstance(address, Address):
        once = canonical_form(address)
        assert canonical_form(once) == once
        assert read_address(once.url) == once


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.example.com", "example.com"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("ann.github.io", "ann.github.io"),
        ("github.io", "github.io"),
        ("xn--bcher-kva.example.de", "example.de"),
        ("a.living.test", "living.test"),
        ("127.0.0.1", "127.0.0.1"),
        ("2606:4700::1", "2606:4700::1"),
        ("wiki", "wiki"),
    ],
)
def test_the_registered_domain_comes_from_the_bundled_list(host: str, domain: str) -> None:
    assert registered_domain(host) == domain


def test_pages_are_paced_by_host_domain_or_origin() -> None:
    page = _address("https://a.example.co.uk:8443/")
    assert host_key(page) == "a.example.co.uk"
    assert host_key(page, "domain") == "example.co.uk"
    assert host_key(page, "origin") == "https://a.example.co.uk:8443"


@pytest.mark.parametrize(
    ("target", "rule"),
    [
        ("/a/a", None),
        ("/a/a/a", "repeated-segment"),
        ("/x/y/x/y/x/y", "repeated-segment"),
        ("/" + "/".join(map(str, range(20))), None),
        ("/" + "/".join(map(str, range(21))), "deep-path"),
        ("/?" + "&".join(f"p{number}=1" for number in range(21)), "many-parameters"),
        ("/2024/01/02/story", None),
    ],
)
def test_signs_of_a_trap_are_named(target: str, rule: str | None) -> None:
    sign = trap_sign(_address("http://example.com" + target))
    assert (sign.rule if sign else None) == rule


def test_the_usual_patterns_fit_what_they_say_and_no_more() -> None:
    for pattern in TRACKING_PARAMETERS + SESSION_PARAMETERS:
        stem = pattern.rstrip("*")
        for name in (stem, stem + "x", stem[:-1], "x" + stem):
            dropped = any(fnmatchcase(name, each) for each in TRACKING_PARAMETERS + SESSION_PARAMETERS)
            assert _canonical(f"http://a.example/?{name}=1").endswith("/") is dropped
