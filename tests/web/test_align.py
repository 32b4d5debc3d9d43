"""Differences told apart by line: they make one text of the other, and a line is compared with its partner."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.web.change.align import MARK, Reading, Span, carried, differences, differing_spans, line_spans, read_words
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
    assert differences(old, new) == [(1, 3, 1, 3), (3, 4, 3, 4)]


def test_words_that_are_cut_into_other_lines_are_no_difference() -> None:
    assert line_spans(reading(["good day", "all"]), reading(["good", "day all"])) == []


def test_a_line_of_which_most_words_differ_is_one_difference_unless_it_is_a_number() -> None:
    assert differences(reading(["a b c d"]), reading(["x b y z"])) == [(0, 4, 0, 4)]
    assert differences(reading(["a b c d"]), reading(["x b c d"])) == [(0, 1, 0, 1)]
    assert differences(reading(["bid 7"]), reading(["bid 8"])) == [(1, 2, 1, 2)]


def test_the_lines_of_a_noisy_range_agree_with_nothing() -> None:
    old, new = reading(["story", "one", "two", "end"]), reading(["story", "two", "three", "end"])
    assert differences(old, new) == [(1, 2, 1, 1), (3, 3, 2, 3)]
    assert differences(old, new, [(1, 3)]) == [(1, 2, 1, 2), (2, 3, 2, 3)]


def slow_lines(text: Reading) -> list[tuple[int, int]]:
    starts = [row for row, starts in enumerate(text.starts_line.tolist()) if starts]
    return list(pairwise([*starts, len(text.shapes)]))


def slow_differences(old: Reading, new: Reading) -> list[Span]:
    """Block by block of lines, then line by line, as the docstring says."""
    before, after = slow_lines(old), slow_lines(new)
    numbers: dict[tuple[str, ...], int] = {}

    def coded(text: Reading, lines: list[tuple[int, int]]) -> list[int]:
        return [numbers.setdefault(tuple(text.strings(*line)), len(numbers)) for line in lines]

    one, other = (np.array(coded(*each), dtype=np.uint64) for each in ((old, before), (new, after)))
    before, after = [*before, (len(old.shapes),) * 2], [*after, (len(new.shapes),) * 2]
    found: list[Span] = []
    for block in differing_spans(one, other):
        place = Span(before[block[0]][0], before[block[1]][0], after[block[2]][0], after[block[3]][0])
        if old.strings(*place[:2]) == new.strings(*place[2:]):
            continue
        if block.old_end - block.old_start != block.new_end - block.new_start:
            found.append(place)
            continue
        for line in range(block.old_end - block.old_start):
            found += slow_in_line(old, new, Span(*before[block.old_start + line], *after[block.new_start + line]))
    return found


def slow_in_line(old: Reading, new: Reading, line: Span) -> list[Span]:
    spans = differing_spans(old.words.hashes[slice(*line[:2])], new.words.hashes[slice(*line[2:])])
    spans = [Span(a + line[0], b + line[0], c + line[2], d + line[2]) for a, b, c, d in spans]
    number = len(spans) == 1 and all(
        hash_ == MARK for hash_ in (*old.shapes[slice(*spans[0][:2])], *new.shapes[slice(*spans[0][2:])])
    )
    return [line] if 2 * sum(each.words for each in spans) > line.words and not number else spans


@settings(max_examples=200, deadline=None)
@given(LINES, LINES)
def test_the_compiled_differences_agree_with_the_slow_ones(old: list[str], new: list[str]) -> None:
    before, after = reading(old), reading(new)
    assert differences(before, after) == slow_differences(before, after)


@settings(max_examples=200, deadline=None)
@given(LINES, LINES, st.integers(0, 9), st.integers(0, 9))
def test_a_range_that_no_difference_meets_is_carried_to_the_same_words(
    old: list[str], new: list[str], start: int, end: int
) -> None:
    before, after = reading(old), reading(new)
    spans = differences(before, after)
    start, end = sorted((min(start, len(before.shapes)), min(end, len(before.shapes))))
    met = any(span.old_start <= end and start <= span.old_end for span in spans)
    if not met:
        assert after.strings(*carried(spans, start, end)) == before.strings(start, end)


def test_a_range_grows_by_what_came_beside_it_if_that_is_wanted() -> None:
    spans = differences(reading(["a", "b"]), reading(["a", "new", "b"]))
    assert carried(spans, 1, 2) == (2, 3)
    assert carried(spans, 1, 2, grow=True) == (1, 3)
