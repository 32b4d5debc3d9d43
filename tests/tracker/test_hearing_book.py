"""The book of signals: what counts, what is one signal, what is none, and what a page in flight hears."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_up_sites import START, Ground, audit_site, honest

from recrawl.errors import StoreError
from recrawl.store.rows import NewPage, PendingSignal
from recrawl.store.store import open_store
from recrawl.tracker.clock import DAY_S
from recrawl.tracker.kinds import MOST_KINDS, OTHER
from recrawl.tracker.settings.settings import SignalRules
from recrawl.tracker.signals.page_counts import Sections
from recrawl.tracker.signals.signals import SignalTracker

LATER = START + DAY_S


def test_a_flood_is_one_signal_a_page_and_kind() -> None:
    book = Ground(3).book
    for turn in range(10):
        assert book.heard([1, 2, 2, 1], "sitemap", LATER + 0.1 * turn) == 2
    assert book.heard([1, 2], "feed", LATER + 0.1) == 2
    assert book.heard_of(1) == {"sitemap": 1, "feed": 1}
    book.heard([1], "sitemap", LATER + 5.0)
    assert book.heard_of(1) == {"sitemap": 2, "feed": 1}


def test_signals_within_the_delay_of_a_crawl_are_none() -> None:
    book = Ground(2, rules=SignalRules(delay_s=600.0)).book
    assert book.heard([1, 2], "sitemap", START + 599.0) == 0
    assert book.heard([1, 2], "sitemap", START + 600.0) == 2


def test_unknown_pages_and_kinds_that_are_left_out_count_nothing() -> None:
    book = Ground(2, rules=SignalRules(kinds=("feed",))).book
    assert book.heard([1], "sitemap", LATER) == 0
    book.heard([0, -5, 77, 10**12], "feed", LATER)
    assert book.heard_of(1) == book.heard_of(77) == {}


def test_any_name_is_a_kind_and_more_than_can_be_told_apart_are_one() -> None:
    book = Ground(1, rules=SignalRules()).book
    for number in range(MOST_KINDS + 5):
        assert book.heard([1], f"kind-{number}", LATER + 2.0 * number) == 1
    counts = book.heard_of(1)
    assert len(counts) <= MOST_KINDS + 1
    assert counts[OTHER] > 1
    assert book.heard([1], "another", LATER + 100.0) == book.heard([1], "one-more", LATER + 100.0) == 1
    assert book.heard_of(1)[OTHER] == counts[OTHER] + 1, "within a moment those that are not told apart are one"


def test_a_crawl_answers_what_was_heard_before_it_began_and_nothing_later() -> None:
    ground = audit_site(honest, 3, 50)
    book, scheduler, page = ground.book, ground.scheduler, 7
    now = LATER + 100 * DAY_S
    assert book.heard([page], "sitemap", now) == 1
    assert book.trigger_of(ground.rows[page - 1]) == "sitemap"
    scheduler.claim([ground.ids[page - 1]], now / DAY_S)
    ground.take(ground.rows[page - 1])
    assert book.heard([page], "sitemap", now + 10.0) == 1  # in flight, before the fetch began
    assert book.heard([page], "sitemap", now + 30.0) == 1  # after
    scheduler.crawled([ground.ids[page - 1]], (now + 40.0) / DAY_S, changed=[True])
    ground.crawled(ground.rows[page - 1], now + 40.0, now + 20.0, changed=True)
    assert book.heard_of(page) == {"sitemap": 1}
    assert scheduler.explain(int(ground.ids[page - 1]), (now + 40.0) / DAY_S).signals == 1
    seen = replace(ground.rows[page - 1], fetched_at=now + 40.0)
    assert book.trigger_of(seen) == "sitemap"
    ground.take(seen)
    ground.crawled(seen, now + 90.0, now + 80.0, changed=False)
    assert book.heard_of(page) == {}
    assert book.trigger_of(seen) == "schedule"


def test_a_signal_that_follows_another_at_once_is_not_answered_by_a_fetch_that_began_between_them() -> None:
    book, (row, *_) = (ground := Ground(1)).book, ground.rows
    book.heard([1], "sitemap", LATER)
    ground.take(row)
    book.heard([1], "sitemap", LATER + 0.4)  # the fetch began in the meantime
    ground.crawled(row, LATER + 0.5, LATER + 0.2, changed=True)
    assert book.heard_of(1) == {"sitemap": 1}


def test_of_two_signals_in_flight_the_later_one_counts() -> None:
    book, (row, *_) = (ground := Ground(1)).book, ground.rows
    ground.take(row)
    book.heard([1], "sitemap", LATER)
    book.heard([1], "sitemap", LATER + 0.4)
    assert book.heard_of(1) == {"sitemap": 1}
    ground.crawled(row, LATER + 0.5, LATER + 0.2, changed=True)
    assert book.heard_of(1) == {"sitemap": 1}


def test_a_signal_after_a_crawl_is_heard_although_one_was_heard_just_before_it() -> None:
    book, (row, *_) = (ground := Ground(1)).book, ground.rows
    book.heard([1], "sitemap", LATER)
    ground.take(row)
    ground.crawled(row, LATER + 0.3, LATER + 0.2, changed=True)
    assert book.heard_of(1) == {}
    book.heard([1], "sitemap", LATER + 0.4)
    assert book.heard_of(1) == {"sitemap": 1}


def test_a_page_in_flight_is_told_of_another_trust_without_harm() -> None:
    ground = audit_site(honest, 3, 30)
    flying = ground.scheduler.take(LATER / DAY_S + 200.0, 3).ids
    book = ground.book
    rows = np.arange(1)
    book.trust.recall[rows] = 0.0
    book.trust._due.add(0)
    assert book.relearn(LATER + 200 * DAY_S) == 1
    assert all(ground.scheduler.in_flight(page) for page in flying.tolist())
    ground.scheduler.crawled(flying, LATER / DAY_S + 201.0, changed=[True] * len(flying))


def test_the_strongest_signal_and_the_source_that_led_to_a_page_are_named() -> None:
    ground = Ground(1)
    assert ground.book.trigger_of(replace(ground.rows[0], fetched_at=None)) == "schedule"
    found = replace(ground.rows[0], fetched_at=None, source="https://h0.example/feed")
    assert ground.book.trigger_of(found) == "found by https://h0.example/feed"
    ground.book.heard([1], "feed", LATER)
    assert ground.book.trigger_of(ground.rows[0]) == "schedule"  # nobody knows yet whether it is true


def test_neighbours_hear_of_a_change_once_in_a_while() -> None:
    ground = Ground(6, hosts=2, rules=SignalRules(kinds=("neighbour",)))
    book, rows = ground.book, ground.rows
    for row in rows:
        book.crawled(row, LATER, LATER, changed=False)
    assert all(not book.heard_of(row.id) for row in rows)
    book.crawled(replace(rows[0], fetched_at=LATER), LATER + 100.0, LATER + 100.0, changed=True)
    heard = [book.heard_of(row.id) for row in rows]
    assert heard == [{}, {}, {"neighbour": 1}, {}, {"neighbour": 1}, {}]  # of the same host and folder
    book.crawled(replace(rows[2], fetched_at=LATER), LATER + 110.0, LATER + 110.0, changed=True)
    assert book.heard_of(rows[4].id) == {"neighbour": 1}
    book.left(rows[4].id)
    book.crawled(replace(rows[0], fetched_at=LATER), LATER + 500.0, LATER + 500.0, changed=True)
    assert book.heard_of(rows[2].id) == {"neighbour": 1}


def test_sections_whose_pages_have_left_are_forgotten() -> None:
    sections = Sections()
    stays = sections.fetched(1, "https://a.example/news/1")
    assert stays is not None
    sections.fetched(2, "https://a.example/news/2")
    for page in range(3, 500):
        number = sections.fetched(page, f"https://a.example/{'x' * page}/1")
        assert number is not None
        assert not len(sections.neighbours(number, page, LATER))
        sections.drop(page)
    assert len(sections) == 1
    assert len(sections._sections) == 2
    assert sections.neighbours(stays, 1, LATER).tolist() == [2]


def test_a_million_pages_take_no_room_before_anything_is_heard() -> None:
    ground = Ground(2)
    pages = np.arange(1, 1_000_001)
    ground.book.enter(pages, np.zeros(len(pages), dtype=np.int64), np.full(len(pages), START))
    assert ground.book._counts.nbytes == 0
    ground.book.heard(pages, "sitemap", LATER, durable=False)
    assert ground.book._counts.nbytes <= 14 * 1.6 * len(pages)
    assert ground.book.heard_of(77_777) == {"sitemap": 1}


@pytest.mark.parametrize("kind", ["sitemap", "cms"])
def test_what_was_heard_is_durable_after_a_flush_and_restored(tmp_path: Path, kind: str) -> None:
    async def story() -> None:
        store = await open_store(str(tmp_path), owner=True)
        await store.add_pages([NewPage(f"https://h0.example/{n}", "h0.example") for n in range(3)])
        ground = Ground(3, rules=SignalRules())
        book = SignalTracker(ground.schedule, ground.hosts, ground.in_flight, store, SignalRules())
        book.enter(np.arange(1, 4), np.zeros(3, dtype=np.int64), np.full(3, START))
        book.heard([1, 3], kind, LATER)
        assert await store.pending_signals() == []
        await book.flush()
        await book.flush()
        book.heard([3], kind, LATER + 5.0)
        await book.flush()
        pending = await store.pending_signals()
        assert pending == [
            PendingSignal(1, kind, 1, LATER, LATER),
            PendingSignal(3, kind, 2, LATER, LATER + 5.0),
        ]
        again = SignalTracker(ground.schedule, ground.hosts, ground.in_flight, store, SignalRules())
        again.enter(np.arange(1, 4), np.zeros(3, dtype=np.int64), np.full(3, START))
        again.restore(pending, LATER + 10.0)
        assert again.heard_of(3) == {kind: 2}
        await store.close()
        book.heard([1], kind, LATER + 30.0)
        with pytest.raises(StoreError):
            await book.flush()
        assert 1 in book._unkept[kind]  # and waits for a store that writes

    asyncio.run(story())
