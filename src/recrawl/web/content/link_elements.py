r"""The `<link>` elements of an HTML page or a feed, and the links of `Link` headers, found without a parser.

What a page names in its head (feeds, hubs) is wanted for few pages and needs no tree. The scan knows what a tag, an
attribute, a comment and a script are; it goes forward only, reads the first megabyte, stops at the body of a page and
leaves out the entries of a feed. Both functions raise nothing for any bytes.

    >>> link_elements(b"<link rel=ALTERNATE type=text/xml href='/a?b&amp;c'><!-- <link rel=hub href=x> -->").links
    (NamedLink(rels=frozenset({'alternate'}), href='/a?b&c', type='text/xml'),)
    >>> link_headers([b'<https://hub.example/>; rel="hub", </feed>; rel=self'])[1].href
    '/feed'
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import NamedTuple

from recrawl.web.content.charset import as_utf8, read_charset

MOST_BYTES = 1 << 20
MOST_TAGS = 20_000
MOST_LINKS = 200
MOST_HREF = 4096
LONGEST_HEADERS = 16_384
_LONGEST_WORD = 1000
_HTML_SPACE = "\t\n\f\r "
# A tag of interest, what must be passed over as a whole, or any other tag, whose attributes may hold anything.
_TAG = re.compile(
    rb"<(?:(?P<comment>!--)|(?P<cdata>!\[CDATA\[)|"
    rb"(?P<whole>script|style|noscript|template|textarea|title|svg|item|entry)(?=[\s/>])|"
    rb"(?P<end>body)(?=[\s/>])|(?:[a-z][a-z0-9_.-]{0,30}:)?(?P<link>link|base)(?=[\s/>])|(?=[a-z]))",
    re.IGNORECASE,
)
# The rest of a tag: quotes count after an equals sign only. Nothing is tried twice.
_REST = re.compile(rb"(?:[^>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+'|(?![\"'])))*+>")
_ATTRIBUTE = re.compile(rb"([^\s=/>\"']+)(?:\s*+=\s*+(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+)))?+")
_LONGEST_TAG = 16_384
_LINK_VALUE = re.compile(r"<([^<>]*)>((?:[^\",<]++|\"(?:[^\"\\]|\\.)*+\")*+)")
_PARAMETER = re.compile(r";\s*+([\w*-]++)\s*+=\s*+(?:\"((?:[^\"\\]|\\.)*+)\"|([^\s;,\"]++))", re.ASCII)
_ENDS = {
    name: re.compile(rb"</(?:[a-z][a-z0-9_.-]{0,30}:)?" + name, re.IGNORECASE)
    for name in (b"script", b"style", b"noscript", b"template", b"textarea", b"title", b"svg", b"item", b"entry")
}


class NamedLink(NamedTuple):
    """A link with its relations and media type in lower case, the target as written but for outer white space."""

    rels: frozenset[str]
    href: str
    type: str


class LinkElements(NamedTuple):
    """The links of a document in order, and the `<base href>` they are relative to, empty if there is none."""

    links: tuple[NamedLink, ...]
    base: str


def link_elements(body: bytes, content_type: str | None = None) -> LinkElements:
    """The `<link>` elements in the head of a page, or in a feed outside of its entries. O(bytes).

    Args:
        body: decoded bytes, of which the first megabyte is read.
        content_type: the `Content-Type` header, None if there was none.
    """
    body = body[:MOST_BYTES]
    text = as_utf8(body, read_charset(body, content_type))
    found: list[NamedLink] = []
    base, place = "", 0
    for _ in range(MOST_TAGS):
        tag = _TAG.search(text, place)
        if tag is None or tag["end"] or len(found) >= MOST_LINKS:
            break
        after = _after(text, tag)
        if after is None:  # what is never closed goes on to the end
            break
        place = after
        if tag["link"]:
            attributes = _attributes(text[tag.end() : place - 1])
            if tag["link"].lower() == b"base":
                base = base or attributes.get("href", "")
            elif attributes.get("href") and attributes.get("rel"):
                rels = frozenset(attributes["rel"].lower().split())
                found.append(NamedLink(rels, attributes["href"], attributes.get("type", "").lower()))
    return LinkElements(tuple(found), base)


def link_headers(values: Iterable[bytes]) -> tuple[NamedLink, ...]:
    """The links in the values of `Link` headers (RFC 8288). O(length), at most 16 KiB.

    Links with an `anchor` speak of another page and are left out.
    """
    found: list[NamedLink] = []
    for value in _LINK_VALUE.finditer(b", ".join(values)[:LONGEST_HEADERS].decode("latin-1")):
        given: dict[str, str] = {}
        for name, quoted, plain in _PARAMETER.findall(value[2]):
            given.setdefault(name.lower(), re.sub(r"\\(.)", r"\1", quoted) or plain)
        href = value[1].strip()
        if href and len(href) <= MOST_HREF and given.get("rel") and "anchor" not in given:
            rels = frozenset(given["rel"].lower().split())
            found.append(NamedLink(rels, href, given.get("type", "").lower()))
    return tuple(found[:MOST_LINKS])


def _after(text: bytes, tag: re.Match[bytes]) -> int | None:
    """Where to go on after a tag, or after all that must be passed over with it; None for nowhere."""
    if tag["comment"] or tag["cdata"]:
        mark = b"-->" if tag["comment"] else b"]]>"
        end = text.find(mark, tag.end())
        return None if end < 0 else end + len(mark)
    rest = _REST.match(text, tag.end())
    if rest is None:
        return None
    if tag["whole"] and not rest[0].endswith(b"/>"):
        closing = _ENDS[tag["whole"].lower()].search(text, rest.end())
        return None if closing is None else closing.end()
    return rest.end()


def _attributes(tag: bytes) -> dict[str, str]:
    """Attributes by name in lower case, the first of each name, as text."""
    found: dict[str, str] = {}
    for name, double, single, plain in _ATTRIBUTE.findall(tag[:_LONGEST_TAG]):
        word = name.lower().decode("utf-8", "replace")
        value = double or single or plain
        if word in _WANTED and word not in found and len(value) <= _WANTED[word]:
            found[word] = html.unescape(value.decode("utf-8", "replace")).strip(_HTML_SPACE)
    return found


_WANTED = {"rel": _LONGEST_WORD, "href": MOST_HREF, "type": _LONGEST_WORD}
