"""Each layer sees its own kind of change and no other."""

from __future__ import annotations

import pytest

from recrawl.web.content_rules import LAYERS
from recrawl.web.digests import Digests, digest_page, layer_text
from recrawl.web.page_text import read_page

BASE = "<title>T</title><p>Good day, all</p><a href=/a>one</a> <a href=/b>two</a>"


def digests(html: str) -> Digests:
    return digest_page(html.encode(), read_page(html.encode(), "text/html"))


@pytest.mark.parametrize(
    ("html", "changed"),
    [
        (BASE, set()),
        (BASE + "<!-- nonce 5 -->", {"raw"}),
        (BASE.replace("Good day, all", "Good <i>day</i>,\n  all"), {"raw"}),
        (BASE.replace("day", "night"), {"raw", "text"}),
        (BASE.replace("/a", "/c"), {"raw", "links"}),
        (BASE.replace("/a", "/x").replace("/b", "/a").replace("/x", "/b"), {"raw"}),
        (BASE.replace("<title>T", "<title>U"), {"raw", "metadata"}),
        ("<meta name=robots content=noindex>" + BASE, {"raw", "metadata"}),
        ("<nav>menu</nav>" + BASE, {"raw"}),
    ],
)
def test_a_change_shows_in_the_layers_it_belongs_to(html: str, changed: set[str]) -> None:
    before, after = digests(BASE), digests(html)
    assert {layer for layer in LAYERS if getattr(before, layer) != getattr(after, layer)} == changed


def test_digests_are_16_bytes() -> None:
    assert [len(each) for each in digests(BASE)[:4]] == [16] * 4


def test_a_page_without_text_is_compared_by_its_body() -> None:
    one, other = b"\x89PNG1", b"\x89PNG2"
    texts = {layer_text("text", body, read_page(body, "image/png")) for body in (one, other)}
    assert len(texts) == 2
