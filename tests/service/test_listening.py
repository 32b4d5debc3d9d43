"""Where the service listens: this machine alone, unless TLS is before it and its names are known."""

from __future__ import annotations

import pytest

from recrawl.errors import InvalidInput
from recrawl.service.listening import Listening, is_loopback, read_listening
from recrawl.service.shield import host_name


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


def test_loopback_is_what_the_machine_calls_so() -> None:
    assert is_loopback("127.1.2.3")
    assert not is_loopback("127.0.0.1.example.com")
    assert Listening().is_loopback


@pytest.mark.parametrize(
    ("header", "name"), [("a:1", "a"), ("A", "a"), ("[::1]:80", "[::1]"), ("[::1", ""), (":80", ""), ("", "")]
)
def test_the_name_in_a_host_header(header: str, name: str) -> None:
    assert host_name(header) == name
