"""Visible text of ordinary and of hostile pages."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

from recrawl.errors import InvalidInput
from recrawl.web.content import html_guard as page_text_guard
from recrawl.web.content.html_guard import MOST_ATTRIBUTES, MOST_DEPTH, harmless, measure
from recrawl.web.content.links import MAX_LINKS
from recrawl.web.content.page import read_page
from recrawl.web.content.rules import MAX_HTML_BYTES, MAX_TEXT_BYTES, ContentRules


def words(html: str, rules: ContentRules | None = None) -> str:
    return read_page(html.encode(), "text/html", rules or ContentRules()).text.decode().replace("\n", " ")


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>one <b>two</b></p>", "one two"),
        ("<script>x</script><style>y</style><noscript>z</noscript><p>seen", "seen"),
        ("<template><p>x</template><svg><text>y</text></svg><iframe>z</iframe>seen", "seen"),
        ("<nav>a</nav><header>b</header><aside>c</aside><p>seen<footer>d</footer>", "seen"),
        ("<article><header><h1>Head</h1></header>text<footer>by Ann</footer></article>", "Head text by Ann"),
        ("<main><nav>a</nav><header>kept</header></main>", "kept"),
        ("<p hidden>x</p><div>seen</div>", "seen"),
        ("<P HIDDEN>x</P><p Hidden=until-found>y</p><div>seen</div>", "seen"),
        ("<p style='display:none'>x</p><P STYLE='color:red; Display: None;'>y</P><div>seen</div>", "seen"),
        ("<style>.a{display:none}</style><p class=a style='color:red'>seen</p>", "seen"),
        ("<body style='display:none'><p>shown by a script</p>", "shown by a script"),
        ("<nav><a href=/>Home</a><div><h1>Story</h1><p>of a nav</p></div>", "Home Story of a nav"),
        ("<header><h1>Site</h1><p>never closed</p></body>", "Site never closed"),
        ("<header><main>story</main></header><p>seen<nav>x</nav>", "story seen"),
        ("<nav><main>story</main></nav><nav>x</nav>", "story"),
        ("<aside><article>other</article></aside><p>seen", "seen"),
        ("<nav><nav>a</nav>b</nav><nav>c<script>d</script></nav>seen", "seen"),
        ("<title>t</title>a&nbsp;&amp;&#8203;b &lt;i&gt;", "a & b <i>"),
        ("a\0b<p>c\x01d", "ab c d"),
        ("&#xD800;x", "\ufffdx"),
        ("", ""),
        ("<frameset><frame src=a></frameset>", ""),
    ],
)
def test_text_is_what_a_reader_sees(html: str, text: str) -> None:
    assert words(html).replace("\ufffd ", " ") == text


def test_rules_keep_and_drop_parts() -> None:
    html = "<nav>n</nav><div id=main>a <p class=ad>b</p> <div id=main>c</div></div><p>d</p>"
    assert words(html, ContentRules(keep=("#main",))) == "a b c"
    assert words(html, ContentRules(keep=("#main", "nav"), keep_boilerplate=True)) == "n a b c"
    assert words(html, ContentRules(drop=(".ad", "#main > div"))) == "a d"
    assert words(html, ContentRules(keep=(".absent",))) == ""


@pytest.mark.parametrize("region", ["nav", "header", "aside", "footer"])
def test_what_is_kept_may_stand_in_framing_and_framing_inside_it_goes(region: str) -> None:
    html = f"<div id=box>a<{region}><p class=price>$10</p></{region}></div><{region} id=own>b<nav>c</nav></{region}>"
    assert words(html, ContentRules(keep=(".price",))) == "$10"
    assert words(html, ContentRules(keep=("#own",))) == "b"
    assert words(html, ContentRules(keep=("#box",))) == "a"
    assert words(html, ContentRules(keep=("#box",), keep_boilerplate=True)) == "a $10"
    assert words(html, ContentRules(keep=("#box", ".price"))) == "a $10"


def test_framing_stays_where_hardly_anything_is_left_without_it() -> None:
    skip = "<a href=#main>Skip to content</a>"
    assert words(f"{skip}<nav><p>{'story ' * 300}") == "Skip to content" + " story" * 300
    assert words(f"{skip}<nav><p>menu</p></nav>") == "Skip to content"
    assert words(f"<p>{'word ' * 20}<nav>{'menu ' * 300}</nav>") == " ".join(["word"] * 20)


@pytest.mark.parametrize(
    ("xhtml", "title", "text"),
    [
        ("<head><title>T</title><script src='a.js'/></head><body><p>Price 10</p></body>", "T", "Price 10"),
        ("<head><title/></head><body><p>one</p></body>", "", "one"),
        ("<body><aside/><p>one<br/>two</p><iframe src='/x' /><p id='a/>b'>three</p></body>", "", "one two three"),
        ("<body><!-- <nav/> --><p>one</p><svg:path d=''/><p/>two</body>", "", "one two"),
    ],
)
def test_tags_of_xhtml_may_close_themselves(xhtml: str, title: str, text: str) -> None:
    body = f"<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'>{xhtml}</html>".encode()
    page = read_page(body, "application/xhtml+xml; charset=utf-8")
    assert (page.metadata.title, page.text.decode().replace("\n", " ")) == (title, text)


@pytest.mark.parametrize(
    ("selector", "sentence"),
    [
        ("p:has(a)", "uses a function"),
        ("p:nth-child(2)", "uses a function"),
        ("h1 ~ p", "uses ~"),
        ("div div p", "more than one descendant step"),
        ("p[", "is not a CSS selector"),
        ("", "must be a CSS selector of 1 to 200"),
        ("p" * 201, "must be a CSS selector of 1 to 200"),
    ],
)
def test_a_selector_that_is_broken_or_could_be_slow_is_refused_in_one_sentence(selector: str, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=r"^drop\[1\] ") as caught:
        ContentRules(drop=("nav", selector))
    assert sentence in str(caught.value)


def test_ordinary_selectors_are_accepted() -> None:
    rules = ContentRules(keep=("main .row > p, h1 + p", "a[rel~='me'] b", "[title='a ~ (b)  c']"))
    html = (
        "<h1>no</h1><p>one</p><p>no</p><main><div class=row><p>two</p></div></main>"
        "<a rel='x me'>no <b>three</b></a><i title='a ~ (b)  c'>four</i>"
    )
    assert words(html, rules) == "one two three four"


@pytest.mark.parametrize(
    ("media", "body", "kind", "text"),
    [
        ("application/json", b'{"a": 1}', "text", b'{"a": 1}'),
        ("text/plain", b"a\nb  c", "text", b"a\nb c"),
        ("image/png", b"\x89PNG", "other", b""),
        (None, b"<p>a", "html", b"a"),
        (None, b"plain", "text", b"plain"),
        (None, b"\x00\x01", "other", b""),
        ("application/octet-stream", b"\xef\xbb\xbf <p>a", "html", b"a"),
    ],
)
def test_the_media_type_decides_how_a_body_is_read(media: str | None, body: bytes, kind: str, text: bytes) -> None:
    page = read_page(body, media)
    assert (page.kind, page.text) == (kind, text)


def test_html_text_and_links_are_cut_at_their_bounds() -> None:
    link, words = "<a href=/x>é漢</a>", "漢" * 100
    page = read_page((link * 20_000 + f"<p>{words}</p>" * 8_000).encode(), "text/html")
    assert MAX_HTML_BYTES - 3 < len(page.markup) <= MAX_HTML_BYTES
    assert len(page.links) == MAX_LINKS
    assert MAX_TEXT_BYTES - 3 < len(page.text) <= MAX_TEXT_BYTES
    assert set(page.text.decode("utf-8")) == set("é漢\n"), "a character cut in two makes the page no other encoding"


HOSTILE = {
    "deep": "<div>" * 200_000 + "deep",
    "deep and closed elsewhere": "<div></b>" * 60_000 + "deep",
    "misnested": "<b><div></b>" * 40_000 + "deep",
    "deep tables": "<table><td>" * 40_000 + "deep",
    "unknown names": "".join(f"<x{number}>" for number in range(50_000)) + "deep",
    "attributes": "<p " + " ".join(f"a{number}=1" for number in range(100_000)) + ">deep",
    "one attribute": "<p title='" + "x" * 1_900_000 + "'>deep",
    "links": "<a href=/x>y</a>" * 120_000 + "deep",
    "formatting": "<p>" + "".join(f"<b id={number}>" for number in range(3000)) + "<p>x" * 20_000 + "deep",
    "hidden in a script": "<script><!--<script></script></div>--></script><div>" * 20_000 + "deep",
    "hidden in svg": "<svg><style>" + "<div>" * 100_000 + "deep",
    "hidden in svg behind a title": "<svg><title>x</title><style>" + "<div>" * 100_000 + "deep",
    "hidden in svg by a title that closes itself": "<svg><title/></svg>" + "<div>" * 100_000 + "deep",
    "formatting and an image": "<svg><title>x</title></svg>" + "<b>" * 3000 + "<p>x" * 20_000 + "deep",
    "formatting and doubt": "<svg><![CDATA[x]]></svg>" + "<b>" * 3000 + "<p>x" * 20_000 + "deep",
    "hidden in a template": "<template><col><xmp></template>" + "<div>" * 100_000 + "deep",
    "hidden in quotes": "<div title='</div>'>" * 60_000 + "deep",
    "regions": "<nav>" * 300_000 + "deep",
    "entities": "&amp;" * 300_000 + " deep",
}


@pytest.mark.compiled
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_page_is_read_in_linear_time(name: str) -> None:
    """No clock here: any of these takes minutes or gigabytes if it is parsed as it stands."""
    page = read_page(HOSTILE[name].encode(), "text/html")
    hidden = name in ("regions", "links") or name.startswith("hidden in")
    assert hidden or page.text.endswith(b"deep") or len(page.text) > MAX_TEXT_BYTES - 4
    assert len(page.links) <= 10_000


def true_depth(html: bytes) -> int:
    """Most counted elements on one path of the tree that the parser builds."""
    parser = LexborHTMLParser(html, options=LexborDocumentOptions.WO_EVENTS, scripting=True)
    deepest = 0
    for node in parser.css("*"):
        depth, each = 0, node
        while each is not None:
            depth += each.tag in ("div", "section", "span", "x-g")
            each = each.parent  # type: ignore[assignment]
        deepest = max(deepest, depth)
    return deepest


PIECES = (
    "<div>", "</div>", "<section>", "</section>", "<span>", "</span>", "<b>", "</b>", "<p>", "</p>", "<li>",
    "<table>", "<td>", "</table>", "<a href=x>", "</a>", "<script>", "</script>", "<!--", "-->", "--!>", "<!-->",
    "<svg>", "</svg>", "<title>", "</title>", "<style>", "</style>", "<template>", "</template>", "<select>",
    "</select>", "<col>", "<xmp>", "</xmp>", "<div title='", "<div title=\">", "'", '"', ">", "<![CDATA[", "]]>",
    "<textarea>", "</textarea>", "x", "<", "</", "<div\x0b>", "<div/", "<math>", "<button>", "</button>", "<object>",
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_no_tag_soup_nests_much_deeper_than_the_guard_counts(pieces: list[str]) -> None:
    """An end tag can be ignored because of what stands between, so the count is right up to a factor of two."""
    for bare in (False, True):
        changed = np.frombuffer("".join(pieces).encode(), dtype=np.uint8).copy()
        page_text_guard._walk(changed, True, bare)
        html = changed.tobytes()
        assert true_depth(html) <= 2 * measure(html).depth + 1


@pytest.mark.compiled
def test_what_the_guard_leaves_is_within_its_limits() -> None:
    for name in ("deep", "misnested", "attributes", "unknown names"):
        html, changed = harmless(HOSTILE[name].encode())
        assert changed
        assert measure(html).depth <= MOST_DEPTH
        assert measure(html).attributes <= MOST_ATTRIBUTES


def test_an_ordinary_large_page_is_parsed_as_it_is() -> None:
    html = b"<div class=a><b>x</b><ul><li>y<li>z</ul><br><img src=a></div>" * 5000
    assert harmless(html) == (html, False)


@pytest.mark.parametrize(
    ("start", "changed"),
    [
        ("<svg role=img><title>Cart</title><path d='M0'/></svg>", False),
        ("<svg><style>.a > b{fill:red}</style><script>x</script></svg>", False),
        ("<svg><style><![CDATA[.a{}]]></style></svg>", True),
        ("<p " + " ".join(f"a{number}=1" for number in range(70)) + ">x</p>", True),
    ],
)
def test_an_image_or_many_attributes_leave_formatting_to_selectors(start: str, changed: bool) -> None:
    html = f"{start}<p>Price <strong class=price>$10</strong></p>" + "<div><p>text</p></div>" * 600
    assert harmless(html.encode())[1] == changed
    assert words(html, ContentRules(keep=("strong.price",))) == "$10"
    assert "$10" not in words(html, ContentRules(drop=("strong",)))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_give_a_page(body: bytes) -> None:
    """Its text is UTF-8, with words separated by one space and lines by one newline."""
    for page in (read_page(body, "text/html"), read_page(body)):
        lines = page.text.decode("utf-8").split("\n")
        assert all(word for line in lines for word in line.split(" ")) or not page.text
        assert page.text == b"" or page.kind != "other"


def test_the_guard_changes_markup_never_words() -> None:
    rng = random.Random(2)
    html = "".join(f"<p>w{rng.random()} <b>x</b>y<svg><path/></svg></p>" for _ in range(100))
    changed = np.frombuffer(html.encode(), dtype=np.uint8).copy()
    page_text_guard._walk(changed, True, True)
    assert b"<b>" not in changed.tobytes()
    assert words(changed.tobytes().decode()) == words(html)
