"""What passes with time and visitors: ages, clocks, dates and counters, and what only looks like them."""

from __future__ import annotations

from calendar import timegm
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.web.change.align import Reading, differences, line_spans, read_words
from recrawl.web.change.passing import Side, passes, without_drift
from recrawl.web.content.words import tidy_text

SATURDAY = float(timegm((2026, 11, 14, 9, 0, 0)))
HOUR, DAY = 3600.0, 86_400.0


def reading(text: str) -> Reading:
    return read_words(tidy_text(text.replace("\n", "\x1e").encode()))


def passed(old: str, new: str, elapsed: float | None, line: str = "{}") -> bool:
    """Whether the words in a line pass, fetched on Saturday at nine and so many seconds later."""
    before, after = line.split("{}")
    times = (SATURDAY, None if elapsed is None else SATURDAY + elapsed)
    sides = (
        Side(words.split(), before.split(), after.split(), at) for words, at in zip((old, new), times, strict=True)
    )
    return passes(*sides)


@pytest.mark.parametrize(
    ("old", "new", "elapsed", "line"),
    [
        ("3", "4", HOUR, "posted {} hours ago by Ann"),
        ("59 minutes", "1 hour", 7 * 60, "posted {} ago"),
        ("just now", "5m ago", 300, "{}"),
        ("2 hours ago", "yesterday", 20 * HOUR, "{}"),
        ("1 hour 5 minutes", "1 hour 35 minutes", 1800, "{} ago"),
        ("about 2", "about 3", 31 * DAY, "{} months ago"),
        ("09:00:04", "10:07:05", 67 * 60, "Server time {} UTC"),
        ("10:00:04", "11:07:05", 67 * 60, "Server time {} CET"),
        ("2:30", "3:37", 67 * 60, "It is {} PM in Delhi"),
        ("2:44", "3:51", 67 * 60, "It is {} PM in Kathmandu"),
        ("10:59 AM", "12:06 PM", 67 * 60, "{}"),
        ("Saturday, November 14", "Sunday, November 15", DAY, "Today is {}, 2026"),
        ("14", "15", DAY, "Nov {}, 2026"),
        ("Saturday", "Sunday", DAY, "Good {} to you"),
        ("Samstag, den 14", "Sonntag, den 15", DAY, "{}. November 2026"),
        ("sábado, 14", "domingo, 15", DAY, "{} de noviembre de 2026"),
        ("2026-11-14", "2026-11-16", 2 * DAY, "as of {}"),
        ("2026-11-14T09:00:01Z", "2026-11-15T10:00:03Z", DAY + HOUR, "{}"),
        ("14th", "15th", DAY, "the {} of November"),
    ],
)
def test_ages_clocks_and_dates_that_follow_the_fetches_pass(old: str, new: str, elapsed: float, line: str) -> None:
    assert passed(old, new, elapsed, line)
    assert not passed(old, new, None, line)
    assert not passed(old, new, elapsed + 100 * DAY + 5.2 * HOUR, line)


@pytest.mark.parametrize(
    ("old", "new", "elapsed", "line"),
    [
        ("3", "30", DAY, "orders placed {} days ago"),
        ("3", "4", HOUR, "only {} hours left"),
        ("3", "4", HOUR, "sold {} today in"),
        ("today", "now", DAY, "sale ends {}"),
        ("June", "July", DAY, "planned for {}"),
        ("November", "December", 20 * DAY, "planned for {}"),
        ("2026", "2027", 60 * DAY, "wage table for {}"),
        ("Monday", "Thursday", HOUR, "meets on {}"),
        ("Saturday", "Sunday", DAY, "Next meeting {} 28 November"),
        ("14", "15", DAY, "seats left: {}"),
        ("14", "15", DAY, "{} 09:00:02 o'clock"),
        ("2:01:39", "2:01:09", DAY, "world record {}"),
        ("10:31:00", "10:45:30", DAY, "departure {}"),
        ("09:00", "10:00", DAY, "opens at {}"),
        ("2026-12-01T12:00:00", "2027-01-15T12:00:00", DAY, "deadline {}"),
        ("2026-11-14", "2026-11-28", DAY, "deadline {}"),
        ("am", "pm", 4 * HOUR, "open {}"),
        ("", "4", HOUR, "{} hours ago"),
        ("cat", "dog", HOUR, "{}"),
        ("-", "09:00:00", HOUR, "{}"),
    ],
)
def test_ages_clocks_and_dates_that_are_content_do_not_pass(old: str, new: str, elapsed: float, line: str) -> None:
    assert not passed(old, new, elapsed, line)


