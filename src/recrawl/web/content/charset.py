r"""Which characters the bytes of a page stand for, by the labels of the WHATWG Encoding Standard and by no others.

The order is that of the HTML Standard: a byte order mark, the `Content-Type` header, a `<meta>` or XML declaration
within the first 1024 bytes. A page that declares nothing is UTF-8 if its bytes are valid UTF-8, else windows-1252.
Python's own codec names are never looked up from foreign text, so `utf-7`, `unicode_escape` or `zlib` are nothing but
unknown labels. Decoding never fails: what cannot be decoded becomes U+FFFD.

    >>> read_charset(b"caf\xe9", "text/html; charset=ISO-8859-1")
    Charset(name='windows-1252', source='header', skip=0)
    >>> as_utf8(b"caf\xe9", read_charset(b"caf\xe9", "text/html; charset=latin1")).decode()
    'café'
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

PRESCAN_BYTES = 1024
LABEL_CHARACTERS = 64  # the longest label of the standard has 19
Source = Literal["bom", "header", "meta", "guess"]

# Encoding, Python's codec for it, and its labels. The standard decodes GBK as gb18030 and EUC-KR as cp949.
_TABLE = """
utf-8 utf-8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8
ibm866 cp866 866 cp866 csibm866 ibm866
iso-8859-2 iso8859-2 csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2
iso-8859-3 iso8859-3 csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3
iso-8859-4 iso8859-4 csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4
iso-8859-5 iso8859-5 csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988
iso-8859-6 iso8859-6 arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e \
 iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987
iso-8859-7 iso8859-7 csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7 iso88597 \
 iso_8859-7 iso_8859-7:1987 sun_eu_greek
iso-8859-8 iso8859-8 csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-ir-138 iso8859-8 iso88598 \
 iso_8859-8 iso_8859-8:1988 visual
iso-8859-8-i iso8859-8 csiso88598i iso-8859-8-i logical
iso-8859-10 iso8859-10 csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6
iso-8859-13 iso8859-13 iso-8859-13 iso8859-13 iso885913
iso-8859-14 iso8859-14 iso-8859-14 iso8859-14 iso885914
iso-8859-15 iso8859-15 csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9
iso-8859-16 iso8859-16 iso-8859-16
koi8-r koi8-r cskoi8r koi koi8 koi8-r koi8_r
koi8-u koi8-u koi8-ru koi8-u
macintosh mac-roman csmacintosh mac macintosh x-mac-roman
windows-874 cp874 dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874
windows-1250 cp1250 cp1250 windows-1250 x-cp1250
windows-1251 cp1251 cp1251 windows-1251 x-cp1251
windows-1252 cp1252 ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 \
 iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252
windows-1253 cp1253 cp1253 windows-1253 x-cp1253
windows-1254 cp1254 cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 \
 windows-1254 x-cp1254
windows-1255 cp1255 cp1255 windows-1255 x-cp1255
windows-1256 cp1256 cp1256 windows-1256 x-cp1256
windows-1257 cp1257 cp1257 windows-1257 x-cp1257
windows-1258 cp1258 cp1258 windows-1258 x-cp1258
x-mac-cyrillic mac-cyrillic x-mac-cyrillic x-mac-ukrainian
gbk gb18030 chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk
gb18030 gb18030 gb18030
big5 big5hkscs big5 big5-hkscs cn-big5 csbig5 x-x-big5
euc-jp euc-jp cseucpkdfmtjapanese euc-jp x-euc-jp
iso-2022-jp iso2022-jp csiso2022jp iso-2022-jp
shift_jis cp932 csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis
euc-kr cp949 cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949
replacement ascii csiso2022kr hz-gb-2312 iso-2022-cn iso-2022-cn-ext iso-2022-kr replacement
utf-16be utf-16-be unicodefffe utf-16be
utf-16le utf-16-le csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le
x-user-defined latin-1 x-user-defined
"""
_ROWS = [row.split() for row in _TABLE.replace("\\\n", "").strip().splitlines()]
CODECS: dict[str, str] = {row[0]: row[1] for row in _ROWS}
LABELS: dict[str, str] = {label: row[0] for row in _ROWS for label in row[2:]}

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
    """An encoding of the standard, how it was found, and how many bytes of byte order mark to skip."""

    name: str
    source: Source
    skip: int = 0


def encoding_of_label(label: str) -> str | None:
    """The encoding that a label names, or None for a label the standard does not know.

    >>> encoding_of_label(" Latin1 "), encoding_of_label("utf-7")
    ('windows-1252', None)
    """
    if len(label) > LABEL_CHARACTERS:
        return None
    return LABELS.get(label.strip("\t\n\f\r ").lower())


def read_charset(body: bytes, content_type: str | None = None) -> Charset:
    """The encoding of a page from its bytes and its `Content-Type` header. O(1) unless nothing is declared."""
    if body.startswith(_ANY_BOM):
        mark, name = next(each for each in _BOMS if body.startswith(each[0]))
        return Charset(name, "bom", len(mark))
    declared = _in_header(content_type)
    if declared is not None:
        return Charset(declared, "header")
    declared = _in_markup(body[:PRESCAN_BYTES])
    if declared is not None:
        return Charset(declared, "meta")
    return Charset("utf-8" if _is_utf8(body) else "windows-1252", "guess")


def as_utf8(body: bytes, charset: Charset) -> bytes:
    """The page as valid UTF-8 without a byte order mark; what cannot be decoded becomes U+FFFD. O(bytes)."""
    content = body[charset.skip :]
    if charset.name == "utf-8" and _is_utf8(content):
        return content
    if charset.name == "replacement":  # encodings the standard refuses, because they can smuggle markup
        return "\ufffd".encode() if content else b""
    return content.decode(CODECS[charset.name], "replace").encode("utf-8", "replace")


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
