"""Sitemaps: XML or plain text, plain or gzipped, within hard limits and never an exception.

expat reads the whole document in one call, since old versions take quadratic time for pieces; a document type is
refused before any entity can grow. `changefreq` and `priority` are not read: nobody keeps them true. `lastmod` is a
weak signal, read only if it lies between the first web page and tomorrow. Large files belong into
`workers.py`, which ends a parse that takes too long; indexes are walked by `feeds/sitemap_walk.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from xml.parsers import expat

from recrawl.web.dates import believable, http_date, w3c_date
from recrawl.web.fetch.decoding import BodyDecoder, DecodingFault, DecodingLimits, body_decoder
from recrawl.web.refused import Refused, shown
from recrawl.web.url.address import DEFAULT_RULES, Address, AddressRules, read_address

SitemapKind = Literal["pages", "index", "none"]
_GZIP_MAGIC = b"\x1f\x8b"
_BEFORE_XML = b"\xef\xbb\xbf\xfe\xff\0\t\n\f\r "  # in UTF-16 too
_PIECE_BYTES = 65_536
_DEEPEST = 64
_LONGEST_TEXT = 8192
_ROOTS: dict[str, SitemapKind] = {"urlset": "pages", "sitemapindex": "index"}
_NAMED_ENCODING = re.compile(rb"\s*<\?xml[^>]*?\sencoding\s*=\s*[\"']([^\"'>]*)")
_ENCODINGS = re.compile(rb"utf-8|utf-16|us-ascii|iso-8859-[0-9]{1,2}|windows-125[0-9]|koi8-[ru]", re.IGNORECASE)
_ITEMS = {"pages": "url", "index": "sitemap"}


@dataclass(frozen=True, slots=True)
class SitemapLimits:
    """The limits of the protocol: 50,000 addresses and 52,428,800 bytes after decompression."""

    max_entries: int = 50_000
    max_bytes: int = 52_428_800


DEFAULT_LIMITS = SitemapLimits()


class SitemapEntry(NamedTuple):
    """One address of a sitemap, with the time of its last change if that can be believed.

    `foreign` marks an address of another host (with or without `www.` is the same host): ignore it unless allowed.
    """

    url: str
    lastmod: float | None
    foreign: bool


@dataclass(frozen=True, slots=True)
class Sitemap:
    """What a sitemap holds, also when it broke off in the middle.

    Args:
        kind: `pages`, an `index` of further sitemaps, or `none`.
        entries: what could be read, in order, without repeats.
        problem: one sentence on what is wrong with the file, or None.
        ignored_addresses: entries whose address is refused or absent.
        ignored_lastmods: entries whose lastmod is no date, or one that cannot be.
    """

    kind: SitemapKind
    entries: tuple[SitemapEntry, ...]
    problem: str | None = None
    ignored_addresses: int = 0
    ignored_lastmods: int = 0


def parse_sitemap(
    body: bytes,
    base: Address,
    now: float,
    limits: SitemapLimits = DEFAULT_LIMITS,
    rules: AddressRules = DEFAULT_RULES,
) -> Sitemap:
    """Read one sitemap file.

    Args:
        body: the bytes as they came, gzipped or not.
        base: the address of the file; entries of other hosts are marked foreign.
        now: seconds since 1970, to judge lastmod.
        limits: what is read at most.
        rules: which addresses may be named.

    O(length), bounded by the limits; raises nothing for any bytes.
    """
    content, problem = _decompressed(body, limits.max_bytes)
    if not content or content.isspace():
        return Sitemap("none", (), problem or "the sitemap is empty")
    collector = _Collector(base, now, limits.max_entries, rules)
    try:
        trouble = _read_xml(content, collector) if _looks_like_xml(content) else _read_lines(content, collector)
    except (expat.ExpatError, ValueError, LookupError, MemoryError) as error:
        trouble = f"the sitemap breaks off: {shown(str(error))}"
    kind = collector.kind if collector.kind != "none" or not collector.entries else "pages"
    return Sitemap(
        kind, tuple(collector.entries.values()), problem or trouble, collector.bad_addresses, collector.bad_lastmods
    )


def _looks_like_xml(content: bytes) -> bool:
    """Whether a tag comes first, after a byte order mark and blanks; a line of a text sitemap may hold a `<` too."""
    return content[:1024].lstrip(_BEFORE_XML).startswith(b"<")


class _Stop(ValueError):
    """Ends the parse from inside a handler."""


@dataclass(slots=True)
class _Collector:
    """Gathers entries while the parser runs."""

    base: Address
    now: float
    max_entries: int
    rules: AddressRules
    kind: SitemapKind = "none"
    entries: dict[str, SitemapEntry] = field(default_factory=dict)
    seen: int = 0
    bad_addresses: int = 0
    bad_lastmods: int = 0

    def add(self, location: str, lastmod: str) -> None:
        self.seen += 1
        if self.seen > self.max_entries:
            raise _Stop(f"it holds more than {self.max_entries} addresses")
        address = read_address(location.strip(), self.rules)
        if isinstance(address, Refused):
            self.bad_addresses += 1
            return
        at = believable(_date(lastmod, self.now), self.now)
        self.bad_lastmods += bool(lastmod.strip()) and at is None
        self.entries.setdefault(address.url, SitemapEntry(address.url, at, self._is_foreign(address)))

    def _is_foreign(self, address: Address) -> bool:
        return address.host.removeprefix("www.") != self.base.host.removeprefix("www.")


@dataclass(slots=True)
class _XmlReader:
    """Handlers for expat: only `loc` and `lastmod` right below an entry count, whatever their prefix."""

    collector: _Collector
    depth: int = 0
    in_item: bool = False
    reading: str = ""
    texts: dict[str, list[str]] = field(default_factory=dict)
    length: int = 0

    def start(self, name: str, _attributes: list[str]) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _Stop(f"elements are nested more than {_DEEPEST} deep")
        local = name.rpartition(":")[2]
        if self.depth == 1:
            self._root(local)
        elif self.depth == 2:
            self.in_item = local == _ITEMS[self.collector.kind]
            self.texts = {}
        elif self.depth == 3 and self.in_item and local in ("loc", "lastmod"):
            self.reading, self.length = local, 0
            self.texts.setdefault(local, [])

    def text(self, data: str) -> None:
        if self.reading and self.length <= _LONGEST_TEXT:
            self.length += len(data)
            self.texts[self.reading].append(data)

    def end(self, _name: str) -> None:
        if self.depth == 3:
            self.reading = ""
        elif self.depth == 2 and self.in_item:
            self.collector.add("".join(self.texts.get("loc", ())), "".join(self.texts.get("lastmod", ())))
            self.in_item = False
        self.depth -= 1

    def refuse_document_type(self, *_: object) -> None:
        raise _Stop("it declares a document type, which no sitemap needs")

    def _root(self, local: str) -> None:
        if local not in _ROOTS:
            raise _Stop(f"it is no sitemap: its outermost element is {shown(local)}")
        self.collector.kind = _ROOTS[local]


def _read_xml(content: bytes, collector: _Collector) -> str | None:
    reader = _XmlReader(collector)
    parser = expat.ParserCreate(_encoding(content))
    parser.buffer_text = True
    parser.ordered_attributes = True
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    parser.StartDoctypeDeclHandler = reader.refuse_document_type
    parser.EntityDeclHandler = reader.refuse_document_type
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    try:
        parser.Parse(content.lstrip(), True)
    except _Stop as stop:
        return f"the sitemap is not read to its end: {stop}"
    return None


def _encoding(content: bytes) -> str | None:
    """None lets the document name its encoding; what it may not name is read as UTF-8.

    Python would decode with any codec of that name, also with those that are no encodings of text.
    """
    named = _NAMED_ENCODING.match(content[:1024])
    return None if named is None or _ENCODINGS.fullmatch(named[1]) else "utf-8"


def _read_lines(content: bytes, collector: _Collector) -> str | None:
    """A text sitemap: one address a line."""
    try:
        for line in content.decode("utf-8-sig", "replace").splitlines():
            if line.strip():
                collector.add(line, "")
    except _Stop as stop:
        return f"the sitemap is not read to its end: {stop}"
    return None if collector.entries else "the file holds no address and is no sitemap"


def _date(text: str, now: float) -> float | None:
    if not text or len(text) > 128:
        return None
    at = w3c_date(text)
    return at if at is not None else http_date(text, now)


def _decompressed(body: bytes, max_bytes: int) -> tuple[bytes, str | None]:
    """The content, cut at the limit, and what is wrong with it."""
    too_large = f"the sitemap is larger than {max_bytes} bytes and cut there"
    if not body.startswith(_GZIP_MAGIC):
        return (body, None) if len(body) <= max_bytes else (body[:max_bytes], too_large)
    decoder = body_decoder(b"gzip", DecodingLimits(max_bytes, most_expansion=1e6))
    assert isinstance(decoder, BodyDecoder)
    for start in range(0, len(body), _PIECE_BYTES):
        if decoder.feed(body[start : start + _PIECE_BYTES]) is not None:
            break
    fault = decoder.finish()
    problem = None if fault is None else too_large if fault.is_cut else _gzip_problem(fault)
    content = decoder.body()
    if content.startswith(_GZIP_MAGIC):
        return b"", "the sitemap is gzipped twice"
    return content, problem


def _gzip_problem(fault: DecodingFault) -> str:
    if fault.problem == "truncated":
        return "the gzip file breaks off"
    return f"the sitemap is no sound gzip file: {fault.reason}"
