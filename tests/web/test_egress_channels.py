"""Whatever channel an address comes by, the same rules and the same gate stand before it."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.web.feeds.feed import parse_feed
from recrawl.web.feeds.sitemap import parse_sitemap
from recrawl.web.fetch.egress import EgressPolicy, check_address, check_target
from recrawl.web.refused import Refused
from recrawl.web.robots.entry import robots_answer
from recrawl.web.url.address import Address, join_address, read_address
from recrawl.web.url.networks import FORBIDDEN_NETWORKS, METADATA_ADDRESSES, embedded_ipv4

NOW = 1_700_000_000.0
PRIVATE = [
    "http://127.0.0.1/", "http://0.0.0.0/", "http://10.0.0.1/", "http://172.16.0.1/", "http://192.168.0.1/",
    "http://169.254.169.254/", "http://100.100.100.200/", "http://192.0.0.192/", "http://168.63.129.16/",
    "http://[::1]/", "http://[::]/", "http://[::ffff:7f00:1]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/",
    "http://[fd00:ec2::254]/", "http://[fe80::1]/", "http://[fec0::1]/", "http://[ff02::1]/", "http://8.8.8.8:6379/",
]  # fmt: skip
NEVER = ["file:///etc/passwd", "data:text/plain,x", "ftp://example.com/", "gopher://example.com/",
         "javascript:alert(1)", "http://127.1/", "http://2130706433/", "http://user@example.com/",
         "http://localhost/"]  # fmt: skip


def _page() -> Address:
    address = read_address("https://example.com/dir/page")
    assert isinstance(address, Address)
    return address


def _from_user(url: str) -> list[Address | Refused]:
    return [read_address(url)]


def _from_link_or_redirect(url: str) -> list[Address | Refused]:
    return [join_address(_page(), url)]


def _from_robots(url: str) -> list[Address | Refused]:
    return list(robots_answer(200, f"Sitemap: {url}".encode(), "recrawl", _page()).sitemaps)


def _from_sitemap(url: str) -> list[Address | Refused]:
    body = f"<urlset><url><loc>{url}</loc></url></urlset>".encode()
    return [read_address(entry.url) for entry in parse_sitemap(body, _page(), NOW).entries]


def _from_index(url: str) -> list[Address | Refused]:
    body = f"<sitemapindex><sitemap><loc>{url}</loc></sitemap></sitemapindex>".encode()
    return [read_address(entry.url) for entry in parse_sitemap(body, _page(), NOW).entries]


def _from_feed(url: str) -> list[Address | Refused]:
    body = f"<rss><channel><item><link>{url}</link></item></channel></rss>".encode()
    return [read_address(entry.url) for entry in parse_feed(body, _page(), NOW).entries if entry.url]


CHANNELS = [_from_user, _from_link_or_redirect, _from_robots, _from_sitemap, _from_index, _from_feed]


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("url", PRIVATE)
def test_a_private_address_is_refused_at_the_early_check_of_every_channel(
    channel: Callable[[str], list[Address | Refused]], url: str
) -> None:
    (address,) = channel(url)
    assert isinstance(address, Address)
    assert isinstance(check_target(address, EgressPolicy()), Refused)


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("url", NEVER)
def test_what_is_no_address_to_fetch_comes_through_no_channel(
    channel: Callable[[str], list[Address | Refused]], url: str
) -> None:
    assert not [address for address in channel(url) if isinstance(address, Address)]


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_public_address_comes_through_every_channel(channel: Callable[[str], list[Address | Refused]]) -> None:
    (address,) = channel("https://www.example.org/x")
    assert isinstance(address, Address)
    assert check_target(address, EgressPolicy()) is None


NETWORKS = [ip_network(text) for text, _ in FORBIDDEN_NETWORKS + METADATA_ADDRESSES]


@given(
    st.integers(0, 2**32 - 1).map(IPv4Address)
    | st.integers(0, 2**128 - 1).map(IPv6Address)
    | st.builds(
        lambda prefix, low: IPv6Address(prefix << 96 | low),
        st.integers(0x20000000, 0x2FFFFFFF),
        st.integers(0, 2**96 - 1),
    )
)
def test_what_is_allowed_lies_in_no_forbidden_network_and_carries_nothing_that_does(
    ip: IPv4Address | IPv6Address,
) -> None:
    if check_address(ip, 443, EgressPolicy()) is None:
        for inner in (ip, *embedded_ipv4(ip)):
            assert inner.is_global
            assert not [network for network in NETWORKS if inner.version == network.version and inner in network]
