"""Monitoring in instants: the compiled greedy is WIC's, and what it captured is counted truly."""

from __future__ import annotations

import math

import numpy as np
import pytest

from recrawl.errors import InvalidInput
from recrawl.lab.papers.wic_guarantee import Captures, WicUtilities
from recrawl.lab.simulation.auctions import Captured, Rule, monitor
from recrawl.lab.simulation.compare import seeds_of
from recrawl.lab.simulation.scenarios import AuctionTrial
from recrawl.lab.worlds.auctions import Changes, auction_changes, believed_probabilities


def slow_monitor(changes: Changes, believed: np.ndarray, crawls: float, rule: Rule) -> list[int]:
    """The same by the general form of the rule and plain loops; the delay of each captured change."""
    captures = Captures(changes_kept=1 if rule.overwrites else None, urgency=rule.urgency)
    pages = WicUtilities(np.ones(changes.shape[1]), captures)
    last = [-1] * changes.shape[1]
    delays: list[int] = []
    for now in range(len(changes)):
        pages.advance(believed[now])
        chosen = pages.best(math.floor((now + 1) * crawls) - math.floor(now * crawls))
        for page in chosen.tolist():
            seen = [k for k in range(last[page] + 1, now + 1) if changes[k, page]]
            delays += [now - k for k in (seen[-1:] if rule.overwrites else seen)]
            last[page] = now
        pages.captured(chosen)
    return delays


@pytest.mark.parametrize("overwrites", [False, True])
@pytest.mark.parametrize(("urgency", "crawls"), [(0.0, 3), (0.6, 3), (1.0, 3), (0.6, 0.375), (1.0, 2.25)])
def test_the_compiled_greedy_is_wics(overwrites: bool, urgency: float, crawls: float) -> None:
    """Delay by delay, for every life and urgency of the experiments, and for broken numbers of crawls an instant."""
    changes = auction_changes(60, 120, seed=3)
    believed = believed_probabilities(changes, 0.1, 2.0, seed=3)
    rule = Rule(overwrites, urgency)
    captured = monitor(changes, believed, crawls, rule)
    delays = slow_monitor(changes, believed, crawls, rule)
    assert np.repeat(np.arange(120), captured.delays).tolist() == sorted(delays)
    assert captured.delay == pytest.approx(np.mean(delays))


def test_a_third_of_a_crawl_an_instant_is_one_in_three_instants() -> None:
    """Whatever rounding makes of a third: round robin over two pages that always change."""
    changes = np.ones((9, 2), dtype=np.bool_)
    captured = monitor(changes, np.ones((9, 2), dtype=np.float32), 1 / 3, Rule(True, 1.0))
    assert captured.delays.sum() == 3


def test_enough_crawls_capture_everything_at_once() -> None:
    """With exact probabilities and a crawl for each change nothing is missed or late."""
    changes = auction_changes(40, 100, seed=5)
    captured = monitor(changes, changes.astype(np.float32), 40, Rule(False, 0.0))
    assert (captured.completeness, captured.timely, captured.utility(0.0)) == (1.0, 1.0, 1.0)


def test_utility_weighs_delays_and_timely_is_of_all_changes_or_of_the_captured_ones() -> None:
    """Two changes of four captured, one of them two instants late."""
    captured = Captured(np.array([1, 0, 1]), 4)
    assert captured.utility(0.5) == (1 + 0.25) / 4
    assert (captured.completeness, captured.timely, captured.timely_of_captured) == (0.5, 0.25, 0.5)
    nothing = Captured(np.zeros(3, dtype=np.int64), 4)
    assert (nothing.timely, nothing.timely_of_captured) == (0.0, 0.0)


def test_a_trial_tells_the_share_of_all_bids_that_is_seen_in_its_own_minute() -> None:
    trial = AuctionTrial(names=("wic-0-known",), pages=50, days=0.1, budget=1440.0, repetitions=1)
    (told,) = trial.repeat(0)
    changes = auction_changes(50, 144, seed=seeds_of(0, 0)[0])
    captured = monitor(changes, changes.astype(np.float32), 1.0, Rule(False, 0.0))
    assert told["timely"] == captured.delays[0] / changes.sum() < captured.timely_of_captured


def test_auctions_are_the_same_for_the_same_seed_and_differ_for_another() -> None:
    """To the bit."""
    assert np.array_equal(auction_changes(50, 60, seed=1), auction_changes(50, 60, seed=1))
    assert not np.array_equal(auction_changes(50, 60, seed=1), auction_changes(50, 60, seed=2))


def test_bids_cluster_before_the_close() -> None:
    """The last bid of a page has another shortly before it more often than chance would have it."""
    changes = auction_changes(4000, 1440, seed=2, bids=4.0)
    gaps = [np.diff(np.flatnonzero(changes[:, page]))[-1] for page in range(4000) if changes[:, page].sum() > 2]
    assert np.mean(np.array(gaps) < 30) > 0.3


def test_beliefs_keep_the_number_of_changes_up_to_the_edges() -> None:
    """Spreading and moving changes does not create or destroy probability, but at the ends of the day and at 1."""
    changes = auction_changes(300, 400, seed=4)
    believed = believed_probabilities(changes, 0.2, 3.0, seed=4)
    assert believed.sum() == pytest.approx(changes.sum(), rel=0.05)
    assert believed.max() <= 1.0


def test_exact_beliefs_are_the_truth() -> None:
    """Without moves and spread."""
    changes = auction_changes(30, 50, seed=6)
    assert np.array_equal(believed_probabilities(changes, 0.0, 0.0, seed=6), changes)


def test_no_pages_are_refused() -> None:
    """With a sentence."""
    with pytest.raises(InvalidInput, match="give at least one"):
        auction_changes(0, 10, seed=1)


def test_pages_in_turn_come_from_beliefs_that_are_the_same_for_all() -> None:
    """The policy `round-robin` of auctions captures what crawling pages one after the other does."""
    trial = AuctionTrial(names=("round-robin",), pages=30, days=0.1, budget=1440.0, repetitions=1)
    changes = auction_changes(30, 144, seed=seeds_of(0, 0)[0])
    captured = sum(int(changes[: 144 - (143 - page) % 30, page].sum()) for page in range(30))
    numbers = trial.repeat(0)[0]
    assert numbers["changes"] == changes.sum()
    assert numbers["completeness"] == pytest.approx(captured / changes.sum())


def test_who_is_told_every_bid_captures_all_if_there_are_crawls_enough() -> None:
    """At once and without delay."""
    trial = AuctionTrial(names=("wic-0-known", "wic-1"), pages=50, days=0.1, budget=1440.0 * 50, repetitions=1)
    told, uncertain = trial.repeat(0)
    assert (told["completeness"], told["timely"], told["delay"]) == (1.0, 1.0, 0.0)
    assert uncertain["delay"] > 0
