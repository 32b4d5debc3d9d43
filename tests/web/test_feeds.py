"""Feeds: what is read of them, and what a broken or hostile one cannot do."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.web.feeds.feed import MAX_BYTES, MAX_ENTRIES, Feed, FeedEntry, parse_feed
from recrawl.web.url.address import Address, read_address

NOW = 1_700_000_000.0


def _parse(body: bytes | str, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES) -> Feed:
    base = read_address("https://example.com/blog/feed.xml")
    assert isinstance(base, Address)
    raw = body.encode() if isinstance(body, str) else body
    return parse_feed(raw, base, NOW, max_entries=max_entries, max_bytes=max_bytes)


def _rss(*items: str) -> str:
    return (
        '<rss version="2.0"><channel><title>T</title>'
        + "".join(f"<item>{item}</item>" for item in items)
        + "</channel></rss>"
    )


def test_rss_is_read() -> None:
    feed = _parse(
        _rss(
            "<title>A &amp; B</title><link>https://example.com/a</link><guid isPermaLink='false'>1</guid>"
            "<pubDate>Sun, 06 Nov 1994 08:49:37 GMT</pubDate>"
        )
    )
    assert feed == Feed((FeedEntry("https://example.com/a", "1", 784_111_777.0, None),))


def test_atom_is_read_and_the_link_to_the_page_is_taken() -> None:
    feed = _parse(
        '<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title><entry><id>tag:1</id><title>x</title>'
        '<link rel="edit" href="/edit/1"/><link rel="alternate" href="/a"/>'
        "<updated>2023-01-02T00:00:00Z</updated></entry></feed>"
    )
    assert [entry.url for entry in feed.entries] == ["https://example.com/a"]
    assert feed.entries[0].id == "tag:1"
    assert feed.entries[0].updated == 1_672_617_600.0


ATOM = '<feed xmlns="http://www.w3.org/2005/Atom"{base}>{entries}</feed>'
ATOM_ENTRY = "<entry{base}><id>tag:{id}</id><title>x</title>{links}<updated>2023-01-02T00:00:00Z</updated></entry>"


@pytest.mark.parametrize(
    ("feed_base", "entry_base", "expected"),
    [
        ("https://other.example/a/", "", "https://other.example/a/p"),
        ("sub/", "", "https://example.com/blog/sub/p"),
        ("/sub/", "deep/", "https://example.com/sub/deep/p"),
        ("", "https://other.example/b/", "https://other.example/b/p"),
        ("javascript:x", "", "https://example.com/blog/p"),
    ],
)
def test_links_of_an_atom_feed_are_relative_to_its_xml_base(feed_base: str, entry_base: str, expected: str) -> None:
    bases = [f' xml:base="{base}"' if base else "" for base in (feed_base, entry_base)]
    entries = ATOM_ENTRY.format(base=bases[1], id=1, links='<link href="p"/>')
    entries += ATOM_ENTRY.format(base="", id=2, links='<link href="https://third.example/q"/>')
    feed = _parse(ATOM.format(base=bases[0], entries=entries))
    assert [entry.url for entry in feed.entries] == [expected, "https://third.example/q"]
    assert [(entry.id, entry.updated) for entry in feed.entries] == [(f"tag:{n}", 1_672_617_600.0) for n in (1, 2)]


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (("application/pdf", "text/html"), "/1"),
        (("application/pdf", "Application/XHTML+xml", "text/html"), "/1"),
        (("", "text/html"), "/0"),
        (("application/pdf", "application/epub+zip"), "/0"),
    ],
)
def test_of_several_links_the_first_to_a_page_counts(types: tuple[str, ...], expected: str) -> None:
    links = "".join(
        f'<link rel="alternate" href="/{number}"' + (f' type="{each}"/>' if each else "/>")
        for number, each in enumerate(types)
    )
    feed = _parse(ATOM.format(base="", entries=ATOM_ENTRY.format(base="", id=1, links=links)))
    assert [entry.url for entry in feed.entries] == [f"https://example.com{expected}"]


def test_json_feed_is_read() -> None:
    feed = _parse(
        '{"version": "https://jsonfeed.org/version/1.1", "title": "T", "items": [{"id": "7", "url": "/a", "title": "x",'
        ' "date_published": "2023-01-02T00:00:00Z"}]}'
    )
    assert feed.entries == (FeedEntry("https://example.com/a", "7", 1_672_617_600.0, None),)


def test_relative_links_are_joined_and_refused_ones_are_none() -> None:
    links = [
        "/a",
        "b",
        "//other.example/c",
        "javascript:x",
        "file:///etc/passwd",
        "http://127.1/",
        "http://a@b.example/",
    ]
    feed = _parse(_rss(*(f"<link>{link}</link><guid>{number}</guid>" for number, link in enumerate(links))))
    assert [entry.url for entry in feed.entries] == [
        "https://example.com/a",
        "https://example.com/blog/b",
        "https://other.example/c",
        None,
        None,
        None,
        None,
    ]


def test_of_repeated_entries_the_first_counts_and_empty_ones_are_left_out() -> None:
    feed = _parse(
        _rss(
            "<guid>1</guid><pubDate>2023-01-02</pubDate>",
            "<guid>1</guid><pubDate>2023-01-03</pubDate>",
            "<title>nothing</title>",
            "",
        )
    )
    assert feed.entries == (FeedEntry(None, "1", 1_672_617_600.0, None),)


@pytest.mark.parametrize(
    ("date", "believed"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", True),
        ("Sun, 06 Nov 1994 08:49:37 +0200", True),
        ("2023-01-02T00:00:00Z", True),
        ("2023-01-02", True),
        ("02 Jan 2023", True),
        ("Mon, 31 Feb 2023 25:61:00 GMT", False),
        ("Fri, 31 Dec 9999 23:59:59 GMT", False),
        ("Thu, 01 Jan 1970 00:00:00 GMT", False),
        ("tomorrow-ish", False),
        ("9" * 5000, False),
        ("", False),
    ],
)
def test_dates_of_all_kinds_are_read_or_left_out(date: str, believed: bool) -> None:
    feed = _parse(_rss(f"<guid>1</guid><pubDate>{date}</pubDate>"))
    assert (feed.entries[0].published is not None) is believed


@pytest.mark.parametrize("entry_id", ["7", "20230102", "2023-01-02", "10:30", "Jan 5"])
def test_an_id_is_never_read_as_a_date(entry_id: str) -> None:
    assert _parse(_rss(f"<guid>{entry_id}</guid>")).entries[0].published is None


@pytest.mark.parametrize("entry_id", ["7", "12345", "abc", "https://example.com/2023/01/02/x"])
def test_a_date_stays_beside_an_id_that_looks_like_one(entry_id: str) -> None:
    feed = _parse(_rss(f"<guid>{entry_id}</guid><pubDate>Sun, 06 Nov 1994 08:49:37 GMT</pubDate>"))
    assert feed.entries[0].published == 784_111_777.0


@pytest.mark.parametrize(
    "body",
    [
        "<rss><channel><item><title>x</title><link>https://example.com/a</link>",
        "<rss><channel><item><link>https://example.com/a</link><title>a & b <br></title></item></channel></rss>",
        "garbage <rss><channel><item><link>https://example.com/a</link></item></channel></rss>",
    ],
    ids=["breaks off", "bad markup", "words before"],
)
def test_what_can_be_read_of_a_broken_feed_is_read(body: str) -> None:
    assert [entry.url for entry in _parse(body).entries] == ["https://example.com/a"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"   ",
        b"<html><body>Not found</body></html>",
        b"words",
        b"\x00" * 100,
        b"[" * 200_000,
        b'{"version": "https://jsonfeed.org/version/1", "items": ' + b"[" * 200_000,
        b'{"version": "https://jsonfeed.org/version/1", "items": 5}',
        b'{"version": "https://jsonfeed.org/version/1", "items": [NaN, 1e999, null, "x", []]}',
        b"\x1f\x8b\x08\x00",
        b"\xff\xfe<\x00r\x00",
    ],
    ids=repr,
)
def test_what_is_no_feed_has_a_problem_in_one_sentence(body: bytes) -> None:
    feed = _parse(body)
    assert feed.entries == ()
    assert (feed.problem or "").startswith("the feed ")
    assert (feed.problem or "").isprintable()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_refused_before_a_parser_sees_them(encoding: str) -> None:
    laughs = "".join(f"<!ENTITY e{level} '{f'&e{level - 1};' * 10}'>" for level in range(1, 12))
    body = f"<!DOCTYPE rss [<!ENTITY e0 'ha'>{laughs}]>" + _rss("<guid>&e11;</guid>")
    assert _parse(body.encode(encoding)).problem == "the feed declares entities, which no feed needs"


LAUGHS = "<!DOCTYPE rss [<!ENTITY e 'ha'>]>" + _rss("<guid>&e;&e;</guid>")


HIDDEN = [("utf-8", "utf-8"), ("utf-16", "utf-16"), ("utf-16-be", "utf-16"), ("utf-32", "utf-32"), ("cp037", "IBM037"),
          ("cp500", "ebcdic-cp-be"), ("utf-7", "UTF-7")]  # fmt: skip


@pytest.mark.parametrize(("codec", "label"), HIDDEN)
def test_entities_are_found_in_every_encoding_or_the_encoding_is_not_read(codec: str, label: str) -> None:
    if codec == "utf-7":  # its declaration must be plain to be seen
        body = f"<?xml version='1.0' encoding='{label}'?>{LAUGHS.replace('<', '+ADw-').replace('!', '+ACE-')}".encode()
    else:
        body = f"<?xml version='1.0' encoding='{label}'?>{LAUGHS}".encode(codec)
    feed = _parse(body)
    assert "haha" not in {entry.id for entry in feed.entries}
    assert feed.problem is not None


@pytest.mark.parametrize(
    "start", ["<!DOCTYPE rss SYSTEM '{file}'>", "<!DOCTYPE rss PUBLIC '-//x' 'http://127.0.0.1:{port}/x.dtd'>"]
)
def test_a_document_type_fetches_and_opens_nothing_and_nothing_is_included(start: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        include = f"<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='{secret}' parse='text'/>"
        feed = _parse(start.format(file=secret, port=server.getsockname()[1]) + _rss(f"<guid>a{include}</guid>"))
        with pytest.raises(BlockingIOError):  # nobody came
            server.accept()
    assert [entry.id for entry in feed.entries] == ["a"]


@pytest.mark.parametrize("label", ["utf8", "windows-1252", "shift_jis", "latin1"])
def test_an_encoding_that_browsers_know_is_read(label: str) -> None:
    body = f"<?xml version='1.0' encoding='{label}'?>" + _rss("<guid>plain</guid>")
    assert [entry.id for entry in _parse(body.encode()).entries] == ["plain"]


def test_a_feed_that_is_a_file_name_or_an_address_opens_nothing(tmp_path: Path) -> None:
    secret = tmp_path / "secret.xml"
    secret.write_text(_rss("<guid>secret</guid>"))
    for body in (str(secret), f"file://{secret}", "http://127.0.0.1:9/feed", "https://example.com/feed"):
        assert _parse(body).entries == ()


def test_size_and_entries_are_capped() -> None:
    body = _rss(*(f"<guid>{number}</guid>" for number in range(50)))
    small = _parse(body, max_entries=10)
    assert len(small.entries) == 10
    assert "more than 10 entries" in (small.problem or "")
    assert "larger than 100 bytes" in (_parse(body, max_bytes=100).problem or "")


@pytest.mark.parametrize(
    "item", [b"<item><guid>%d</guid><pubDate>bad %d</pubDate></item>", b"<item><guid>%d-%d</guid></item>"]
)
def test_of_a_hundred_thousand_entries_the_first_are_read(item: bytes) -> None:
    """A parser that looked at all of them would spend most of a minute on their dates."""
    items = b"".join(item % (number, number) for number in range(100_000))
    feed = _parse(b"<rss><channel>" + items + b"</channel></rss>", max_entries=200)
    assert len(feed.entries) == 200
    assert feed.problem == "the feed holds more than 200 entries; the rest is not read"


def test_of_a_json_feed_with_too_many_entries_the_first_are_read() -> None:
    items = ",".join(f'{{"id": "{number}", "date_published": "bad", "date_modified": "bad"}}' for number in range(1000))
    body = f'{{"version": "https://jsonfeed.org/version/1", "items": [{items}]}}'
    assert len(_parse(body).entries) == 1000
    feed = _parse(body, max_entries=200)
    assert [entry.id for entry in feed.entries] == [str(number) for number in range(200)]
    assert "more than 200 entries" in (feed.problem or "")


@settings(max_examples=60)
@given(st.binary(max_size=120) | st.text(alphabet="<>/rschanelitmdgu!&;[]\"' ={}:", max_size=120).map(str.encode))
def test_any_bytes_give_clean_entries_and_one_sentence(body: bytes) -> None:
    for whole in (
        body,
        b"<rss><channel><item>" + body,
        b'{"version":"https://jsonfeed.org/version/1","items":[' + body,
    ):
        feed = _parse(whole)
        assert [FeedEntry(*each) for each in json.loads(json.dumps(feed.entries))] == list(feed.entries)
        for entry in feed.entries:
            address = read_address(entry.url or "https://example.com/")
            assert isinstance(address, Address)
            assert entry.url in (None, address.url)
            assert entry.url or entry.id
        assert feed.problem is None or feed.problem.isprintable()


@pytest.mark.parametrize(
    ("end", "kept"),
    [("</link></item></channel></rss>", 2), ("</link></item>", 2), ("</link>", 2), ("", 1)],
    ids=["whole", "after an entry", "after an address", "in an address"],
)
def test_a_feed_that_breaks_off_says_so_and_makes_up_no_address(end: str, kept: int) -> None:
    body = (
        '<rss version="2.0"><channel><title>t</title><item><link>https://example.com/one</link></item>'
        f"<item><link>https://example.com/tw{end}"
    )
    feed = _parse(body)
    assert [entry.url for entry in feed.entries] == ["https://example.com/one", "https://example.com/tw"][:kept]
    assert feed.problem == (None if end.endswith("</rss>") else "the feed breaks off; what came of it is read")
