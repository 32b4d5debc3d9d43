"""Stored text is only ever text: every template with hostile text in every place, read by a parser."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from dashboard_samples import all_pages
from selectolax.lexbor import LexborHTMLParser, LexborNode

from recrawl.service.dashboard import rendering
from recrawl.service.dashboard.rendering import STATIC, TEMPLATE_NAMES, environment

PAYLOADS = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    " javascript:alert(1)",
    "\tjava\nscript:alert(1)",
    "//evil.example/x",
    "/\\evil.example",
    "</style><style>*{background:url(//evil.example)}",
    "url(javascript:alert(1))",
    "</title><script>alert(1)</script>",
    "</textarea><svg onload=alert(1)>",
    "<!--><script>alert(1)</script>-->",
    "{{7*7}}{% raw %}",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "\u2028<b>\u2029\u202e",
    "=cmd|'/c calc'!A1",
    "x" * 3000,
]
LINK_ATTRIBUTES = ("href", "src", "action", "formaction", "xlink:href", "data", "poster")


def test_budget_that_cannot_be_used_is_said_beside_what_is_used() -> None:
    assert "each page at most every minute: 0.83 % of the budget can be used" in all_pages("plain")["overview.html"]


@cache
def shape_of(template: str) -> list[tuple[str, tuple[str, ...]]]:
    """Tags and names of attributes of a template when all texts are harmless."""
    return shape(all_pages("plain")[template])


def nodes(html: str) -> list[LexborNode]:
    return [node for node in LexborHTMLParser(html).root.traverse() if node.tag and not node.tag.startswith("-")]  # type: ignore[union-attr]


def shape(html: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(str(node.tag), tuple(node.attributes)) for node in nodes(html)]


def test_the_table_has_every_template() -> None:
    """A new template fails here until it is among those that are fed with hostile text."""
    assert set(all_pages("plain")) == set(TEMPLATE_NAMES)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_text_becomes_anything_but_text(payload: str) -> None:
    """The tree of each page is the same as with harmless text: no element, no attribute more."""
    for template, html in all_pages(payload).items():
        assert shape(html) == shape_of(template), template
        for node in nodes(html):
            for name, value in node.attributes.items():
                check_attribute(template, str(node.tag), name, value or "")


def check_attribute(template: str, tag: str, name: str, value: str) -> None:
    """No handlers, no styles, and links that lead into this service or to the web."""
    assert not name.startswith("on"), (template, tag, name)
    assert name != "style", (template, tag)
    if name in LINK_ATTRIBUTES:
        assert re.match(r"(/(?![/\\])|#|https?://)", value), (template, tag, value)
    if tag == "script":
        assert name in ("src", "defer"), (template, name)
        assert value == "" or value.startswith("/static/"), (template, value)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_an_address_that_is_one_becomes_a_link_and_stays_one(payload: str) -> None:
    """What follows behind http:// cannot leave the attribute."""
    url = f"http://example.com/{payload}"
    harmless = all_pages("plain", "http://example.com/plain")
    for template, html in all_pages("plain", url).items():
        assert shape(html) == shape(harmless[template]), template
        outside = [node.attributes["href"] for node in nodes(html) if node.attributes.get("class") == "out"]
        assert all(link == re.sub(r"\r\n?", "\n", url) for link in outside), template


def test_the_page_says_what_it_was_given() -> None:
    """Escaping shows a text, it does not swallow it."""
    payload = "<b>&\"'</b>"
    for template, html in all_pages(payload).items():
        said = LexborHTMLParser(html).body
        assert said is not None
        assert payload in said.text() or template == "login.html", template  # which is given nothing


def test_templates_are_strict_and_escaped() -> None:
    """A name that does not exist is an error, not an empty place."""
    templates = environment()
    assert templates.autoescape is True
    with pytest.raises(Exception, match="nothing"):
        templates.from_string("{{ nothing }}").render()
    assert not any("|safe" in path.read_text() or "Markup" in path.read_text() for path in template_files())


def template_files() -> list[Path]:
    return sorted((rendering._HERE / "templates").iterdir())


def test_pages_need_nothing_from_elsewhere() -> None:
    """No address of another site in styles, scripts or templates, no inline script or style: the policy allows none."""
    for name, file in STATIC.items():
        text = file.content.decode()
        assert not re.findall(r"https?://(?!www\.w3\.org)", text), name
        assert "eval(" not in text, name
        assert "innerHTML" not in text, name
    for path in template_files():
        text = path.read_text()
        assert not re.search(r"<script(?![^>]*\bsrc=)", text), path.name
        assert " style=" not in text, path.name
        assert not re.search(r"\son\w+=", text), path.name


def test_pages_can_be_used_by_keyboard_and_read_aloud() -> None:
    """A language, a title, one main heading, a link past the navigation, names for every control and picture."""
    for template, html in all_pages("plain").items():
        tree = LexborHTMLParser(html)
        assert tree.css_first("html[lang]"), template
        assert len(tree.css("h1")) == 1, template
        assert tree.css_first("a.skip[href='#main']") or not tree.css_first("nav"), template
        assert tree.css_first("main#main"), template
        for control in tree.css("input:not([type=hidden]), select"):
            labelled = control.parent is not None and control.parent.tag == "label"
            name = control.attributes.get("id")
            assert labelled or tree.css_first(f"label[for='{name}']"), (template, control.html)
        for picture in tree.css("svg.bar"):
            assert picture.attributes.get("aria-label"), template
        live = [node.attributes.get("id") for node in tree.css("[data-live]")]
        assert all(live), template
        assert len(set(live)) == len(live), template
