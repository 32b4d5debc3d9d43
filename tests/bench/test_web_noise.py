"""The noise measures at a small size: what they count is right, and what they claim holds."""

from __future__ import annotations

import pytest

from recrawl.bench.web_noise import (
    History,
    Watcher,
    lasting_pages,
    long_histories,
    noise_measures,
    noisy_world,
    rate_errors,
    tally_of,
)
from recrawl.lab.livingweb.text import noise_kinds
from recrawl.web.content.rules import ContentRules


def test_noise_makes_few_events_and_changes_are_found() -> None:
    """One web of the five that the measures read, with fewer pages."""
    tally = tally_of(2, pages=40, visits=40)
    assert tally.pages > 25
    assert tally.visits == 40 * tally.pages
    assert 0.2 < tally.changes / tally.visits < 0.4
    assert tally.false_share < 0.01
    assert tally.missed <= 0.01 * tally.changes
    assert tally.further_fetches < 0.25 * tally.visits


def test_the_corpus_is_noisy() -> None:
    """Without telling noise from change nearly every quiet visit is a false event, and no change is missed."""
    tally = tally_of(2, pages=10, visits=10, rules=ContentRules(learn_noise=False))
    assert tally.false_share > 0.6
    assert tally.missed == 0


def test_a_watcher_reports_nothing_at_first_and_a_change_once() -> None:
    world = noisy_world(1, 30)
    page = next(each for each in lasting_pages(world) if noise_kinds(world.pages.noise[each]) == ["nonce"])
    watcher = Watcher(world, page)
    start = world.epoch + max(0.0, world.pages.born[page])
    change = world.changes(page, start, start + 1e7)[0]
    looks = [watcher.look(at) for at in (start, change - 0.1, change + 0.1, change + 0.2)]
    assert [look.reported for look in looks] == [False, False, True, False]
    assert not any(look.is_false for look in looks)


def test_rates_learned_from_verdicts_are_right_for_every_kind_of_noise() -> None:
    histories, kinds = long_histories(2, pages_of_kind=1, visits=200)
    errors = rate_errors(histories, kinds)
    assert len(errors.by_kind) == 9
    assert abs(errors.overall) < 0.2
    truly = rate_errors(histories, kinds, truth=True)
    for kind, error in errors.by_kind.items():
        assert error == pytest.approx(truly.by_kind[kind], abs=0.1)


def test_rate_errors_are_relative_and_grouped_by_kind() -> None:
    """Two pages that change at every second visit, one of which is said to change half as often."""
    seen = [visit % 2 == 0 for visit in range(400)]
    histories = [History(rate, [1.0] * 400, seen, seen) for rate in (0.6931, 0.34657)]
    errors = rate_errors(histories, [["ads"], ["clock"]])
    assert errors.by_kind["ads"] == pytest.approx(0.0, abs=0.03)
    assert errors.by_kind["clock"] == pytest.approx(1.0, abs=0.06)
    assert errors.within == 0.5


def test_the_measures_are_named_and_bounded() -> None:
    bounds = {measure.name: str(measure.bound) for measure in noise_measures()}
    assert bounds == {
        "noise_false_events": "value ≤ 0.01",
        "noise_true_detected": "value ≥ 0.99",
        "noise_rate_error": "value ≤ 0.2",
    }
