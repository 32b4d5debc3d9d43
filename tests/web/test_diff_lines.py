"""Differences told apart by line: they make one text of the other, and a line with a partner stands for itself."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.web.change.diff_lines import differing_lines, line_spans
from recrawl.web.change.volatile import learn_slots
from recrawl.web.change.volatile_mask import Reading, read_words
from recrawl.web.content.words import tidy_text

LINES = st.lists(st.sampled_from(["a", "b", "a b", "b a c", "7", "c 7"]), max_size=8)


def reading(lines: list[str]) -> Reading:
    return read_words(tidy_text("\x1e".join(lines).encode()))


@settings(max_examples=200, deadline=None)
@given(LINES, LINES)
def test_the_differences_make_the_new_text_of_the_old_one(old: list[str], new: list[str]) -> None:
    before, after = reading(old), reading(new)
    words, other = before.strings(0, 10_000), after.strings(0, 10_000)
    made, at = [], 0
    for span in line_spans(before, after):
        assert span.old_start >= at
        made += words[at : span.old_start] + other[span.new_start : span.new_end]
        at = span.old_end
    assert made + words[at:] == other


def test_a_line_and_the_counter_below_it_are_two_differences() -> None:
    old, new = (reading(["story", advert, f"{count} views"]) for advert, count in (("buy shoes", 17), ("go home", 19)))
    assert line_spans(old, new) == [(1, 3, 1, 3), (3, 4, 3, 4)]
    assert differing_lines(old, new) == [([(1, 3), (3, 5)], [(1, 3), (3, 5)])]


def test_words_that_are_cut_into_other_lines_are_no_difference() -> None:
    assert line_spans(reading(["good day", "all"]), reading(["good", "day all"])) == []


def test_words_added_at_the_end_can_be_learned() -> None:
    story = ["the quick brown fox", "jumps over the lazy dog"]
    assert learn_slots(reading(story), reading([*story, "and so on"]))
    assert learn_slots(reading([*story, "and"]), reading([*story, "and so on for ever"]))
