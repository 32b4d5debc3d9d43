"""What a source says that it did not say before: new addresses, changes of old ones, further sources. Pure.

A list is compared with what the same source listed at its last polls. What is listed for the first time is `fresh`;
a date that moved forward is a `moved` address; dropping out of a list is nothing. Dates that cannot be are left out by
the parsers. On the first poll everything is fresh, and dates count only where they are later than our last crawl,
which whoever knows the pages must say (`tells_of_change`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from recrawl.tracker.discovery.memory import NOTHING, Listed, hashes_of, joined, listed_of
from recrawl.web.address import STORED_RULES, Address, read_address
from recrawl.web.canonical import canonical_form
from recrawl.web.feeds import Feed
from recrawl.web.sitemaps import Sitemap

_DAY_S = 86_400.0


class Named(NamedTuple):
    """An address in canonical form that a source names, and the time that it gives for it."""

    address: Address
    at: float | None


@dataclass(frozen=True, slots=True)
class Findings:
    """What a poll brought.

    Args:
        fresh: addresses that this source did not list before.
        moved: addresses that it dates later than before.
        children: further sitemaps, with the time of their last change.
        listed: what is to be remembered of the list.
        problem: one sentence on what is wrong with it, "" for nothing.
        unusable: entries without an address that may be tracked.
    """

    fresh: tuple[Named, ...] = ()
    moved: tuple[Named, ...] = ()
    children: tuple[Named, ...] = ()
    listed: Listed = field(default_factory=lambda: NOTHING)
    problem: str = ""
    unusable: int = 0


def from_sitemap(sitemap: Sitemap, before: Listed) -> Findings:
    """What a sitemap says that is new. O(n log n)."""
    named = _named((entry.url, entry.lastmod) for entry in sitemap.entries)
    if sitemap.kind == "index":
        found = Findings(children=tuple(named), listed=before, problem=sitemap.problem or "")
    else:
        found = _compared(named, before, sitemap.problem or "")
    return replace(found, unusable=sitemap.ignored_addresses)


def from_feed(feed: Feed, before: Listed) -> Findings:
    """What a feed says that is new: entries, and old ones that were updated. O(n log n)."""
    named = _named((entry.url, entry.updated or entry.published) for entry in feed.entries if entry.url)
    found = _compared(named, before, feed.problem or "")
    return replace(found, unusable=sum(1 for entry in feed.entries if not entry.url))


def from_links(urls: Iterable[str], before: Listed) -> Findings:
    """Links of a page that were not there before; links have no dates. O(n log n)."""
    return _compared(_named((url, None) for url in urls), before, "")


def tells_of_change(dated_at: float, fetched_at: float | None) -> bool:
    """Whether a date says that a page changed since it was fetched; a mere day may be any time of that day."""
    last = dated_at + (_DAY_S - 1.0 if dated_at % _DAY_S == 0.0 else 0.0)
    return fetched_at is not None and last > fetched_at


def _named(entries: Iterable[tuple[str | None, float | None]]) -> list[Named]:
    found: dict[str, Named] = {}
    for url, at in entries:
        address = read_address(url or "", STORED_RULES)  # their reader has asked the rules
        if isinstance(address, Address):
            address = canonical_form(address).address
            found.setdefault(address.url, Named(address, at))
    return list(found.values())


def _compared(named: Sequence[Named], before: Listed, problem: str) -> Findings:
    if not named:
        return Findings(listed=before, problem=problem)
    hashes = hashes_of([each.address.url for each in named])
    places = before.find(hashes)
    fresh = [each for each, place in zip(named, places.tolist(), strict=True) if place < 0]
    moved = [
        each
        for each, place in zip(named, places.tolist(), strict=True)
        if place >= 0 and each.at is not None and 0 < int(before.times[place]) < int(each.at)
    ]
    now = listed_of(hashes, [each.at for each in named])
    return Findings(tuple(fresh), tuple(moved), (), joined(before, now), problem)
