"""Headers that belong to one origin."""

from __future__ import annotations

import pytest

from recrawl.errors import InvalidInput
from recrawl.web.fetch.settings import NO_CREDENTIALS, read_credentials
from recrawl.web.url.address import Address, read_address

SECRET = "Bearer s3cret"
OWN = read_credentials({"https://Example.com:443": {"Authorization": SECRET, "X-Team": "a b"}})


def _address(url: str) -> Address:
    address = read_address(url)
    assert isinstance(address, Address)
    return address


def test_headers_go_to_their_origin() -> None:
    assert OWN.headers_for(_address("https://example.com/a?b")) == (("Authorization", SECRET), ("X-Team", "a b"))


@pytest.mark.parametrize(
    "url",
    ["http://example.com/", "https://example.com:8443/", "https://www.example.com/", "https://example.com.evil.test/"],
)
def test_another_scheme_port_or_host_gets_nothing(url: str) -> None:
    assert OWN.headers_for(_address(url)) == ()


def test_values_never_show() -> None:
    assert "s3cret" not in repr(OWN) + str(OWN)
    assert NO_CREDENTIALS.headers_for(_address("https://example.com/")) == ()


@pytest.mark.parametrize(
    ("origin", "name", "value"),
    [
        ("https://example.com/path", "A", "b"),
        ("ftp://example.com", "A", "b"),
        ("https://me:pw@example.com", "A", "b"),
        ("https://example.com", "Bad Name", "b"),
        ("https://example.com", "", "b"),
        ("https://example.com", "A", "s3cret\r\nX: y"),
        ("https://example.com", "A", "s3cret\0"),
        ("https://example.com", "A", "s3cret\N{SNOWMAN}"),
        ("https://example.com", "A", " s3cret"),
        ("https://example.com", "Host", "s3cret"),
        ("https://example.com", "user-agent", "Mozilla s3cret"),
        ("https://example.com", "Accept-Encoding", "s3cret"),
        ("https://example.com", "Transfer-Encoding", "s3cret"),
    ],
)
def test_what_cannot_be_sent_or_is_the_crawlers_own_is_refused_without_showing_the_value(
    origin: str, name: str, value: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        read_credentials({origin: {name: value}})
    assert "s3cret" not in str(refusal.value)
    assert "credentials[" in str(refusal.value)
