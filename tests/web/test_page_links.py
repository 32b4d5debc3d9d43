"""Links, and what a page says about itself."""

from __future__ import annotations

import pytest

from recrawl.web.content.links import Link, addresses_of_links, robots_directives
from recrawl.web.content.page import Page, read_page
from recrawl.web.url.address import Address, read_address


def page_of(html: str) -> Page:
    return read_page(html.encode(), "text/html")


def address(url: str) -> Address:
    found = read_address(url)
    assert isinstance(found, Address)
    return found


def test_links_keep_order_and_rel() -> None:
    page = page_of(
        "<header><a href=/>Home</a></header><nav><a name=x>no link</a><nav><a href=/n>N</a></nav></nav>"
        "<p>a <a href=' /p '>the <b>bold</b>\n one</a> <a href=#top>top</a> <a href=''>e</a>"
        "<a rel='NoFollow me' href=/s>s</a></p><aside><a href=/as>As</a></aside><footer><a href=/f>F</a></footer>"
    )
    assert page.links == (
        Link("/", True),
        Link("/n", True),
        Link("/p", True),
        Link("/s", False),
        Link("/as", True),
        Link("/f", True),
    )


def test_metadata_takes_the_first_of_each_and_all_of_robots() -> None:
    metadata = page_of(
        "<html lang=de><head><title> Ein\n Titel </title><title>x</title><base href=/b/>"
        "<meta name=Description content=D><link rel='alternate CANONICAL' href=' /c '><link rel=canonical href=/d>"
        "<meta name=ROBOTS content='NOINDEX, max-snippet:5'><meta name=recrawl content=nofollow></head>"
    ).metadata
    assert metadata[:5] == ("Ein Titel", "D", "/c", "de", "/b/")
    assert metadata.robots == ("max-snippet:5", "nofollow", "noindex")
    assert not metadata.may_index
    assert not metadata.may_follow


def test_a_page_that_says_nothing_may_be_kept_and_followed() -> None:
    metadata = page_of("<p>x").metadata
    assert metadata.may_index
    assert metadata.may_follow


@pytest.mark.parametrize(("content", "found"), [("none", ("nofollow", "noindex")), (" , ", ()), ("All", ("all",))])
def test_robots_directives(content: str, found: tuple[str, ...]) -> None:
    assert robots_directives(content) == found


def test_links_become_addresses_once_each_and_what_is_no_page_is_left_out() -> None:
    page = page_of(
        "<a href=x#1>1</a><a href=x#2>2</a><a href=javascript:alert(1)>3</a><a href=mailto:a@b.c>4</a>"
        "<a href='http://127.0.0.1:99999/'>5</a><a href=//other.example/>6</a>"
    )
    found = addresses_of_links(page.links, address("https://site.example/a/b"), "/base/")
    assert {url: link.href for url, link in found.items()} == {
        "https://site.example/base/x": "x#1",
        "https://other.example/": "//other.example/",
    }


def test_a_base_without_a_target_says_nothing_about_links() -> None:
    assert page_of("<base target=_blank><base href=/x/><base href=/y/>").metadata.base == "/x/"


@pytest.mark.parametrize(
    "html",
    [
        "<p><svg><title>icon</title></svg>x</p><title>Real</title>",
        "<svg><g><title>icon</title></g></svg><svg><title>other</title></svg><title>Real</title>",
        "<svg><style><![CDATA[a]]></style><title>icon</title></svg><title>Real</title>" + "<p>x</p>" * 600,
        "<head><title>Real</title></head><svg><title>icon</title></svg>",
    ],
)
def test_the_title_of_an_image_is_not_that_of_the_page(html: str) -> None:
    assert page_of(html).metadata.title == "Real"
    assert page_of(html.replace("<title>Real</title>", "")).metadata.title == ""


def test_a_page_may_speak_to_the_crawler_by_its_name_and_not_to_others() -> None:
    body = b"<meta name=mybot content=noindex><meta name=recrawl content=nofollow>"
    assert read_page(body, "text/html", product="MyBot").metadata.robots == ("noindex",)
    assert read_page(body, "text/html").metadata.robots == ("nofollow",)


@pytest.mark.parametrize("hiding", ["hidden", "HIDDEN=''", "style='display:none'", "style='color:red;Display : None'"])
def test_a_hidden_link_is_a_trap_and_no_link(hiding: str) -> None:
    page = page_of(f"<a {hiding} href=/trap>x</a><a style='display:block' href=/p>y</a>")
    assert [link.href for link in page.links] == ["/p"]


def test_oversized_links_and_titles_are_bounded() -> None:
    page = page_of(f"<title>{'t ' * 9000}</title><a href=/{'x' * 5000}>a</a><a href=/y>{'b ' * 9000}</a>")
    assert len(page.metadata.title) <= 1000
    assert [link.href for link in page.links] == ["/y"]
