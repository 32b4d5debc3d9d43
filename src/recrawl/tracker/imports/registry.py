"""The formats that can be imported, and how one is told from name and content. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from recrawl.errors import InvalidInput
from recrawl.tracker.imports.changedetection import read_changedetection
from recrawl.tracker.imports.csv_table import read_csv
from recrawl.tracker.imports.items import Parser
from recrawl.tracker.imports.opml import read_opml
from recrawl.tracker.imports.plain_list import read_list
from recrawl.tracker.imports.sitemap_file import read_sitemap
from recrawl.tracker.imports.urlwatch import read_urlwatch

LOOKED_AT_BYTES = 4096
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_JOB = re.compile(rb"^(?:---|(?:- )?(?:kind|name|url|command|navigate)\s*:\s)", re.MULTILINE)
_CELL = re.compile(rb"(?:^|[,;\t])\s*\"?url\"?\s*(?:[,;\t\r\n]|$)", re.IGNORECASE)


class Format(NamedTuple):
    """A format: what it is, and what reads it."""

    means: str
    read: Parser


FORMATS = {
    "list": Format("one address a line; `#` begins a comment", read_list),
    "csv": Format(
        "columns `url`, `importance`, `group`, `min_interval`, `max_interval`; a line of names first", read_csv
    ),
    "opml": Format("subscriptions of a feed reader", read_opml),
    "urlwatch": Format("`urls.yaml` of urlwatch", read_urlwatch),
    "changedetection": Format("`url-watches.json` of changedetection.io", read_changedetection),
    "sitemap": Format("a sitemap, by its address also an index of sitemaps", read_sitemap),
}


def tell_format(name: str, start: bytes) -> str:
    r"""The format of a file, by its first bytes and, where these do not say, by its name.

    >>> tell_format("mine.txt", b"<?xml version='1.0'?>\n<opml version='2.0'>"), tell_format("mine", b"https://a.example/")
    ('opml', 'list')
    """
    for mark in _MARKS:
        start = start.removeprefix(mark)
    start = start.replace(b"\0", b"").lstrip()  # of UTF-16, every second byte
    lower, ending = start.lower(), name.lower().rpartition(".")[2]
    if start.startswith(b"\x1f\x8b"):
        return "sitemap"
    if start.startswith(b"<"):
        return "opml" if b"<opml" in lower or ending == "opml" else "sitemap"
    if start.startswith((b"{", b"[")) and ending not in ("yaml", "yml"):
        return "changedetection"
    if ending in ("yaml", "yml") or _JOB.match(start):
        return "urlwatch"
    if ending in ("csv", "tsv") or _CELL.search(start.split(b"\n", 1)[0]):
        return "csv"
    return "list"


def chosen_format(name: str | None) -> Format | None:
    """A format by name; None for none.

    Raises:
        InvalidInput: for a name that is none.
    """
    if name is None:
        return None
    if name not in FORMATS:
        raise InvalidInput(f"is {name!r}, but must be one of {', '.join(FORMATS)}", field="--format")
    return FORMATS[name]
