"""Indexes of sitemaps, over real HTTP on loopback: taken within bounds, and believed as far as they tell."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from followed_site import FOLLOWING, a_site, article, sitemap, source_at, sources_of
from small_site import Site
from tracker_ground import Ground, running

from recrawl.tracker.discovery.finder import MOST_SITEMAPS

_SPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_EARLY, _LATER = "2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z"


def index_of(*sitemaps: tuple[str, str]) -> tuple[int, dict[str, str], bytes]:
    """An index that names these addresses, with dates, "" for none."""
    rows = "".join(
        f"<sitemap><loc>{url}</loc>{f'<lastmod>{at}</lastmod>' if at else ''}</sitemap>" for url, at in sitemaps
    )
    return 200, {"Content-Type": "application/xml"}, f"<sitemapindex {_SPACE}>{rows}</sitemapindex>".encode()


async def until_polled(ground: Ground, path: str, times: int) -> None:
    """Let the tracker run until a source was read so often."""
    book = sources_of(ground).book
    await ground.until(lambda: (found := book.at(ground.site.url(path))) is not None and found.row.polls >= times)


def test_an_index_leads_to_sitemaps_of_its_site_and_no_further(tmp_path: Path) -> None:
    """Foreign sitemaps, indexes below an index, and more than a site can have are counted and not taken."""

    async def story() -> None:
        async with Site() as site, running(site, tmp_path, FOLLOWING) as ground:
            a_site(site)
            many = [(site.url(f"/far-{number}.xml"), "") for number in range(MOST_SITEMAPS + 20)]
            named = [(site.url("/own.xml"), ""), (site.url("/deep.xml"), ""), (site.url("/alien.xml", "b"), "")]
            site.answers["/map.xml"] = index_of(*named, *many)
            site.answers["/own.xml"] = sitemap(site, ("/by-map", 1e9))
            site.answers["/deep.xml"] = index_of((site.url("/deeper.xml"), ""))
            await ground.add(["/"])
            await ground.until_visited("/by-map")
            await until_polled(ground, "/deep.xml", 1)
            sources = sources_of(ground)
            await ground.until(lambda: sources.refused.get("sitemap-cap", 0) >= 20)
            assert sources.book.at(site.url("/alien.xml", "b")) is None
            assert sources.book.at(site.url("/deeper.xml")) is None
            assert sources.refused["out-of-scope"] >= 1
            assert sources.refused["nested-index"] >= 1
            assert sum(each.row.kind == "sitemap" for each in sources.book) <= MOST_SITEMAPS + 1
            assert "/deeper.xml" not in {each.path for each in site.log}

    asyncio.run(story())


def test_a_sitemap_whose_index_says_nothing_of_it_any_more_is_read_for_itself(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site() as site, running(site, tmp_path, FOLLOWING) as ground:
            a_site(site)
            site.answers["/map.xml"] = index_of((site.url("/one.xml"), _EARLY), (site.url("/two.xml"), _EARLY))
            site.answers["/one.xml"] = sitemap(site, ("/by-map", 1e9))
            site.answers["/two.xml"] = sitemap(site, ("/by-hub", 1e9))
            await ground.add(["/"])
            for path in ("/one.xml", "/two.xml"):
                await until_polled(ground, path, 1)
            one, two = source_at(ground, "/one.xml"), source_at(ground, "/two.xml")
            assert None not in (one.memory.said_at, two.memory.said_at)
            site.answers["/map.xml"] = index_of((site.url("/one.xml"), ""))
            await ground.until(lambda: one.memory.said_at is None and two.memory.said_at is None)
            site.answers["/late"] = article("/late")
            site.answers["/two.xml"] = sitemap(site, ("/by-hub", 1e9), ("/late", 1e9))
            await ground.until_visited("/late")

    asyncio.run(story())


def test_an_index_that_did_not_tell_of_a_change_is_not_asked_about_it_again(tmp_path: Path) -> None:
    """An audit finds what the index kept to itself; the sitemap is read for itself from then on."""
    rules = replace(FOLLOWING.discovery, audit_s=0.4)

    async def story() -> None:
        async with Site() as site, running(site, tmp_path, replace(FOLLOWING, discovery=rules)) as ground:
            a_site(site)
            site.answers["/map.xml"] = index_of((site.url("/one.xml"), _EARLY))
            site.answers["/one.xml"] = sitemap(site, ("/by-map", 1e9))
            await ground.add(["/"])
            await until_polled(ground, "/one.xml", 1)
            one = source_at(ground, "/one.xml")
            assert one.memory.said_at is not None
            site.answers["/late"] = article("/late")
            site.answers["/one.xml"] = sitemap(site, ("/by-map", 1e9), ("/late", 1e9))
            await ground.until_visited("/late")
            await ground.until(lambda: one.memory.alone)
            site.answers["/map.xml"] = index_of((site.url("/one.xml"), _LATER))
            polls = source_at(ground, "/map.xml").row.polls
            await until_polled(ground, "/map.xml", polls + 2)
            assert one.memory.said_at is None

    asyncio.run(story())


def test_a_sitemap_that_was_known_is_below_the_index_that_names_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site() as site, running(site, tmp_path, FOLLOWING) as ground:
            a_site(site)
            robots = f"Sitemap: {site.url('/one.xml')}\nSitemap: {site.url('/map.xml')}\n"
            site.answers["/robots.txt"] = (200, {}, robots.encode())
            site.answers["/one.xml"] = sitemap(site, ("/by-map", 1e9))
            site.answers["/map.xml"] = index_of((site.url("/one.xml"), _LATER))
            await ground.add(["/"])
            await until_polled(ground, "/map.xml", 1)
            await until_polled(ground, "/one.xml", 1)
            index, one = source_at(ground, "/map.xml"), source_at(ground, "/one.xml")
            await ground.until(lambda: one.memory.said_at is not None)
            assert sources_of(ground).book.below(index) == [one]

    asyncio.run(story())
