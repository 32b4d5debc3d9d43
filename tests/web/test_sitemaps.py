"""Sitemaps: what is read, what is ignored, and what a hostile one cannot do."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.web.feeds.sitemap import MAX_BYTES, MAX_ENTRIES, Sitemap, SitemapEntry, SitemapWalk, parse_sitemap
from recrawl.web.url.address import Address, read_address

NOW = 1_700_000_000.0
NAMESPACE = b'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def _base(url: str = "https://example.com/sitemap.xml") -> Address:
    address = read_address(url)
    assert isinstance(address, Address)
    return address


def _parse(body: bytes, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES) -> Sitemap:
    return parse_sitemap(body, _base(), NOW, max_entries=max_entries, max_bytes=max_bytes)


def _urlset(*items: str) -> bytes:
    return b"<urlset " + NAMESPACE + b">" + "".join(f"<url>{item}</url>" for item in items).encode() + b"</urlset>"


def _urls(sitemap: Sitemap) -> list[str]:
    return [entry.url for entry in sitemap.entries]


def test_addresses_and_times_are_read() -> None:
    body = b'<?xml version="1.0" encoding="UTF-8"?>\n' + _urlset(
        "<loc> https://example.com/a?x=1&amp;y=2 </loc><lastmod>2023-01-02</lastmod><priority>NaN</priority>",
        "<loc><![CDATA[https://example.com/b]]></loc><changefreq>always</changefreq>",
    )
    sitemap = _parse(body)
    assert sitemap.kind == "pages"
    assert sitemap.problem is None
    assert sitemap.entries == (
        SitemapEntry("https://example.com/a?x=1&y=2", 1_672_617_600.0, foreign=False),
        SitemapEntry("https://example.com/b", None, foreign=False),
    )


@pytest.mark.parametrize(
    "body",
    [
        gzip.compress(_urlset("<loc>https://example.com/a</loc>"), mtime=0),
        gzip.compress(_urlset("<loc>https://example.com/a</loc>")[:40], mtime=0)
        + gzip.compress(_urlset("<loc>https://example.com/a</loc>")[40:], mtime=0),
        gzip.compress(_urlset("<loc>https://example.com/a</loc>"), mtime=0) + b"trailing",
        b"\n  " + _urlset("<loc>https://example.com/a</loc>"),
        b"\xef\xbb\xbf" + _urlset("<loc>https://example.com/a</loc>"),
        ('<?xml version="1.0" encoding="UTF-16"?>' + _urlset("<loc>https://example.com/a</loc>").decode()).encode(
            "utf-16"
        ),
        b'<s:urlset xmlns:s="x"><s:url><s:loc>https://example.com/a</s:loc></s:url></s:urlset>',
        b"<urlset><url><loc>https://example.com/a</loc></url></urlset>",
        b"https://example.com/a\r\n",
        b"\xef\xbb\xbfhttps://example.com/a",
        b"https://example.com/a\nno address <b>\n",
        _urlset("<loc>https://example.com/a</loc>", "<loc>https://example.com/a</loc>"),
    ],
    ids=[
        "gzip",
        "two members",
        "trailing",
        "blanks",
        "BOM",
        "UTF-16",
        "prefix",
        "no namespace",
        "text",
        "text BOM",
        "text with a sign of XML",
        "twice",
    ],
)
def test_every_usual_form_gives_the_same_address(body: bytes) -> None:
    sitemap = _parse(body)
    assert _urls(sitemap) == ["https://example.com/a"]
    assert sitemap.kind == "pages"
    assert sitemap.problem is None


def test_an_index_is_told_from_a_list_of_pages() -> None:
    sitemap = _parse(b"<sitemapindex><sitemap><loc>https://example.com/1.xml.gz</loc></sitemap></sitemapindex>")
    assert sitemap.kind == "index"
    assert _urls(sitemap) == ["https://example.com/1.xml.gz"]


def test_addresses_of_images_and_other_extensions_are_not_pages() -> None:
    body = _urlset(
        "<loc>https://example.com/a</loc><image:image xmlns:image='i'><image:loc>https://example.com/i.png</image:loc>"
        "</image:image>"
    )
    assert _urls(_parse(body)) == ["https://example.com/a"]


@pytest.mark.parametrize(
    ("lastmod", "believed"),
    [
        ("2023-01-02T00:00:00+00:00", True),
        ("2023-01", True),
        ("Mon, 02 Jan 2023 00:00:00 GMT", True),
        ("2023-11-15T00:00:00Z", True),  # tomorrow, in another zone
        ("2024-01-01", False),
        ("9999-12-31", False),
        ("1970-01-01", False),
        ("0000-00-00", False),
        ("2023-02-30", False),
        ("never", False),
        ("x" * 100_000, False),
    ],
)
def test_a_lastmod_that_cannot_be_is_ignored_and_counted(lastmod: str, believed: bool) -> None:
    sitemap = _parse(_urlset(f"<loc>https://example.com/a</loc><lastmod>{lastmod}</lastmod>"))
    assert (sitemap.entries[0].lastmod is not None) is believed
    assert sitemap.ignored_lastmods == (not believed)


def test_addresses_of_other_hosts_are_marked() -> None:
    urls = ["https://example.com/a", "http://www.example.com/b", "https://evil.example/c", "https://sub.example.com/d"]
    sitemap = _parse(_urlset(*(f"<loc>{url}</loc>" for url in urls)))
    assert [entry.foreign for entry in sitemap.entries] == [False, False, True, True]


def test_refused_addresses_are_counted_and_left_out() -> None:
    bad = ["file:///etc/passwd", "/relative", "", "http://127.1/", "javascript:x", "http://a@b.example/", "x" * 100_000]
    sitemap = _parse(_urlset("<loc>https://example.com/a</loc>", *(f"<loc>{url}</loc>" for url in bad), ""))
    assert _urls(sitemap) == ["https://example.com/a"]
    assert sitemap.ignored_addresses == 8


def test_no_more_addresses_are_read_than_the_limit() -> None:
    body = _urlset(*(f"<loc>https://example.com/{number}</loc>" for number in range(20)))
    sitemap = _parse(body, max_entries=5)
    assert len(sitemap.entries) == 5
    assert "more than 5 addresses" in (sitemap.problem or "")
    text = "\n".join(f"https://example.com/{number}" for number in range(20)).encode()
    assert len(_parse(text, max_entries=5).entries) == 5


def test_the_limits_of_the_protocol_are_the_default() -> None:
    assert (MAX_ENTRIES, MAX_BYTES) == (50_000, 50 * 1024 * 1024)


@pytest.mark.parametrize("compress", [False, True])
def test_what_is_larger_than_the_limit_is_cut_and_its_beginning_kept(compress: bool) -> None:
    body = _urlset(*(f"<loc>https://example.com/{number}</loc>" for number in range(1000)))
    sitemap = _parse(gzip.compress(body, mtime=0) if compress else body, max_bytes=2000)
    assert "larger than 2000 bytes" in (sitemap.problem or "")
    assert 10 < len(sitemap.entries) < 60


def test_a_gzip_bomb_is_cut_at_the_limit() -> None:
    bomb = gzip.compress(b"<urlset>" + b" " * 20_000_000, mtime=0)
    assert len(bomb) < 30_000
    sitemap = _parse(bomb, max_bytes=100_000)
    assert sitemap.entries == ()
    assert "larger than 100000 bytes" in (sitemap.problem or "")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (gzip.compress(gzip.compress(_urlset("<loc>https://example.com/a</loc>")), mtime=0), "gzipped twice"),
        (gzip.compress(_urlset("<loc>https://example.com/a</loc>"), mtime=0)[:-12], "breaks off"),
        (b"\x1f\x8bnonsense", "no sound gzip file"),
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"\x1f\x8b", "breaks off"),
        (b"<html><body>Not found</body></html>", "no sitemap"),
        (b"<!DOCTYPE html><html></html>", "document type"),
        (b"<rss><channel/></rss>", "no sitemap"),
        (b"just words", "no sitemap"),
        (b"<urlset><url><loc>https://example.com/a</loc></url>", "breaks off"),
        (b"<urlset><url></urlset>", "breaks off"),
        (b"\x00\x01\x02<", "is no sitemap"),
        (b"<urlset>" + b"<a>" * 100 + b"</urlset>", "nested more than 64 deep"),
    ],
)
def test_a_broken_file_has_a_problem_in_one_sentence(body: bytes, problem: str) -> None:
    sitemap = _parse(body)
    assert problem in (sitemap.problem or "")
    assert (sitemap.problem or "").isprintable()


@pytest.mark.parametrize("name", ["unicode_escape", "zlib", "utf-7", "punycode", "idna", "utf8", "gb2312", "x" * 1000])
def test_an_encoding_that_is_none_of_text_is_read_as_utf_8(name: str) -> None:
    body = f'<?xml version="1.0" encoding="{name}"?>'.encode() + _urlset("<loc>https://example.com/a</loc>")
    assert _urls(_parse(body)) == ["https://example.com/a"]


def test_an_old_encoding_of_text_is_read() -> None:
    body = '<?xml version="1.0" encoding="windows-1252"?><urlset><url><loc>https://example.com/é</loc></url></urlset>'
    assert _urls(_parse(body.encode("cp1252"))) == ["https://example.com/%C3%A9"]


def test_what_was_read_before_the_break_is_kept() -> None:
    assert _urls(_parse(_urlset("<loc>https://example.com/a</loc>", "<loc>https://example.com/b")[:-20])) == [
        "https://example.com/a"
    ]


LAUGHS = b"<!DOCTYPE urlset [<!ENTITY a 'ha'>" + b"".join(
    b"<!ENTITY %c '%s'>" % (98 + level, b"&%c;" % (97 + level) * 10) for level in range(12)
)


@pytest.mark.parametrize(
    "document_type",
    [
        LAUGHS + b"]>",
        b'<!DOCTYPE urlset SYSTEM "http://127.0.0.1/x.dtd">',
        b'<!DOCTYPE urlset [<!ENTITY f SYSTEM "file:///etc/passwd">]>',
        b'<!DOCTYPE urlset [<!ENTITY % p SYSTEM "http://127.0.0.1/p">%p;]>',
        b'<?xml version="1.0" encoding="UTF-7"?>+ADw-+ACE-DOCTYPE urlset +AFs-+ADw-+ACE-ENTITY f "x"+AD4-+AF0-+AD4-',
        '<?xml version="1.0" encoding="IBM037"?><!DOCTYPE urlset [<!ENTITY f "x">]>'.encode("cp037"),
    ],
    ids=["billion laughs", "external DTD", "external entity", "parameter entity", "UTF-7", "EBCDIC"],
)
def test_a_document_type_is_refused_before_anything_grows(document_type: bytes) -> None:
    sitemap = _parse(document_type + b"<urlset><url><loc>&f;&m;</loc></url></urlset>")
    assert sitemap.entries == ()
    # In an encoding that is not read at all it is hidden.
    problem = {b"<!": "declares a document type", b"<?": "breaks off"}.get(document_type[:2], "is no sitemap")
    assert problem in (sitemap.problem or "")


def test_nothing_is_included_from_elsewhere(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("https://example.com/secret")
    include = f"<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='{secret}' parse='text'/>"
    assert _urls(_parse(_urlset(f"<loc>https://example.com/{include}</loc>"))) == ["https://example.com/"]


def test_a_gzip_file_of_thousands_of_empty_members_is_given_up() -> None:
    sitemap = _parse(
        gzip.compress(b"", mtime=0) * 5000 + gzip.compress(_urlset("<loc>https://example.com/a</loc>"), mtime=0)
    )
    assert sitemap.entries == ()
    assert "more than 256 members" in (sitemap.problem or "")


@pytest.mark.parametrize(
    "body",
    [
        b'<urlset x="' + b"a" * 4_000_000 + b'"></urlset>',
        b"<urlset><url><loc>" + b"a" * 4_000_000 + b"</loc></url></urlset>",
        b"<urlset><!--" + b"a" * 4_000_000 + b"--></urlset>",
        b"<urlset>" + b"<url/>" * 300_000 + b"</urlset>",
        b"<urlset><url><loc>" + b"&amp;" * 500_000 + b"</loc></url></urlset>",
        b"<urlset><url>" + b"<loc>x</loc>" * 200_000 + b"</url></urlset>",
        b"<urlset " + b" ".join(b'a%d="1"' % number for number in range(50_000)) + b"></urlset>",
    ],
    ids=["attribute", "token", "comment", "empty items", "references", "locs", "attributes"],
)
def test_one_big_token_costs_one_pass(body: bytes) -> None:
    """Fed in pieces, the first three would take an old expat minutes."""
    assert _parse(body).entries == ()


@given(st.binary(max_size=200) | st.text(alphabet="<>/urlsetcmapodx!&;[]\"' =", max_size=120).map(str.encode))
def test_any_bytes_give_clean_addresses_and_one_sentence(body: bytes) -> None:
    for whole in (body, b"<urlset><url>" + body, b"\x1f\x8b" + body):
        sitemap = _parse(whole)
        urls = _urls(sitemap)
        assert urls == [_base(url).url for url in urls]
        assert len(urls) == len(set(urls))
        assert sitemap.problem is None or sitemap.problem.isprintable()
        assert sitemap.kind != "none" or not urls
    assert _parse(b"\x1f\x8b" + body).problem


def _index(*urls: str, foreign: bool = False) -> Sitemap:
    return Sitemap("index", tuple(SitemapEntry(url, None, foreign) for url in urls))


def test_a_walk_reads_every_file_once_although_indexes_name_each_other() -> None:
    walk = SitemapWalk(["https://example.com/a"])
    visited = []
    while (url := walk.next_file()) is not None:
        visited.append(url)
        walk.found(url, _index("https://example.com/a", "https://example.com/b"))
    assert visited == ["https://example.com/a", "https://example.com/b"]
    assert walk.problems == []


def test_an_endless_chain_of_indexes_ends_at_the_depth_limit() -> None:
    walk = SitemapWalk(["https://example.com/0"])
    visited = 0
    while (url := walk.next_file()) is not None:
        visited += 1
        walk.found(url, _index(f"https://example.com/{visited}"))
    assert visited == 10
    assert walk.problems == ["sitemap indexes are nested more than 10 deep; the rest is not read"]


def test_files_and_addresses_are_capped() -> None:
    walk = SitemapWalk(["https://example.com/i"], max_files=3, max_entries=5)
    start = walk.next_file()
    assert start is not None
    assert walk.found(start, _index(*(f"https://example.com/{n}" for n in range(9)))) == ()
    pages = Sitemap("pages", tuple(SitemapEntry(f"https://example.com/p{n}", None, foreign=False) for n in range(4)))
    taken = [len(walk.found(url, pages)) for url in iter(walk.next_file, None)]
    assert taken == [4, 1]
    assert len(walk.problems) == 2


def test_files_of_other_hosts_are_not_followed() -> None:
    walk = SitemapWalk([])
    assert walk.found("https://example.com/i", _index("https://evil.example/s", foreign=True)) == ()
    assert walk.next_file() is None
