"""Where two texts differ, told apart by line: an advertisement and the counter below it are two differences.

Lines are aligned first, then the words inside lines that differ. O(words x differing words), bounded.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import kernel
from recrawl.web.change.align import Span, differing_spans
from recrawl.web.change.volatile_mask import Reading, context
from recrawl.web.content.words import Hashes

MOST_PAIRED = 200  # lines in a row that are compared one by one

Lines = list[tuple[int, int]]
_Places = NDArray[np.int64]


def line_spans(old: Reading, new: Reading) -> list[Span]:
    """The spans of words in which two texts differ, in order; none if their words are equal.

    Where as many lines came as went, each is compared with the one in its place, and no span crosses their ends.
    """
    before, after = _line_places(old), _line_places(new)
    spans: list[Span] = []
    for block in _blocks(old, new, before, after):
        lines = block.old_end - block.old_start
        words = _words_of(before, after, block)
        if lines != block.new_end - block.new_start or lines > MOST_PAIRED or _same_words(old, new, words):
            spans += _word_spans(old, new, words)
            continue
        for line in range(lines):
            one, other = block.old_start + line, block.new_start + line
            spans += _word_spans(old, new, _words_of(before, after, Span(one, one + 1, other, other + 1)))
    return spans


def differing_lines(old: Reading, new: Reading) -> list[tuple[Lines, Lines]]:
    """The lines that went and those that came, place by place, each by its first word and the word after its last."""
    before, after = _line_places(old), _line_places(new)
    return [
        (_ends(before, block.old_start, block.old_end), _ends(after, block.new_start, block.new_end))
        for block in _blocks(old, new, before, after)
    ]


def _blocks(old: Reading, new: Reading, before: _Places, after: _Places) -> list[Span]:
    return differing_spans(_line_hashes(old.words.hashes, before), _line_hashes(new.words.hashes, after))


def _ends(places: _Places, first: int, last: int) -> Lines:
    ends = places[first : last + 1].tolist()
    return list(pairwise(ends))


def _words_of(before: _Places, after: _Places, lines: Span) -> Span:
    old, new = before[[lines.old_start, lines.old_end]], after[[lines.new_start, lines.new_end]]
    return Span(*old.tolist(), *new.tolist())


def _word_spans(old: Reading, new: Reading, place: Span) -> list[Span]:
    start, end, new_start, new_end = place
    found = differing_spans(old.words.hashes[start:end], new.words.hashes[new_start:new_end])
    return [Span(each[0] + start, each[1] + start, each[2] + new_start, each[3] + new_start) for each in found]


def _same_words(old: Reading, new: Reading, place: Span) -> bool:
    """Whether the words of two blocks agree, and only their lines are cut differently."""
    one, other = old.words.hashes[place.old_start : place.old_end], new.words.hashes[place.new_start : place.new_end]
    return bool(np.array_equal(one, other))


def _line_places(reading: Reading) -> _Places:
    """Where the lines of a text start, and where the last one ends."""
    return np.append(np.flatnonzero(reading.starts_line), len(reading.shapes)).astype(np.int64)


@kernel
def _line_hashes(hashes: Hashes, places: _Places) -> Hashes:
    out = np.empty(len(places) - 1, dtype=np.uint64)
    for line in range(len(out)):
        out[line] = context(hashes, places[line], places[line + 1])
    return out
