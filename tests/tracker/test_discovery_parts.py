"""The decisions of discovery without IO: what is taken, what is new in a list, what a source is worth."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.errors import InvalidInput
from recrawl.learning.hit_histograms import HitHistograms
from recrawl.store.rows import SourceRow
from recrawl.tracker.discovery.ingest import DiscoveryQuota, is_no_page, outside
from recrawl.tracker.discovery.memory import (
    MOST_LISTED,
    NOTHING,
    Memory,
    from_bytes,
    hashes_of,
    joined,
    listed_of,
    pack_listed,
    to_bytes,
    unpack_listed,
    without,
)
from recrawl.tracker.discovery.reading import from_feed, from_links, from_sitemap, tells_of_change
from recrawl.tracker.discovery.source import (
    Source,
    SourceBook,
    after_poll,
    cost_of,
    idle_reason,
    note_changes,
    note_first_fetch,
    waits_s,
    worth_of,
)
from recrawl.tracker.discovery.value import (
    BIN_S,
    BINS,
    FLOOR,
    HitCounts,
    YieldModel,
    changes_told,
    count_hits,
    differs,
    for_cost,
    interest_in,
    no_hits,
    pack_counts,
    rate_of,
    together,
    unpack_counts,
    waiting,
)
from recrawl.tracker.settings.settings import DiscoveryRules, SignalRules
from recrawl.values import saturating_value
from recrawl.web.feeds.feed import Feed, FeedEntry
from recrawl.web.feeds.sitemap import Sitemap, SitemapEntry
from recrawl.web.url.address import Address, address_or_raise

DAY_S = 86_400.0
NOW = 20_000 * DAY_S


def at(path: str, host: str = "example.com") -> Address:
    return address_or_raise(f"https://{host}{path}", field="url")


@pytest.mark.parametrize(
    ("rules", "address", "depth", "rule"),
    [
        (DiscoveryRules(), at("/a"), 1, None),
        (DiscoveryRules(), at("/a", "www.example.com"), 1, None),
        (DiscoveryRules(), at("/a", "shop.example.com"), 1, "out-of-scope"),
        (DiscoveryRules(scope="site"), at("/a", "shop.example.com"), 1, None),
        (DiscoveryRules(scope="site"), at("/a", "example.org"), 1, "out-of-scope"),
        (DiscoveryRules(scope="patterns", include=("*/news/*",)), at("/news/1", "example.org"), 1, None),
        (DiscoveryRules(include=("*/news/*",)), at("/a"), 1, "not-included"),
        (DiscoveryRules(exclude=("*/private/*",)), at("/private/1"), 1, "excluded"),
        (DiscoveryRules(depth=1), at("/a"), 2, "too-deep"),
        (DiscoveryRules(), at("/photo.JPG?x=1"), 1, "no-page"),
        (DiscoveryRules(), at("/paper.pdf"), 1, None),
    ],
)
def test_scope_depth_and_patterns_decide_what_is_followed(
    rules: DiscoveryRules, address: Address, depth: int, rule: str | None
) -> None:
    assert outside(address, "example.com", depth, rules) == rule


def test_a_folder_with_a_dot_is_a_page() -> None:
    assert not is_no_page(at("/v1.2/"))


def test_the_frontier_is_bounded_by_source_shape_and_day_and_a_new_day_begins_anew() -> None:
    rules = DiscoveryRules(by_source=6, by_shape=3, by_day=4)
    frontier = DiscoveryQuota(rules)

    def offer(path: str, now: float = NOW) -> str | None:
        return frontier.offer(at(path), "s", "example.com", 1, now)

    assert [offer(f"/day/{number}") for number in range(5)] == [None, None, None, "shape-cap", "shape-cap"]
    assert [offer("/a"), offer("/b")] == [None, "day-cap"]
    assert [offer("/b", NOW + DAY_S), offer("/c", NOW + DAY_S), offer("/d", NOW + DAY_S)] == [None, None, "source-cap"]


@given(st.lists(st.tuples(st.text(max_size=8), st.one_of(st.none(), st.floats(1.0, 4e9))), max_size=40))
def test_a_list_is_packed_and_unpacked_as_it_was(rows: list[tuple[str, float | None]]) -> None:
    listed = listed_of(hashes_of([f"https://example.com/{name}" for name, _ in rows]), [time for _, time in rows])
    again = unpack_listed(pack_listed(listed))
    assert again.hashes.tolist() == listed.hashes.tolist()
    assert again.times.tolist() == listed.times.tolist()
    assert (listed.find(listed.hashes) >= 0).all()


@given(st.binary(max_size=200))
def test_what_cannot_be_read_is_forgotten(junk: bytes) -> None:
    assert isinstance(from_bytes(junk), Memory)
    assert len(unpack_listed(junk)) == 0
    assert unpack_counts(junk).shape == (BINS,)


def test_a_memory_holds_a_full_sitemap_in_eight_bytes_an_address() -> None:
    urls = [f"https://example.com/some/folder/page-{number}" for number in range(50_000)]
    listed = listed_of(hashes_of(urls), [NOW - number * 1000 for number in range(50_000)])
    kept = to_bytes(Memory(listed=pack_listed(listed), polls=[(NOW, 3)]))
    assert len(kept) < 400_000
    assert len(joined(listed, listed_of(hashes_of([f"{url}x" for url in urls]), [None] * 50_000))) == MOST_LISTED
    assert from_bytes(kept).polls == [(NOW, 3)]


def test_a_sitemap_tells_what_is_fresh_and_what_moved_and_nothing_of_what_dropped_out() -> None:
    def listing(*rows: tuple[str, float | None]) -> Sitemap:
        return Sitemap("pages", tuple(SitemapEntry(at(path).url, time, False) for path, time in rows))

    first = from_sitemap(listing(("/a", 100.0), ("/b", 100.0), ("/c", None), ("/d", 100.0)), NOTHING)
    assert [each.address.target for each in first.fresh] == ["/a", "/b", "/c", "/d"]
    assert first.moved == ()
    second = from_sitemap(listing(("/a", 200.0), ("/b", 50.0), ("/c", 200.0), ("/e", 1.0)), first.listed)
    assert [each.address.target for each in second.fresh] == ["/e"]
    assert [each.address.target for each in second.moved] == ["/a"]
    third = from_sitemap(listing(("/d", 100.0)), second.listed)
    assert third.fresh == third.moved == ()
    forgotten = without(second.listed, hashes_of([at("/e").url]))
    assert [each.address.target for each in from_sitemap(listing(("/e", 1.0)), forgotten).fresh] == ["/e"]


def test_a_date_that_is_missing_once_is_not_forgotten() -> None:
    """A list that leaves out a date and gives a later one afterwards tells of a change."""
    url = "https://example.com/a"
    listed = listed_of(hashes_of([url]), [1e9])
    for at in (None, 1e9 + 60.0):
        listed = joined(listed, listed_of(hashes_of([url]), [at]))
    assert listed.times.tolist() == [1_000_000_060]
    assert joined(listed, listed_of(hashes_of([url]), [None])).times.tolist() == [1_000_000_060]


def test_an_index_has_sitemaps_below_it_and_no_pages() -> None:
    index = Sitemap("index", (SitemapEntry(at("/map-1.xml").url, 100.0, False),))
    found = from_sitemap(index, NOTHING)
    assert [(each.address.target, each.at) for each in found.children] == [("/map-1.xml", 100.0)]
    assert found.fresh == ()


def test_a_feed_tells_of_new_entries_and_of_those_that_were_updated() -> None:
    def entry(path: str, published: float, updated: float | None = None) -> FeedEntry:
        return FeedEntry(at(path).url, path, published, updated)

    first = from_feed(Feed((entry("/a?utm_source=feed", 100.0), FeedEntry(None, "x", 1.0, None))), NOTHING)
    assert [(each.address.target, each.at) for each in first.fresh] == [("/a", 100.0)]
    second = from_feed(Feed((entry("/b", 300.0), entry("/a", 100.0, 200.0))), first.listed)
    assert [each.address.target for each in second.fresh] == ["/b"]
    assert [each.address.target for each in second.moved] == ["/a"]


def test_links_are_new_once() -> None:
    first = from_links([at("/a").url, at("/a#x").url, "nonsense"], NOTHING)
    assert [each.address.target for each in first.fresh] == ["/a"]
    assert from_links([at("/a").url], first.listed).fresh == ()


def test_a_date_tells_of_a_change_if_it_may_be_later_than_the_crawl() -> None:
    noon = NOW + DAY_S / 2
    assert tells_of_change(noon + 1, noon)
    assert not tells_of_change(noon - 1, noon)
    assert tells_of_change(NOW, noon), "a mere day may be any time of it"
    assert not tells_of_change(NOW, noon + DAY_S)
    assert not tells_of_change(noon, None)


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.tuples(*[st.floats(1e-3, 1e3)] * 3), min_size=2, max_size=4))
def test_one_law_for_all_has_the_early_growth_and_the_limit_of_their_sum(rows: list[tuple[float, ...]]) -> None:
    streams = [YieldModel(*row) for row in rows]
    one = together(streams)

    def summed(elapsed: float) -> float:
        return sum(float(saturating_value(each.profit * each.rate, each.decay, elapsed)) for each in streams)

    for elapsed in (1e-6 / max(each.decay for each in streams), math.inf):
        assert float(saturating_value(one.profit * one.rate, one.decay, elapsed)) == pytest.approx(
            summed(elapsed), rel=1e-3
        )
    assert one.rate == pytest.approx(sum(each.rate for each in streams))


def test_the_rate_is_that_of_the_last_polls_and_never_nothing() -> None:
    assert rate_of([]) == 1.0
    assert rate_of([(NOW, 500)]) == 1.0, "what the first poll finds may be of any age"
    assert rate_of([(NOW, 500), (NOW + DAY_S, 3), (NOW + 2 * DAY_S, 0)]) == pytest.approx(3.5 / 2.5)


def test_changes_are_worth_what_waiting_for_them_would_have_cost() -> None:
    assert changes_told([(NOW, 0), (NOW + DAY_S, 0)], 5.0, 2.0, 0.5) is None
    told = changes_told([(NOW, 9), (NOW + DAY_S, 3)], gain=5.0, wait=2.0, precision=0.5)
    assert told == pytest.approx((2.5, 3.5 / 1.5, 0.5))
    memory = Memory()
    note_changes(memory, [(10.0, 0.5)])
    assert (memory.gain, memory.wait) == (5.0, 0.5)


def a_source(kind: str = "feed", **memory: object) -> Source:
    row = SourceRow(1, kind, added_at=NOW)  # type: ignore[arg-type]
    return Source(row, "https://example.com/feed", "example.com", Memory(root="example.com", **memory))  # type: ignore[arg-type]


def worth(source: Source) -> YieldModel:
    book = SourceBook()
    book.put(source)
    return worth_of(source, book, DiscoveryRules(), NOW)


def test_a_source_is_worth_more_the_more_it_yields_and_less_the_more_it_costs() -> None:
    lazy = a_source(polls=[(NOW, 0), (NOW + DAY_S, 0)], told=[(NOW, 0), (NOW + DAY_S, 0)])
    busy = a_source(polls=[(NOW, 0), (NOW + DAY_S, 50)], told=[(NOW, 0), (NOW + DAY_S, 0)])
    heavy = a_source(polls=[(NOW, 0), (NOW + DAY_S, 50)], told=[(NOW, 0), (NOW + DAY_S, 0)], size=9e6)
    assert worth(busy).rate > 50 * worth(lazy).rate
    assert cost_of(heavy, DiscoveryRules()) == 10.0
    assert worth(heavy).profit == pytest.approx(worth(busy).profit / 10)
    assert for_cost(YieldModel(1.0, 1.0, 1.0), 0.5).profit == 1.0


def test_a_source_whose_pages_are_not_there_is_worth_less_and_recovers() -> None:
    def busy() -> Source:
        return a_source(polls=[(NOW, 0), (NOW + DAY_S, 50)], told=[(NOW, 0), (NOW + DAY_S, 0)])

    honest, source = busy(), busy()
    for _ in range(20):
        note_first_fetch(honest.memory, is_there=True)
        note_first_fetch(source.memory, is_there=False)
    assert worth(honest).rate == worth(busy()).rate
    assert worth(source).rate < 0.1 * worth(honest).rate
    for _ in range(100):
        note_first_fetch(source.memory, is_there=True)
    assert worth(source).rate > 0.95 * worth(honest).rate


def test_a_sitemap_that_its_index_calls_unchanged_is_only_audited_until_it_moves() -> None:
    rules = DiscoveryRules()
    child = a_source("sitemap", said_at=100.0, read_at=100.0, parent="https://example.com/index.xml")
    assert worth(child).profit == FLOOR
    assert waits_s(child, rules) == (rules.audit_s / 2, rules.audit_s)
    child.memory.said_at = 200.0
    assert child.has_news
    assert worth(child) == waiting(YieldModel(rules.profit, 1.0, rules.decay), 1.0)
    assert waits_s(child, rules) == (rules.min_interval_s, rules.max_interval_s)
    after_poll(child, NOW, found=0, told=0, size=10)
    assert not child.has_news


def a_fresh_list(fresh_s: float, kind: str = "feed", **memory: object) -> Source:
    """A list that was polled, and whose server calls it fresh."""
    source = a_source(kind, fresh_s=fresh_s, **memory)
    source.row = replace(source.row, polls=1)
    return source


def test_the_max_age_of_a_list_bounds_its_next_poll_until_somebody_says_that_it_changed() -> None:
    rules = DiscoveryRules()
    feed = a_fresh_list(1800.0)
    assert waits_s(feed, rules) == (1800.0, rules.max_interval_s)
    feed.memory.pushed_at = NOW + DAY_S
    assert feed.has_news
    assert waits_s(feed, rules) == (rules.min_interval_s, rules.max_interval_s)
    child = a_fresh_list(1800.0, "sitemap", said_at=200.0, read_at=100.0, parent="https://example.com/index.xml")
    assert waits_s(child, rules)[0] == rules.min_interval_s
    child.memory.read_at = 200.0
    assert waits_s(child, replace(rules, audit_s=600.0)) == (600.0, 600.0)


def test_a_short_max_age_does_not_undo_the_least_interval_nor_a_long_one_the_longest() -> None:
    rules = DiscoveryRules(min_interval_s=60.0, max_interval_s=600.0)
    assert waits_s(a_fresh_list(30.0), rules) == (60.0, 600.0)
    assert waits_s(a_fresh_list(3600.0), rules) == (600.0, 600.0)


def test_an_index_is_worth_what_the_sitemaps_below_it_bring() -> None:
    book = SourceBook()
    index = Source(SourceRow(1, "sitemap"), "https://example.com/index.xml", "example.com")
    below = Source(SourceRow(2, "sitemap"), "https://example.com/1.xml", "example.com")
    below.memory = Memory(said_at=5.0, parent=index.url, polls=[(NOW, 0), (NOW + DAY_S, 80)], told=[(NOW, 0)] * 2)
    book.put(index)
    alone = worth_of(index, book, DiscoveryRules(), NOW)
    book.put(below)
    assert worth_of(index, book, DiscoveryRules(), NOW).rate > 50 * alone.rate


def test_a_source_is_retired_after_many_polls_over_a_long_time_and_not_before() -> None:
    rules = DiscoveryRules(idle_polls=3, idle_s=10 * DAY_S)
    source = a_source()
    for number in range(3):
        after_poll(source, NOW + number * DAY_S, 0, 0, 100)
    assert idle_reason(source, rules, NOW + 3 * DAY_S) == ""
    assert idle_reason(source, rules, NOW + 11 * DAY_S) == "brought nothing in 3 polls over 11 days"
    after_poll(source, NOW + 11 * DAY_S, 1, 0, 100)
    assert idle_reason(source, rules, NOW + 30 * DAY_S) == ""


def test_a_scheduler_is_told_only_of_what_differs() -> None:
    assert not differs(YieldModel(1.0, 1.0, 1.0), YieldModel(1.01, 1.0, 1.0))
    assert differs(YieldModel(1.0, 1.0, 1.0), YieldModel(1.0, 1.2, 1.0))


def test_hits_by_age_are_those_of_the_histograms() -> None:
    """The slow twin counts step by step; here a whole stretch is counted at once."""
    births, width = [0.3, 2.0, 4.7], 1.0
    hits = [(0.1, 3), (1.2, 1), (2.0, 2)]
    twin = HitHistograms(sources=1, start=0.0, bin_width=width, bins=BINS)
    twin.advance(5.0)
    twin.add_pages([0] * 3, births)
    twin.add_hits([0] * 3, [age for age, _ in hits], [number for _, number in hits])
    counted = count_hits(
        [born * BIN_S for born in births], [(age * BIN_S, number) for age, number in hits], 0.0, 5.0 * BIN_S
    )
    assert counted.hits.tolist() == twin.hits()[0].tolist()
    assert counted.watched == pytest.approx(twin.watched()[0])
    assert unpack_counts(pack_counts(counted.watched)) == pytest.approx(counted.watched)


def test_interest_follows_hits_first_of_the_host_and_then_of_the_source() -> None:
    ages = (np.arange(BINS) + 0.5) / 72
    watched = np.full(BINS, 100.0)
    popular = HitCounts(100 * 30.0 * np.exp(-4 * ages) * 4 / 72, watched)
    assert interest_in(no_hits(), no_hits(), 0.1, 1.0) == (0.1, 1.0)
    profit, decay = interest_in(no_hits(), popular, 0.1, 1.0)
    assert profit == pytest.approx(30.0, rel=0.05)
    assert decay == pytest.approx(4.0, rel=0.05)
    ignored = HitCounts(np.zeros(BINS), watched)
    assert interest_in(ignored, popular + ignored, 0.1, 1.0)[0] < 1.0


def test_rules_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(InvalidInput, match="scope is 'patterns'"):
        DiscoveryRules(scope="patterns")
    with pytest.raises(InvalidInput, match="above max-interval"):
        DiscoveryRules(min_interval_s=100.0, max_interval_s=10.0)
    with pytest.raises(InvalidInput, match="more than eight"):
        DiscoveryRules(exclude=("*" * 9,))
    with pytest.raises(InvalidInput, match="has 'Sitemap', but a kind is a small letter and up to 39"):
        SignalRules(kinds=("sitemap", "Sitemap"))
    with pytest.raises(InvalidInput, match="must be an http or https address"):
        SignalRules(callback="example.com")
    assert SignalRules().hears("feed")
    assert not SignalRules(kinds=("sitemap",)).hears("feed")


def test_what_an_index_says_while_a_sitemap_is_polled_is_still_news() -> None:
    """The poll may have read what was there before."""
    source = Source(SourceRow(1, "sitemap"), "https://a.example/1.xml", "a.example", Memory(said_at=5.0))
    source.news_at = 100.0
    after_poll(source, 110.0, 1, 0, 100, began_at=99.0)
    assert source.has_news
    after_poll(source, 120.0, 1, 0, 100, began_at=111.0)
    assert not source.has_news


def test_what_a_hub_pushes_while_a_feed_is_polled_is_still_news() -> None:
    source = Source(SourceRow(1, "feed"), "https://a.example/feed", "a.example", Memory(pushed_at=100.0))
    after_poll(source, 110.0, 1, 0, 100, began_at=99.0)
    assert source.has_news
    after_poll(source, 120.0, 1, 0, 100, began_at=111.0)
    assert not source.has_news
    source.memory.pushed_at = 125.0
    assert source.has_news
    after_poll(source, 130.0, 1, 0, 100, began_at=126.0)
    assert not source.has_news
