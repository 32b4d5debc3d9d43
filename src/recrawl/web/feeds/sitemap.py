"""Read sitemaps, XML or plain text, plain or gzipped, within hard limits and without an exception; walk their indexes.

`changefreq` and `priority` are not read: few sites keep them true. `lastmod` is a weak signal, read only if it lies
between the first web page and tomorrow. Large files belong into `workers.py`, which ends a parse that takes too long.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from xml.parsers import expat

from recrawl.web.dates import believable, http_date, w3c_date
from recrawl.web.feeds.xml import MAX_TEXT, Stop, XmlReader, in_utf8
from recrawl.web.fetch.decoding import BodyDecoder, DecodingFault, DecodingLimits, body_decoder
from recrawl.web.refused import Refused, safe_text
from recrawl.web.url.address import DEFAULT_RULES, Address, AddressRules, read_address

SitemapKind = Literal["pages", "index", "none"]
MAX_ENTRIES = 50_000
"""Addresses of one file, as the protocol has it."""
MAX_BYTES = 52_428_800
"""Bytes of one file after decompression, as the protocol has it."""
MAX_LEVELS = 10
"""Levels of indexes that are walked."""
MAX_FILES = 1_000
MAX_WALKED = 1_000_000
"""Addresses of all sitemaps of one walk."""
_GZIP_MAGIC = b"\x1f\x8b"
_BEFORE_XML = b"\xef\xbb\xbf\xfe\xff\0\t\n\f\r "  # in UTF-16 too
_PIECE_BYTES = 65_536
_ROOTS: dict[str, SitemapKind] = {"urlset": "pages", "sitemapindex": "index"}
_ITEMS = {"pages": "url", "index": "sitemap"}


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
    rules: AddressRules = DEFAULT_RULES,
    *,
    max_entries: int = MAX_ENTRIES,
    max_bytes: int = MAX_BYTES,
) -> Sitemap:
    """Read one sitemap file. O(length), bounded by the limits; raises nothing for any bytes.

    Args:
        body: the bytes as they came, gzipped or not.
        base: the address of the file; entries of other hosts are marked foreign.
        now: seconds since 1970, to judge lastmod.
        rules: which addresses may be named.
        max_entries: addresses that are read.
        max_bytes: bytes that are read, after decompression.
    """
    content, problem = _decompressed(body, max_bytes)
    if not content or content.isspace():
        return Sitemap("none", (), problem or "the sitemap is empty")
    collector = _Collector(base, now, max_entries, rules)
    trouble: str | None = None
    try:
        if _looks_like_xml(content):
            _SitemapReader(collector).read(in_utf8(content))
        else:
            trouble = _read_lines(content, collector)
    except Stop as stop:
        trouble = f"the sitemap is not read to its end: {stop}"
    except (expat.ExpatError, MemoryError) as error:
        trouble = f"the sitemap breaks off: {safe_text(str(error))}"
    kind = collector.kind if collector.kind != "none" or not collector.entries else "pages"
    return Sitemap(
        kind, tuple(collector.entries.values()), problem or trouble, collector.bad_addresses, collector.bad_lastmods
    )


def _looks_like_xml(content: bytes) -> bool:
    """Whether a tag comes first, after a byte order mark and blanks; a line of a text sitemap may hold a `<` too."""
    return content[:1024].lstrip(_BEFORE_XML).startswith(b"<")


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
            raise Stop(f"it holds more than {self.max_entries} addresses")
        address = read_address(location.strip(), self.rules)
        if isinstance(address, Refused) or "\ufffd" in location:  # bytes that are no text would be another address
            self.bad_addresses += 1
            return
        at = believable(_date(lastmod, self.now), self.now)
        self.bad_lastmods += bool(lastmod.strip()) and at is None
        self.entries.setdefault(address.url, SitemapEntry(address.url, at, self._is_foreign(address)))

    def _is_foreign(self, address: Address) -> bool:
        return address.host.removeprefix("www.") != self.base.host.removeprefix("www.")


class _SitemapReader(XmlReader):
    """Takes `loc` and `lastmod` right below an entry, whatever their prefix."""

    def __init__(self, collector: _Collector) -> None:
        super().__init__()
        self._collector = collector
        self._in_item = False
        self._reading = ""
        self._texts: dict[str, list[str]] = {}
        self._length = 0

    def opened(self, name: str, attributes: dict[str, str]) -> None:  # noqa: ARG002
        local = name.rpartition(":")[2]
        if self.depth == 3:
            if self._in_item and local in ("loc", "lastmod"):
                self._reading, self._length = local, 0
                self._texts.setdefault(local, [])
        elif self.depth == 2:
            self._in_item = local == _ITEMS[self._collector.kind]
            self._texts = {}
        elif self.depth == 1:
            if local not in _ROOTS:
                raise Stop(f"it is no sitemap: its outermost element is {safe_text(local)}")
            self._collector.kind = _ROOTS[local]

    def text(self, data: str) -> None:
        if self._reading and self._length <= MAX_TEXT:
            self._length += len(data)
            self._texts[self._reading].append(data)

    def closed(self, name: str) -> None:  # noqa: ARG002
        if self.depth == 3:
            self._reading = ""
        elif self.depth == 2 and self._in_item:
            self._collector.add("".join(self._texts.get("loc", ())), "".join(self._texts.get("lastmod", ())))
            self._in_item = False


def _read_lines(content: bytes, collector: _Collector) -> str | None:
    """A text sitemap: one address a line."""
    for line in content.decode("utf-8-sig", "replace").splitlines():
        if line.strip():
            collector.add(line, "")
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


@dataclass(slots=True)
class SitemapWalk:
    """Walk sitemap indexes to their sitemaps: which file to fetch next, and when to stop. No IO.

    The caller fetches what `next_file` names and hands the parsed file to `found`. A file is read once, however often
    it is named, and none of another host. A cap that was reached is among the `problems`. Memory: one entry for each
    file, none for pages.

    Args:
        start: the first files.
        max_files: files of one walk.
        max_entries: addresses of one walk.

    >>> walk = SitemapWalk(["https://example.com/sitemap.xml"])
    >>> walk.next_file(), walk.next_file()
    ('https://example.com/sitemap.xml', None)
    """

    start: Iterable[str]
    max_files: int = MAX_FILES
    max_entries: int = MAX_WALKED
    problems: list[str] = field(default_factory=list)
    entries_seen: int = 0
    _depths: dict[str, int] = field(default_factory=dict)
    _waiting: deque[str] = field(default_factory=deque)

    def __post_init__(self) -> None:
        for url in self.start:
            self._offer(url, 1)

    def next_file(self) -> str | None:
        """The address of the next sitemap file to fetch, or None when the walk is over."""
        return self._waiting.popleft() if self._waiting else None

    def found(self, url: str, sitemap: Sitemap) -> tuple[SitemapEntry, ...]:
        """Take in a fetched file: an index queues its files, a list of pages is given back, cut at the cap."""
        if sitemap.kind == "index":
            for entry in sitemap.entries:
                if not entry.foreign:
                    self._offer(entry.url, self._depths.get(url, 1) + 1)
            return ()
        room = self.max_entries - self.entries_seen
        kept = tuple(entry for entry in sitemap.entries if not entry.foreign)[:room]
        self.entries_seen += len(kept)
        if self.entries_seen >= self.max_entries:
            self._waiting.clear()
            self._tell(f"the sitemaps hold more than {self.max_entries} addresses; the rest is not read")
        return kept

    def _offer(self, url: str, depth: int) -> None:
        if url in self._depths:
            return
        if depth > MAX_LEVELS:
            self._tell(f"sitemap indexes are nested more than {MAX_LEVELS} deep; the rest is not read")
        elif len(self._depths) >= self.max_files:
            self._tell(f"there are more than {self.max_files} sitemap files; the rest is not read")
        else:
            self._depths[url] = depth
            self._waiting.append(url)

    def _tell(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)
