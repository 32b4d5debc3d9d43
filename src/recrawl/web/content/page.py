r"""The visible text and the metadata of a page, from one parse, for any bytes in bounded time and size.

Text is what a reader sees: scripts, styles, templates, images and hidden parts are left out, and so is what frames the
content (navigation, header, footer, aside), unless the rules say otherwise; a header or footer inside an article is
content. Hidden is what has a `hidden` attribute or a style of its own that says `display:none`; style sheets are not
read. A part with the main part inside frames nothing, and where hardly any text is left without framing and hidden
styles, they stay: a `<nav>` that is never closed would else be all there is. Each piece of text between two tags is a
line. Links are read where they are asked for.

    >>> page = read_page(b"<title>Hi</title><nav><a href=/>Home</a></nav><p>Good <b>day</b></p>")
    >>> page.text, page.metadata.title, page.links[0].href
    (b'Good\nday', 'Hi', '/')
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from recrawl.web.content.charset import as_utf8, read_charset
from recrawl.web.content.html_guard import harmless
from recrawl.web.content.links import Link, LinkElements, Metadata, read_elements, read_links, read_metadata
from recrawl.web.content.rules import DEFAULT_CONTENT_RULES, MAX_HTML_BYTES, MAX_TEXT_BYTES, ContentRules
from recrawl.web.content.words import LINE_END, tidy_text
from recrawl.web.fetch.settings import PRODUCT

Kind = Literal["html", "text", "other"]
MAX_REGIONS = 64  # with more, what was found about the parts around them is remembered
MAX_MAIN = 16  # main parts that are looked at; a page has one
MAX_KEPT = 1000  # parts that selectors may keep
FEW_BYTES = 32  # a text of fewer is hardly any, if what was left out is
MUCH_BYTES = 1024  # as long as this

_REGIONS = frozenset(("nav", "header", "footer", "aside"))
_HEAD = frozenset(("html", "title", "meta", "link", "base"))
_UNSEEN = frozenset(("script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "audio", "video"))
_ONLY_HEAD = _HEAD - {"title"}
_HEADINGS = frozenset(("h1", "h2"))
_RENAMED = "x-g,x-mplate"  # svg and template where the guard had to rename them
_BY_STYLE = '[style*="display:none" i],[style*="display: none" i]'
_FRAMING = ",".join(sorted(_REGIONS))
_CONTENT = frozenset(("article", "main"))
_NEVER_CONTENT = frozenset(("nav", "aside"))  # wherever they stand
_LINE_END = chr(LINE_END)
_PERHAPS_FEW = 8 * FEW_BYTES  # before white space is tidied
_XHTML = "application/xhtml+xml"
_BODY = re.compile(rb"<body(?=[\s/>])", re.IGNORECASE)
_HIDDEN_BY_STYLE = re.compile(rb"display[\x00-\x20]*:[\x00-\x20]*none")
_MAX_STYLE = 512  # bytes of a style before its `display`; after more it is not looked at
_ENDS_STYLE = (b"<", b">", b"{", b"}")
# What HTML closes by itself, and what would else be read as two.
_VOID = frozenset(
    b"area base basefont bgsound br col embed frame hr image img input keygen link meta param source track wbr".split()
)
# A comment, section or instruction is passed over as a whole. No value of XML holds a <, so no tag reaches beyond the
# next one: each byte is looked at a bounded number of times.
_XHTML_PIECE = re.compile(
    rb"<!--(?:.*?-->|.*\Z)|<!\[CDATA\[(?:.*?\]\]>|.*\Z)|<\?(?:.*?\?>|.*\Z)"
    rb"|<(?P<name>[A-Za-z][^\s/<>\"']*+)(?P<rest>(?:[^\"'<>/]++|/(?!>)|\"[^\"<]*+\"|'[^'<]*+')*+)/>",
    re.DOTALL,
)


def _tag_numbers(names: Set[str]) -> dict[int, str]:
    """The parser's numbers of tags: to compare numbers is several times faster than CSS."""
    inside = "".join(f"<{name}></{name}>" for name in sorted(names - _HEAD))
    parser = LexborHTMLParser(f"<html><head><base><meta><link><title></title></head><body>{inside}")
    return {node.tag_id: node.tag or "" for node in parser.css("*") if node.tag in names}


