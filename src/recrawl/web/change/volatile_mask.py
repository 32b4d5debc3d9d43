"""Masking: the words of a text with the volatile places left out, compiled.

`volatile.py` says what a volatile place is and learns them. Masking takes bounded time for any text and any slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from recrawl.jit import borrowing, kernel
from recrawl.web.content.words import Hashes, Places, Words, split_words

MARK = 0x5EED_0F_5107  # stands for any word with a digit among neighbours
EDGE = 1
ACROSS, INSIDE, WHOLE, LINE, BESIDE, NUMBERS = 0, 1, 2, 3, 4, 5
MOST_SEARCHED = 20_000_000  # words looked at for the ends of slots; after that nothing more is masked
_VISIBLE, _REFUSED = -1, -2
_PRIME = 0x9E3779B97F4A7C15

Flags = NDArray[np.bool_]


class Slot(NamedTuple):
    """A volatile place: its neighbours on both sides (hash and number of words), its form and its length.

    Without words, the hash is `EDGE` for the start or end of a line, 0 for that of the text. A form of `WHOLE` is
    one or more whole lines, `INSIDE` a part of one line, `NUMBERS` a part of one line where every word has a digit,
    `ACROSS` anything else; `LINE` is one known line wherever it stands, with the hash of its words on the left;
    `BESIDE` is so many lines without a digit, their number in place of the hash on one side, after the words on the
    left or before those on the right.

    `lines` is how many lines the place was on at most: no more are masked. A `LINE` of 0 lines leaves room for others.
    `place` is a number that the slots of one place have in common.
    """

    left: int
    left_words: int
    right: int
    right_words: int
    form: int
    longest: int
    lines: int = 0
    place: int = 0


class Reading(NamedTuple):
    """A text with its words, the hashes of these with all numbers taken as equal, and which words start a line."""

    text: bytes
    words: Words
    shapes: Hashes
    starts_line: NDArray[np.bool_]

    def strings(self, start: int, end: int) -> list[str]:
        """The words `start` to `end`; places outside the text are left out."""
        start, end = max(start, 0), min(end, len(self.words.hashes))
        return [
            self.text[self.words.starts[row] : self.words.ends[row]].decode("utf-8", "replace")
            for row in range(start, end)
        ]


def read_words(text: bytes) -> Reading:
    """A tidied text with its words. O(bytes)."""
    words = split_words(text)
    return Reading(text, words, *_shapes(np.frombuffer(text, dtype=np.uint8), *words))


def line_slot(reading: Reading, start: int, end: int, lines: int = 0) -> Slot:
    """The slot of one line, wherever it stands: the words `start` to `end`."""
    return Slot(int(context(reading.words.hashes, start, end)), end - start, 0, 0, LINE, end - start, lines)


def masked_digest(reading: Reading, slots: Sequence[Slot]) -> bytes:
    """Digest of the words of a text with volatile places masked: 16 bytes. O(words x slots)."""
    return xxhash.xxh3_128_digest(masked_words(reading, slots)[0].tobytes())


def masked_words(reading: Reading, slots: Sequence[Slot]) -> tuple[Hashes, Places]:
    """The words left when volatile places are masked: hashes, and rows in the reading."""
    if not slots:
        return reading.words.hashes, np.arange(len(reading.shapes), dtype=np.int32)
    rows = np.flatnonzero(_owners(reading, slots) < 0).astype(np.int32)
    return reading.words.hashes[rows], rows


def fitting_slots(reading: Reading, slots: Sequence[Slot]) -> tuple[Slot, ...]:
    """The slots without those that would mask more lines of a text than were learned: something was put beside them."""
    if not slots:
        return ()
    refused = set(np.unique(_owners(reading, slots)).tolist())
    return tuple(slot for row, slot in enumerate(slots) if _REFUSED - row not in refused)


def _owners(reading: Reading, slots: Sequence[Slot]) -> Places:
    """For each word the slot that masks it, `_VISIBLE`, or `_REFUSED` less the slot that would mask too much."""
    table = np.array(slots, dtype=np.uint64).reshape(-1, len(Slot._fields))
    return _mask(reading.words.hashes, reading.shapes, reading.starts_line, table)


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
def context(shapes: Hashes, start: int, end: int) -> np.uint64:
    """One hash of the words between two places."""
    return _neighbours(shapes, start, end)


@kernel
def count_contexts(shapes: Hashes, words: int, value: np.uint64) -> int:
    """How often so many words with this hash stand in a row."""
    found = 0
    for start in range(len(shapes) - words + 1):
        found += _neighbours(shapes, start, start + words) == value
    return found


@borrowing
def _neighbours(shapes: Hashes, start: int, end: int) -> np.uint64:
    value = np.uint64(0)
    for row in range(start, end):
        value = (value ^ shapes[row]) * np.uint64(_PRIME)
    return value


@kernel
def _mask(hashes: Hashes, shapes: Hashes, starts_line: Flags, slots: NDArray[np.uint64]) -> Places:
    # A place that is masked leaves nothing behind: an advertisement that is missing today is no change either.
    owners = np.full(len(hashes), _VISIBLE, dtype=np.int32)
    at, searched = 0, 0
    while at < len(hashes):
        end, owner = at, _VISIBLE
        for row in range(len(slots)):
            found = at
            if slots[row, 4] == LINE:
                found = _line_end(hashes, starts_line, slots[row], at)
            elif (
                slots[row, 4] != BESIDE
                and searched < MOST_SEARCHED
                and _slot_starts(shapes, starts_line, slots[row], at)
            ):
                searched += 2 * int(slots[row, 5]) + 4
                found = _slot_end(shapes, starts_line, slots[row], at)
            if found > end:
                end, owner = found, row
        owners[at:end] = owner
        at = max(end, at + 1)
    # What is known by one side alone comes last, so that it can be refused.
    at = 0
    while at < len(hashes):
        end, owner = at, _VISIBLE
        for row in range(len(slots) if starts_line[at] else 0):
            if slots[row, 4] == BESIDE:
                found = _end_beside(shapes, starts_line, slots[row], at)
                if found > end:
                    end, owner = found, row
        for row in range(at, end):
            owners[row] = owner if owners[row] == _VISIBLE else owners[row]
        at = max(end, at + 1)
    _refuse_too_many(owners, starts_line, slots)
    return owners


@kernel
def _refuse_too_many(owners: Places, starts_line: Flags, slots: NDArray[np.uint64]) -> None:
    """Show lines known by one side again where more lines in a row are masked than were learned there."""
    first_of_place = np.empty(len(slots), dtype=np.int64)
    for row in range(len(slots)):
        first_of_place[row] = row
        for other in range(row):
            if slots[other, 7] == slots[row, 7] and first_of_place[row] == row:
                first_of_place[row] = first_of_place[other]
    learned = np.zeros(len(slots), dtype=np.int64)
    start = 0
    while start < len(owners):
        if owners[start] == _VISIBLE:
            start += 1
            continue
        lines, beside, end = 0, False, start
        learned[:] = 0
        while end < len(owners) and owners[end] != _VISIBLE:
            slot = slots[owners[end]]
            by_place = slot[4] == BESIDE or slot[4] == WHOLE
            lines += starts_line[end] and slot[6] > 0 and (by_place or slot[4] == LINE)
            if by_place:
                place = first_of_place[owners[end]]
                learned[place] = max(learned[place], int(slot[6]))
            beside |= slot[4] == BESIDE
            end += 1
        if beside and lines > learned.sum():
            for row in range(start, end):
                if slots[owners[row], 4] == BESIDE:
                    owners[row] = _REFUSED - owners[row]
        start = end


@borrowing
def _fits(shapes: Hashes, starts_line: NDArray[np.bool_], place: tuple[int, int, int], value: np.uint64) -> bool:
    """Whether the words between two places are the neighbours of a slot that starts or ends at the third."""
    start, end, edge = place
    if start < 0 or end > len(shapes):
        return False
    if start < end:
        return bool(_neighbours(shapes, start, end) == value)
    if edge == 0 or edge == len(shapes):
        return True
    return bool(value == np.uint64(EDGE) and starts_line[edge])


@borrowing
def _line_end(hashes: Hashes, starts_line: NDArray[np.bool_], slot: NDArray[np.uint64], at: int) -> int:
    """Where a known line that starts at a word ends, -1 if another line starts there."""
    end = at + int(slot[1])
    if end > len(hashes) or not starts_line[at] or (end < len(hashes) and not starts_line[end]):
        return -1
    return end if _neighbours(hashes, at, end) == slot[0] else -1


@borrowing
def _end_beside(shapes: Hashes, starts_line: NDArray[np.bool_], slot: NDArray[np.uint64], at: int) -> int:
    """Where the lines beside known words end, -1 if other lines start there or one has a number."""
    before, count = int(slot[1]), len(shapes)
    if not starts_line[at] or (before > 0 and not _fits(shapes, starts_line, (at - before, at, at), slot[0])):
        return -1
    lines, end = int(slot[2] if before > 0 else slot[0]), at
    while end < count and (lines > 0 or not starts_line[end]):
        lines -= starts_line[end]
        if shapes[end] == np.uint64(MARK) or end > at + 2 * int(slot[5]) + 4:
            return -1
        end += 1
    if lines > 0:
        return -1
    if before > 0:
        return end
    return end if end < count and _fits(shapes, starts_line, (end, end + int(slot[3]), end), slot[2]) else -1


@borrowing
def _slot_starts(shapes: Hashes, starts_line: NDArray[np.bool_], slot: NDArray[np.uint64], at: int) -> bool:
    if slot[4] == WHOLE and at < len(shapes) and not starts_line[at]:
        return False
    return _fits(shapes, starts_line, (at - int(slot[1]), at, at), slot[0])


@borrowing
def _slot_end(shapes: Hashes, starts_line: NDArray[np.bool_], slot: NDArray[np.uint64], at: int) -> int:
    """Where a slot that starts at a word ends, -1 if it does not end near."""
    count, right, form = len(shapes), int(slot[3]), int(slot[4])
    lines = int(slot[6])
    if lines == 0:
        return -1
    for end in range(at, min(count, at + 2 * int(slot[5]) + 4) + 1):
        on_line = end == count or starts_line[end]
        if end > at and slot[1] > 0 and _slot_starts(shapes, starts_line, slot, end):
            return -1  # the words on the left stand here too, and nearer
        if (form != WHOLE or on_line) and _fits(shapes, starts_line, (end, end + right, end), slot[2]):
            return end
        lines -= on_line and end > at
        if end == count or (end > at and lines <= 0) or (form == NUMBERS and shapes[end] != np.uint64(MARK)):
            return -1
    return -1
