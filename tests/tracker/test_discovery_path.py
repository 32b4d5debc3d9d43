"""Sites that are followed, over real HTTP on loopback: what sources lead to is found, fetched, and named in the log."""

from __future__ import annotations

import asyncio
import hmac
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

from followed_site import FOLLOWING, a_site, article, feed, page_of_links, sitemap, source_at, sources_of
from small_site import Asked, Page, Site
from tracker_ground import Ground, Leap, running

from patience import patience
from recrawl.store.store import open_store
from recrawl.tracker.commands.commands import CountHits, ListSources, Pause, Remove, Resume
from recrawl.tracker.commands.hits import LogReader
from recrawl.tracker.commands.status import status_of
from recrawl.tracker.settings.settings import GroupRule, SignalRules
from recrawl.tracker.signals.access_log import Hit
from recrawl.web.push.websub import HubLinks, unpack_subscription
from recrawl.web.url.address import Address, read_address


def test_new_pages_are_found_fetched_and_told_with_the_source_that_led_to_them(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site() as site, running(site, tmp_path, FOLLOWING) as ground:
            a_site(site)
            await ground.add(["/"])
            for path in ("/by-hub", "/by-map", "/by-feed"):
                await ground.until_visited(path)
            site.answers["/"] = page_of_links("/by-hub", "/later-hub")
            site.answers["/map.xml"] = sitemap(site, ("/by-map", 1e9), ("/later-map", 1.5e9))
            site.answers["/news.rss"] = feed(site, "/later-feed", "/by-feed")
            for path in ("/later-hub", "/later-map", "/later-feed"):
                await ground.until_visited(path)
            found = {
                change.event.url: change.event.trigger
                for change in await ground.store.changes(0, 1000)
                if change.event.kind == "discovered"
            }
            assert found == {
                site.url("/"): "schedule",
                site.url("/by-hub"): f"found by {site.url('/')}",
                site.url("/later-hub"): f"found by {site.url('/')}",
                site.url("/by-map"): f"found by {site.url('/map.xml')}",
                site.url("/later-map"): f"found by {site.url('/map.xml')}",
                site.url("/by-feed"): f"found by {site.url('/news.rss')}",
                site.url("/later-feed"): f"found by {site.url('/news.rss')}",
            }
            assert not site.asked_for("/no/entry")
            assert sources_of(ground).refused.keys() >= {"robots", "out-of-scope"}

    asyncio.run(story())


def test_sitemaps_and_feeds_may_be_larger_than_pages_and_say_noindex(tmp_path: Path) -> None:
    """`noindex` on a list means that search results shall not show the list, not that nobody may read it."""
    small = replace(FOLLOWING, limits=replace(FOLLOWING.limits, most_body_bytes=5_000))

    async def story() -> None:
        async with Site() as site, running(site, tmp_path, small) as ground:
            a_site(site)
            status, headers, body = sitemap(site, ("/by-map", 1e9))
            site.answers["/map.xml"] = (status, {**headers, "X-Robots-Tag": "noindex"}, body + b" " * 10_000)
            status, headers, body = feed(site, "/by-feed")
            site.answers["/news.rss"] = (status, {**headers, "X-Robots-Tag": "noindex"}, body)
            site.answers["/large"] = article("large") + " " * 10_000
            await ground.add(["/", "/large"])
            await ground.until_visited("/by-map")
            await ground.until_visited("/by-feed")
            large = await ground.until_visited("/large")
            assert (await ground.store.observations(large.id, 1))[0].outcome == "too-large"

    asyncio.run(story())


def test_links_to_pages_that_are_not_there_make_their_source_worth_less(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site() as site, running(site, tmp_path, FOLLOWING) as ground:
            a_site(site)
            site.answers["/"] = page_of_links("/by-hub", "/dead/1", "/dead/2", "/dead/3")
            await ground.add(["/"])
            for path in ("/by-hub", "/dead/1", "/dead/2", "/dead/3"):
                await ground.until_visited(path)
            hub = source_at(ground, "/").memory
            await ground.until(lambda: hub.dead > 2.8)
            assert 0.9 < hub.there <= 1.0

    asyncio.run(story())


def test_a_date_that_moves_is_a_signal_and_one_that_cannot_be_is_none(tmp_path: Path) -> None:
    """Nor is it one that a page is no longer listed."""

    async def story() -> None:
        async with Site() as site, running(site, tmp_path, FOLLOWING) as ground:
            a_site(site)
            site.answers["/map.xml"] = sitemap(site, ("/by-map", 1e9), ("/dropped", 1e9), ("/future", 1e9))
            site.answers["/dropped"] = site.answers["/future"] = article("one that stays")
            await ground.add(["/"])
            for path in ("/by-map", "/dropped", "/future"):
                await ground.until_visited(path)
            site.answers["/map.xml"] = sitemap(site, ("/by-map", ground.now() + 60), ("/future", ground.now() + 1e7))
            polls = source_at(ground, "/map.xml").row.polls
            await ground.until(lambda: source_at(ground, "/map.xml").row.polls > polls + 2)
            assert source_at(ground, "/map.xml").row.signals == 1
            known = await ground.store.find_pages([site.url("/dropped")])
            assert len(known) == 1

    asyncio.run(story())


def test_pages_to_be_fetched_once_are_fetched_once_whoever_lists_them_again(tmp_path: Path) -> None:
    """What was removed by the user stays so too, also over a restart."""
    once = replace(FOLLOWING, discovery=replace(FOLLOWING.discovery, found="once"))

    async def story() -> None:
        async with Site() as site:
            a_site(site)
            async with running(site, tmp_path, once) as ground:
                await ground.add(["/", "/mine"])
                for path in ("/by-hub", "/by-map", "/by-feed"):
                    await ground.until(lambda path=path: bool(site.asked_for(path)))  # type: ignore[misc]
                await ground.do(Remove([site.url("/mine")]))
                site.answers["/news.rss"] = feed(site, "/by-hub", "/mine", "/later-feed", "/by-feed")
                await ground.until(lambda: bool(site.asked_for("/later-feed")))
            site.answers["/"] = page_of_links("/by-map", "/by-feed", "/mine", "/later-hub")
            async with running(site, tmp_path, once) as ground:
                await ground.until(lambda: bool(site.asked_for("/later-hub")))
                polls = len(site.asked_for("/news.rss"))
                await ground.until(lambda: len(site.asked_for("/news.rss")) > polls + 3)
                urls = [site.url(path) for path in ("/by-hub", "/by-map", "/by-feed", "/later-feed", "/mine")]
                assert not await ground.store.find_pages(urls)
                pages = await ground.store.read_pages(
                    list((await ground.store.find_pages(urls[:3], retired=True)).values())
                )
                assert {page.reason for page in pages} == {"crawled once"}
            for path in ("/by-hub", "/by-map", "/by-feed", "/later-hub", "/later-feed"):
                assert len(site.asked_for(path)) == 1

    asyncio.run(story())


def test_sources_are_known_after_a_restart_and_what_was_not_there_is_not_looked_for_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site() as site:
            site.answers["/"] = page_of_links("/by-hub")
            site.answers["/by-hub"] = article("the page")
            async with running(site, tmp_path, FOLLOWING) as ground:
                await ground.add(["/"])
                await ground.until_visited("/by-hub")
                await ground.until(lambda: len(site.asked_for("/rss.xml")) == 1)
                await ground.until(lambda: len(site.asked_for("/sitemap.xml")) == 1)
                await ground.until(lambda: _states(ground).get(site.url("/rss.xml")) == "retired")
                await ground.until(lambda: _states(ground).get(site.url("/sitemap.xml")) == "retired")
            async with running(site, tmp_path, FOLLOWING) as ground:
                before = source_at(ground, "/")
                assert before.row.polls > 0
                assert before.memory.polls
                polls = len(site.asked_for("/"))
                await ground.until(lambda: len(site.asked_for("/")) > polls + 2)
            assert len(site.asked_for("/sitemap.xml")) == len(site.asked_for("/rss.xml")) == 1
            events = [kind for kind, _ in await _events(tmp_path)]
            assert events == ["discovered", "discovered"]

    asyncio.run(story())


def test_a_sitemap_is_read_again_only_when_its_index_says_that_it_changed(tmp_path: Path) -> None:
    def index(site: Site, *files: tuple[str, str]) -> tuple[int, dict[str, str], bytes]:
        rows = "".join(
            f"<sitemap><loc>{site.url(path)}</loc><lastmod>{date}</lastmod></sitemap>" for path, date in files
        )
        return 200, {"Content-Type": "application/xml"}, f"<sitemapindex>{rows}</sitemapindex>".encode()

    async def story() -> None:
        async with Site() as site, running(site, tmp_path, FOLLOWING) as ground:
            a_site(site)
            site.answers["/map.xml"] = index(site, ("/map-1.xml", "2024-01-01"), ("/map-2.xml", "2024-01-01"))
            site.answers["/map-1.xml"] = sitemap(site, ("/by-map", 1e9))
            site.answers["/map-2.xml"] = sitemap(site, ("/by-feed", 1e9))
            await ground.add(["/"])
            await ground.until(lambda: bool(site.asked_for("/map-1.xml") and site.asked_for("/map-2.xml")))
            polls = len(site.asked_for("/map.xml"))
            await ground.until(lambda: len(site.asked_for("/map.xml")) > polls + 3)
            assert len(site.asked_for("/map-1.xml")) == len(site.asked_for("/map-2.xml")) == 1
            site.answers["/map-1.xml"] = sitemap(site, ("/by-map", 1e9), ("/later-map", 1e9))
            site.answers["/map.xml"] = index(site, ("/map-1.xml", "2024-01-02"), ("/map-2.xml", "2024-01-01"))
            await ground.until_visited("/later-map")
            assert len(site.asked_for("/map-2.xml")) == 1

    asyncio.run(story())


def test_a_source_that_brings_nothing_is_retired_with_a_reason_and_back_when_it_does(tmp_path: Path) -> None:
    rules = replace(FOLLOWING.discovery, idle_polls=2, idle_s=0.0, audit_s=0.5)

    async def story() -> None:
        async with Site() as site, running(site, tmp_path, replace(FOLLOWING, discovery=rules)) as ground:
            a_site(site)
            await ground.add(["/"])
            await ground.until(lambda: _states(ground).get(site.url("/news.rss")) == "retired")
            (event,) = [
                change.event
                for change in await ground.store.changes(0, 1000)
                if change.event.kind == "source_retired" and change.event.url == site.url("/news.rss")
            ]
            assert "brought nothing in 2 polls" in event.detail
            site.answers["/news.rss"] = feed(site, "/later-feed")
            await ground.until_visited("/later-feed")
            await ground.until(lambda: _states(ground).get(site.url("/news.rss")) == "active")

    asyncio.run(story())


def test_a_trap_is_bounded_by_caps_and_by_depth(tmp_path: Path) -> None:
    """A page that shows other links each time, and a calendar that goes on for ever."""
    rules = replace(FOLLOWING.discovery, by_source=12, by_shape=10, most_hubs=3)
    settings = replace(FOLLOWING, discovery=rules)

    async def story() -> None:
        async with Site() as site:
            count = [0]

            def hub(_: Asked) -> Page:
                count[0] += 10
                return page_of_links(*(f"/day/{count[0] + number}" for number in range(10)), "/calendar/1")

            def anything(asked: Asked) -> Page:
                number = int(asked.path.rpartition("/")[2])
                return page_of_links(f"/calendar/{number + 1}") + article(asked.path)

            site.answers["/"] = hub
            for number in range(3000):
                site.answers[f"/day/{number}"] = site.answers[f"/calendar/{number}"] = anything
            async with running(site, tmp_path, settings) as ground:
                await ground.add(["/"])
                await ground.until(lambda: sources_of(ground).refused.get("shape-cap", 0) > 10)
                taken = (await ground.store.counts()).pages["active"]
                shown = count[0]
                await ground.until(lambda: count[0] > shown + 50)
                assert (await ground.store.counts()).pages["active"] <= taken + 3
                assert taken <= 1 + 12 + 3

    asyncio.run(story())


def test_hits_make_new_pages_of_a_source_compete_while_they_are_new_and_tracked_after(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site() as site, running(site, tmp_path, FOLLOWING) as ground:
            a_site(site)
            await ground.add(["/"])
            seen = await ground.until_visited("/by-feed")
            now = ground.now()
            hits = [Hit(seen.url, seen.added_at + number, 1.0) for number in range(50)]
            reader = LogReader(ground.store)
            await reader.read([*hits, Hit(site.url("/"), now, 2.0), Hit(site.url("/nobody"), now, 4.0)])
            assert (reader.report.counted, reader.report.named, reader.report.unknown) == (50.0, 2.0, 4.0)
            command = CountHits(await reader.counts())
            assert (await ground.do(command)).done == {"sources": 3}, "pages that nobody asks for count too"
            assert (await ground.do(command)).done == {"sources": 0}, "twice is once"

            again = LogReader(ground.store)
            await again.read(hits)
            assert again.report.earlier == 50.0, "also while polls are under way"
            source = source_at(ground, "/news.rss")
            assert source.hits.hits.sum() == 50.0
            before = ground.crawled_once
            site.answers["/news.rss"] = feed(site, "/later-feed")
            found = await ground.until_visited("/later-feed", 3)
            assert found.state == "active"
            assert found.objective is None
            assert not before
            (said,) = [
                each
                for each in (await ground.do(ListSources())).facts["sources"]
                if each["url"] == site.url("/news.rss")
            ]
            assert said["found"] == 2
            assert said["kind"] == "feed"
            assert said["value"] is not None

    asyncio.run(story())


def test_a_host_that_is_paused_is_not_polled_either(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site() as site, running(site, tmp_path, FOLLOWING) as ground:
            a_site(site)
            await ground.add(["/"])
            await ground.until_visited("/by-map")
            await ground.do(Pause("host", ["a.site.test"]))
            await ground.until(lambda: not ground.in_flight)
            asked = len(site.log)
            elsewhere = [f"/{number}" for number in range(20)]
            site.answers.update({f"b{path}": article(path) for path in elsewhere})
            await ground.add(elsewhere, "b")
            await ground.until(lambda: sum(each.host == "b" for each in site.log) > 40)
            assert [each.path for each in site.log[asked:] if each.host == "a"] == []
            await ground.do(Resume("host", ["a.site.test"]))
            polls = len(site.asked_for("/map.xml"))
            await ground.until(lambda: len(site.asked_for("/map.xml")) > polls)

    asyncio.run(story())


def test_pages_of_a_news_group_are_read_for_links_and_are_no_pages_themselves(tmp_path: Path) -> None:
    news = GroupRule("fronts", ("*/front*",), objective="news")
    settings = replace(FOLLOWING, discover=False, groups=(news,))

    async def story() -> None:
        async with Site() as site:
            site.answers["/front"] = page_of_links("/by-hub")
            site.answers["/by-hub"] = article("the page")
            for _ in range(2):
                async with running(site, tmp_path, settings) as ground:
                    await ground.add(["/front", "/front2"])
                    await ground.until_visited("/by-hub")
                    assert source_at(ground, "/front").row.kind == "hub"
                    front = source_at(ground, "/front").row
                    await ground.until(
                        lambda front=front, ground=ground: source_at(ground, "/front").row.polls > front.polls + 1  # type: ignore[misc]
                    )
                    assert (await ground.store.counts()).pages["active"] == 1
            assert {kind for kind, _ in await _events(tmp_path)} == {"discovered"}

    asyncio.run(story())


def test_a_hub_of_websub_is_asked_verified_and_heard(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site() as site:
            a_site(site)
            rules = SignalRules(callback="https://me.example.com/")
            polite = replace(FOLLOWING.discovery, min_interval_s=0.2)
            async with running(site, tmp_path, replace(FOLLOWING, signals=rules, discovery=polite)) as ground:
                status, headers, body = feed(site, "/by-feed")
                headers |= {"Link": f'<{site.url("/hub")}>; rel="hub", <{site.url("/news.rss")}>; rel="self"'}
                site.answers["/news.rss"] = (status, headers, body)
                site.answers["/hub"] = (202, {}, b"")
                await ground.add(["/"])
                await ground.until_visited("/by-feed")
                sources = sources_of(ground)
                await ground.until(lambda: bool(source_at(ground, "/news.rss").memory.subscription))
                await sources.tend(at_once=True)
                (asked,) = site.asked_for("/hub")
                form = parse_qs(asked.body.decode())
                assert form["hub.topic"] == [site.url("/news.rss")]
                token = form["hub.callback"][0].removeprefix("https://me.example.com/websub/")
                query = urlencode({
                    "hub.mode": "subscribe",
                    "hub.topic": site.url("/news.rss"),
                    "hub.challenge": "42",
                    "hub.lease_seconds": "86400",
                })  # fmt: skip
                assert sources.subscriptions.verify(token, query).body == b"42"
                assert sources.subscriptions.verify("another", query).status == 404
                source = source_at(ground, "/news.rss")
                assert source.is_pushed(ground.now())
                signature = hmac.new(form["hub.secret"][0].encode(), b"news", "sha256").hexdigest()
                assert not sources.subscriptions.pushed(token, "sha256=00", b"news")
                assert sources.subscriptions.pushed(token, f"sha256={signature}", b"news")
                await sources.tend(at_once=True)
            async with running(site, tmp_path, replace(FOLLOWING, signals=rules)) as ground:
                assert source_at(ground, "/news.rss").is_pushed(ground.now())

    asyncio.run(story())


def test_a_source_that_names_another_hub_each_time_leaves_one_subscription(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site() as site:
            a_site(site)
            rules = SignalRules(callback="https://me.example.com/")
            async with running(site, tmp_path, replace(FOLLOWING, signals=rules)) as ground:
                await ground.add(["/"])
                await ground.until_visited("/by-feed")
                source, subscriptions = source_at(ground, "/news.rss"), sources_of(ground).subscriptions
                topic = read_address(source.url)
                assert isinstance(topic, Address)
                for number in range(100):
                    subscriptions.found(source, HubLinks((topic.with_target(f"/hub/{number}"),), topic))
                assert len(subscriptions._tokens) == 1
                (token,) = subscriptions._tokens
                assert subscriptions.pushed(token, "", b"") is None
                last = unpack_subscription(source.memory.subscription)
                assert last is not None
                subscriptions._put(source, last.ended())
                assert not subscriptions._tokens

    asyncio.run(story())


def test_addresses_that_caps_refuse_leave_nothing_of_their_hosts(tmp_path: Path) -> None:
    rules = replace(FOLLOWING.discovery, scope="site", by_source=2)

    async def story() -> None:
        async with Site() as site:
            a_site(site)
            site.answers["/"] = page_of_links(*[site.url("/page", f"h{number}") for number in range(50)])
            async with running(site, tmp_path, replace(FOLLOWING, discovery=rules)) as ground:
                await ground.add(["/"])
                sources = sources_of(ground)
                await ground.until(lambda: sources.refused.get("source-cap", 0) >= 48)
                names = {state.name for state in ground.hosts}
                assert len([name for name in names if name.startswith("h")]) <= 2
                assert len([name for name in sources._intake.frontier.hosts if name.startswith("h")]) <= 2

    asyncio.run(story())


def test_pages_one_link_away_are_read_for_links_and_what_they_link_to_is_not(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site() as site, running(site, tmp_path, FOLLOWING) as ground:
            site.answers["/"] = page_of_links("/section")
            site.answers["/section"] = page_of_links("/story")
            site.answers["/story"] = page_of_links("/too-deep")
            await ground.add(["/"])
            await ground.until_visited("/section")
            await sources_of(ground).tend(at_once=True)
            await ground.until_visited("/story")
            await sources_of(ground).tend(at_once=True)
            hubs = {source.url for source in sources_of(ground).book if source.row.kind == "hub"}
            assert hubs == {site.url("/"), site.url("/section")}
            assert source_at(ground, "/section").row.found_by == site.url("/")

    asyncio.run(story())


def test_sources_can_be_read_for_signals_alone(tmp_path: Path) -> None:
    signals_only = replace(FOLLOWING, discovery=replace(FOLLOWING.discovery, found="none"))

    async def story() -> None:
        async with Site() as site, running(site, tmp_path, signals_only) as ground:
            a_site(site)
            await ground.add(["/", "/by-map"])
            await ground.until_visited("/by-map")
            later = ground.now() + 60
            site.answers["/map.xml"] = sitemap(site, ("/by-map", later), ("/later-map", later))
            await ground.until(lambda: (source := sources_of(ground).book.at(site.url("/map.xml"))) is not None
                               and source.row.signals > 0)  # fmt: skip
            assert (await ground.store.counts()).pages["active"] == 2
            assert sources_of(ground).refused["not-wanted"] > 0

    asyncio.run(story())


def _states(ground: Ground) -> dict[str, str]:
    return {source.url: source.row.state for source in sources_of(ground).book}


async def _events(folder: Path) -> list[tuple[str, str]]:
    store = await open_store(str(folder), owner=False)
    try:
        return [(change.event.kind, change.event.url) for change in await store.changes(0, 1000)]
    finally:
        await store.close()


def test_what_is_wrong_with_sources_and_what_they_name_and_is_not_taken_is_told_also_after_a_restart(
    tmp_path: Path,
) -> None:
    async def facts_of(ground: Ground) -> dict[str, Any]:
        return (await ground.do(ListSources())).facts

    async def noted(ground: Ground) -> dict[str, Any]:
        """The status, as soon as the tracker has noted the problem."""
        async with patience("a note of the problem"):
            while True:
                status = await status_of(ground.store, ground.now())
                if status["sources"]["problems"]:
                    return status
                await asyncio.sleep(0.01)

    async def story() -> None:
        async with Site() as site:
            a_site(site)
            site.answers["/map.xml"] = (200, {"Content-Type": "application/xml"}, b"<urlset><url>")
            async with running(site, tmp_path, FOLLOWING) as ground:
                await ground.add(["/"])
                await ground.until(lambda: bool(site.asked_for("/map.xml")) and bool(site.asked_for("/by-feed")))
                await ground.until(lambda: bool(sources_of(ground).book.problems))
                await ground.until(lambda: sources_of(ground).refused.keys() >= {"robots", "out-of-scope"})
                polls = source_at(ground, "/").row.polls
                await ground.until(lambda: source_at(ground, "/").row.polls > polls + 2)
                status = await noted(ground)
                facts = await facts_of(ground)
            site.answers["/"] = 500  # so that it is not read again; the sitemap stays as it is
            async with running(site, tmp_path, FOLLOWING) as ground:
                again, later = await noted(ground), await facts_of(ground)
            told = {each["url"]: each for each in facts["sources"]}
            sitemap_, hub = told[site.url("/map.xml")], told[site.url("/")]
            assert sitemap_["problem"].startswith("the sitemap ")
            assert sitemap_["problem_at"] is not None
            assert hub["problem"] is hub["problem_at"] is None
            assert hub["refused"] == {"robots": 1, "out-of-scope": 1}, (
                "each address counts once, however often it is named"
            )
            assert facts["refused"] == {"robots": 1, "out-of-scope": 1}
            (problem,) = status["sources"]["newest_problems"]
            assert problem["url"] == site.url("/map.xml")
            assert problem["problem"] == sitemap_["problem"]
            assert (status["sources"]["refused"], status["sources"]["problems"]) == (facts["refused"], 1)
            assert again["sources"] == status["sources"]
            kept = {each["url"]: (each["problem"], each["problem_at"], each["refused"]) for each in later["sources"]}
            assert kept == {url: (each["problem"], each["problem_at"], each["refused"]) for url, each in told.items()}

    asyncio.run(story())


def test_a_list_that_can_be_read_again_has_no_problem_any_more(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site() as site, running(site, tmp_path, FOLLOWING) as ground:
            a_site(site)
            site.answers["/news.rss"] = (200, {"Content-Type": "application/rss+xml"}, b"soon")
            await ground.add(["/"])
            broken = [site.url("/news.rss")]
            await ground.until(lambda: [each.url for each in sources_of(ground).book.problems] == broken)
            site.answers["/news.rss"] = feed(site, "/by-feed")
            await ground.until_visited("/by-feed")
            await ground.until(lambda: sources_of(ground).book.problems == [])
            assert source_at(ground, "/news.rss").memory.problem == ""

    asyncio.run(story())


def test_a_list_that_cannot_be_fetched_says_why_until_it_can_be(tmp_path: Path) -> None:
    """Also over a restart; entries whose address cannot be used are counted once, however often it is read."""

    async def story() -> None:
        leap = Leap()
        async with Site() as site:
            a_site(site)
            site.answers["/map.xml"] = 500
            async with running(site, tmp_path, FOLLOWING, clock_from=leap) as ground:
                await ground.add(["/"])
                await ground.until(lambda: bool(sources_of(ground).book.problems))
            async with running(site, tmp_path, FOLLOWING, clock_from=leap) as ground:
                (troubled,) = sources_of(ground).book.problems
                assert troubled.url == site.url("/map.xml")
                assert troubled.memory.problem.startswith("could not be fetched: server-error")
                site.answers["/map.xml"] = sitemap(site, ("/by-map", 1e9), ("/" + "x" * 9_000, 1e9))
                for _ in range(3):
                    leap.ahead_s += 86_400.0
                    polls = troubled.row.polls
                    await ground.until(lambda polls=polls: troubled.row.polls > polls)  # type: ignore[misc]
                assert sources_of(ground).book.problems == []
                assert troubled.memory.refused["unusable-address"] == 1

    asyncio.run(story())


def test_a_list_is_not_polled_while_its_server_calls_it_fresh_but_at_once_when_a_hub_pushes(tmp_path: Path) -> None:
    """At most for an hour: the sitemap asks for a day, the feed for ten minutes."""

    def asks(page: tuple[int, dict[str, str], bytes], max_age_s: int) -> tuple[int, dict[str, str], bytes]:
        return page[0], {**page[1], "Cache-Control": f"max-age={max_age_s}"}, page[2]

    async def story() -> None:
        leap = Leap()
        async with Site() as site, running(site, tmp_path, FOLLOWING, clock_from=leap) as ground:
            a_site(site)
            site.answers["/map.xml"] = asks(sitemap(site, ("/by-map", 1e9)), 86_400)
            site.answers["/news.rss"] = asks(feed(site, "/by-feed"), 600)

            def polls() -> tuple[int, int]:
                return source_at(ground, "/map.xml").row.polls, source_at(ground, "/news.rss").row.polls

            async def turns() -> None:
                """Time in which each would be polled a few times: the main page, which is a hub, is."""
                before = source_at(ground, "/").row.polls
                await ground.until(lambda: source_at(ground, "/").row.polls > before + 5)

            await ground.add(["/"])
            await ground.until_visited("/by-map")
            await ground.until_visited("/by-feed")
            await ground.until(lambda: polls() == (1, 1))
            await turns()
            assert polls() == (1, 1)
            leap.ahead_s += 700.0
            await ground.until(lambda: polls()[1] == 2)
            await turns()
            assert polls() == (1, 2)
            leap.ahead_s += 3000.0
            await ground.until(lambda: polls()[0] == 2)
            await turns()
            assert polls()[0] == 2
            pushed = source_at(ground, "/map.xml")
            pushed.memory.pushed_at = ground.now()
            sources_of(ground).market.appraise(pushed)
            await ground.until(lambda: polls()[0] == 3)

    asyncio.run(story())


def test_the_max_age_of_a_list_outlives_a_restart(tmp_path: Path) -> None:
    async def story() -> None:
        async with Site() as site:
            a_site(site)
            status, headers, body = sitemap(site, ("/by-map", 1e9))
            site.answers["/map.xml"] = status, {**headers, "Cache-Control": "max-age=3000"}, body
            async with running(site, tmp_path, FOLLOWING) as ground:
                await ground.add(["/"])
                await ground.until_visited("/by-map")
                await ground.until(lambda: source_at(ground, "/map.xml").row.polls == 1)
            asked = len(site.asked_for("/map.xml"))
            async with running(site, tmp_path, FOLLOWING) as ground:
                before = source_at(ground, "/").row.polls
                await ground.until(lambda: source_at(ground, "/").row.polls > before + 5)
                assert len(site.asked_for("/map.xml")) == asked

    asyncio.run(story())


def test_a_hub_that_its_server_calls_fresh_is_polled_as_pages_are(tmp_path: Path) -> None:
    """Once within the hour if the max-age of pages is respected, and as often as it is worth if it is not."""

    async def story(folder: Path, *, respected: bool) -> None:
        settings = replace(FOLLOWING, respect_max_age=respected)
        async with Site() as site, running(site, folder, settings) as ground:
            a_site(site)
            main = str(site.answers["/"]).encode()
            site.answers["/"] = 200, {"Cache-Control": "max-age=3600", "Content-Type": "text/html"}, main
            await ground.add(["/"])
            await ground.until_visited("/by-feed")
            await ground.until(lambda: len(site.asked_for("/news.rss")) > 8)
            if respected:
                assert len(site.asked_for("/")) == 1
            else:
                await ground.until(lambda: len(site.asked_for("/")) > 8)

    for respected in (True, False):
        asyncio.run(story(tmp_path / str(respected), respected=respected))
