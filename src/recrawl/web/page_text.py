r"""The visible text, the links and the metadata of a page, from one parse, for any bytes in bounded time and size.

Text is what a reader sees: scripts, styles, templates, images and hidden parts are left out, and so is what frames the
content (navigation, header, footer, aside), unless the rules say otherwise; a header or footer inside an article is
content. Each piece of text between two tags is a line. What was left out for size is named in `Page.cut`.

    >>> page = read_page(b"<title>Hi</title><nav><a href=/>Home</a></nav><p>Good <b>day</b></p>")
    >>> page.text, page.metadata.title, page.links[0].region
    (b'Good\nday', 'Hi', 'nav')
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Literal, cast

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from recrawl.web.charset import Charset, as_utf8, read_charset
from recrawl.web.content_rules import DEFAULT_CONTENT_RULES, ContentRules
from recrawl.web.page_links import Link, Metadata, Region, read_link, read_metadata
from recrawl.web.page_text_guard import glance, harmless
from recrawl.web.simhash import LINE_END, tidy_text

Kind = Literal["html", "text", "other"]
Cut = Literal["html", "markup", "text", "links"]
MOST_REGIONS = 64  # parts whose links are told apart; in further ones a link counts as of the main part
MOST_KEPT = 1000  # parts that selectors may keep

_REGIONS = frozenset(("nav", "header", "footer", "aside"))
_HEAD = frozenset(("html", "title", "meta", "link", "base"))
_UNSEEN = frozenset(("script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "audio", "video"))
_ONLY_HEAD = _HEAD - {"title"}
_RENAMED = "x-g,x-mplate"  # svg and template where the guard had to rename them
_CONTENT = frozenset(("article", "main"))
_LINE_END = chr(LINE_END)


def _tag_numbers(names: Set[str]) -> dict[int, str]:
    """The parser's numbers of tags: to compare numbers is several times faster than CSS."""
    inside = "".join(f"<{name}></{name}>" for name in sorted(names - _HEAD))
    parser = LexborHTMLParser(f"<html><head><base><meta><link><title></title></head><body>{inside}")
    return {node.tag_id: node.tag or "" for node in parser.css("*") if node.tag in names}


_TAGS = _tag_numbers({"a", *_REGIONS, *_HEAD, *_UNSEEN})
_CONTENT_NUMBERS = frozenset(_tag_numbers(_CONTENT))
_ANCHOR = next(number for number, name in _TAGS.items() if name == "a")


@dataclass(frozen=True, slots=True)
class Page:
    """What was read of a page.

    Args:
        kind: `html`, `text` for other text such as JSON, `other` for what has no text.
        text: the visible text in UTF-8: words separated by one space, lines by one newline.
        simhash: 64-bit fingerprint of the text.
        links: links in the order of the document.
        metadata: what the page says about itself.
        charset: the encoding and how it was found.
        cut: what was cut off or changed to stay within the limits.
    """

    kind: Kind
    text: bytes
    simhash: int
    links: tuple[Link, ...]
    metadata: Metadata
    charset: Charset
    cut: tuple[Cut, ...] = ()


def read_page(body: bytes, content_type: str | None = None, rules: ContentRules = DEFAULT_CONTENT_RULES) -> Page:
    """Text, links and metadata of a page. O(bytes), at most `max_html_bytes`.

    Args:
        body: the decoded body of the answer.
        content_type: the `Content-Type` header, None if there was none.
        rules: what to keep and drop, and the limits.
    """
    cut: list[Cut] = ["html"] if len(body) > rules.max_html_bytes else []
    body = body[: rules.max_html_bytes]
    charset = read_charset(body, content_type)
    kind = _kind(content_type, body)
    links: tuple[Link, ...] = ()
    metadata, text = Metadata(), b""
    if kind == "html":
        html = as_utf8(body, charset)
        openings, says_hidden = glance(html)
        html, changed = harmless(html, openings)
        parser = LexborHTMLParser(html, options=LexborDocumentOptions.WO_EVENTS, scripting=True)
        nodes = _sorted_out(parser, rules.max_links)
        metadata, links = read_metadata(nodes.head), tuple(nodes.links)
        drop = rules.drop
        if changed or says_hidden:
            drop = (*[_RENAMED] * changed, *["[hidden]"] * says_hidden, *drop)
        text = _visible_text(parser, nodes.framing, rules, ",".join(drop))
        cut += ["markup"] * changed
        cut += ["links"] * (not nodes.has_all_links)
    elif kind == "text":
        text = as_utf8(body, charset).replace(b"\n", bytes([LINE_END]))
    if len(text) > rules.max_text_bytes:
        text = _cut_at(text, rules.max_text_bytes)
        cut.append("text")
    tidied = tidy_text(text)
    return Page(kind, tidied.text, tidied.simhash, links, metadata, charset, tuple(cut))


