"""Lines that come and go: promotions, variants of a test and whatever else a page shows by turns.

A line that went away is remembered by its hash. When it comes back, nothing new is said; when it has come back twice,
it is held for noise wherever it stands. Lines with a digit are not followed: a price that goes back and forth is news.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recrawl.web.diff_lines import Lines, differing_lines
from recrawl.web.volatile_mask import MARK, Flags, Reading, Slot, line_slot, masked_digest, masked_words

MOST_GONE = 32
RETURNS_OF_NOISE = 2  # times a line came back before it is held for noise


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


def only_returns(gone: Sequence[GoneLine], old: Reading, new: Reading, slots: Sequence[Slot]) -> bool:
    """Whether a text differs from an older one only in lines that came back, outside the volatile places. O(words).

    A line that went is part of that if a line came back in its place, or if it has come and gone before.
    """
    known = {each[:2]: each.returns for each in gone}
    passing: list[Slot] = []
    back = 0
    for went, came in turns(old, new, slots):
        returned = [line for line in came if line[:2] in known]
        often = [line for line in went if known.get(line[:2], 0) > 0]
        back += len(returned)
        passing += [*returned, *often]
        if len(went) <= len(returned):
            passing += went
    return back > 0 and masked_digest(old, (*slots, *passing)) == masked_digest(new, (*slots, *passing))


def follow_lines(
    gone: Sequence[GoneLine], old: Reading, new: Reading, slots: Sequence[Slot]
) -> tuple[tuple[GoneLine, ...], list[Slot]]:
    """What is known of gone lines after one more change of a page, and those that are noise by now. O(words)."""
    known = {each[:2]: each.returns for each in gone}
    noise: list[Slot] = []
    places = turns(old, new, slots)
    here = {line for place in places for line in place.came}
    for went, came in places:
        returned = [line for line in came if line[:2] in known]
        for line in returned:
            known[line[:2]] += 1
        often = [line for line in returned if known[line[:2]] >= RETURNS_OF_NOISE]
        noise += often
        if often and len(went) <= len(often):  # what it took turns with
            noise += went
        for line in went:
            if line not in here:  # else it has only moved
                known.setdefault(line[:2], 0)
    for line in noise:
        known.pop(line[:2], None)
    return tuple(GoneLine(*key, returns) for key, returns in known.items())[-MOST_GONE:], noise


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
