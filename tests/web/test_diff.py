"""Alignment against the textbook table, and diffs that are bounded and never empty."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.web.change.align import MOST_EDITS, differing_spans
from recrawl.web.change.diff import MOST_HUNKS, MOST_SHOWN, diff_text


def slow_edits(old: list[int], new: list[int]) -> int:
    """Least number of words to take away and add, by the table of longest common subsequences."""
    table = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for x, left in enumerate(old):
        for y, right in enumerate(new):
            table[x + 1][y + 1] = table[x][y] + 1 if left == right else max(table[x][y + 1], table[x + 1][y])
    return len(old) + len(new) - 2 * table[-1][-1]


def as_hashes(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=25), st.lists(st.integers(0, 3), max_size=25))
def test_spans_rebuild_the_new_text_with_the_fewest_edits(old: list[int], new: list[int]) -> None:
    spans = differing_spans(as_hashes(old), as_hashes(new))
    built, at = [], 0
    for span in spans:
        built += old[at : span.old_start] + new[span.new_start : span.new_end]
        at = span.old_end
    assert built + old[at:] == new
    assert sum(s.old_end - s.old_start + s.new_end - s.new_start for s in spans) == slow_edits(old, new)


def test_texts_that_differ_in_too_many_words_are_one_span() -> None:
    old, new = list(range(MOST_EDITS)), list(range(10_000, 10_000 + MOST_EDITS))
    assert differing_spans(as_hashes([7, *old, 9]), as_hashes([7, *new, 9])) == [(1, 401, 1, 401)]


def test_a_price_is_shown_with_its_context() -> None:
    diff = diff_text(b"Lamp\nPrice $10.00 today", b"Lamp\nPrice $12.50 today")
    assert str(diff) == "@@ Lamp Price [-$10.00-]{+$12.50+} today"
    assert (diff.removed_words, diff.added_words, diff.hidden) == (1, 1, 0)


def test_a_restyled_text_has_no_diff() -> None:
    assert not diff_text(b"Good day\nall", b"Good\nday all")


def test_a_diff_is_bounded_and_says_what_it_hides() -> None:
    rng = random.Random(1)
    words = [f"w{rng.random()}" for _ in range(600)]
    other = [f"x{number}" if number % 2 else word for number, word in enumerate(words)]
    diff = diff_text(" ".join(words[:380]).encode(), " ".join(other[:380]).encode())
    assert len(diff.hunks) == MOST_HUNKS
    assert str(diff).endswith(f"@@ {diff.hidden} more")
    long = diff_text(b"a", b"z" * 100_000)
    assert len(str(long)) < 2 * MOST_SHOWN + 100


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["a", "b", "$1", "漢"]), max_size=8),
    st.lists(st.sampled_from(["a", "b", "$1", "漢"]), max_size=8),
)
def test_texts_with_other_words_never_have_an_empty_diff(old: list[str], new: list[str]) -> None:
    diff = diff_text(" ".join(old).encode(), "\n".join(new).encode())
    assert bool(diff) == (old != new)
    assert all(hunk.removed or hunk.added for hunk in diff.hunks)
