"""Backoff: longer after each failure, finite, spread, and the same in every run."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import InvalidInput
from recrawl.web.fetch.retry import BackoffRules, backoff_s, seeded_uniform, spread_until


@given(st.integers(0, 10**12), st.floats(0, 1))
def test_every_wait_is_finite_and_at_most_the_longest(failures: int, uniform: float) -> None:
    wait_s = backoff_s(failures, uniform)
    assert 0.0 <= wait_s <= 7 * 86_400.0
    assert math.isfinite(wait_s)


def test_the_wait_doubles_until_the_longest_and_no_failure_means_no_wait() -> None:
    rules = BackoffRules(first_s=10.0, longest_s=100.0, jitter=0.0)
    assert [backoff_s(failures, 0.3, rules) for failures in range(7)] == [0.0, 10.0, 20.0, 40.0, 80.0, 100.0, 100.0]


def test_jitter_takes_away_at_most_its_share() -> None:
    rules = BackoffRules(first_s=100.0, jitter=0.5)
    assert backoff_s(1, 0.0, rules) == 50.0
    assert backoff_s(1, 0.5, rules) == 75.0
    assert backoff_s(1, 1.0, rules) == 100.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"first_s": -1.0}, "first_s is -1.0"),
        ({"first_s": math.nan}, "first_s is nan"),
        ({"factor": 0.5}, "factor is 0.5"),
        ({"longest_s": 1.0}, "longest_s is 1.0"),
        ({"longest_s": math.inf}, "longest_s is inf"),
        ({"jitter": 1.5}, "jitter is 1.5"),
    ],
)
def test_rules_that_make_no_sense_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        BackoffRules(**settings)


def test_seeded_numbers_repeat_and_differ_by_name_turn_and_seed() -> None:
    numbers = [
        seeded_uniform(seed, name, turn) for seed in (1, 2) for name in ("a.example", "b.example") for turn in range(50)
    ]
    assert len(set(numbers)) == 200
    assert all(0.0 <= number < 1.0 for number in numbers)
    assert 0.4 < sum(numbers) / 200 < 0.6
    assert numbers[0] == seeded_uniform(1, "a.example", 0)


def test_waiters_return_spread_over_time_after_a_pause() -> None:
    returns = [spread_until(1000.0, seeded_uniform(0, f"page{number}", 1)) for number in range(100)]
    assert min(returns) >= 1000.0
    assert max(returns) <= 1030.0
    assert len({round(moment) for moment in returns}) > 20
