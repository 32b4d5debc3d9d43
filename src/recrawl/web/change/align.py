"""Where two texts differ, told apart by line: an advertisement and the counter below it are two differences.

Lines are aligned first, then the words inside lines that differ, both by Myers' algorithm (1986), compiled and bounded:
sequences that differ in more than `MOST_EDITS` items are one span between their common start and end.
O(words x differing words).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import borrowing, kernel
from recrawl.web.content.words import Hashes, Places, Words, split_words, tidy_text

MOST_EDITS = 400
MOST_PAIRED = 200  # lines in a row that are compared one by one
MARK = 0x5EED_0F_5107  # takes the place of the hash of any word with a digit
_PRIME = 0x9E3779B97F4A7C15

Flags = NDArray[np.bool_]
_Lines = NDArray[np.int64]


class Span(NamedTuple):
    """Words `old_start` to `old_end` of the old text became words `new_start` to `new_end` of the new one."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int

    @property
    def words(self) -> int:
        """Words on the longer side."""
        return max(self.old_end - self.old_start, self.new_end - self.new_start)

    @property
    def flipped(self) -> Span:
        """The same with old and new exchanged."""
        return Span(self.new_start, self.new_end, self.old_start, self.old_end)


class _Text(NamedTuple):
    """What kernels take of a text."""

    hashes: Hashes
    shapes: Hashes
    starts_line: Flags


class Reading(NamedTuple):
    """A text with its words, the hashes of these with all numbers taken as equal, and which words start a line."""

    text: bytes
    words: Words
    shapes: Hashes
    starts_line: Flags

    def strings(self, start: int, end: int) -> list[str]:
        """The words `start` to `end`; places outside the text are left out."""
        start, end = max(start, 0), min(end, len(self.words.hashes))
        return [
            self.text[self.words.starts[row] : self.words.ends[row]].decode("utf-8", "replace")
            for row in range(start, end)
        ]

    def lines_in(self, start: int, end: int) -> int:
        """How many lines a range of words is on."""
        return 0 if start == end else 1 + int(self.starts_line[start + 1 : end].sum())

    def is_edge(self, place: int) -> bool:
        """Whether a line starts at a word, or the text ends there."""
        return place >= len(self.shapes) or bool(self.starts_line[place])

    def has_number(self, start: int, end: int) -> bool:
        """Whether a word of a range has a digit."""
        return bool((self.shapes[start:end] == MARK).any())

    def is_numbers(self, start: int, end: int) -> bool:
        """Whether all words of a range have a digit."""
        return bool((self.shapes[start:end] == MARK).all())


def tidied(text: bytes) -> bytes:
    """A text with lines by newline, tidied."""
    return tidy_text(text.replace(b"\n", b"\x1e"))


def read_words(text: bytes) -> Reading:
    """A tidied text with its words. O(bytes)."""
    words = split_words(text)
    return Reading(text, words, *_shapes(np.frombuffer(text, dtype=np.uint8), *words))


def differing_spans(old: Hashes, new: Hashes) -> list[Span]:
    """The spans in which two word sequences differ, in order; none if they are equal."""
    return [Span(*row) for row in _spans(old, new).tolist()]


def differences(old: Reading, new: Reading, noisy: Sequence[tuple[int, int]] = ()) -> list[Span]:
    """The differences of two texts, in order; none if their words are equal.

    Where as many lines came as went, each is compared with the one in its place, and no difference crosses their ends.
    A line of which more than half the words differ is one difference.

    Args:
        old: a text.
        new: a later text.
        noisy: ranges of the old text whose whole lines agree with nothing, so that no range is cut in two because one
            of its lines is the same by chance.
    """
    whole = [each for each in noisy if old.is_edge(each[0]) and old.is_edge(each[1])]
    one = _Text(old.words.hashes, old.shapes, old.starts_line)
    other = _Text(new.words.hashes, new.shapes, new.starts_line)
    found = _differences(one, other, np.array(whole, dtype=np.int64).reshape(-1, 2))
    return [Span(*row) for row in found.tolist()]


def line_spans(old: Reading, new: Reading) -> list[Span]:
    """The spans of words in which two texts differ, line by line, in order; none if their words are equal."""
    return [inner for span in differences(old, new) for inner in word_spans(old, new, span)]


def word_spans(old: Reading, new: Reading, place: Span) -> list[Span]:
    """The spans in which the words of a difference differ, in order."""
    start, end, new_start, new_end = place
    found = differing_spans(old.words.hashes[start:end], new.words.hashes[new_start:new_end])
    return [Span(each[0] + start, each[1] + start, each[2] + new_start, each[3] + new_start) for each in found]


def carried(spans: Sequence[Span], start: int, end: int, *, grow: bool = False) -> tuple[int, int]:
    """A range of the old text as a range of the new one.

    Args:
        spans: the differences of the two texts.
        start: first word of the range.
        end: the word after its last.
        grow: whether what came right beside the range belongs to it.
    """
    shift, first, last = 0, None, None
    for span in spans:
        if _overlaps(span, start, end, grow):
            first, last = first or span, span
        elif span.old_end <= start:
            shift = span.new_end - span.old_end
    if first is None or last is None:
        return start + shift, end + shift
    return (
        start + shift if start < first.old_start else first.new_start,
        end + last.new_end - last.old_end if end > last.old_end else last.new_end,
    )


