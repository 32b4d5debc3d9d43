"""A fetched source, read: as bytes compared, as sitemap or feed in a process of its own, or as a page with links."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from recrawl.store.rows import PageRow, SourceKind, SourceRow
from recrawl.tracker.discovery.harvest import Findings, from_feed, from_links, from_sitemap
from recrawl.tracker.discovery.memory import Listed
from recrawl.tracker.pipeline.examine import Examined
from recrawl.web.address import AddressRules
from recrawl.web.digests import Digests, raw_digest
from recrawl.web.fetch_result import FetchResult
from recrawl.web.link_elements import LinkElements, link_elements
from recrawl.web.page_links import addresses_of_links
from recrawl.web.page_text import read_page
from recrawl.web.sitemap_worker import ParseWorkers
from recrawl.web.source_links import SourceLink, sources_of_page
from recrawl.web.websub import HubLinks, hub_links

_NOTHING = bytes(16)
_LOOKED_AT_BYTES = 262_144


@dataclass(frozen=True, slots=True)
class Read:
    """What a fetched source holds.

    Args:
        findings: what is new in it.
        sources: further sources that it names.
        hubs: of WebSub.
    """

    findings: Findings
    sources: tuple[SourceLink, ...] = ()
    hubs: HubLinks | None = None


def examine_source(page: PageRow, result: FetchResult) -> Examined:
    """What a fetch of a mere source means: a list is compared by its reader, and here only byte for byte.

    It is never "first" or "changed", which are events of pages, and no version of it is kept. O(bytes).
    """
    if result.outcome == "not-modified":
        return Examined("not-modified", "unchanged", result.reason, page.memory)
    if not result.has_page:
        return Examined(result.outcome, None, result.reason, page.memory)
    digest = raw_digest(result.body)
    return Examined(
        result.outcome,
        "unchanged" if digest == page.raw_digest else "noise",
        "",
        page.memory,
        digests=Digests(digest, _NOTHING, _NOTHING, _NOTHING, 0),
        validators=result.validators,
    )


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

    async def read(self, source: SourceRow, result: FetchResult, before: Listed, now: float) -> Read:
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


def _read_hub(result: FetchResult, before: Listed, rules: AddressRules) -> Read:
    content_type = result.header(b"content-type").decode("latin-1")
    page = read_page(result.body, content_type or None)
    elements = link_elements(result.body[:_LOOKED_AT_BYTES])
    hubs = hub_links(_link_headers(result), elements, result.final)
    if result.directives.nofollow or not page.metadata.may_follow:
        return Read(Findings(listed=before, problem="the page asks not to follow its links"), (), hubs)
    links = [link for link in page.links if link.followed]
    urls = addresses_of_links(links, result.final, page.metadata.base, rules)
    named = sources_of_page(elements, [link.href for link in links], result.final, rules)
    return Read(from_links(urls, before), named, hubs)


def _read_list(kind: SourceKind, parsed: object, result: FetchResult, before: Listed) -> Read:
    from recrawl.web.feeds import Feed
    from recrawl.web.sitemaps import Sitemap

    if kind == "sitemap":
        assert isinstance(parsed, Sitemap)
        return Read(from_sitemap(parsed, before))
    assert isinstance(parsed, Feed)
    elements = link_elements(result.body[:_LOOKED_AT_BYTES])
    return Read(from_feed(parsed, before), (), hub_links(_link_headers(result), elements, result.final))


def _link_headers(result: FetchResult) -> list[bytes]:
    return [value for name, value in result.headers if name.lower() == b"link"]


def no_links() -> LinkElements:
    """Of a source that is neither a page nor a feed."""
    return link_elements(b"")
