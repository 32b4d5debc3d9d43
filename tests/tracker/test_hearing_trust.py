"""Whom to believe: sites that tell the truth and sites that do not are told apart by ordinary crawls, no HTTP."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_up_sites import (
    START,
    Announce,
    Ground,
    always_now,
    audit_site,
    bulk_bumped,
    frozen,
    honest,
    random_noise,
)

from recrawl.errors import InvalidInput
from recrawl.store.rows import HostRow
from recrawl.tracker.clock import DAY_S
from recrawl.tracker.settings.settings import SignalRules
from recrawl.tracker.signals.trust import MOST_BYTES, from_bytes

HOST = "h0.example"


def test_an_honest_site_is_listened_to_within_fifty_audits() -> None:
    for seed in range(8):
        (trust,) = audit_site(honest, seed, 50).book.trust_in(HOST)
        assert trust.listened
        assert trust.precision > 0.35
        assert trust.recall > 0.35
        assert trust.audits in (48, 49, 50)  # older ones have faded a little
        assert trust.recall_error < 0.4


@pytest.mark.parametrize("announce", [always_now, bulk_bumped, random_noise])
def test_a_site_whose_signals_say_nothing_is_not_believed_after_fifty_audits(announce: Announce) -> None:
    found = [audit_site(announce, seed, 50).book.trust_in(HOST)[0] for seed in range(12)]
    assert sum(each.listened for each in found) <= 1
    assert np.mean([each.precision for each in found]) < 0.1
    assert max(each.precision for each in found) < 0.35


def test_a_frozen_site_has_nothing_to_learn_from() -> None:
    ground = audit_site(frozen, 1, 50)
    assert ground.book.trust_in(HOST) == []
    assert not ground.book.to_save()


def test_pages_of_a_site_that_is_believed_hear_again_what_was_heard() -> None:
    """The scheduler forgets when it is told of another quality; what was said since the last crawl is said again."""
    ground = audit_site(honest, 3, 49)
    book, scheduler = ground.book, ground.scheduler
    now = max(row.fetched_at or 0.0 for row in ground.rows) + 3600.0
    page = 1 + int(np.argmin([row.fetched_at or 0.0 for row in ground.rows]))
    quiet = scheduler.explain(int(ground.ids[page - 1]), now / DAY_S).value
    assert book.heard([page], "sitemap", now) == 1
    loud = scheduler.explain(int(ground.ids[page - 1]), now / DAY_S).value
    assert loud > 1.2 * quiet
    rows = np.arange(len(book.trust.hosts))
    book.trust.recall[rows] = book.trust.precision[rows] = 0.0
    book.trust._due.update(rows.tolist())
    assert book.relearn(now) == 1
    assert scheduler.explain(int(ground.ids[page - 1]), now / DAY_S).value == pytest.approx(loud, rel=0.2)


def test_a_schedule_with_useless_signals_is_the_schedule_without_them() -> None:
    ground = audit_site(always_now, 5, 60)
    deaf = Ground(len(ground.rows))
    for each in (ground, deaf):
        each.scheduler.take(START / DAY_S + 1e-9, 0)
    later = START / DAY_S + 50.0
    loud = [ground.scheduler.explain(int(page), later).value for page in ground.ids]
    assert loud == pytest.approx([deaf.scheduler.explain(int(page), later).value for page in deaf.ids])
    assert ground.scheduler.counts.signals_heard == 0


def test_what_was_learned_of_a_host_outlives_a_restart() -> None:
    ground = audit_site(honest, 4, 50)
    (row,) = ground.book.to_save()
    assert row.learned is not None
    assert len(row.learned) <= MOST_BYTES
    again = Ground(20)
    assert again.book.load([row]) == []
    before, after = ground.book.trust_in(HOST)[0], again.book.trust_in(HOST)[0]
    assert after.listened
    assert after[1:] == pytest.approx(before[1:], rel=1e-3)
    again.book.entered(np.arange(1, 21), START)
    assert again.book.heard([1], "sitemap", START + DAY_S) == 1
    assert again.scheduler.counts.signals_heard == 1
    ground.book.saved(done=False)
    assert ground.book.to_save() == [row]
    ground.book.saved(done=True)
    assert not ground.book.to_save()  # once is enough


@pytest.mark.parametrize("garbage", [b"", b"garbage", b"\x96\x02\x90\xc4\x00\xc4\x00\xc4\x00\xc4\x00", b"\x00" * 5000])
def test_garbage_is_forgotten_with_a_sentence(garbage: bytes) -> None:
    book = Ground(3).book
    (sentence,) = book.load([HostRow(HOST, learned=garbage), HostRow("other.example")])
    assert HOST in sentence
    assert "forgotten" in sentence
    assert book.trust_in(HOST) == []


def test_numbers_that_cannot_be_are_refused_wherever_they_are() -> None:
    (row,) = audit_site(honest, 6, 20).book.to_save()
    assert row.learned is not None
    kept = from_bytes(row.learned)
    assert kept.kinds == ["sitemap"]
    assert kept.followed
    assert kept.memory.sums[0] == pytest.approx(20.0, rel=0.02)
    refused = 0
    for place in range(len(row.learned)):
        broken = bytearray(row.learned)
        broken[place] ^= 0xFF
        try:
            Ground(1).book.load([replace(row, learned=bytes(broken))])
            from_bytes(bytes(broken))
        except InvalidInput:
            refused += 1
    assert refused > 10


def test_two_kinds_that_come_together_are_both_listened_to() -> None:
    """Each alone is uncertain then; what they say together is not."""
    ground = Ground(20, rules=SignalRules(kinds=("sitemap", "feed")))
    rng, now, dirty = np.random.default_rng(2), START, np.zeros(20, dtype=bool)
    for turn in range(80):
        now += DAY_S / 8
        changed = rng.random(20) < 0.1
        dirty |= changed
        told = np.flatnonzero(changed & (rng.random(20) < 0.9)) + 1
        for kind in ("sitemap", "feed"):
            ground.book.heard(told, kind, now - 1.0, durable=False)
        page = turn % 20
        ground.book.crawled(ground.rows[page], now, now, bool(dirty[page]))
        ground.rows[page] = replace(ground.rows[page], fetched_at=now)
        dirty[page] = False
        ground.book.relearn(now)
    together = ground.book.trust_in(HOST)
    assert {each.kind for each in together} == {"sitemap", "feed"}
    assert any(each.listened for each in together)
    assert 1 - np.prod([1 - each.precision for each in together]) > 0.5
