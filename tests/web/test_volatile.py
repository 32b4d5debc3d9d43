"""Volatile places: what is learned from two fetches, what never is, and how masking works."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.web.simhash import tidy_text
from recrawl.web.volatile import is_number, joined_slots, learn_slots
from recrawl.web.volatile_mask import (
    ACROSS,
    BESIDE,
    EDGE,
    INSIDE,
    LINE,
    WHOLE,
    Reading,
    Slot,
    context,
    masked_digest,
    masked_words,
    read_words,
)
from recrawl.web.volatile_passing import Side, passes


def reading(text: str) -> Reading:
    return read_words(tidy_text(text.replace("\n", "\x1e").encode()).text)


def same_after_learning(one: str, other: str, *pair: str) -> bool:
    """Whether two texts are equal once what differs between the first two has been masked."""
    slots = learn_slots(reading(one), reading(other))
    left, right = pair or (one, other)
    return masked_digest(reading(left), slots) == masked_digest(reading(right), slots)


STORY = "\nThe quick brown fox jumps over the lazy dog and the story goes on for a while\n"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Time 12:00:01 now", "Time 12:00:09 now"),
        ("Served by a1b2 in Rome", "Served by ffee in Rome"),
        ("Sponsored\nbuy red shoes today\nend", "Sponsored\nvisit the old town\nend"),
        ("Related\nalpha one\nbeta two\ngamma three\nend", "Related\ngamma three\nalpha one\nbeta two\nend"),
        ("17 readers online", "19 readers online"),
        ("Hits 17", "Hits 19"),
    ],
)
def test_what_differs_between_two_quick_fetches_is_masked_also_after_an_edit_elsewhere(one: str, other: str) -> None:
    assert same_after_learning(one + STORY, other + STORY)
    edited = STORY.replace("brown", "red").replace("while", "time")
    assert same_after_learning(one + STORY, other + STORY, one + edited, other + edited)
    assert not same_after_learning(one + STORY, other + STORY, one + STORY, other + edited)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Price: $10.00 only", "Price: $12.00 only"),
        ("Price\n10 €\nonly", "Price\n12 €\nonly"),
        ("Now EUR 10.50 each", "Now EUR 10.00 each"),
    ],
)
def test_a_price_is_never_volatile(one: str, other: str) -> None:
    assert learn_slots(reading(one + STORY), reading(other + STORY)) == ()


def test_a_price_between_two_counters_stays_visible() -> None:
    one, other = "Seen 17 times price $5 left 3 pieces", "Seen 18 times price $5 left 2 pieces"
    assert same_after_learning(one + STORY, other + STORY)
    assert not same_after_learning(one + STORY, other + STORY, one + STORY, one.replace("$5", "$6") + STORY)


def test_nothing_is_learned_from_two_pages_that_share_little() -> None:
    assert learn_slots(reading("a b c d e f g h"), reading("s t u v w x y z")) == ()


def test_a_volatile_line_is_known_by_one_side_but_never_when_it_has_a_number() -> None:
    """The line after an advertisement is a promotion that changes by the day."""
    head, one, other = "Read on below\n", "buy the red shoes", "visit our old town"
    first, second = (reading(f"{STORY}{head}{line}\nspring sale is here\n") for line in (one, other))
    slots = learn_slots(first, second)

    def masked(line: str, promotion: str) -> bytes:
        return masked_digest(reading(f"{STORY}{head}{line}\n{promotion}\n"), slots)

    assert masked(one, "autumn has come") == masked("eat more green apples", "autumn has come")
    assert masked(one, "autumn has come") != masked(one, "winter has come")
    assert masked(one, "autumn has come") != masked("eat 7 green apples", "autumn has come")


def test_a_slot_starts_at_the_nearest_of_equal_neighbours() -> None:
    """The same link stands twice above an advertisement at the end of the page."""
    links = STORY + "read our terms\nall about us\nread our terms\n"
    assert same_after_learning(links + "buy red shoes", links + "visit the old and lovely town today")
    pair = (links + "now", links + "visit the old and lovely town and stay a night")
    assert same_after_learning(links + "buy red shoes", links + "visit the old and lovely town today", *pair)


def slow_fits(text: Reading, place: tuple[int, int, int], value: int) -> bool:
    start, end, edge = place
    if start < 0 or end > len(text.shapes):
        return False
    if start < end:
        return int(context(text.shapes, start, end)) == value
    return edge in (0, len(text.shapes)) or (value == EDGE and bool(text.starts_line[edge]))


def slow_end_beside(text: Reading, slot: Slot, at: int) -> int:
    """Where the lines that start at a place end, -1 if one has a number or they do not stand beside the words."""
    starts = [*text.starts_line.tolist(), True]
    ends = [row for row in range(at + 1, len(starts)) if starts[row]]
    lines = slot.right if slot.left_words else slot.left
    if len(ends) < lines:
        return -1
    end = ends[lines - 1]
    place, hashed = ((at - slot.left_words, at), slot.left)
    if not slot.left_words:
        place, hashed = ((end, end + slot.right_words), slot.right)
    fits = 0 <= place[0] < place[1] < len(starts) and int(context(text.shapes, *place)) == hashed
    number = any(map(str.isdigit, "".join(text.strings(at, end))))
    return end if starts[at] and fits and not number and end - at <= 2 * slot.longest + 5 else -1


def slow_end_line(text: Reading, slot: Slot, at: int) -> int:
    starts = [*text.starts_line.tolist(), True]
    end = at + slot.left_words
    fine = end < len(starts) and starts[at] and starts[end]
    return end if fine and int(context(text.words.hashes, at, end)) == slot.left else -1


def slow_starts(text: Reading, slot: Slot, at: int) -> bool:
    starts = [*text.starts_line.tolist(), True]
    return (slot.form != WHOLE or starts[at]) and slow_fits(text, (at - slot.left_words, at, at), slot.left)


def slow_end(text: Reading, slot: Slot, at: int) -> int:
    """Where a slot that starts at a place ends, -1 if it does not."""
    count = len(text.shapes)
    starts = [*text.starts_line.tolist(), True]
    if slot.form in (BESIDE, LINE):
        return (slow_end_beside if slot.form == BESIDE else slow_end_line)(text, slot, at)
    if not slow_starts(text, slot, at):
        return -1
    for end in range(at, min(count, at + 2 * slot.longest + 4) + 1):
        if end > at and slot.left_words and slow_starts(text, slot, end):
            return -1
        if (slot.form != WHOLE or starts[end]) and slow_fits(text, (end, end + slot.right_words, end), slot.right):
            return end
        if slot.form == INSIDE and starts[end] and end > at:
            return -1
    return -1


def slow_mask(text: Reading, slots: list[Slot]) -> list[int]:
    """The words that stay, by trying every slot at every place."""
    out: list[int] = []
    at = 0
    while at < len(text.shapes):
        end = max(slow_end(text, slot, at) for slot in slots)
        if end <= at:
            out.append(at)
        at = max(end, at + 1)
    return out


WORDS = st.lists(st.sampled_from(["a", "b", "c", "1", "\n"]), max_size=14).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(WORDS, WORDS, WORDS)
def test_the_compiled_mask_agrees_with_the_slow_one(one: str, other: str, text: str) -> None:
    slots = list(learn_slots(reading("x y z\n" + one + "\nu v w"), reading("x y z\n" + other + "\nu v w")))
    slots.append(Slot(int(context(reading("a").shapes, 0, 1)), 1, 0, 0, ACROSS, 2))
    slots.append(Slot(int(context(reading("a b").shapes, 0, 2)), 2, 1, 0, BESIDE, 2))
    slots.append(Slot(2, 0, int(context(reading("b c").shapes, 0, 2)), 2, BESIDE, 1))
    read = reading(text)
    found = masked_words(read, slots)[1].tolist()
    assert found == slow_mask(read, slots)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "c", "d", "7"]), max_size=10),
    st.lists(st.sampled_from(["a", "b", "e", "9"]), max_size=10),
)
def test_learning_from_two_texts_never_fails(one: list[str], other: list[str]) -> None:
    left, right = (reading("p q r\n" + " ".join(part) + "\ns t u") for part in (one, other))
    slots = learn_slots(left, right)
    assert all(slot.longest >= 1 for slot in slots)
    assert len(joined_slots(slots, slots)) == len(slots)


@pytest.mark.parametrize("word", ["12", "-3.5%", "1,234.00", "$5", "€", "1/2", "(7)"])
def test_numbers(word: str) -> None:
    assert is_number(word) == (word != "€")


NOON = 1_790_000_000.0 // 86_400 * 86_400 + 12 * 3600


@pytest.mark.parametrize(
    ("old", "new", "before", "after", "passing"),
    [
        ("3", "4", "posted", "hours ago", True),
        ("59 minutes", "1 hour", "posted", "ago by", True),
        ("just now", "5m ago", "", "", True),
        ("3", "4", "only", "hours left", False),
        ("3", "4", "sold", "today in", False),
        ("10:00:01", "11:22:33", "", "", True),
        ("12:00", "13:07", "it is", "", True),
        ("09:00", "10:00", "opens at", "", False),
        ("1,204", "1,377", "", "views", True),
        ("1204", "1377", "Views:", "", True),
        ("1204", "1377", "", "pieces", False),
        ("$12", "$13", "", "views", False),
        ("", "4", "", "hours ago", False),
        ("cat", "dog", "", "", False),
    ],
)
def test_time_and_visitors_pass_but_other_numbers_do_not(
    old: str, new: str, before: str, after: str, passing: bool
) -> None:
    """The new text is fetched an hour and seven minutes after the old one, at noon."""
    sides = (
        Side(words.split(), before.split(), after.split(), at)
        for words, at in ((old, NOON), (new, NOON + 3600 + 7 * 60))
    )
    assert passes(*sides) == passing