def _overlaps(span: Span, start: int, end: int, grow: bool) -> bool:
    if grow:
        return span.old_start <= end and span.old_end >= start
    return (span.old_start < end and span.old_end > start) or start == end == span.old_start == span.old_end


@kernel
def _shapes(text: NDArray[np.uint8], hashes: Hashes, starts: Places, ends: Places) -> tuple[Hashes, NDArray[np.bool_]]:
    shapes = hashes.copy()
    starts_line = np.zeros(len(hashes), dtype=np.bool_)
    for row in range(len(hashes)):
        for place in range(starts[row], ends[row]):
            if 0x30 <= text[place] <= 0x39:
                shapes[row] = np.uint64(MARK)
        starts_line[row] = starts[row] == 0 or text[starts[row] - 1] == 0x0A
    return shapes, starts_line


@kernel
def _differences(old: _Text, new: _Text, noisy: NDArray[np.int64]) -> NDArray[np.int32]:
    before, after = _line_places(old.starts_line), _line_places(new.starts_line)
    one, other = _line_hashes(old.hashes, before), _line_hashes(new.hashes, after)
    for row in range(len(noisy)):
        for line in range(len(one)):
            if noisy[row, 0] <= before[line] and before[line + 1] <= noisy[row, 1]:
                one[line] = np.uint64(line)  # a hash of no line
    blocks = _spans(one, other)
    out, count = np.empty((16, 4), dtype=np.int32), 0
    for block in range(len(blocks)):
        first, last, new_first, new_last = blocks[block, 0], blocks[block, 1], blocks[block, 2], blocks[block, 3]
        start, end, new_start, new_end = before[first], before[last], after[new_first], after[new_last]
        if _same(old.hashes, start, end, new.hashes, new_start, new_end):
            continue
        lines = last - first
        if lines != new_last - new_first or lines > MOST_PAIRED:
            out = _with_room(out, count, 1)
            out[count, 0], out[count, 1], out[count, 2], out[count, 3] = start, end, new_start, new_end
            count += 1
            continue
        for line in range(lines):
            start, end = before[first + line], before[first + line + 1]
            new_start, new_end = after[new_first + line], after[new_first + line + 1]
            found = _in_line(old, new, start, end, new_start, new_end)
            out = _with_room(out, count, len(found))
            out[count : count + len(found)] = found
            count += len(found)
    return out[:count]


@kernel
def _in_line(old: _Text, new: _Text, start: int, end: int, new_start: int, new_end: int) -> NDArray[np.int32]:
    """The differences of two lines: one if most words differ, unless a number alone does."""
    found = _spans(old.hashes[start:end], new.hashes[new_start:new_end])
    words = 0
    for row in range(len(found)):
        found[row, 0] += start
        found[row, 1] += start
        found[row, 2] += new_start
        found[row, 3] += new_start
        words += max(found[row, 1] - found[row, 0], found[row, 3] - found[row, 2])
    if 2 * words <= max(end - start, new_end - new_start):
        return found
    if (
        len(found) == 1
        and _marked(old.shapes, found[0, 0], found[0, 1])
        and _marked(new.shapes, found[0, 2], found[0, 3])
    ):
        return found
    whole = found[:1].copy()
    whole[0, 0], whole[0, 1], whole[0, 2], whole[0, 3] = start, end, new_start, new_end
    return whole


@borrowing
def _marked(shapes: Hashes, start: int, end: int) -> bool:
    found = True
    for row in range(start, end):
        found &= shapes[row] == np.uint64(MARK)
    return found


@borrowing
def _same(old: Hashes, start: int, end: int, new: Hashes, new_start: int, new_end: int) -> bool:
    """Whether the words of two ranges agree, and only their lines are cut differently."""
    same = end - start == new_end - new_start
    row = 0
    while same and row < end - start:
        same = old[start + row] == new[new_start + row]
        row += 1
    return same


@kernel
def _with_room(rows: NDArray[np.int32], count: int, more: int) -> NDArray[np.int32]:
    if count + more <= len(rows):
        return rows
    wider = np.empty((2 * (count + more), 4), dtype=np.int32)
    wider[:count] = rows[:count]
    return wider


@kernel
def _line_places(starts_line: Flags) -> _Lines:
    """Where the lines of a text start, and where the last one ends."""
    count = 0
    for row in range(len(starts_line)):
        count += starts_line[row]
    places = np.empty(count + 1, dtype=np.int64)
    line = 0
    for row in range(len(starts_line)):
        if starts_line[row]:
            places[line] = row
            line += 1
    places[count] = len(starts_line)
    return places


@kernel
def _line_hashes(hashes: Hashes, places: _Lines) -> Hashes:
    out = np.empty(len(places) - 1, dtype=np.uint64)
    for line in range(len(out)):
        value = np.uint64(0)
        for row in range(places[line], places[line + 1]):
            value = (value ^ hashes[row]) * np.uint64(_PRIME)
        out[line] = value
    return out


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
