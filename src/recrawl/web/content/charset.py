r"""Which characters the bytes of a page stand for, by the labels of the WHATWG Encoding Standard and by no others.

The order is that of the HTML Standard: a byte order mark, the `Content-Type` header, a `<meta>` or XML declaration
within the first 1024 bytes. A page that declares nothing is UTF-8 if its bytes are valid UTF-8, else windows-1252.
Python's own codec names are never looked up from foreign text, so `utf-7`, `unicode_escape` or `zlib` are nothing but
unknown labels. Decoding never fails: what cannot be decoded becomes U+FFFD.

    >>> read_charset(b"caf\xe9", "text/html; charset=ISO-8859-1")
    Charset(name='windows-1252', skip=0)
    >>> as_utf8(b"caf\xe9", read_charset(b"caf\xe9", "text/html; charset=latin1")).decode()
    'café'
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from webencodings import LABELS, lookup

PRESCAN_BYTES = 1024
# What `webencodings` decodes otherwise than a page needs: the standard reads GBK as gb18030.
_CODECS = {"gbk": "gb18030", "x-user-defined": "latin-1"}
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
_ANY_BOM = tuple(mark for mark, _ in _BOMS)
_HEADER = re.compile(r"charset\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s;,]+))", re.IGNORECASE)
# An attribute as the standard reads it: quotes count only after the equals sign; one that never ends takes the rest.
_NAME = rb"[^\t\n\f\r />][^\t\n\f\r />=]*+"
_EQUALS = rb"[\t\n\f\r ]*+=[\t\n\f\r ]*+"
_UNQUOTED = rb"[^\t\n\f\r >\"'][^\t\n\f\r >]*+"
_VALUE = rb"\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|" + _UNQUOTED
_ATTRIBUTES = rb"(?:[\t\n\f\r /]++|" + _NAME + rb"(?:" + _EQUALS + rb"(?:" + _VALUE + rb")?+)?+)*+"
_TEXT_ONLY = rb"script|style|title|textarea|xmp|iframe|noembed|noframes"
# Comments, elements that hold text and no markup, `<meta>`, other tags with their attributes, the rest in brackets.
_MARKUP = re.compile(
    rb"<!--(?:-?>|.*?(?:--!?>|\Z))"
    rb"|<(" + _TEXT_ONLY + rb")(?=[\t\n\f\r />])" + _ATTRIBUTES + rb"(?:>.*?(?:</\1(?=[\t\n\f\r />])|\Z))?"
    rb"|<meta(?=[\t\n\f\r /])(?P<meta>" + _ATTRIBUTES + rb")>"
    rb"|</?[a-z][^\t\n\f\r />]*+" + _ATTRIBUTES + rb"|<[!?/][^>]*+",
    re.IGNORECASE | re.DOTALL,
)
_META_ATTRIBUTE = re.compile(
    rb"(" + _NAME + rb")(?:" + _EQUALS + rb"(?:\"([^\"]*+)|'([^']*+)|(" + _UNQUOTED + rb"))?+[\"']?+)?+"
)
_IN_CONTENT = re.compile(rb"charset\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s;\"'][^\s;]*))", re.IGNORECASE)
_XML = re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([^\"'>]*)[\"']")


@dataclass(frozen=True, slots=True)
class Charset:
    """An encoding of the standard, and how many bytes of byte order mark to skip."""

    name: str
    skip: int = 0


def encoding_of_label(label: str) -> str | None:
    """Return the encoding that a label names, or None for a label the standard does not know.

    >>> encoding_of_label(" Latin1 "), encoding_of_label("utf-7")
    ('windows-1252', None)
    """
    found: str | None = LABELS.get(label.strip("\t\n\f\r ").lower())
    return found


def read_charset(body: bytes, content_type: str | None = None) -> Charset:
    """Return the encoding of a page from its bytes and its `Content-Type` header. O(1) unless nothing is declared."""
    if body.startswith(_ANY_BOM):
        mark, name = next(each for each in _BOMS if body.startswith(each[0]))
        return Charset(name, len(mark))
    declared = _in_header(content_type) or _in_markup(body[:PRESCAN_BYTES])
    return Charset(declared or ("utf-8" if _is_utf8(body) else "windows-1252"))


def as_utf8(body: bytes, charset: Charset) -> bytes:
    """Return the page as valid UTF-8 without a byte order mark; what cannot be decoded becomes U+FFFD. O(bytes)."""
    content = body[charset.skip :]
    if charset.name == "utf-8" and _is_utf8(content):
        return content
    if charset.name == "replacement":  # encodings the standard refuses, because they can smuggle markup
        return "\ufffd".encode() if content else b""
    return content.decode(codec_of(charset.name), "replace").encode("utf-8", "replace")


def codec_of(name: str) -> str:
    """Return Python's name for an encoding of the standard."""
    return _CODECS.get(name) or str(lookup(name).codec_info.name)


def _is_utf8(content: bytes) -> bool:
    if content.isascii():
        return True
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _in_header(content_type: str | None) -> str | None:
    return None if content_type is None else _label_in_header(content_type[:1024])


@lru_cache(maxsize=256)
def _label_in_header(content_type: str) -> str | None:
    found = _HEADER.search(content_type)
    return None if found is None else encoding_of_label(next(group for group in found.groups() if group is not None))


def _in_markup(head: bytes) -> str | None:
    """The first known label that an XML declaration or a `<meta>` tag gives."""
    for label in _labels_in_markup(head):
        name = encoding_of_label(label.decode("latin-1"))
        if name is not None:
            # Markup that could be read as ASCII is not UTF-16, whatever it says.
            return {"utf-16be": "utf-8", "utf-16le": "utf-8", "x-user-defined": "windows-1252"}.get(name, name)
    return None


def _labels_in_markup(head: bytes) -> Iterator[bytes]:
    declared = _XML.match(head)
    if declared is not None:
        yield declared[1]
    if b"charset" in head.lower():
        for tag in _MARKUP.finditer(head):
            if tag["meta"] is not None:
                yield _label_in_meta(tag["meta"])


def _label_in_meta(tag: bytes) -> bytes:
    """What the attributes of a `<meta>` call the encoding: `charset`, else `content` if it stands for Content-Type."""
    values: dict[bytes, bytes] = {}
    for name, *written in _META_ATTRIBUTE.findall(tag):
        values.setdefault(name.lower(), b"".join(written))  # the first of a name counts
    if b"charset" in values:
        return values[b"charset"]
    if values.get(b"http-equiv", b"").lower() != b"content-type":
        return b""
    found = _IN_CONTENT.search(values.get(b"content", b""))
    return b"" if found is None else b"".join(filter(None, found.groups()))
