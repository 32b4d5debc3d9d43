"""Budgets and durations from text, and durations for people."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.errors import InvalidInput
from recrawl.units import format_duration, parse_budget, parse_duration_days


@pytest.mark.parametrize(
    ("text", "per_day"),
    [
        ("2000/day", 2000.0),
        ("2_000/d", 2000.0),
        (" 2 / s ", 172_800.0),
        ("2/S", 172_800.0),
        ("1/sec", 86_400.0),
        ("1/second", 86_400.0),
        ("3/min", 4320.0),
        ("1.5/hour", 36.0),
        ("7/week", 1.0),
        ("7/weeks", 1.0),
        ("30/month", 1.0),
        ("365/y", 1.0),
        ("1e3/day", 1000.0),
        ("0/day", 0.0),
        ("20%", 200.0),
        ("0.5 %", 5.0),
        ("250%", 2500.0),
    ],
)
def test_a_budget_is_a_rate_or_a_share_of_the_pages(text: str, per_day: float) -> None:
    """All become crawls per day, here for a thousand pages."""
    assert parse_budget(text).per_day(pages=1000) == pytest.approx(per_day, rel=1e-12)


@pytest.mark.parametrize(
    "text",
    ["", "2000", "/day", "-1/day", "+1/day", "1,5/day", "nan/day", "inf%", "%", "1/2/day", "1_/day", "1__0/day",
     "1e/day", "1 000/day", "20%/day", "1.e5/day", "\N{FULLWIDTH DIGIT ONE}/day", "0x10/day", "1/d\0"],
)  # fmt: skip
def test_what_is_no_budget_is_refused_with_examples(text: str) -> None:
    """The sentence shows what was typed and how it is meant to look."""
    with pytest.raises(InvalidInput, match="such as 2000/day, 2/s or 20%") as caught:
        parse_budget(text)
    assert caught.value.field == "budget"
    assert str(caught.value).startswith(f"budget is {text!r}: ")


@pytest.mark.parametrize("unit", ["fortnight", "ms", "m", "decade", "\N{LATIN SMALL LETTER LONG S}"])
def test_an_unknown_unit_is_named(unit: str) -> None:
    """A millisecond is not quietly taken for a minute."""
    with pytest.raises(InvalidInput, match="is no unit of time; use s, min, h, day, week, month or year"):
        parse_budget(f"1/{unit}")


@pytest.mark.parametrize("text", ["1e999/day", "1e308/s", "1e999%"])
def test_a_budget_beyond_all_numbers_is_refused(text: str) -> None:
    """Also one that overflows only when it is turned into days."""
    with pytest.raises(InvalidInput, match="too large to compute with"):
        parse_budget(text)


@pytest.mark.parametrize(
    ("text", "days"),
    [("90s", 1 / 960), ("15min", 1 / 96), ("6h", 0.25), ("3 days", 3.0), ("2w", 14.0), ("1 Month", 30.0), ("0s", 0.0)],
)
def test_durations_become_days(text: str, days: float) -> None:
    """With or without a space, in singular and plural."""
    assert parse_duration_days(text) == pytest.approx(days, rel=1e-12)


@pytest.mark.parametrize("text", ["", "6", "h", "-6h", "6 fortnights", "1e999d", "1e308y", "6h 30min"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """In one sentence that names what was typed."""
    with pytest.raises(InvalidInput, match=r"^duration is ") as caught:
        parse_duration_days(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (0.0, "0 s"),
        (1 / 86400, "1 s"),
        (1 / 1440, "1 min"),
        (0.25, "6 h"),
        (1.0, "24 h"),
        (12.0, "12 d"),
        (99.6, "100 d"),
        (500.0, "500 d"),
        (730.0, "2 y"),
        (36_500.0, "100 y"),
        (1e60, "2.7e+57 y"),
        (math.inf, "never"),
    ],
)
def test_durations_for_people(days: float, text: str) -> None:
    """Two digits of meaning in the unit that fits."""
    assert format_duration(days) == text


@given(st.floats(min_value=1e-9, max_value=1e9))
def test_a_written_duration_reads_back(days: float) -> None:
    """To the two digits that it shows."""
    assert parse_duration_days(format_duration(days)) == pytest.approx(days, rel=0.051)
