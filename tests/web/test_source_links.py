"""Sources that pages name, link elements and headers, and sections of sites."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from recrawl.web.content.links import MAX_ELEMENTS, LinkElements, link_headers
from recrawl.web.content.page import read_page
from recrawl.web.feeds.sources import (
    MOST_SOURCES,
    USUAL_PLACES,
    main_page,
    section_of,
    sources_of_page,
    sources_of_robots,
    usual_places,
)
from recrawl.web.robots.entry import robots_answer
from recrawl.web.url.address import Address, read_address


def link_elements(body: bytes) -> LinkElements:
    return read_page(body, "text/html").elements


def page(url: str = "https://www.a.example/news/") -> Address:
    address = read_address(url)
    assert isinstance(address, Address)
    return address


def named(body: bytes, *hrefs: str) -> list[tuple[str, str, str, bool]]:
    found = sources_of_page(link_elements(body), hrefs, page())
    return [(each.kind, each.address.url, each.found_by, each.foreign) for each in found]


@pytest.mark.parametrize(
    "media",
    ["application/rss+xml", "application/atom+xml", "application/feed+json", "Application/RSS+XML; charset=utf-8"],
)
def test_feeds_of_each_type_are_found_in_the_head(media: str) -> None:
    body = f'<head><link rel="alternate" type="{media}" title="News" href="/feed.x">'.encode()
    assert named(body) == [("feed", "https://www.a.example/feed.x", "link", False)]


def test_links_are_relative_to_the_base_of_the_page() -> None:
    body = b'<base href="https://b.example/sub/"><link rel="alternate feed" href="x"><link rel=sitemap href=/s.xml>'
    assert named(body) == [
        ("feed", "https://b.example/sub/x", "link", True),
        ("sitemap", "https://b.example/s.xml", "link", True),
    ]


def test_other_alternates_comments_and_broken_addresses_are_no_sources() -> None:
    body = b"""<link rel=alternate hreflang=de href=/de><link rel=alternate type=application/json href=/wp-json/1>
        <link rel=alternate type=application/rss+xml href=/comments/feed/><link rel=stylesheet href=/feed.css>
        <link rel=alternate type=application/rss+xml href=javascript:1><link rel=alternate type=application/rss+xml>
        <link rel=alternate type=application/rss+xml href="/news/">"""
    assert named(body) == []


def test_anchors_count_if_they_look_like_a_feed_or_sitemap_of_the_same_host() -> None:
    hrefs = ["/feed", "/blog/feed/", "rss.xml", "/atom.xml?x=1#y", "https://a.example/index.rdf", "/x/news.rss",
             "/sitemap.xml", "/post-sitemap2.xml.gz", "https://b.example/feed", "/feedback", "/rss-help.html",
             "/a/comments/feed", "/feed/x", "mailto:feed", "/sitemap", "javascript:feed"]  # fmt: skip
    found = [url.removeprefix("https://") for _, url, how, _ in named(b"", *hrefs) if how == "anchor"]
    assert found == ["www.a.example/feed", "www.a.example/blog/feed/", "www.a.example/news/rss.xml",
                     "www.a.example/atom.xml?x=1", "a.example/index.rdf", "www.a.example/x/news.rss",
                     "www.a.example/sitemap.xml", "www.a.example/post-sitemap2.xml.gz"]  # fmt: skip


def test_each_source_is_named_once_and_their_number_is_bounded() -> None:
    link = b"<link rel=alternate type=application/rss+xml href=/feed>"
    assert len(named(link * 3, "/feed", "/feed#x")) == 1
    assert len(named(b"", *(f"/{number}/feed" for number in range(1000)))) == MOST_SOURCES
    many = b"".join(b"<link rel=feed href=/%d>" % number for number in range(1000))
    assert len(link_elements(many).links) == MAX_ELEMENTS
    assert len(named(many)) == MOST_SOURCES


def test_sitemaps_of_robots_are_sources() -> None:
    robots = (
        b"User-agent: *\nDisallow: /x\nSitemap: https://www.a.example/s.xml\nSitemap: https://cdn.example/s.xml.gz\n"
    )
    found = sources_of_robots(robots_answer(200, robots, "recrawl", page()), page())
    assert [(each.address.url, each.found_by, each.foreign) for each in found] == [
        ("https://www.a.example/s.xml", "robots", False),
        ("https://cdn.example/s.xml.gz", "robots", True),
    ]


def test_usual_places_are_few_and_of_the_same_origin() -> None:
    start = page("http://a.example:8080/deep/page?x=1")
    places = usual_places(start)
    assert len(places) == len(USUAL_PLACES) <= 8
    assert {each.address.origin for each in places} == {"http://a.example:8080"}
    assert main_page(start).url == "http://a.example:8080/"


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ("/news/a-story", "/news/other-story", True),
        ("/news/a-story", "/news/story-of-2024", True),
        ("/news/2024/05/a", "/news/2023/11/b", True),
        ("/item/17", "/item/18", True),
        ("/item/17", "/item/about", False),
        ("/news/a", "/sport/a", False),
        ("/news/", "/news/a", False),
        ("/news/a.html", "/news/a", False),
        ("/list?page=1&by=x", "/list?by=y&page=2", True),
        ("/list?page=1", "/list", False),
        ("/News/A", "/news/b", True),
    ],
)
def test_pages_of_one_section_share_folder_and_shape(first: str, second: str, together: bool) -> None:
    sections = {section_of(page("https://a.example" + path)) for path in (first, second)}
    assert len(sections) == (1 if together else 2)


def test_sections_of_two_hosts_are_two() -> None:
    assert section_of(page("https://a.example/x")) != section_of(page("https://b.example/x"))
    assert section_of(page("https://a.example/x")) == section_of(page("http://a.example/x"))


HEADS = [
    b"<link rel=hub href=/a>",
    b"<LINK HREF = '/a' REL = \"hub self\" >",
    b'<link rel="hub" href="/a?x=1&amp;y=2&lt;"/>',
    b'<link data-x="a>b" rel=hub href=/a>',
    b"<meta content='<link rel=hub href=/evil>'><link rel=hub href=/a>",
    b"<title><link rel=hub href=/evil></title><link rel=hub href=/a>",
    b"<style>a>b{}</style><script>if(a<b)'<link rel=hub href=/evil>'</script><link rel=hub href=/a>",
    b"<!-- <link rel=hub href=/evil> --><link rel=hub href=/a>",
    b"<link rel=hub href=/a title=don't><link rel=hub href=/b>",
    b"<link rel=hub rel=self href=/a href=/evil>",
    b"<link\nrel=hub\thref=/a\f>",
    b"<linked rel=hub href=/evil><link-x rel=hub href=/evil><link rel=hub href=/a>",
    b"<link rel=hub href=/a",
    b"<link rel='hub href=/a>",
    b"<script>x",
    b"<!-- x",
    b"<link href=/a><link rel=hub><link rel=hub href=''><link rel=hub href=/a>",
    "<link rel=hub href=/é>".encode(),
]


@pytest.mark.parametrize("head", HEADS)
def test_link_elements_of_the_head_are_found(head: bytes) -> None:
    parser = LexborHTMLParser(b"<html><head>" + head)
    expected = [
        (frozenset((node.attributes.get("rel") or "").lower().split()), (node.attributes.get("href") or "").strip())
        for node in parser.css("link")
    ]
    found = [(link.rels, link.href) for link in link_elements(b"<html><head>" + head).links]
    assert found == [(rels, href) for rels, href in expected if rels and href]


def test_link_elements_of_the_body_are_none_of_the_head_and_utf_16_is_read() -> None:
    assert link_elements(b"<head></head><body class=x><link rel=hub href=/a>").links == ()
    wide = "\ufeff<link rel=hub href=/é>".encode("utf-16-le")
    assert [link.href for link in link_elements(wide).links] == ["/é"]


def test_headers_are_read_as_rfc_8288_has_them() -> None:
    values = [
        b'</a>; rel="next"; title="x, y; rel=hub <z>", <b> ; REL=Hub;type="Text/XML"',
        b'<c>; rel=hub; anchor="#x"',
        b"",
    ]
    assert [(link.href, set(link.rels), link.type) for link in link_headers(values)] == [
        ("/a", {"next"}, ""),
        ("b", {"hub"}, "text/xml"),
    ]


@pytest.mark.parametrize(
    "hostile",
    [
        b"<link " * 200_000,
        b"<link rel=" * 100_000,
        b"<link rel='" * 100_000,
        b'<a b="' * 150_000,
        b"<a " + b"=" * 1_000_000,
        b"<a " + b"a=" * 500_000 + b">",
        b"<!--" * 250_000,
        b"<script>" * 120_000,
        b"<svg>" * 200_000,
        b"<a:" * 300_000,
        b"<" * 1_000_000,
        b"<p>" * 300_000,
        b"<link" + b" " * 1_000_000 + b"rel",
        b"<link rel=hub href=" + b"a" * 1_000_000 + b">",
        b"<link rel=hub href=/a" + b"&#" * 2000 + b">",
        b"<link rel=hub href=/a&#" + b"9" * 4000 + b";>",
        b"\0" * 1_000_000,
        b"\xff\xfe" + b"<\0" * 500_000,
    ],
)
def test_documents_made_to_cost_time_do_not(hostile: bytes) -> None:
    """Patterns that go back would take hours here."""
    found = sources_of_page(link_elements(hostile), [hostile[:5000].decode("latin-1")], page())
    assert len(found) <= MOST_SOURCES
    assert len(link_headers([hostile])) <= MAX_ELEMENTS
    assert len(link_headers([b"<a>;" + hostile, b'<a>; rel="' + hostile])) <= MAX_ELEMENTS


scraps = st.sampled_from(
    [b"<", b">", b"<link", b" rel=", b"hub", b" href=", b"/a", b'"', b"'", b"=", b"<!--", b"-->", b"<![CDATA[", b"]]>",
     b"/", b"<script>", b"</script", b"<title/>", b"<entry>", b"</entry>", b"<base", b"&#0;", b"&#xD800;", b"\0",
     b"\xff", b" ", b";", b",", b"\\", b"alternate", b" type=application/rss+xml", b"<body"]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(scraps, max_size=16).map(b"".join) | st.binary(max_size=60))
def test_no_document_and_no_header_raises(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    assert len(sources_of_page(link_elements(data), [text], page())) <= MOST_SOURCES
    assert isinstance(link_headers([data, data]), tuple)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_every_address_has_a_section_of_its_host(text: str) -> None:
    address = read_address("https://a.example/" + text)
    if isinstance(address, Address):
        assert section_of(address).startswith("a.example/")
        assert len(section_of(address)) <= len(address.url) + 3
