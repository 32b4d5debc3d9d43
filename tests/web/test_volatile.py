"""Volatile places: what is learned from two fetches, what never is, and how masking works."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.web.change.volatile import is_number, joined_slots, learn_slots
from recrawl.web.change.volatile_mask import (
    ACROSS,
    BESIDE,
    EDGE,
    LINE,
    NUMBERS,
    WHOLE,
    Reading,
    Slot,
    context,
    fitting_slots,
    line_slot,
    masked_digest,
    masked_words,
    read_words,
)
from recrawl.web.content.words import tidy_text


def reading(text: str) -> Reading:
    return read_words(tidy_text(text.replace("\n", "\x1e").encode()))


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


ADVERT = "buy the red shoes"
OTHERS = ("visit our old town", "eat more green apples")


def with_advert(*lines: str) -> Reading:
    return reading(
        STORY
        + "press office\n"
        + "".join(f"{line}\n" for line in lines)
        + "editors note\n"
        + "and so the other story ended\n"
    )


@pytest.mark.parametrize("advert", [ADVERT, OTHERS[0], "a voice nobody heard before"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_line_put_beside_an_advertisement_is_seen_also_when_the_advertisement_changes(
    advert: str, place: int
) -> None:
    slots = learn_slots(with_advert(ADVERT), with_advert(OTHERS[0]))
    lines = [advert]
    lines.insert(place, "the factory closes")
    assert masked_digest(with_advert(*lines), slots) != masked_digest(with_advert(ADVERT), slots)
    assert masked_digest(with_advert(advert), slots) == masked_digest(with_advert(ADVERT), slots)


def test_a_line_put_beside_an_advertisement_stays_visible_once_it_is_known() -> None:
    """What would mask the new line is forgotten with the text that has it."""
    slots = learn_slots(with_advert(ADVERT), with_advert(OTHERS[0]))
    kept = fitting_slots(with_advert("the factory closes", ADVERT), slots)
    assert len(kept) < len(slots)
    assert fitting_slots(with_advert(ADVERT), slots) == slots
    closes, opens = (with_advert(f"the factory {what}", OTHERS[0]) for what in ("closes", "opens"))
    assert masked_digest(closes, kept) != masked_digest(opens, kept)
    assert masked_digest(closes, kept) == masked_digest(with_advert("the factory closes", ADVERT), kept)


def test_no_more_lines_are_masked_than_were_learned() -> None:
    slots = learn_slots(with_advert(ADVERT, OTHERS[0]), with_advert(OTHERS[1], ADVERT))
    two, three = with_advert("one more", "and another"), with_advert("one more", "and another", "and a third")
    assert masked_digest(two, slots) == masked_digest(with_advert(ADVERT, OTHERS[0]), slots)
    assert masked_digest(three, slots) != masked_digest(two, slots)


@pytest.mark.parametrize("form", ["{} readers", "Readers {}", "Readers\n{}\nin town"])
def test_where_only_numbers_were_learned_words_stay_visible(form: str) -> None:
    one, other, third, words = (form.format(what) + STORY for what in ("17", "19", "1,234", "no"))
    assert same_after_learning(one, other, one, third)
    assert not same_after_learning(one, other, one, words)


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
        words = slot.form == NUMBERS and not all(any(map(str.isdigit, word)) for word in text.strings(at, end))
        too_many_lines = 1 + sum(starts[at + 1 : end]) > slot.lines
        if words or too_many_lines or (end > at and slot.left_words and slow_starts(text, slot, end)):
            return -1
        if (slot.form != WHOLE or starts[end]) and slow_fits(text, (end, end + slot.right_words, end), slot.right):
            return end
    return -1


def slow_owners(text: Reading, slots: list[Slot], beside: bool) -> list[Slot | None]:
    """Which slot masks each word, by trying those known by one side, or the others, at every place."""
    owners: list[Slot | None] = [None] * len(text.shapes)
    tried = [slot for slot in slots if (slot.form == BESIDE) == beside]
    at = 0
    while at < len(owners):
        end, best = at, None
        for slot in tried:
            found = slow_end(text, slot, at)
            if found > end:
                end, best = found, slot
        owners[at:end] = [best] * (end - at)
        at = max(end, at + 1)
    return owners


def slow_mask(text: Reading, slots: list[Slot]) -> list[int]:
    """The words that stay: lines known by one side are masked last, and only if they do not make too many lines."""
    strong, weak = slow_owners(text, slots, False), slow_owners(text, slots, True)
    owners = [one or other for one, other in zip(strong, weak, strict=True)]
    visible = [row for row, owner in enumerate(owners) if owner is None]
    for _, rows in groupby(range(len(owners)), key=lambda row: owners[row] is None):
        places: dict[int, int] = {}
        region, lines = list(rows), 0
        for row in region:
            slot = owners[row]
            if slot is None or slot.form not in (BESIDE, WHOLE, LINE):
                continue
            lines += bool(text.starts_line[row]) and slot.lines > 0
            if slot.form != LINE:
                places[slot.place] = max(places.get(slot.place, 0), slot.lines)
        if lines > sum(places.values()):
            visible += [row for row in region if getattr(owners[row], "form", None) == BESIDE]
    return sorted(visible)


WORDS = st.lists(st.sampled_from(["a", "b", "c", "1", "\n"]), max_size=14).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(WORDS, WORDS, WORDS)
def test_the_compiled_mask_agrees_with_the_slow_one(one: str, other: str, text: str) -> None:
    slots = list(learn_slots(reading("x y z\n" + one + "\nu v w"), reading("x y z\n" + other + "\nu v w")))
    slots.append(Slot(int(context(reading("a").shapes, 0, 1)), 1, 0, 0, ACROSS, 2, 2))
    slots.append(Slot(int(context(reading("a b").shapes, 0, 2)), 2, 1, 0, BESIDE, 2, 1, 7))
    slots.append(Slot(2, 0, int(context(reading("b c").shapes, 0, 2)), 2, BESIDE, 1, 2, 8))
    slots.append(line_slot(reading("c a"), 0, 2, lines=1))
    slots.append(Slot(int(context(reading("b").shapes, 0, 1)), 1, EDGE, 0, NUMBERS, 2, 1))
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
