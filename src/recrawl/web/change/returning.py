"""Lines that come and go: promotions, variants of a test and whatever else a page shows by turns.

A line that went away is remembered by its hash. When it comes back, the page shows a variant of what it showed before:
that is noise until it has settled (`variants.has_settled`), however often the line came back before, since "sold out"
may come back many times and be meant each time. Lines with a digit are not followed: a price that goes back and forth
is news.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recrawl.web.change.diff_lines import Lines, differing_lines
from recrawl.web.change.volatile_mask import MARK, Flags, Reading, Slot, line_slot, masked_digest, masked_words

MOST_GONE = 32


class GoneLine(NamedTuple):
    """A line that went away, by the hash and number of its words, and how often it came back since."""

    line: int
    words: int
    returns: int


class Turn(NamedTuple):
    """Lines without a digit that went and that came in one place, as slots."""

    went: list[Slot]
    came: list[Slot]


def turns(old: Reading, new: Reading, slots: Sequence[Slot]) -> list[Turn]:
    """What went and came, place by place, outside the volatile places. O(words x slots)."""
    seen_old, seen_new = _seen(old, slots), _seen(new, slots)
    return [Turn(_slots(old, went, seen_old), _slots(new, came, seen_new)) for went, came in differing_lines(old, new)]


def only_returns(
    gone: Sequence[GoneLine], places: Sequence[Turn], old: Reading, new: Reading, slots: Sequence[Slot]
) -> bool:
    """Whether a text differs from an older one only in lines that came back, outside the volatile places. O(words).

    A line that went is part of that if a line came back in its place, or if it has come and gone before.

    Args:
        gone: lines that went away before.
        places: what `turns` gave for the two texts.
        old: the older text.
        new: the text.
        slots: volatile places.
    """
    if not gone:
        return False
    known = {each[:2]: each.returns for each in gone}
    passing: list[Slot] = []
    back = 0
    for went, came in places:
        returned = [line for line in came if line[:2] in known]
        often = [line for line in went if known.get(line[:2], 0) > 0]
        back += len(returned)
        passing += [*returned, *often]
        if len(went) <= len(returned):
            passing += went
    return back > 0 and masked_digest(old, (*slots, *passing)) == masked_digest(new, (*slots, *passing))


def follow_lines(gone: Sequence[GoneLine], places: Sequence[Turn]) -> tuple[GoneLine, ...]:
    """What is known of gone lines after one more difference of a page, given what `turns` said of it. O(lines)."""
    known = {each[:2]: each.returns for each in gone}
    here = {line for place in places for line in place.came}
    for went, came in places:
        for line in came:
            if line[:2] in known:
                known[line[:2]] = known.pop(line[:2]) + 1
        for line in went:
            if line not in here:  # else it has only moved
                known.setdefault(line[:2], 0)
    return tuple(GoneLine(*key, returns) for key, returns in known.items())[-MOST_GONE:]


def _slots(reading: Reading, lines: Lines, seen: Flags) -> list[Slot]:
    return [
        line_slot(reading, start, end)
        for start, end in lines
        if seen[start:end].any() and not (reading.shapes[start:end] == MARK).any()
    ]


def _seen(reading: Reading, slots: Sequence[Slot]) -> Flags:
    """Which words stand outside the volatile places."""
    seen = np.zeros(len(reading.shapes), dtype=np.bool_)
    seen[masked_words(reading, slots)[1]] = True
    return seen
