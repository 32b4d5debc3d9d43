"""Volatile words of a page: places whose words differ between two fetches seconds apart, learned and masked.

A place is remembered as a slot: the one or two stable words before it and after it on their lines, numbers taken as
equal, and how long it was. Masking puts one mark in the place of whatever stands between two such neighbours, wherever
on the page they stand, so a slot outlives edits elsewhere. Volatile lines are remembered as such too. No more lines are
masked than were seen to differ in one place, and where only numbers were seen, only numbers are. What is learned is
bounded, and two things are never learned: a place where all words are numbers with a currency beside them, since that
is a price, and a difference of more than half of the page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from recrawl.web.change.align import Span, differing_spans
from recrawl.web.change.diff_lines import line_spans
from recrawl.web.change.volatile_mask import (
    ACROSS,
    BESIDE,
    EDGE,
    INSIDE,
    NUMBERS,
    WHOLE,
    Reading,
    Slot,
    context,
    count_contexts,
    line_slot,
    masked_words,
)

MOST_SLOTS = 64
MOST_LINES = 24  # learned at once
MOST_SLOT_WORDS = 400
NEIGHBOURS = 2
MOST_BESIDE = 32  # words that may stand for one side alone
_MOST_NUMBERS = 50  # words of a difference in numbers alone
_MERGED_GAP = 12  # stable words between two places that may be taken in, if the places are as long

_CURRENCY = re.compile(
    r"[$€£¥₹₽₩₺₴฿₫₪]|(?<![^\W\d_])(?:USD|EUR|GBP|JPY|CHF|CNY|INR|AUD|CAD|SEK|NOK|DKK|PLN|CZK|kr|zł|Kč)\b"
)
_NUMBER = re.compile(r"[-+±(]?[\d.,:'’%/)]*\d[\d.,:'’%/)-]*")


def differs_in_numbers(old: Reading, new: Reading, slots: Sequence[Slot]) -> bool:
    """Whether, outside the volatile places, two texts differ in numbers alone or in a price. O(words x edits)."""
    (before, old_rows), (after, new_rows) = masked_words(old, slots), masked_words(new, slots)
    words = []
    for span in differing_spans(before, after):
        for reading, rows in (
            (old, old_rows[span.old_start : span.old_end]),
            (new, new_rows[span.new_start : span.new_end]),
        ):
            words += [word for row in rows.tolist() for word in reading.strings(row, row + 1)]
    return all(map(is_number, words)) or any(is_number(word) and _CURRENCY.search(word) for word in words)


def learn_slots(one: Reading, other: Reading) -> tuple[Slot, ...]:
    """The slots in which two fetches of one page differ; none if they differ too much. O(words x differing words).

    Args:
        one: a fetch.
        other: a fetch seconds away from it.
    """
    every = line_spans(one, other)
    size = max(len(one.words.hashes), len(other.words.hashes))
    if 2 * sum(_length(span) for span in every) > size and size > 2 * NEIGHBOURS:
        return ()
    slots: list[Slot] = []
    lines: list[Slot] = []
    for span in _merged(one, other, every):
        slot = slot_of(one, other, every, span)
        if slot is not None:
            slots += [*(_beside(one, other, every, span, slot) if slot.form == WHOLE else ()), slot]
            lines += _lines_of(one, span[:2]) + _lines_of(other, span[2:]) if slot.form == WHOLE else []
    # Lines first: when there are too many slots, the first are forgotten.
    return tuple(dict.fromkeys((*lines[:MOST_LINES], *slots)))[-MOST_SLOTS:]


def joined_slots(known: Sequence[Slot], learned: Sequence[Slot]) -> tuple[Slot, ...]:
    """Known and new slots, the newest last; the oldest are forgotten when there are too many."""
    found: dict[tuple[int, ...], Slot] = {}
    for slot in (*known, *learned):
        before = found.pop(slot[:5], slot)
        longest, lines = max(slot.longest, before.longest), max(slot.lines, before.lines)
        found[slot[:5]] = slot._replace(longest=longest, lines=lines)
    return tuple(found.values())[-MOST_SLOTS:]


def is_number(word: str) -> bool:
    """Whether a word is a number, a price, a share or the like."""
    return _NUMBER.fullmatch(_CURRENCY.sub("", word)) is not None


def is_price(one: Reading, other: Reading, span: Span) -> bool:
    """Whether a difference is between numbers alone, with a currency in or beside them."""
    if _length(span) > _MOST_NUMBERS:
        return False
    words = one.strings(span.old_start, span.old_end) + other.strings(span.new_start, span.new_end)
    if not all(is_number(word) or _CURRENCY.fullmatch(word) for word in words):
        return False
    beside = one.strings(span.old_start - 1, span.old_start) + one.strings(span.old_end, span.old_end + 1)
    return any(_CURRENCY.search(word) for word in words + beside)


def is_numeric(one: Reading, other: Reading, span: Span) -> bool:
    """Whether a difference is between numbers alone."""
    words = one.strings(span.old_start, span.old_end) + other.strings(span.new_start, span.new_end)
    return _length(span) <= _MOST_NUMBERS and all(map(is_number, words))


def _lines_of(reading: Reading, place: tuple[int, ...]) -> list[Slot]:
    """The whole lines between two places, but for those of numbers alone."""
    start, end = place
    ends = [row for row in range(start + 1, end) if reading.starts_line[row]]
    lines = zip([start, *ends], [*ends, end], strict=True) if start < end else ()
    return [
        line_slot(reading, first, last, lines=1)
        for first, last in lines
        if not all(map(is_number, reading.strings(first, last)))
    ]


def _length(span: Span) -> int:
    return max(span.old_end - span.old_start, span.new_end - span.new_start)


def _merged(one: Reading, other: Reading, spans: list[Span]) -> list[Span]:
    """Spans with the words between them taken in where these agree by chance, as in a shuffled list.

    Never across a number: what stands between two counters may be a price. A price that differs is taken in only
    where the text beside it, on the same line, differs as well: then it belongs to an advertisement.
    """
    merged: list[Span] = []
    for span in _lines_for_most(one, other, spans):
        if merged and _belong_together(one, other, merged[-1], span):
            last = merged.pop()
            merged.append(Span(last.old_start, span.old_end, last.new_start, span.new_end))
        else:
            merged.append(span)
    return [_whole_line(one, other, span) for span in merged if not is_price(one, other, span)]


def _lines_for_most(one: Reading, other: Reading, spans: list[Span]) -> list[Span]:
    """Spans with those of one line made the whole line where most of its words differ, and not in numbers."""
    found: list[Span] = []
    lines: dict[tuple[int, int, int, int], list[Span]] = {}
    for span in spans:
        lines.setdefault((*_line_around(one, *span[:2]), *_line_around(other, *span[2:])), []).append(span)
    for line, inside in lines.items():
        whole = Span(*line)
        most = 2 * sum(map(_length, inside)) > _length(whole)
        if len(inside) > 1 and most and not any(is_numeric(one, other, span) for span in inside):
            found.append(whole)
        else:
            found += inside
    return found


def _line_around(reading: Reading, start: int, end: int) -> tuple[int, int]:
    """The first word of the line, or lines, that a place stands in, and the word after the last."""
    ends = np.append(np.flatnonzero(reading.starts_line), len(reading.shapes))
    first = int(np.searchsorted(ends, start, side="right")) - 1
    last = int(np.searchsorted(ends, max(end, start + 1)))
    return int(ends[max(first, 0)]), int(ends[min(last, len(ends) - 1)])


def _belong_together(one: Reading, other: Reading, last: Span, span: Span) -> bool:
    gap = span.old_start - last.old_end
    lines = _is_lines(one, last) and _is_lines(one, span)
    if not lines and one.starts_line[last.old_end : span.old_start + 1].any():
        return False  # a line, and a part of the next one
    shortest, longest = sorted((_length(last), _length(span)))
    between_lines = shortest > NEIGHBOURS and lines
    if gap > _MERGED_GAP or any(map(_has_digit, one.strings(last.old_end, span.old_start))):
        return False
    if is_price(one, other, last) or is_price(one, other, span):
        return longest > NEIGHBOURS and not one.starts_line[last.old_end : span.old_start + 1].any()
    return between_lines or gap <= shortest


def _is_lines(one: Reading, span: Span) -> bool:
    count = len(one.shapes)
    return all(place >= count or bool(one.starts_line[place]) for place in span[:2])


def _whole_line(one: Reading, other: Reading, span: Span) -> Span:
    """A span that is most of its line, made the whole line: words that agree in it agree by chance."""
    start, end, new_start, new_end = span
    old_count, new_count = len(one.shapes), len(other.shapes)
    while (
        0 < start < old_count
        and 0 < new_start < new_count
        and not (one.starts_line[start] or other.starts_line[new_start])
    ):
        start, new_start = start - 1, new_start - 1
    while end < old_count and new_end < new_count and not one.starts_line[end] and not other.starts_line[new_end]:
        end, new_end = end + 1, new_end + 1
    whole = Span(start, end, new_start, new_end)
    taken_in = one.strings(start, span.old_start) + one.strings(span.old_end, end)
    if _length(span) <= NEIGHBOURS or len(taken_in) >= _length(span) or any(map(_has_digit, taken_in)):
        return span
    return whole


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))


def _beside(one: Reading, other: Reading, every: Sequence[Span], span: Span, whole: Slot) -> list[Slot]:
    """Slots that know volatile lines by what stands before or after them alone: the other side may be volatile too.

    Only for lines without a number, as many in both texts, beside a few words that stand nowhere else on the page.
    """
    start, end = span[:2]
    lines = _plain_lines(one, start, end)
    if lines == 0 or lines != _plain_lines(other, *span[2:]):
        return []
    before, after = _limits(one, every, span, 0)
    size, found = (BESIDE, whole.longest, lines, whole.place), []
    for words in range(NEIGHBOURS, MOST_BESIDE + 1):
        if start - words >= before and _is_unique(one, start - words, start):
            found.append(Slot(int(context(one.shapes, start - words, start)), words, lines, 0, *size))
            break
    for words in range(NEIGHBOURS, MOST_BESIDE + 1):
        if end + words <= after and _is_unique(one, end, end + words):
            found.append(Slot(lines, 0, int(context(one.shapes, end, end + words)), words, *size))
            break
    return found


def _is_unique(reading: Reading, start: int, end: int) -> bool:
    value = np.uint64(context(reading.shapes, start, end))
    return count_contexts(reading.shapes, end - start, value) == 1


def _limits(reading: Reading, every: Sequence[Span], span: Span, first: int) -> tuple[int, int]:
    """Between which words nothing but a span differs, in the old text (0) or the new one (2)."""
    start, end = span[first], span[first + 1]
    before = max((each[first + 1] for each in every if each[first + 1] <= start and each != span), default=0)
    after = min((each[first] for each in every if each[first] >= end and each != span), default=len(reading.shapes))
    return before, after


def _plain_lines(reading: Reading, start: int, end: int) -> int:
    """How many whole lines a place has, 0 if one has a digit."""
    if start == end or not reading.starts_line[start] or any(map(_has_digit, reading.strings(start, end))):
        return 0
    return int(reading.starts_line[start:end].sum())


def slot_of(one: Reading, other: Reading, every: Sequence[Span], span: Span) -> Slot | None:
    """The slot of a span, None if it has no stable neighbours or is too long. `every` are all spans that differ."""
    longer = span.new_end - span.new_start > span.old_end - span.old_start
    reading, first = (other, 2) if longer else (one, 0)
    start, end = span[first], span[first + 1]
    count = len(reading.shapes)
    before, after = _limits(reading, every, span, first)
    from_line = bool(start == 0 or reading.starts_line[start])
    to_line = bool(end == count or reading.starts_line[end])
    form = ACROSS
    if from_line and to_line:
        form = WHOLE
    elif not reading.starts_line[start + 1 : end].any():
        form = INSIDE
    left, right = start, end
    if not from_line or form != INSIDE:
        while left > max(start - NEIGHBOURS, before) and (left == start or not reading.starts_line[left]):
            left -= 1
    if not to_line or form != INSIDE:
        while right < min(end + NEIGHBOURS, after) and (right == end or not reading.starts_line[right]):
            right += 1
    left_hash = int(context(reading.shapes, left, start)) if left < start else EDGE * (from_line and start > 0)
    right_hash = int(context(reading.shapes, end, right)) if right > end else EDGE * (to_line and end < count)
    lost = (left == start and not from_line) or (right == end and not to_line)
    longest = max(_length(span), 1)
    if lost or longest > MOST_SLOT_WORDS:
        return None
    if is_numeric(one, other, span):
        form = NUMBERS
    lines = max(_lines_touched(one, *span[:2]), _lines_touched(other, *span[2:]))
    return Slot(left_hash, start - left, right_hash, right - end, form, longest, lines, (left_hash or right_hash) >> 32)


def _lines_touched(reading: Reading, start: int, end: int) -> int:
    return 1 + int(reading.starts_line[start + 1 : end].sum())
