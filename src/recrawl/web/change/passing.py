"""Differences that come because time passes or people look, not because anyone edited the page.

A fetch seconds later does not show most of these, so they are known by their form: ages, clocks and dates
(`volatile_times`), and counters with a word such as "views" on their line. Nothing is remembered of them: each visit is
compared with the published text anew, and where a difference passes, the words published stand in for the new ones.
So a place never goes blind: what no longer has the form is a change. Counters and ages are known in English; others are
learned by a second fetch or masked by a selector.
"""

from __future__ import annotations

import re

from recrawl.web.change.align import Span
from recrawl.web.change.diff_lines import line_spans
from recrawl.web.change.times import Side, bare, may_be_time, time_passed, word_set
from recrawl.web.change.volatile_mask import Reading, read_words

MOST_WORDS = 12
MOST_SPANS = 1000  # differences that are looked at
_AROUND = 6
_COUNT = re.compile(r"(\d[\d.,'’]*)([km]?)")
_GROUP = re.compile(r"\d{3}")
# What is counted up, and what is counted at this moment; after the number.
_TOTALS = word_set("view views visit visits visitor visitors hit hits read reads impression impressions")
_PRESENT = word_set("viewer viewers online viewing watching")
_BEFORE = word_set("views viewed visitors impressions")  # "hits: 3" and "visits: 3" may be anything
_PEOPLE = word_set("people person users user others are is currently")


def with_times_of(old: Reading, new: Reading, old_at: float | None, new_at: float | None) -> Reading:
    """A new text with the words of the old one where they differ by time or visitors alone; itself if nowhere.

    O(words x differing words), bounded.
    """
    kept: list[bytes] = []
    at = 0
    for span in line_spans(old, new)[:MOST_SPANS]:
        if not _may_pass(old, *span[:2]) or not _may_pass(new, *span[2:]):
            continue  # nearly all edits end here, at their first word
        sides = _side(old, span[:2], old_at), _side(new, span[2:], new_at)
        if sides[0] is None or sides[1] is None or not passes(sides[0], sides[1]):
            continue
        start, end, words = _bytes_of(old, new, span)
        kept += [new.text[at:start], words]
        at = end
    return read_words(b"".join([*kept, new.text[at:]])) if kept else new


def _may_pass(reading: Reading, start: int, end: int) -> bool:
    """Whether the words of a place can be a time or a counter: False is sure, True is not."""
    if not 0 < end - start <= MOST_WORDS:
        return False
    return all(
        may_be_time(word) or word in _TOTALS or word in _PRESENT
        for row in range(start, end)
        for word in bare(reading.strings(row, row + 1))
    )


def passes(old: Side, new: Side) -> bool:
    """Whether a difference comes from time or visitors alone."""
    return bool(old.words and new.words) and (_counts_on(old, new) or time_passed(old, new))


def _bytes_of(old: Reading, new: Reading, span: Span) -> tuple[int, int, bytes]:
    """Where the words of a span stand in the new text, and what stands there in the old one."""
    first, last = int(old.words.starts[span.old_start]), int(old.words.ends[span.old_end - 1])
    return int(new.words.starts[span.new_start]), int(new.words.ends[span.new_end - 1]), old.text[first:last]


def _side(reading: Reading, place: tuple[int, ...], fetched_at: float | None) -> Side | None:
    """One side of a difference with its neighbours on the same line, None if it is too long or on several lines."""
    start, end = place
    starts = reading.starts_line
    if not 0 < end - start <= MOST_WORDS or starts[start + 1 : end].any():
        return None
    first, last = start, end
    while first > max(start - _AROUND, 0) and not starts[first]:
        first -= 1
    while last < min(end + _AROUND, len(starts)) and not starts[last]:
        last += 1
    return Side(reading.strings(start, end), reading.strings(first, start), reading.strings(end, last), fetched_at)


def _counts_on(old: Side, new: Side) -> bool:
    """Whether both sides are a counter: one of visitors present, or one of visits that has not gone down."""
    (before, was_present), (after, is_present) = _counted(old), _counted(new)
    if before is None or after is None:
        return False
    return (was_present and is_present) or after >= before


def _counted(side: Side) -> tuple[float | None, bool]:
    """The number of a counter, None if a side is something else, and whether it counts visitors present."""
    words, before, after = bare(side.words), bare(side.before), bare(side.after)
    numbers = [word for word in words if _COUNT.fullmatch(word)]
    tail = words[len(numbers) :]
    if not numbers or words[: len(numbers)] != numbers or len(tail) > 1:
        return None, False
    if not tail:
        while after and _GROUP.fullmatch(after[0]):  # "12 345 views"
            after = after[1:]
        tail = _without_people(after)[:1]
    value = _value(numbers)
    if tail and (tail[0] in _TOTALS or tail[0] in _PRESENT):
        return value, tail[0] in _PRESENT
    led = len(words) == len(numbers) and before and before[-1] in _BEFORE
    return (value, False) if led else (None, False)


def _without_people(after: list[str]) -> list[str]:
    """What follows a number, without the people who do it: "3 people are viewing"."""
    people = 0
    while people < min(len(after), 3) and after[people] in _PEOPLE:
        people += 1
    rest = after[people:]
    return rest if people == 0 or rest[:1] in (["viewing"], ["watching"]) else []


def _value(numbers: list[str]) -> float:
    last = _COUNT.fullmatch(numbers[-1])
    if last and last[2]:  # "1.2k"
        whole, *rest = re.split(r"[.,'’]", last[1])
        return float(f"{whole}.{''.join(rest)}") * {"k": 1e3, "m": 1e6}[last[2]]
    return float(re.sub(r"\D", "", "".join(numbers)))
