"""Each layer sees its own kind of change and no other."""

from __future__ import annotations

import pytest

from recrawl.web.change.digests import digest_page, layer_text
from recrawl.web.content.page import read_page
from recrawl.web.content.rules import LAYERS, ContentRules, Layer

BASE = "<title>T</title><p>Good day, all</p><a href=/a>one</a> <a href=/b>two</a>"


def layers(html: str) -> dict[Layer, bytes]:
    page = read_page(html.encode(), "text/html")
    found = digest_page(html.encode(), page)
    assert {len(each) for each in found} == {16}
    texts: dict[Layer, bytes] = {layer: layer_text(layer, html.encode(), page) for layer in LAYERS}
    return {**texts, "text": found.text}


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
    before, after = layers(BASE), layers(html)
    assert {layer for layer in LAYERS if before[layer] != after[layer]} == changed


@pytest.mark.parametrize(
    ("media", "body"),
    [
        ("image/png", b"\x89PNG%d"),
        ("text/html", b"<div id=app></div><script src=/app.%d.js></script>"),
        ("text/html", b"<frameset><frame src=/%d></frameset>"),
    ],
)
def test_a_page_without_text_is_compared_by_its_body(media: str, body: bytes) -> None:
    assert len({layer_text("text", body % number, read_page(body % number, media)) for number in (1, 2)}) == 2


def test_a_page_where_no_selector_matches_has_no_text_whatever_its_body() -> None:
    rules = ContentRules(keep=(".price",))
    for body in (b"<p>one", b"<p>two"):
        assert layer_text("text", body, read_page(body, "text/html", rules)) == b""


def test_an_empty_text_file_is_the_same_with_other_white_space() -> None:
    assert layer_text("text", b" \n", read_page(b" \n", "text/plain")) == b""


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("<td>1</td><td>11</td>", "<td>11</td><td>1</td>", False),
        ("<td>1</td><td>11</td>", "<p>1</p><p>11</p>", True),
        ("<p>from 1 to 2</p>", "<p>from <b>1</b> to<br>2</p>", True),
        ("<p>1 2</p>", "<p>12</p>", False),
        ("<p>$5.00</p>", "<p>$ <b>5.00</b></p>", True),
    ],
)
def test_white_space_matters_between_numbers_alone(one: str, other: str, same: bool) -> None:
    """Cells that say 1 and 11 differ from cells that say 11 and 1."""
    texts = [f"<table><tr>{each}</table>" if "td" in each else each for each in (one, other)]
    assert (layers(texts[0])["text"] == layers(texts[1])["text"]) == same
