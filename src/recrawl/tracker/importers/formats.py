"""The formats that can be imported, and how one is told from name and content. Pure.

Two of them are here, a list of addresses and a sitemap; the others have a file each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

from recrawl.errors import InvalidInput
from recrawl.tracker.admission import PageRequest
from recrawl.tracker.importers.changedetection import read_changedetection
from recrawl.tracker.importers.csv_table import read_csv
from recrawl.tracker.importers.opml import read_opml
from recrawl.tracker.importers.rows import (
    LONGEST_LINE,
    MOST_ROWS,
    BadRow,
    GoodRow,
    Hints,
    Item,
    Parser,
    text_lines,
    whole,
)
from recrawl.tracker.importers.urlwatch import read_urlwatch
from recrawl.web.feeds.sitemap import Sitemap, parse_sitemap
from recrawl.web.url.address import STORED_RULES, Address


def read_list(stream: IO[bytes], _hints: Hints) -> Iterator[Item]:
    r"""The addresses of a list, streamed; rows are its lines.

    >>> import io
    >>> [item.row for item in read_list(io.BytesIO(b"# mine\nhttps://example.com/\n"), Hints())]
    [2]
    """
    for row, line in text_lines(stream):
        if row > MOST_ROWS:
            yield BadRow(row, f"the file has more than {MOST_ROWS} lines; the rest is not read")
            return
        if line is None:
            yield BadRow(row, f"is longer than {LONGEST_LINE} characters")
            continue
        address = line.strip()
        if address and not address.startswith("#"):
            yield GoodRow(row, PageRequest(address, source="import"))


NOWHERE = Address("https://sitemap.invalid/", "https", "sitemap.invalid", 443, "/")
"""Of a file that came from nowhere: no address in it is of the same host."""


def read_sitemap(stream: IO[bytes], hints: Hints) -> Iterator[Item]:
    """The addresses of a sitemap; rows are its entries."""
    content = whole(stream)
    if isinstance(content, BadRow):
        yield content
        return
    sitemap = parse_sitemap(content, NOWHERE, hints.now, rules=STORED_RULES)  # each is checked when it is added
    if sitemap.kind == "index":
        yield BadRow(0, f"names {len(sitemap.entries)} more sitemaps: import its address, so that they can be fetched")
        return
    yield from sitemap_items(sitemap)


def sitemap_items(sitemap: Sitemap, before: int = 0) -> Iterator[Item]:
    """The pages of a sitemap, and what is wrong with it.

    Args:
        sitemap: a list of pages.
        before: entries of other files that were counted before.
    """
    for row, entry in enumerate(sitemap.entries, before + 1):
        yield GoodRow(row, PageRequest(entry.url, source="import"))
    if sitemap.ignored_addresses:
        yield BadRow(0, f"has {sitemap.ignored_addresses} entries without an address that may be tracked")
    if sitemap.problem is not None:
        yield BadRow(0, sitemap.problem)


LOOKED_AT_BYTES = 4096
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_YAML = ("yaml", "yml")
_JOB = re.compile(rb"^(?:---|(?:- )?(?:kind|name|url|command|navigate)\s*:\s)", re.MULTILINE)
_CELL = re.compile(rb"(?:^|[,;\t])\s*\"?url\"?\s*(?:[,;\t\r\n]|$)", re.IGNORECASE)


class Format(NamedTuple):
    """A format: what it is, what reads it, and what tells it by the ending of a file's name and its first bytes."""

    means: str
    read: Parser
    tells: Callable[[str, bytes], bool]


def _is_xml(start: bytes) -> bool:
    return start.startswith(b"<")


def _is_opml(ending: str, start: bytes) -> bool:
    return _is_xml(start) and (b"<opml" in start.lower() or ending == "opml")


def _is_sitemap(ending: str, start: bytes) -> bool:
    return start.startswith(b"\x1f\x8b") or (_is_xml(start) and not _is_opml(ending, start))


def _is_json(ending: str, start: bytes) -> bool:
    return start.startswith((b"{", b"[")) and ending not in _YAML


def _is_yaml(ending: str, start: bytes) -> bool:
    return ending in _YAML or _JOB.match(start) is not None


def _is_table(ending: str, start: bytes) -> bool:
    return ending in ("csv", "tsv") or _CELL.search(start.split(b"\n", 1)[0]) is not None


FORMATS: dict[str, Format] = {
    "list": Format("one address a line; `#` begins a comment", read_list, lambda _ending, _start: True),
    "csv": Format(
        "columns `url`, `importance`, `group`, `min_interval`, `max_interval`; a line of names first",
        read_csv,
        _is_table,
    ),
    "opml": Format("subscriptions of a feed reader", read_opml, _is_opml),
    "urlwatch": Format("`urls.yaml` of urlwatch", read_urlwatch, _is_yaml),
    "changedetection": Format("`url-watches.json` of changedetection.io", read_changedetection, _is_json),
    "sitemap": Format("a sitemap, by its address also an index of sitemaps", read_sitemap, _is_sitemap),
}
"""All formats. The last one that tells a file as its own reads it, so that a list is what is left."""


def tell_format(name: str, start: bytes) -> str:
    r"""The format of a file, by its first bytes and, where these do not say, by its name.

    >>> tell_format("mine.txt", b"<?xml version='1.0'?>\n<opml version='2.0'>"), tell_format("mine", b"https://a.example/")
    ('opml', 'list')
    """
    for mark in _MARKS:
        start = start.removeprefix(mark)
    start = start.replace(b"\0", b"").lstrip()  # of UTF-16, every second byte
    ending = name.lower().rpartition(".")[2]
    return next(name for name, form in reversed(FORMATS.items()) if form.tells(ending, start))


def chosen_format(name: str | None) -> Format | None:
    """A format by name; None for none.

    Raises:
        InvalidInput: for an unknown name.
    """
    if name is None:
        return None
    if name not in FORMATS:
        raise InvalidInput(f"is {name!r}, but must be one of {', '.join(FORMATS)}", field="--format")
    return FORMATS[name]