def _kind(content_type: str | None, body: bytes) -> Kind:
    media = (content_type or "").split(";", 1)[0].strip().lower()
    if media in ("text/html", "application/xhtml+xml"):
        return "html"
    if media.startswith("text/") or media.endswith(("json", "xml", "javascript", "yaml")):
        return "text"
    if media and media not in ("application/octet-stream", "unknown/unknown", "*/*"):
        return "other"
    start = body[:512].lstrip(b"\xef\xbb\xbf\t\n\f\r ")
    if start.startswith(b"<"):
        return "html"
    return "other" if b"\0" in start else "text"


class _Nodes:
    """What a page holds, sorted by use, each in the order of the document."""

    __slots__ = ("framing", "has_all_links", "head", "links")

    def __init__(self) -> None:
        self.head: list[tuple[str, LexborNode]] = []
        self.links: list[Link] = []
        self.framing: list[tuple[str, LexborNode]] = []  # what may have to go before text is read
        self.has_all_links = True


def _sorted_out(parser: LexborHTMLParser, most_links: int) -> _Nodes:
    """The tags of interest, read in one pass. A region's links are those that follow it, as many as it holds."""
    found = _Nodes()
    links, root = found.links, parser.root
    region: Region = "main"
    inside, regions = 0, 0
    for node in () if root is None else root.traverse():
        number = node.tag_id
        if number == _ANCHOR:
            if not found.has_all_links:
                continue
            link = read_link(node, len(links), region if inside else "main")
            if link is not None:
                if len(links) < most_links:
                    links.append(link)
                else:
                    found.has_all_links = False
            inside -= inside > 0
        elif number in _TAGS:
            tag = _TAGS[number]
            if tag in _HEAD:
                found.head.append((tag, node))
            if tag not in _ONLY_HEAD:
                found.framing.append((tag, node))
                if tag in _REGIONS and not inside and regions < MOST_REGIONS:
                    inside, regions, region = _anchors_in(node), regions + 1, cast(Region, tag)
    return found


def _anchors_in(node: LexborNode) -> int:
    return sum(each.tag_id == _ANCHOR for each in node.traverse())


def _visible_text(
    parser: LexborHTMLParser, nodes: list[tuple[str, LexborNode]], rules: ContentRules, drop: str
) -> bytes:
    """The text that is left when everything unseen and unwanted has been taken out of the tree."""
    framing = frozenset() if rules.keep_boilerplate else _REGIONS
    # Last first: what stands inside a part is gone before the part is.
    for tag, node in reversed(nodes):
        if tag in framing:
            if tag in ("nav", "aside") or not _in_content(node):
                node.decompose()
        elif tag in _UNSEEN or tag == "title":
            node.decompose()
    if drop:
        for node in reversed(parser.css(drop)):
            node.decompose()
    top = parser.body or parser.root
    parts = [] if top is None else [top]
    if rules.keep:
        parts = _outermost(parser.css(",".join(rules.keep))[:MOST_KEPT])
    return _LINE_END.join(part.text(separator=_LINE_END, skip_empty=True) for part in parts).encode("utf-8", "replace")


def _in_content(node: LexborNode) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.tag_id in _CONTENT_NUMBERS:
            return True
        parent = parent.parent
    return False


def _outermost(nodes: list[LexborNode]) -> list[LexborNode]:
    chosen = {node.mem_id for node in nodes}
    found = []
    for node in nodes:
        parent = node.parent
        while parent is not None and parent.mem_id not in chosen:
            parent = parent.parent
        if parent is None:
            found.append(node)
    return found


def _cut_at(text: bytes, most: int) -> bytes:
    """The start of a text, without half a character at its end."""
    while most > 0 and text[most] & 0xC0 == 0x80:
        most -= 1
    return text[:most]
