"""A page is removed after confirmations spread over time, and never because its host is ill."""

from __future__ import annotations

import pytest

from recrawl.errors import InvalidInput
from recrawl.outcomes import Outcome
from recrawl.tracker.pipeline.decide import Absence, absence_after, is_removed, recheck_after_s
from recrawl.tracker.settings.settings import RemovalRules

DAY = 86_400.0
RULES = RemovalRules()


def _story(answers: list[tuple[float, Outcome]], *, ill: bool = False) -> list[bool]:
    absence, verdicts = Absence(), []
    for now, outcome in answers:
        absence = absence_after(absence, outcome, now, frozen=ill)
        verdicts.append(is_removed(absence, outcome, now, RULES))
    return verdicts


def test_three_misses_over_a_day_remove_a_page_and_fewer_or_faster_do_not() -> None:
    assert _story([(0, "missing"), (DAY / 2, "missing"), (DAY, "missing")]) == [False, False, True]
    assert not any(_story([(0, "missing"), (1, "missing"), (2, "missing"), (3, "missing")]))
    assert not any(_story([(0, "missing"), (9 * DAY, "missing")]))


def test_gone_is_said_on_purpose_and_needs_less() -> None:
    assert _story([(0, "gone"), (3600, "gone")]) == [False, True]


@pytest.mark.parametrize("error", ["server-error", "network-error", "forbidden", "rate-limited", "blocked-page"])
def test_an_error_neither_counts_nor_clears(error: Outcome) -> None:
    assert _story([(0, "missing"), (10, error), (DAY / 2, "missing"), (DAY, error), (DAY, "missing")])[-1]
    assert not any(_story([(n * DAY, error) for n in range(10)]))


def test_a_page_that_comes_clears_what_was_counted() -> None:
    assert not any(_story([(0, "missing"), (DAY, "missing"), (DAY, "ok"), (2 * DAY, "missing"), (3 * DAY, "missing")]))


def test_nothing_is_counted_while_the_host_is_ill() -> None:
    assert not any(_story([(n * DAY, "missing") for n in range(10)], ill=True))


def test_looks_fill_the_time_that_confirmations_need() -> None:
    absence, now, looks = Absence(), 0.0, 0
    while True:
        absence = absence_after(absence, "missing", now, frozen=False)
        looks += 1
        if is_removed(absence, "missing", now, RULES):
            break
        now += recheck_after_s(absence, RULES, "missing")
    assert looks == 3
    assert DAY <= now < 1.5 * DAY


def test_rules_without_any_confirmation_are_refused() -> None:
    with pytest.raises(InvalidInput, match="missing_times is 0"):
        RemovalRules(missing_times=0)
