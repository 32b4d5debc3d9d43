"""Which sources a host may have: what robots.txt names, the main page, the usual places. Pure.

Feeds and sitemaps that pages name are found when the pages are read (`reading.py`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from recrawl.store.rows import PageRow, SourceKind
from recrawl.tracker.discovery.source import USUAL_PLACE
from recrawl.tracker.settings.settings import DiscoveryRules
from recrawl.web.address import Address
from recrawl.web.robots import RobotsEntry
from recrawl.web.source_links import sources_of_robots, usual_places

_BY_USER = ("user", "import")


class Suggested(NamedTuple):
    """A source to be.

    Args:
        kind: what it seems to be.
        address: where it is.
        found_by: how it came to be known: `user`, `main-page`, `robots`, `usual-place`, or the address of a source.
        changed_at: when the index that names it says that it changed.
        parent: the address of that index.
    """

    kind: SourceKind
    address: Address
    found_by: str
    changed_at: float | None = None
    parent: str = ""


def is_named(page: PageRow) -> bool:
    """Whether the user named a page, rather than a source."""
    return page.source in _BY_USER


def is_found(page: PageRow) -> bool:
    """Whether a source led to a page."""
    return page.source.startswith(("http://", "https://"))


def from_robots(robots: RobotsEntry | None, page: Address) -> list[Suggested]:
    """The sitemaps that the robots.txt of a host names."""
    if robots is None:
        return []
    return [Suggested("sitemap", link.address, "robots") for link in sources_of_robots(robots.answer, page)]


def lacking(kinds: Collection[SourceKind], rules: DiscoveryRules) -> list[SourceKind]:
    """Kinds of lists that are to be read, and of which a host has none."""
    wanted: list[tuple[SourceKind, bool]] = [("sitemap", rules.sitemaps), ("feed", rules.feeds)]
    return [kind for kind, is_read in wanted if is_read and kind not in kinds]


def from_place(page: Address, kinds: Collection[SourceKind]) -> list[Suggested]:
    """Where such lists often are."""
    return [Suggested(link.kind, link.address, USUAL_PLACE) for link in usual_places(page) if link.kind in kinds]
