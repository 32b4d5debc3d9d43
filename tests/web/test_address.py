"""Addresses: what is accepted and how it is written, what is refused and by which rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import InvalidInput
from recrawl.web.refused import Refused
from recrawl.web.url.address import Address, AddressRules, address_or_raise, join_address, read_address

ACCEPTED = [
    ("http://example.com", "http://example.com/"),
    ("HTTP://EXAMPLE.com/A", "http://example.com/A"),
    ("http://example.com:80/", "http://example.com/"),
    ("https://example.com:443/", "https://example.com/"),
    ("https://example.com:80/", "https://example.com:80/"),
    ("http://example.com:/a", "http://example.com/a"),
    ("http://example.com:080/", "http://example.com/"),
    ("http://example.com/a/./b/../c", "http://example.com/a/c"),
    ("http://example.com/a/%2e%2e/b", "http://example.com/b"),
    ("http://example.com/../../x", "http://example.com/x"),
    ("http://example.com/a b", "http://example.com/a%20b"),
    ("http://example.com/ä?ö=ü", "http://example.com/%C3%A4?%C3%B6=%C3%BC"),
    ("http://example.com/?x=%2F", "http://example.com/?x=%2F"),
    ("http://example.com/?", "http://example.com/?"),
    ("http://example.com?q=a\\b", "http://example.com/?q=a\\b"),
    ("http://example.com/#part", "http://example.com/"),
    ("http://example.com/a#b\\c", "http://example.com/a"),
    ("http://example.com./a", "http://example.com/a"),
    ("http://faß.de/", "http://xn--fa-hia.de/"),
    ("http://bücher.example/", "http://xn--bcher-kva.example/"),
    ("http://日本語.jp/", "http://xn--wgv71a119e.jp/"),
    ("http://日本語abcカナ.jp/", "http://xn--abc-mj4b4fp673ao4bc84j.jp/"),
    ("http://a_b.example.com/", "http://a_b.example.com/"),
    ("http://-a.example.com/", "http://-a.example.com/"),
    ("http://8.8.8.8/", "http://8.8.8.8/"),
    ("http://127.0.0.1:8081/", "http://127.0.0.1:8081/"),
    ("http://[2606:4700:0:0::1111]/", "http://[2606:4700::1111]/"),
    ("http://a.living.test:8081/p", "http://a.living.test:8081/p"),
    ("http://4.3.2.1.example.com/", "http://4.3.2.1.example.com/"),
]

REFUSED = [
    ("http://169.254.169.254:8888\\@example.com/", "backslash"),
    ("http:\\\\example.com/", "backslash"),
    ("http://example.com\\.evil.example/", "backslash"),
    ("http://a:b@c:d@e/", "userinfo"),
    ("http://user@example.com/", "userinfo"),
    ("http://@example.com/", "userinfo"),
    ("http://user:password@example.com/", "userinfo"),
    ("http://example.com:80@evil.example/", "userinfo"),
    ("http://127.1/", "disguised-address"),
    ("http://0x7f000001/", "disguised-address"),
    ("http://2130706433/", "disguised-address"),
    ("http://0177.0.0.1/", "disguised-address"),
    ("http://①②⑦.⓪.⓪.①/", "disguised-address"),
    ("http://0/", "disguised-address"),
    ("http://127.0.0.1./", "disguised-address"),
    ("http://1.2.3/", "disguised-address"),
    ("http://%31%32%37.0.0.1/", "percent-host"),
    ("http://exam\tple.com/", "control-character"),
    ("http://exam\nple.com/", "control-character"),
    ("http://exam\rple.com/", "control-character"),
    ("ht\ntp://example.com/", "control-character"),
    ("http://example.com/\x00", "control-character"),
    ("http://example.com/a\x7f", "control-character"),
    (" http://example.com/", "whitespace"),
    ("http://example.com/ ", "whitespace"),
    ("\u00a0http://example.com/", "whitespace"),
    ("\thttp://example.com/", "whitespace"),
    ("http://example.com/%00", "encoded-nul"),
    ("http://example%00.com/", "encoded-nul"),
    ("http://localhost/", "local-name"),
    ("http://localhost./", "local-name"),
    ("http://foo.localhost/", "local-name"),
    ("http://intranet/", "local-name"),
    ("http://printer.local/", "local-name"),
    ("http://metadata.google.internal/", "local-name"),
    ("http://127.0.0.1.nip.io/", "address-in-name"),
    ("http://www.10-0-0-1.sslip.io/", "address-in-name"),
    ("http://10.0.0.1.evil.example/", "address-in-name"),
    ("http://exam\u00adple.com/", "invisible-character"),
    ("http://exam\u200bple.com/", "invisible-character"),
    ("http://exam\u2060ple.com/", "invisible-character"),
    ("http://\u0430pple.com/", "mixed-script"),
    ("http://xn--pple-43d.com/", "mixed-script"),
    ("http://xn--a.com/", "bad-idn"),
    ("http://example.com:0/", "port"),
    ("http://example.com:99999/", "port"),
    ("http://example.com:80a/", "port"),
    ("http://example.com:-1/", "port"),
    ("http://example.com:٣/", "port"),
    ("http:///", "empty-host"),
    ("http://", "empty-host"),
    ("http://:80/", "empty-host"),
    ("http:///example.com/", "empty-host"),
    ("http://?q", "empty-host"),
    ("http://[fe80::1%25eth0]/", "zone-id"),
    ("http://[fe80::1%eth0]/", "zone-id"),
    ("http://[::1", "malformed"),
    ("http://exa mple.com/", "malformed"),
    ("http://256.256.256.256/", "malformed"),
    ("http:example.com", "slashes"),
    ("http:/example.com", "slashes"),
    ("//host", "no-scheme"),
    ("example.com", "no-scheme"),
    ("", "no-scheme"),
    ("file:///etc/passwd", "scheme"),
    ("data:text/html,x", "scheme"),
    ("ftp://example.com/", "scheme"),
    ("gopher://example.com/", "scheme"),
    ("javascript:alert(1)", "scheme"),
    ("source:file:///etc/passwd", "scheme"),
    ("ws://example.com/", "scheme"),
    ("http://example..com/", "empty-label"),
    ("http://.example.com/", "empty-label"),
    ("http://example.com../", "empty-label"),
    ("http://" + "a" * 64 + ".com/", "long-host"),
    ("http://" + "abc." * 64 + "com/", "long-host"),
    ("http://*.com/", "host-character"),
    ("http://exa$mple.com/", "host-character"),
    ("http://example.com/" + "a" * 10_000, "too-long"),
    ("http://example.com/" + "ä" * 800, "too-long"),
    ("http://example.com/\ud800", "half-character"),
]


@pytest.mark.parametrize(("text", "written"), ACCEPTED)
def test_an_address_is_written_in_one_way(text: str, written: str) -> None:
    address = read_address(text)
    assert isinstance(address, Address), address
    assert address.url == written
    assert read_address(address.url) == address


@pytest.mark.parametrize(("text", "rule"), REFUSED)
def test_what_two_parsers_could_read_in_two_ways_is_refused_by_a_named_rule(text: str, rule: str) -> None:
    refused = read_address(text)
    assert isinstance(refused, Refused), refused
    assert refused.rule == rule
    assert f"is refused by the rule {rule}: " in refused.sentence
    assert refused.sentence.isascii()
    assert refused.sentence.isprintable()
    assert len(refused.sentence) < 400


def test_the_parts_of_an_address_fit_together() -> None:
    address = read_address("https://[2606:4700::1111]:8443/a?b")
    assert address == Address(
        "https://[2606:4700::1111]:8443/a?b", "https", "2606:4700::1111", 8443, "/a?b", is_ip=True
    )
    assert address.authority == "[2606:4700::1111]:8443"
    assert address.origin == "https://[2606:4700::1111]:8443"


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("", "https://example.com/news/today?x=1"),
        ("#top", "https://example.com/news/today?x=1"),
        ("?y=2", "https://example.com/news/today?y=2"),
        ("old", "https://example.com/news/old"),
        ("/about", "https://example.com/about"),
        ("../../../x", "https://example.com/x"),
        (" \n/about\t", "https://example.com/about"),
        ("//other.example/x", "https://other.example/x"),
        ("http://other.example/", "http://other.example/"),
        ("/a%20b c", "https://example.com/a%20b%20c"),
    ],
)
def test_a_link_is_read_from_the_page_it_stands_on(link: str, expected: str) -> None:
    base = read_address("https://example.com/news/today?x=1")
    assert isinstance(base, Address)
    joined = join_address(base, link)
    assert isinstance(joined, Address), joined
    assert joined.url == expected
    assert read_address(joined.url) == joined


@pytest.mark.parametrize(
    ("link", "rule"),
    [
        ("javascript:alert(1)", "scheme"),
        ("file:/etc/passwd", "scheme"),
        ("data:,x", "scheme"),
        ("mailto:a@b.example", "scheme"),
        ("//user@other.example/", "userinfo"),
        ("//127.1/", "disguised-address"),
        ("///etc", "empty-host"),
        ("/\\evil.example", "backslash"),
        ("\\\\evil.example", "backslash"),
        ("http:evil", "slashes"),
        ("/a\x00b", "control-character"),
        ("/a%00b", "encoded-nul"),
        ("/" + "a" * 3000, "too-long"),
        ("http://[::1/", "malformed"),
    ],
)
def test_a_link_is_held_to_the_same_rules(link: str, rule: str) -> None:
    base = read_address("https://example.com/")
    assert isinstance(base, Address)
    refused = join_address(base, link)
    assert isinstance(refused, Refused), refused
    assert refused.rule == rule


@given(st.text(max_size=60) | st.text(alphabet="htp:/\\@.[]%0123456789abx-\t#? ", max_size=60).map("http://".__add__))
def test_no_text_raises_and_what_is_accepted_is_stable(text: str) -> None:
    address = read_address(text)
    if isinstance(address, Address):
        assert address.url.isascii()
        assert read_address(address.url) == address
        assert "@" not in address.url.split("/")[2]


@given(st.text(max_size=60))
def test_no_link_raises_or_leaves_the_host_without_naming_another(link: str) -> None:
    base = read_address("https://example.com/a/b")
    assert isinstance(base, Address)
    joined = join_address(base, link)
    if isinstance(joined, Address) and "//" not in link:
        assert joined.host == "example.com"


def test_a_longer_limit_can_be_set_but_not_an_endless_one() -> None:
    url = "http://example.com/" + "a" * 3000
    assert isinstance(read_address(url, AddressRules(max_length=4096)), Address)
    with pytest.raises(InvalidInput, match="max_length is 5000, but must be 1 to 4096"):
        AddressRules(max_length=5000)


def test_a_local_name_is_accepted_once_it_is_listed() -> None:
    rules = AddressRules(local_names=frozenset({"wiki", "*.corp.internal"}))
    assert isinstance(read_address("http://wiki/", rules), Address)
    assert isinstance(read_address("http://a.corp.internal/", rules), Address)
    assert isinstance(read_address("http://other/", rules), Refused)


def test_what_a_user_wrote_is_refused_with_a_sentence() -> None:
    with pytest.raises(InvalidInput, match=r"seeds holds an address .* rule slashes: two slashes must follow"):
        address_or_raise("http:example.com", field="seeds")
    assert address_or_raise("http://example.com", field="seeds").url == "http://example.com/"
