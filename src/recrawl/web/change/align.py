"""Where two word sequences differ: Myers' algorithm (1986), compiled and bounded.

The common start and end are skipped first. Sequences that differ in more than `MOST_EDITS` words are not followed word
by word: everything between the common start and end is then one span. O(words x edits).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import kernel
from recrawl.web.content.words import Hashes

MOST_EDITS = 400


class Span(NamedTuple):
    """Words `old_start` to `old_end` of the old text became words `new_start` to `new_end` of the new one."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def differing_spans(old: Hashes, new: Hashes) -> list[Span]:
    """The spans in which two word sequences differ, in order; none if they are equal."""
    return [Span(*map(int, row)) for row in _spans(old, new)]


@kernel
def _spans(old: Hashes, new: Hashes) -> NDArray[np.int32]:
    shorter = min(len(old), len(new))
    head = 0
    while head < shorter and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < shorter - head and old[len(old) - 1 - tail] == new[len(new) - 1 - tail]:
        tail += 1
    before, after = len(old) - head - tail, len(new) - head - tail
    if before == 0 and after == 0:
        return np.empty((0, 4), dtype=np.int32)
    spans = _middle(old[head : head + before], new[head : head + after])
    spans += head
    return spans


@kernel
def _middle(old: Hashes, new: Hashes) -> NDArray[np.int32]:
    limit = min(len(old) + len(new), MOST_EDITS)
    width = 2 * limit + 3
    furthest = np.zeros(width, dtype=np.int32)
    trace = np.empty((limit + 1, width), dtype=np.int32)
    centre = limit + 1
    for edits in range(limit + 1):
        trace[edits] = furthest
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (
                diagonal != edits and furthest[centre + diagonal - 1] < furthest[centre + diagonal + 1]
            )
            x = furthest[centre + diagonal + 1] if down else furthest[centre + diagonal - 1] + 1
            y = x - diagonal
            while x < len(old) and y < len(new) and old[x] == new[y]:
                x += 1
                y += 1
            furthest[centre + diagonal] = x
            if x >= len(old) and y >= len(new):
                return _walk_back(trace, edits, len(old), len(new))
    whole = np.zeros((1, 4), dtype=np.int32)
    whole[0, 1], whole[0, 3] = len(old), len(new)
    return whole


@kernel
def _walk_back(trace: NDArray[np.int32], edits: int, x: int, y: int) -> NDArray[np.int32]:
    """The edits from the end to the start, joined where they touch."""
    spans = np.empty((edits, 4), dtype=np.int32)
    count = 0
    centre = (trace.shape[1] - 3) // 2 + 1
    for step in range(edits, 0, -1):
        furthest = trace[step]
        diagonal = x - y
        down = diagonal == -step or (
            diagonal != step and furthest[centre + diagonal - 1] < furthest[centre + diagonal + 1]
        )
        from_diagonal = diagonal + 1 if down else diagonal - 1
        from_x = furthest[centre + from_diagonal]
        from_y = from_x - from_diagonal
        to_x, to_y = (from_x, from_y + 1) if down else (from_x + 1, from_y)
        if count and spans[count - 1, 0] == to_x and spans[count - 1, 2] == to_y:
            spans[count - 1, 0], spans[count - 1, 2] = from_x, from_y
        else:
            spans[count, 0], spans[count, 1], spans[count, 2], spans[count, 3] = from_x, to_x, from_y, to_y
            count += 1
        x, y = from_x, from_y
    return spans[:count][::-1].copy()
