"""Reads sources that were fetched: what each says that it did not say before. Parsing runs beside the loop.

A list is compared with what the same source listed at its last polls. What is listed for the first time is `fresh`;
a date that moved forward is a `moved` address; dropping out of a list is nothing. Dates that cannot be are left out by
the parsers. On the first poll everything is fresh, and dates count only where they are later than our last crawl
(`tells_of_change`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from recrawl.store.rows import SourceKind, SourceRow
from recrawl.tracker.discovery.memory import NOTHING, SeenUrls, hashes_of, joined, listed_of
from recrawl.web.content.links import addresses_of_links
from recrawl.web.content.page import read_page
from recrawl.web.feeds.feed import Feed
from recrawl.web.feeds.sitemap import Sitemap
from recrawl.web.feeds.sources import SourceLink, sources_of_page
from recrawl.web.fetch.protocol import FetchResult
from recrawl.web.push.websub import HubLinks, hub_links
from recrawl.web.url.address import STORED_RULES, Address, AddressRules, read_address
from recrawl.web.url.canonical import canonical_form
from recrawl.web.workers import ParseWorkers

_DAY_S = 86_400.0


class Named(NamedTuple):
    """An address in canonical form that a source names, and the time that it gives for it."""

    address: Address
    at: float | None


@dataclass(frozen=True, slots=True)
class ListDiff:
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
    listed: SeenUrls = field(default_factory=lambda: NOTHING)
    problem: str = ""
    unusable: int = 0


def from_sitemap(sitemap: Sitemap, before: SeenUrls) -> ListDiff:
    """What a sitemap says that is new. O(n log n)."""
    named = _named((entry.url, entry.lastmod) for entry in sitemap.entries)
    if sitemap.kind == "index":
        found = ListDiff(children=tuple(named), listed=before, problem=sitemap.problem or "")
    else:
        found = _compared(named, before, sitemap.problem or "")
    return replace(found, unusable=sitemap.ignored_addresses)


def from_feed(feed: Feed, before: SeenUrls) -> ListDiff:
    """What a feed says that is new: entries, and old ones that were updated. O(n log n)."""
    named = _named((entry.url, entry.updated or entry.published) for entry in feed.entries if entry.url)
    found = _compared(named, before, feed.problem or "")
    return replace(found, unusable=sum(1 for entry in feed.entries if not entry.url))


def from_links(urls: Iterable[str], before: SeenUrls) -> ListDiff:
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
            address = canonical_form(address)
            found.setdefault(address.url, Named(address, at))
    return list(found.values())


def _compared(named: Sequence[Named], before: SeenUrls, problem: str) -> ListDiff:
    if not named:
        return ListDiff(listed=before, problem=problem)
    hashes = hashes_of([each.address.url for each in named])
    places = before.find(hashes)
    fresh = [each for each, place in zip(named, places.tolist(), strict=True) if place < 0]
    moved = [
        each
        for each, place in zip(named, places.tolist(), strict=True)
        if place >= 0 and each.at is not None and 0 < int(before.times[place]) < int(each.at)
    ]
    now = listed_of(hashes, [each.at for each in named])
    return ListDiff(tuple(fresh), tuple(moved), (), joined(before, now), problem)


@dataclass(frozen=True, slots=True)
class Read:
    """What a fetched source holds.

    Args:
        findings: what is new in it.
        sources: further sources that it names.
        hubs: of WebSub.
    """

    findings: ListDiff
    sources: tuple[SourceLink, ...] = ()
    hubs: HubLinks | None = None


class SourceReader:
    """Reads sources; foreign lists in a process that is killed if it takes too long.

    Args:
        rules: which addresses may be named.
    """

    def __init__(self, rules: AddressRules) -> None:
        self._rules = rules
        self._workers: ParseWorkers | None = None

    def close(self) -> None:
        """End the process."""
        workers, self._workers = self._workers, None
        if workers is not None:
            workers.close()

    async def read(self, source: SourceRow, result: FetchResult, before: SeenUrls, now: float) -> Read:
        """Read a source that came whole; before: what it listed earlier."""
        kind = told_kind(source.kind, result)
        if kind == "hub":
            return await asyncio.to_thread(_read_hub, result, before, self._rules)
        if self._workers is None:
            self._workers = ParseWorkers(rules=self._rules)
        parse = self._workers.sitemap if kind == "sitemap" else self._workers.feed
        parsed = await asyncio.to_thread(parse, result.body, result.final.url, now)
        return await asyncio.to_thread(_read_list, kind, parsed, result, before)


def told_kind(kind: SourceKind, result: FetchResult) -> SourceKind:
    """What a source is: what it was named as, unless its first bytes say that it is another list."""
    start = result.body[:2048].lstrip().lower()
    if b"<urlset" in start or b"<sitemapindex" in start:
        return "sitemap"
    if kind == "sitemap" and (b"<rss" in start or b"<feed" in start or b"<rdf:rdf" in start):
        return "feed"
    return kind


def _read_hub(result: FetchResult, before: SeenUrls, rules: AddressRules) -> Read:
    content_type = result.header(b"content-type").decode("latin-1")
    page = read_page(result.body, content_type or None, with_links=True)
    hubs = hub_links(_link_headers(result), page.elements, result.final)
    if result.directives.nofollow or not page.metadata.may_follow:
        return Read(ListDiff(listed=before, problem="the page asks not to follow its links"), (), hubs)
    links = [link for link in page.links if link.followed]
    urls = addresses_of_links(links, result.final, page.metadata.base, rules)
    named = sources_of_page(page.elements, [link.href for link in links], result.final, rules)
    return Read(from_links(urls, before), named, hubs)


def _read_list(kind: SourceKind, parsed: object, result: FetchResult, before: SeenUrls) -> Read:
    from recrawl.web.feeds.feed import Feed
    from recrawl.web.feeds.sitemap import Sitemap

    if kind == "sitemap":
        assert isinstance(parsed, Sitemap)
        return Read(from_sitemap(parsed, before))
    assert isinstance(parsed, Feed)
    return Read(from_feed(parsed, before), (), hub_links(_link_headers(result), parsed.elements, result.final))


def _link_headers(result: FetchResult) -> list[bytes]:
    return [value for name, value in result.headers if name.lower() == b"link"]
