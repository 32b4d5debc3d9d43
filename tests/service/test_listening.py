"""Where the service listens: this machine alone, unless TLS is before it and its names are known."""

from __future__ import annotations

import re

import pytest

from recrawl.errors import InvalidInput
from recrawl.service.listening import Listening, is_loopback, read_listening
from recrawl.service.middleware import host_name


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:8472", "127.0.0.1", 8472), ("8080", "127.0.0.1", 8080), ("localhost:0", "localhost", 0),
        ("[::1]:99", "::1", 99), ("127.8.8.8:1", "127.8.8.8", 1),
    ],
)  # fmt: skip
def test_addresses_of_this_machine_are_taken(text: str, host: str, port: int) -> None:
    listening = read_listening(text)
    assert listening is not None
    assert (listening.host, listening.port) == (host, port)
    assert listening.allowed_names == {"localhost", "127.0.0.1", "[::1]"}


def test_off_is_nowhere() -> None:
    assert read_listening("off") is None
    assert read_listening(" OFF ") is None


@pytest.mark.parametrize("text", ["", ":", "host:", ":80", "a:70000", "a:-1", "a:b", "127.0.0.1:٣"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="listen"):
        read_listening(text)


@pytest.mark.parametrize("text", ["0.0.0.0:80", "[::]:80", "192.168.1.5:80", "example.com:80", "[::ffff:127.0.0.1]:80"])
def test_an_open_bind_needs_tls_and_names(text: str) -> None:
    """Each refusal says what is missing."""
    with pytest.raises(InvalidInput, match="behind-tls"):
        read_listening(text)
    with pytest.raises(InvalidInput, match="names"):
        read_listening(text, behind_tls=True)
    with pytest.raises(InvalidInput, match="behind-tls"):
        read_listening(text, ("crawl.example.com",))
    listening = read_listening(text, ("Crawl.example.com",), behind_tls=True)
    assert listening is not None
    assert listening.allowed_names == {"crawl.example.com"}


@pytest.mark.parametrize("name", ["a b", "a:80", "*", "http://a", ""])
def test_names_are_names(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"service\.names"):
        read_listening("127.0.0.1:1", (name,))


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),
        ("127.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("::ffff:127.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("127.0.0.1", "1.1.1.1, 198.51.100.1", "198.51.100.1"),
        ("127.0.0.1", "1.1.1.1,198.51.100.1 ,10.0.0.1,\t10.9.9.9", "198.51.100.1"),
        ("127.0.0.1", "198.51.100.1:4711", "198.51.100.1"),
        ("127.0.0.1", "[2001:DB8::1]:4711", "2001:db8::1"),
        ("127.0.0.1", "2001:db8:0::1", "2001:db8::1"),
        ("127.0.0.1", "::ffff:198.51.100.1", "198.51.100.1"),
        ("127.0.0.1", "fe80::1%eth0", "fe80::1"),
        ("127.0.0.1", "10.0.0.2, 10.0.0.1", "10.0.0.2"),
        ("fd00::5", "198.51.100.1", "198.51.100.1"),
        ("fd00:1::5", "198.51.100.1", "fd00:1::5"),
        ("127.0.0.1", "", "127.0.0.1"),
        ("127.0.0.1", "unknown", "127.0.0.1"),
        ("127.0.0.1", "198.51.100.1, unknown", "127.0.0.1"),
        ("127.0.0.1", "198.51.100.1, nonsense, 10.0.0.1", "10.0.0.1"),
        ("127.0.0.1", "198.51.100.1,", "127.0.0.1"),
        ("127.0.0.1", "198.51.100.1:port", "127.0.0.1"),
        ("127.0.0.1", "1.2.3", "127.0.0.1"),
        ("127.0.0.1", "\u0661.1.1.1", "127.0.0.1"),
        ("127.0.0.1", "198.51.100.1\x00", "127.0.0.1"),
        ("local", "198.51.100.1", "local"),
    ],
)
def test_the_last_address_that_no_trusted_proxy_has_is_the_client(peer: str, forwarded: str, client: str) -> None:
    """What cannot be read is the doing of the proxy that wrote it, and counts as that proxy."""
    listening = read_listening("127.0.0.1:1", proxies=("127.0.0.1", "10.0.0.0/8", "fd00::/64"))
    assert listening is not None
    assert listening.client_of(peer, forwarded) == client
    assert Listening().client_of(peer, forwarded) in (peer, peer.removeprefix("::ffff:"))


@pytest.mark.parametrize(
    ("proxy", "sentence"),
    [
        ("", "must be an address or a network"),
        ("localhost", "must be an address"),
        ("10.0.0.1/8", "must be an address"),
        ("10.0.0.0/33", "must be an address"),
        ("*", "must be an address"),
        ("0.0.0.0/0", "would let every client choose"),
        ("::/0", "would let every client choose"),
    ],
)
def test_trusted_proxies_are_addresses_or_networks(proxy: str, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^service\.trusted-proxies is '{re.escape(proxy)}', .*{sentence}"):
        read_listening("127.0.0.1:1", proxies=("127.0.0.1", proxy))


def test_loopback_is_what_the_machine_calls_so() -> None:
    assert is_loopback("127.1.2.3")
    assert not is_loopback("127.0.0.1.example.com")
    assert Listening().is_loopback


@pytest.mark.parametrize(
    ("header", "name"), [("a:1", "a"), ("A", "a"), ("[::1]:80", "[::1]"), ("[::1", ""), (":80", ""), ("", "")]
)
def test_the_name_in_a_host_header(header: str, name: str) -> None:
    assert host_name(header) == name
