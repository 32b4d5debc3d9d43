"""Sitemaps as files: XML or plain text, gzipped or not. Pure; the walk through an index is `fetched.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from recrawl.tracker.imports.items import Found, Hints, Item, Unusable, whole
from recrawl.tracker.newcomers import Wanted
from recrawl.web.address import STORED_RULES, Address
from recrawl.web.sitemaps import Sitemap, parse_sitemap

NOWHERE = Address("https://sitemap.invalid/", "https", "sitemap.invalid", 443, "/")
"""Of a file that came from nowhere: no address in it is of the same host."""


def read_sitemap(stream: IO[bytes], hints: Hints) -> Iterator[Item]:
    """The addresses of a sitemap; rows are its entries."""
    content = whole(stream)
    if isinstance(content, Unusable):
        yield content
        return
    sitemap = parse_sitemap(content, NOWHERE, hints.now, rules=STORED_RULES)  # each is checked when it is added
    if sitemap.kind == "index":
        yield Unusable(
            0, f"names {len(sitemap.entries)} more sitemaps: import its address, so that they can be fetched"
        )
        return
    yield from sitemap_items(sitemap)


def sitemap_items(sitemap: Sitemap, before: int = 0) -> Iterator[Item]:
    """The pages of a sitemap, and what is wrong with it.

    Args:
        sitemap: a list of pages.
        before: entries of other files that were counted before.
    """
    for row, entry in enumerate(sitemap.entries, before + 1):
        yield Found(row, Wanted(entry.url, source="import"))
    if sitemap.ignored_addresses:
        yield Unusable(0, f"has {sitemap.ignored_addresses} entries without an address that may be tracked")
    if sitemap.problem is not None:
        yield Unusable(0, sitemap.problem)