_TAGS = _tag_numbers({"main", *_HEADINGS, *_REGIONS, *_HEAD, *_UNSEEN})
_REGION_NUMBERS = frozenset(number for number, name in _TAGS.items() if name in _REGIONS)
_CONTENT_NUMBERS = frozenset(_tag_numbers(_CONTENT))


@dataclass(frozen=True)
class Page:
    """What was read of a page.

    Args:
        kind: `html`, `text` for other text such as JSON, `other` for what has no text.
        text: the visible text in UTF-8: words separated by one space, lines by one newline.
        metadata: what the page says about itself.
        selected: whether selectors chose the text; if none matched, it is empty.
        lead: the first h1, else the first h2, where it is left out of the text with what frames the content; the title
            where there is none.
        markup: HTML that a parser reads in linear time, empty for other kinds.
    """

    kind: Kind
    text: bytes
    metadata: Metadata
    selected: bool = False
    lead: bytes = b""
    markup: bytes = field(default=b"", repr=False, compare=False)

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Links in the order of the document, at most 10,000. O(bytes) the first time."""
        return read_links(_parsed(self.markup)) if self.markup else ()

    @cached_property
    def elements(self) -> LinkElements:
        """The `<link>` elements before the body. O(bytes) the first time."""
        return LinkElements(read_elements(_parsed(_BODY.split(self.markup, 1)[0])), self.metadata.base)


def read_page(
    body: bytes,
    content_type: str | None = None,
    rules: ContentRules = DEFAULT_CONTENT_RULES,
    product: str = PRODUCT,
    *,
    with_links: bool = False,
) -> Page:
    """Text and metadata of a page. O(bytes), at most 2 MiB are read and 1 MiB of text is kept.

    Args:
        body: the decoded body of the answer.
        content_type: the `Content-Type` header, None if there was none.
        rules: what to keep and drop.
        product: the name of the crawler, to which a `<meta>` may speak as to all robots.
        with_links: whether links will be asked for; reading them now spares another parse.
    """
    body = _cut_at(body, MAX_HTML_BYTES)
    media = (content_type or "").split(";", 1)[0].strip().lower()
    kind = _kind(media, body)
    metadata, text, lead, html = Metadata(), b"", b"", b""
    links: tuple[Link, ...] | None = None
    if kind == "html":
        html = as_utf8(body, read_charset(body, content_type))
        html, changed = harmless(_with_end_tags(html) if media == _XHTML else html)
        lowered = html.lower()
        says_hidden, hides_by_style = b"hidden" in lowered, _hides_by_style(lowered)
        parser = _parsed(html)
        nodes = _sorted_out(parser)
        metadata = read_metadata(nodes.head, product)
        links = read_links(parser) if with_links or rules.counts == "links" else None
        drop = (*[_RENAMED] * changed, *["[hidden]"] * says_hidden, *rules.drop)
        unwanted = (*drop, _BY_STYLE) if hides_by_style else drop
        lead = b"" if rules.keep else _lead(parser, nodes, rules, unwanted, metadata.title)
        text = _visible_text(parser, nodes, rules, unwanted)
        if len(text) < _PERHAPS_FEW and not rules.keep and (hides_by_style or nodes.has_framing):
            more = _more_text(text, html, replace(rules, keep_boilerplate=True), drop)
            text, lead = more, lead if more is text else b""
    elif kind == "text":
        text = as_utf8(body, read_charset(body, content_type)).replace(b"\n", bytes([LINE_END]))
    page = Page(kind, tidy_text(_cut_at(text, MAX_TEXT_BYTES)), metadata, bool(rules.keep), tidy_text(lead), html)
    if links is not None:
        page.__dict__["links"] = links
    return page


def _kind(media: str, body: bytes) -> Kind:
    if media in ("text/html", _XHTML):
        return "html"
    if media.startswith("text/") or media.endswith(("json", "xml", "javascript", "yaml")):
        return "text"
    if media and media not in ("application/octet-stream", "unknown/unknown", "*/*"):
        return "other"
    start = body[:512].lstrip(b"\xef\xbb\xbf\t\n\f\r ")
    if start.startswith(b"<"):
        return "html"
    return "other" if b"\0" in start else "text"


def _parsed(html: bytes) -> LexborHTMLParser:
    return LexborHTMLParser(html, options=LexborDocumentOptions.WO_EVENTS, scripting=True)


def _more_text(text: bytes, html: bytes, rules: ContentRules, drop: tuple[str, ...]) -> bytes:
    """The text of the whole page in place of one without its framing, if that is hardly any of it."""
    left = len(tidy_text(text))
    if left >= FEW_BYTES:
        return text
    parser = _parsed(html)
    whole = _visible_text(parser, _sorted_out(parser), rules, drop)
    return whole if not left or len(tidy_text(whole)) - left >= MUCH_BYTES else text


class _Nodes:
    """What a page holds, sorted by use, each in the order of the document."""

    __slots__ = ("framing", "has_framing", "head", "headings", "main")

    def __init__(self) -> None:
        self.head: list[tuple[str, LexborNode]] = []
        self.framing: list[tuple[str, LexborNode]] = []  # what may have to go before text is read
        self.main: list[LexborNode] = []
        self.headings: dict[str, LexborNode] = {}  # the first of each level
        self.has_framing = False


def _sorted_out(parser: LexborHTMLParser) -> _Nodes:
    """Return the tags of interest, found in one pass."""
    found, tags, root = _Nodes(), _TAGS, parser.root
    for node in () if root is None else root.traverse():
        number = node.tag_id
        if number in tags:
            tag = tags[number]
            if tag in _HEAD:
                found.head.append((tag, node))
            if tag == "main":
                found.main.append(node)
            elif tag in _HEADINGS:
                found.headings.setdefault(tag, node)
            elif tag not in _ONLY_HEAD:
                found.framing.append((tag, node))
                found.has_framing = found.has_framing or tag in _REGIONS
    return found


def _lead(parser: LexborHTMLParser, nodes: _Nodes, rules: ContentRules, drop: tuple[str, ...], title: str) -> bytes:
    """What says in one line what the page is about, where its text does not: a framed headline, else the title."""
    headline = nodes.headings.get("h1") or nodes.headings.get("h2")
    if headline is None:
        return title.encode("utf-8", "replace")
    around = _with_ancestors([headline])
    if drop and any(node.mem_id in around for node in parser.css(",".join(drop))):
        return b""
    framing = frozenset() if rules.keep_boilerplate else _REGIONS
    around_main, known = _regions_around(nodes.main), _room_for_answers(len(nodes.framing))
    hidden = framed = False
    for tag, node in nodes.framing:
        if node.mem_id in around:
            hidden |= tag in _UNSEEN
            frames = tag in framing and node.mem_id not in around_main
            framed |= frames and (tag in _NEVER_CONTENT or not _in_content(node, known))
    if hidden or not framed:
        return b""
    return headline.text(separator=_LINE_END, skip_empty=True).encode("utf-8", "replace")


def _visible_text(parser: LexborHTMLParser, nodes: _Nodes, rules: ContentRules, drop: tuple[str, ...]) -> bytes:
    """The text that is left when everything unseen and unwanted has been taken out of the tree."""
    framing = frozenset() if rules.keep_boilerplate or rules.keep else _REGIONS
    around_main, known = _regions_around(nodes.main), _room_for_answers(len(nodes.framing))
    # Last first: what stands inside a part is gone before the part is.
    for tag, node in reversed(nodes.framing):
        if tag in framing:
            if around_main and node.mem_id in around_main:
                continue
            if tag in _NEVER_CONTENT or not _in_content(node, known):
                node.decompose()
        elif tag in _UNSEEN or tag == "title":
            node.decompose()
    if drop:
        for node in reversed(parser.css(",".join(drop))):
            node.decompose()
    top = parser.body or parser.root
    parts = [] if top is None else [top]
    if rules.keep:
        parts = _kept(parser, rules)
    return _LINE_END.join(part.text(separator=_LINE_END, skip_empty=True) for part in parts).encode("utf-8", "replace")


def _kept(parser: LexborHTMLParser, rules: ContentRules) -> list[LexborNode]:
    """What selectors keep, wherever it stands, without the framing inside it that holds nothing kept."""
    kept = parser.css(",".join(rules.keep))[:MAX_KEPT]
    if kept and not rules.keep_boilerplate:
        around, framing = _with_ancestors(kept), parser.css(_FRAMING)
        known = _room_for_answers(len(framing))
        for node in reversed(framing):
            if node.mem_id not in around and (node.tag in _NEVER_CONTENT or not _in_content(node, known)):
                node.decompose()
    return _outermost(kept)


def _with_ancestors(nodes: Iterable[LexborNode]) -> set[int]:
    """The ids of nodes and of all that they stand in. O(nodes found)."""
    found: set[int] = set()
    for node in nodes:
        each: LexborNode | None = node
        while each is not None and each.mem_id not in found:
            found.add(each.mem_id)
            each = each.parent
    return found


def _regions_around(main: list[LexborNode]) -> set[int]:
    """The ids of regions that the main part stands in, mostly none."""
    found: set[int] = set()
    for node in main[:MAX_MAIN]:
        parent = node.parent
        while parent is not None:
            if parent.tag_id in _REGION_NUMBERS:
                found.add(parent.mem_id)
            parent = parent.parent
    return found


def _in_content(node: LexborNode, known: dict[int, bool] | None) -> bool:
    """Whether a part stands in an article or in the main part.

    Args:
        node: the part.
        known: the answer for what was passed before, so that each is passed once; None where few will ask.
    """
    path, answer = [], False
    parent = node.parent
    while parent is not None:
        if parent.tag_id in _CONTENT_NUMBERS:
            answer = True
            break
        if known is not None:
            place = parent.mem_id
            if place in known:
                answer = known[place]
                break
            path.append(place)
        parent = parent.parent
    if known is not None:
        known.update(dict.fromkeys(path, answer))
    return answer


def _room_for_answers(askers: int) -> dict[int, bool] | None:
    return {} if askers > MAX_REGIONS else None


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
    """The start of a text, in UTF-8 without half a character at its end."""
    if len(text) <= most:
        return text
    return text[: next((end for end in range(most, most - 4, -1) if text[end] & 0xC0 != 0x80), most)]


def _hides_by_style(lowered: bytes) -> bool:
    """Whether `display:none` stands in a tag behind the word `style`; in a style sheet it does not. O(bytes)."""
    for found in _HIDDEN_BY_STYLE.finditer(lowered):
        before = lowered[max(found.start() - _MAX_STYLE, 0) : found.start()]
        if before.rfind(b"style") > max(map(before.rfind, _ENDS_STYLE)):
            return True
    return False


def _with_end_tags(xhtml: bytes) -> bytes:
    """XHTML in which each tag that closes itself has an end tag, unless HTML needs none. O(bytes).

    To a parser of HTML, `<script src="a.js"/>` opens a script that never ends, and the page is gone.
    """
    return _XHTML_PIECE.sub(_spelled_out, xhtml) if b"/>" in xhtml else xhtml


def _spelled_out(piece: re.Match[bytes]) -> bytes:
    name = piece["name"]
    if name is None or name.lower() in _VOID:
        return piece[0]
    return b"<%b%b></%b>" % (name, piece["rest"], name)