@pytest.mark.parametrize(
    ("old", "new", "line", "passing"),
    [
        ("1,204", "1,377", "{} views", True),
        ("1204", "1377", "Views: {}", True),
        ("1 view", "2 views", "{} so far", True),
        ("1.9k", "2.1k", "{} views", True),
        ("12 999", "13 004", "{} hits", True),
        ("12", "13", "{} 004 visits", True),
        ("17", "9", "{} online", True),
        ("17", "9", "{} people are viewing this", True),
        ("1377", "1204", "{} views", False),
        ("2000", "2001", "career hits: {}", False),
        ("4", "5", "visits required: {}", False),
        ("10", "3", "places online: {}", False),
        ("4", "5", "read online {} pages", False),
        ("12", "13", "{} people work online", False),
        ("1204", "1377", "{} pieces", False),
        ("$12", "$13", "{} views", False),
        ("10", "none", "{} views", False),
    ],
)
def test_counters_of_visitors_pass_but_other_numbers_do_not(old: str, new: str, line: str, passing: bool) -> None:
    assert passed(old, new, None, line) == passing


def left(old: Reading, new: Reading, *times: float) -> list[str]:
    """The new words of the differences that time does not explain."""
    spans = without_drift(old, new, differences(old, new), *times)
    return [" ".join(new.strings(*span[2:])) for span in spans]


def test_what_time_explains_is_no_difference_and_nothing_else() -> None:
    old = reading("Updated 09:00:05 status green\nPosted 2 hours ago\n12 views\nfoot")
    new = reading("Updated 10:00:05 status red\nNew words\nPosted 3 hours ago\n19 views\nfoot")
    assert left(old, old, SATURDAY, SATURDAY) == []
    aligned = reading("Updated 10:00:05 status red\nPosted 3 hours ago\n19 views\nfoot")
    assert left(old, aligned, SATURDAY, SATURDAY + HOUR) == ["red"]
    assert any("New words" in words for words in left(old, new, SATURDAY, SATURDAY + HOUR))


def test_neighbours_are_taken_from_the_same_line_alone() -> None:
    old, new = reading("Views:\n12\nviews of town"), reading("Views:\n13\nviews of town")
    assert left(old, new, SATURDAY, SATURDAY + HOUR) == ["13"]


PASSING = ["a", "about", "ago", "an", "and", "at", "Nov.", "(12:30)", "14", "2026", "3", "hours", "just", "now"]
PASSING += ["Saturday", "UTC", "views", "online", "5k", "today,", "x", "word"]


@given(st.lists(st.sampled_from(PASSING), max_size=4), st.lists(st.sampled_from(PASSING), max_size=4))
def test_what_is_passed_over_for_its_words_could_not_have_passed(before: list[str], after: list[str]) -> None:
    """The glance at single words only saves work: what passes by all rules passes with it too."""
    lines = [f"posted {' '.join(words)} ago" for words in (before, after)]
    old, new = (reading(line) for line in lines)
    spans = line_spans(old, new)
    elapsed = (SATURDAY, SATURDAY + HOUR)
    by_rules = [
        passes(
            *(
                _side_of(each, place, at)
                for each, place, at in zip((old, new), (span[:2], span[2:]), elapsed, strict=True)
            )
        )
        for span in spans
    ]
    assert (not left(old, new, *elapsed)) == all(by_rules)


def _side_of(text: Reading, place: tuple[int, ...], at: float) -> Side:
    """One line of less than seven words around a place: all of them are its neighbours."""
    words = text.strings(0, 100)
    return Side(words[place[0] : place[1]], words[: place[0]], words[place[1] :], at)


@given(st.datetimes(datetime(1960, 1, 1), datetime(2070, 1, 1)), st.integers(-12, 14), st.integers(1, 10**7))
def test_a_page_that_shows_its_time_in_any_zone_passes(first: datetime, hours: int, minutes: int) -> None:
    """The civil calendar agrees with that of the standard library."""
    zone, at = timedelta(hours=hours), first.replace(tzinfo=UTC)
    times = (at, at + timedelta(minutes=minutes))
    one, other = (f"{each + zone:%A, %d %B %Y %H:%M:%S}" for each in times)
    sides = [Side(words.split(), [], [], each.timestamp()) for words, each in zip((one, other), times, strict=True)]
    assert passes(*sides)
