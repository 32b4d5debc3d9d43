"""IndexNow pings: what the protocol asks is held to, whatever the bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.web.push.indexnow import MOST_BYTES, MOST_URLS, Ping, PingProblem, holds_key, read_ping, read_ping_query

KEY = "0123456789abcdef-ABC"


def posted(**changes: Any) -> bytes:
    fields = {"host": "www.example.com", "key": KEY, "urlList": ["https://www.example.com/a"]} | changes
    return json.dumps({name: value for name, value in fields.items() if value is not None}).encode()


def good(ping: Ping | PingProblem) -> Ping:
    assert isinstance(ping, Ping), ping
    return ping


def problem(ping: Ping | PingProblem) -> PingProblem:
    assert isinstance(ping, PingProblem), ping
    return ping


def test_the_example_of_the_protocol_is_read() -> None:
    urls = ["https://www.example.com/url1", "https://www.example.com/folder/url2", "https://www.example.com/url3"]
    ping = good(read_ping(posted(keyLocation=f"https://www.example.com/{KEY}.txt", urlList=urls)))
    assert (ping.host, ping.key, ping.key_address.url) == ("www.example.com", KEY, f"https://www.example.com/{KEY}.txt")
    assert ping.urls.urls == tuple(urls)


def test_the_key_is_looked_for_at_the_root_unless_the_ping_says_where() -> None:
    assert good(read_ping(posted())).key_address.url == f"https://www.example.com/{KEY}.txt"


def test_addresses_of_other_hosts_and_refused_ones_are_counted_and_left_out() -> None:
    urls = ["http://www.example.com/a", "https://example.com/", "https://www.example.com.evil.example/",
            "file:///etc/passwd", "https://www.example.com:8443/b", "http://www.example.com/a",
            "https://www.example.com@evil.example/"]  # fmt: skip
    found = good(read_ping(posted(urlList=urls))).urls
    assert found.urls == ("http://www.example.com/a", "https://www.example.com:8443/b")
    assert found.repeated == 1
    assert found.refused == {"other-site": 2, "scheme": 1, "userinfo": 1}


def test_a_key_in_a_folder_speaks_for_that_folder_only() -> None:
    urls = ["https://www.example.com/catalog/x", "https://www.example.com/help", "https://www.example.com/catalogue"]
    ping = good(read_ping(posted(keyLocation=f"https://www.example.com/catalog/{KEY}.txt", urlList=urls)))
    assert ping.urls.urls == ("https://www.example.com/catalog/x",)
    assert ping.urls.refused == {"other-site": 2}


def test_a_host_with_a_port_means_that_port() -> None:
    urls = ["http://127.0.0.9:8080/a", "http://127.0.0.9:8081/a", "http://127.0.0.9/a"]
    assert good(read_ping(posted(host="127.0.0.9:8080", urlList=urls))).urls.urls == ("http://127.0.0.9:8080/a",)


def test_a_name_in_capitals_or_another_script_is_the_same_host() -> None:
    urls = ["https://bücher.example/a", "https://XN--BCHER-KVA.example/b"]
    ping = good(read_ping(posted(host="BÜCHER.example", urlList=urls)))
    assert ping.urls.urls == ("https://xn--bcher-kva.example/a", "https://xn--bcher-kva.example/b")


@pytest.mark.parametrize(
    ("body", "field", "status"),
    [
        (b"", "body", 400),
        (b"null", "body", 400),
        (b"[]", "body", 400),
        (b"{", "body", 400),
        (b"\xff\xfe{}", "body", 400),
        (b"[" * 100_000, "body", 400),
        (b'{"x":' * 5_000, "body", 400),
        (posted(host=None), "host", 400),
        (posted(key=None), "key", 400),
        (posted(urlList=None), "urlList", 400),
        (posted(host=7), "host", 400),
        (posted(urlList="https://www.example.com/"), "urlList", 400),
        (posted(urlList=["https://www.example.com/", 7]), "urlList", 400),
        (posted(urlList=[["https://www.example.com/"]]), "urlList", 400),
        (posted(urlList=[]), "urlList", 422),
        (posted(urlList=["https://other.example/"]), "urlList", 422),
        (posted(host=""), "host", 422),
        (posted(host="www.example.com/path"), "host", 422),
        (posted(host="user@www.example.com"), "host", 422),
        (posted(host="localhost"), "host", 422),
        (posted(host="a b"), "host", 422),
        (posted(host="x" * 5000), "host", 422),
        (posted(key="short"), "key", 422),
        (posted(key="x" * 129), "key", 422),
        (posted(key="../../../../etc/passwd"), "key", 422),
        (posted(keyLocation="https://evil.example/key.txt"), "keyLocation", 422),
        (posted(keyLocation="key.txt"), "keyLocation", 422),
        (posted(keyLocation=7), "keyLocation", 400),
    ],
)
def test_what_is_wrong_is_named_with_the_status_of_the_protocol(body: bytes, field: str, status: int) -> None:
    found = problem(read_ping(body))
    assert (found.field, found.status) == (field, status)
    assert found.sentence.isprintable()


def test_too_many_addresses_and_too_many_bytes_are_refused_before_they_cost_memory() -> None:
    urls = [f"https://www.example.com/{number}" for number in range(MOST_URLS + 1)]
    assert len(good(read_ping(posted(urlList=urls[:-1]))).urls.urls) == MOST_URLS
    assert problem(read_ping(posted(urlList=urls))).status == 413
    assert problem(read_ping(posted(urlList=["a"] * 1_000_000))).field == "urlList"
    assert problem(read_ping(b" " * (MOST_BYTES + 1))).status == 413


def test_one_address_may_come_by_get() -> None:
    ping = good(read_ping_query(f"url=https%3A%2F%2Fwww.example.com%2Fa%3Fb%3D1&key={KEY}"))
    assert ping.urls.urls == ("https://www.example.com/a?b=1",)
    assert ping.host == "www.example.com"
    below = good(
        read_ping_query(f"url=http://www.example.com:81/c/a&key={KEY}&keyLocation=http://www.example.com:81/c/k.txt")
    )
    assert (below.host, below.urls.urls) == ("www.example.com:81", ("http://www.example.com:81/c/a",))


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", "url"),
        (f"url=x&key={KEY}", "url"),
        (f"url=https://a.example/&url=https://a.example/&key={KEY}", "url"),
        ("url=https://a.example/", "key"),
        ("url=https://a.example/&key=%00", "key"),
        (f"url=https://a.example/&key={KEY}&keyLocation=//", "keyLocation"),
        ("&".join(f"a{number}=1" for number in range(100)), "query"),
        ("x" * 20_000, "query"),
    ],
)
def test_a_get_that_cannot_be_used_names_the_parameter(query: str, field: str) -> None:
    assert problem(read_ping_query(query)).field == field


def test_a_key_file_holds_the_key_and_nothing_else() -> None:
    assert holds_key(b"\xef\xbb\xbf" + KEY.encode() + b"\r\n", KEY)
    assert not holds_key(b"", KEY)
    assert not holds_key(KEY.encode() + b" " * 5000, KEY)
    assert not holds_key(KEY.encode() + b"\0", KEY)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.just("https://www.example.com/a"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["host", "key", "urlList"]), inner),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(["host", "key", "urlList", "keyLocation", "x"]), values), st.integers(0, 200))
def test_no_json_raises_and_no_cut_of_it(fields: dict[str, Any], cut: int) -> None:
    body = json.dumps({"host": "www.example.com", "key": KEY} | fields).encode()
    for each in (body, body[:cut], body + b"\0", body.replace(b'"', b"\xff", 1)):
        assert isinstance(read_ping(each), Ping | PingProblem)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60))
def test_no_query_raises(text: str) -> None:
    assert isinstance(read_ping_query(text), Ping | PingProblem)
    assert isinstance(read_ping_query(f"url=https://a.example/&key={KEY}&keyLocation={text}"), Ping | PingProblem)
