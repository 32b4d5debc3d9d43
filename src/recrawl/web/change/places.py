"""Evidence by place: which ranges of the published text are volatile, suspected, or show the same few things by turns.

A place is a range of words of the text that was published last. What is known of it comes from close pairs, two
fetches of the page as close together as pacing allows:

| a place is | when | a difference there is |
|---|---|---|
| volatile | every one of at least three close pairs at different visits differed there | noise |
| suspected | the last one or two did | held until a pair decides |
| neither | a pair was steady there since | a change |

One steady pair clears a suspected place. A place that was cleared before needs more pairs in a row: so many that its
own share of differing pairs makes the run less likely than `UNLIKELY`, and that all its pairs together speak rather for
noise, which repeats by chance at times, than for a page that changes every few seconds. A volatile place is released by
as many steady pairs in a row as its own variation makes less likely than that (rule of succession), or when all its
pairs speak for changes. No more lines are noise than were
seen to differ at once, and only numbers where only numbers were seen; a price alone is never noise.

A place also remembers the whole lines that it showed. A page whose close pair goes back to the published words
alternates: lines that it showed before are noise there while pairs have not shown them steady. A place that shows
three or more texts again and again, none of which stays, rotates.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

import xxhash

from recrawl.web.change.align import Reading, Span, carried

MOST_PLACES, MOST_WATCHED, MOST_VALUES = 64, 32, 8
LEAST_PAIRS = 3  # close pairs that must differ
UNLIKELY = 0.01
ROTATION_ENDS = 0.002  # how unlikely it must be that a rotating place shows one text for so many visits
_MOST_PAIRS = 4
_PER_STEADY = 2  # differing pairs that outweigh a steady one: 0.9 against 0.4, and 0.1 against 0.6
_LONGEST = 6  # steady pairs remembered of a place that was cleared, and twice as many that differed
_MOST_WORDS = 400  # of a place whose lines are counted or whose words are remembered
_MERGED_GAP = 12
_MOST_NUMBERS = 50
_CURRENCY = re.compile(
    r"[$€£¥₹₽₩₺₴฿₫₪]|(?<![^\W\d_])(?:USD|EUR|GBP|JPY|CHF|CNY|INR|AUD|CAD|SEK|NOK|DKK|PLN|CZK|kr|zł|Kč)\b"
)
_NUMBER = re.compile(r"[-+±(]?[\d.,:'’%/)]*\d[\d.,:'’%/)-]*")

Finding = Literal["change", "held", "noise", "returns"]


class Place(NamedTuple):
    """Words `start` to `end` of the published text; none if something comes and goes there.

    Args:
        start: its first word.
        end: the word after its last.
        lines: at most this many lines were seen here at once.
        numbers: whether numbers alone were seen here.
        differed: visits in a row whose close pair differed here.
        steady: steady close pairs since.
        flips: close pairs that went back to the published words, ever.
        tested: steady pairs of visits that showed an earlier value again.
        values: whole lines that it showed, as hashes, the newest last.
        run: visits in a row that showed the newest value.
        varied: close pairs that differed here before a steady one cleared the place.
        cleared: steady close pairs, as far as they were not in a row with `steady`.
    """

    start: int
    end: int
    lines: int = 1
    numbers: bool = False
    differed: int = 0
    steady: int = 0
    flips: int = 0
    tested: int = 0
    values: tuple[int, ...] = ()
    run: int = 0
    varied: int = 0
    cleared: int = 0

    @property
    def is_volatile(self) -> bool:
        """Whether what differs here is noise."""
        return self.differed >= self.needed and self.is_restless

    @property
    def is_restless(self) -> bool:
        """Whether all pairs together speak rather for noise that repeats by chance than for frequent changes."""
        return self.differed + self.varied > _PER_STEADY * (self.steady + self.cleared)

    @property
    def needed(self) -> int:
        """Close pairs in a row that make the place volatile."""
        return pairs_needed(self.varied, self.cleared)

    @property
    def is_released(self) -> bool:
        """Whether steady pairs say that it is not noisy any more, or never was."""
        if self.differed < self.needed:
            return self.steady > 0
        own = float((1.0 / (self.differed + 2)) ** self.steady)
        return own < UNLIKELY or not self.is_restless

    @property
    def alternates(self) -> bool:
        """Whether an earlier value here is rather noise than news."""
        return self.flips > 0 and self.tested < self.tests_needed

    @property
    def tests_needed(self) -> int:
        """Steady pairs after which an earlier value is news each time."""
        return 3 * (self.flips + 1)

    @property
    def is_kept(self) -> bool:
        """Whether there is anything to remember."""
        return bool(self.differed or self.values or self.varied)


class Shown(NamedTuple):
    """What a close pair showed at one range: the words, and what the pair says of them."""

    start: int
    end: int
    lines: int
    numbers: bool
    went_back: bool
    values: tuple[int, ...]


def pairs_needed(varied: int, cleared: int) -> int:
    """Close pairs in a row that must differ, given those that differed and that were steady before.

    >>> pairs_needed(0, 0), pairs_needed(1, 3), pairs_needed(2, 20)
    (3, 4, 3)
    """
    if not cleared:
        return LEAST_PAIRS
    share = (varied + 1) / (varied + cleared + 2)
    return min(max(math.ceil(math.log(UNLIKELY) / math.log(share)), LEAST_PAIRS), _MOST_PAIRS)


def is_number(word: str) -> bool:
    """Whether a word is a number, a price, a share or the like."""
    return _NUMBER.fullmatch(_CURRENCY.sub("", word)) is not None


def is_price(one: Reading, other: Reading, span: Span) -> bool:
    """Whether a difference is between numbers alone, with a currency in or beside them."""
    if span.words > _MOST_NUMBERS:
        return False
    words = one.strings(span.old_start, span.old_end) + other.strings(span.new_start, span.new_end)
    if not all(is_number(word) or _CURRENCY.fullmatch(word) for word in words):
        return False
    beside = one.strings(span.old_start - 1, span.old_start) + one.strings(span.old_end, span.old_end + 1)
    return any(_CURRENCY.search(word) for word in words + beside)


def is_numeric(one: Reading, other: Reading, span: Span) -> bool:
    """Whether every word of a difference has a digit."""
    return one.is_numbers(span.old_start, span.old_end) and other.is_numbers(span.new_start, span.new_end)


def value_of(reading: Reading, start: int, end: int) -> int:
    """A hash of some words."""
    return int(xxhash.xxh32_intdigest(reading.words.hashes[start:end].tobytes()))


def joined_differences(one: Reading, other: Reading, spans: Sequence[Span]) -> list[Span]:
    """The differences of a close pair, joined across few stable words without a number; without prices."""
    out: list[Span] = []
    for span in spans:
        if out and _belong_together(one, out[-1], span):
            last = out[-1]
            out[-1] = Span(last.old_start, span.old_end, last.new_start, span.new_end)
        else:
            out.append(span)
    return [span for span in out if not is_price(one, other, span)]


def _belong_together(one: Reading, last: Span, span: Span) -> bool:
    gap = span.old_start - last.old_end
    if gap > _MERGED_GAP or one.has_number(last.old_end, span.old_start):
        return False
    if all(map(one.is_edge, (last.old_start, last.old_end, span.old_start, span.old_end))):
        return True
    same_line = not one.starts_line[last.old_end : span.old_start + 1].any()
    return same_line and gap <= min(last.words, span.words)


def touches(place: Place, start: int, end: int) -> bool:
    """Whether a place and a range have words in common; where one has none, whether it stands at the other."""
    if place.start > end or start > place.end:
        return False
    return (place.start < end and start < place.end) or place.start == place.end or start == end


def after_pair(
    places: Sequence[Place], ranges: Sequence[Shown], counted: set[tuple[int, int]], reading: Reading
) -> tuple[Place, ...]:
    """What is known of places after one more close pair.

    Args:
        places: of the text.
        ranges: where the pair differed, in words of the same text.
        counted: ranges that differed in an earlier pair of this visit, and count once; this pair is added.
        reading: the text.
    """
    earlier, left, out = set(counted), list(ranges), []
    for place in sorted(places, key=lambda each: -each.differed):  # what was only watched there is known by noisy ones
        mine = [each for each in (ranges if place.differed else left) if touches(place, each.start, each.end)]
        if mine:
            left = [each for each in left if each not in mine]
            grown = _differed(place, mine, reading, again=any(touches(place, *each) for each in earlier))
            counted.add(grown[:2])
            out.append(grown)
        elif place.differed:
            out.append(_steady(place))
        elif not any(touches(place, each.start, each.end) for each in ranges):
            out.append(place)
    for each in left:
        values = each.values if each.went_back else ()
        out.append(Place(each.start, each.end, each.lines, each.numbers, 1, 0, int(each.went_back), values=values))
        counted.add((each.start, each.end))
    return bounded(_merged([each for each in out if each.is_kept], reading))


def _differed(place: Place, shown: Sequence[Shown], reading: Reading, *, again: bool) -> Place:
    """A place after a pair that differed there."""
    start, end = min(place.start, *(each.start for each in shown)), max(place.end, *(each.end for each in shown))
    lines = max(place.lines, *(each.lines for each in shown))
    return place._replace(
        start=start,
        end=end,
        lines=max(lines, reading.lines_in(start, end)) if end - start <= _MOST_WORDS else lines,
        numbers=(place.numbers or not place.differed) and all(each.numbers for each in shown),
        differed=place.differed + (not again),
        steady=0,
        cleared=min(place.cleared + place.steady, _LONGEST),
        flips=place.flips + any(each.went_back for each in shown),
        values=place.values or next((each.values for each in shown if each.went_back), ()),
    )


def _steady(place: Place) -> Place:
    """A place that differed before, after a pair that was steady there."""
    place = place._replace(steady=place.steady + 1)
    if not place.is_released:
        return place
    varied = min(place.varied + place.differed, _PER_STEADY * _LONGEST)
    cleared = min(place.cleared + place.steady, _LONGEST)
    return place._replace(differed=0, steady=0, varied=varied, cleared=cleared)


def _merged(places: Sequence[Place], reading: Reading) -> list[Place]:
    """Places in order, noisy ones that overlap made one."""
    out: list[Place] = []
    for place in sorted(places, key=lambda each: each[:2]):
        if out and out[-1].differed and place.differed and place.start < out[-1].end:
            last = out.pop()
            end = max(last.end, place.end)
            merged = last._replace(
                end=end,
                lines=max(last.lines, place.lines, reading.lines_in(last.start, end)),
                numbers=last.numbers and place.numbers,
                differed=max(last.differed, place.differed),
                steady=min(last.steady, place.steady),
                flips=min(last.flips, place.flips),
                values=(),
            )
            out.append(merged)
        else:
            out.append(place)
    return out


def bounded(places: Sequence[Place]) -> tuple[Place, ...]:
    """No more places than are kept: those that differ before those that are only watched."""
    noisy = [place for place in places if place.differed][-MOST_PLACES:]
    return (*noisy, *[place for place in places if not place.differed][-MOST_WATCHED:])


def judge(places: Sequence[Place], old: Reading, new: Reading, span: Span, *, went_back: bool) -> Finding:
    """What a difference is by the evidence at its place.

    Args:
        places: of the old text, after the close pairs of the visit.
        old: the published text.
        new: the text of the visit.
        span: the difference.
        went_back: whether a further fetch of the visit shows the published words there.
    """
    here = [place for place in places if place.start <= span.old_start and span.old_end <= place.end]
    noisy = max((place for place in here if place.differed), key=_certainty, default=None)
    if noisy is None and is_price(old, new, span):
        return "change"
    value = value_of(new, span.new_start, span.new_end)
    if went_back or any(place.alternates and value in place.values and not place.is_volatile for place in here):
        return "returns"
    if noisy is not None:
        return _at_noisy(noisy, old, new, span)
    return "returns" if any(place[:2] == span[:2] and _rotates(place, value) for place in here) else "change"


def _certainty(place: Place) -> tuple[bool, int]:
    return place.is_volatile, place.differed


def _at_noisy(place: Place, old: Reading, new: Reading, span: Span) -> Finding:
    """What a difference in a volatile or suspected place is."""
    lines = max(new.lines_in(span.new_start, span.new_end), old.lines_in(span.old_start, span.old_end))
    if lines > place.lines or (place.numbers and not new.is_numbers(span.new_start, span.new_end)):
        return "change"
    return "noise" if place.is_volatile else "held"


def _rotates(place: Place, value: int) -> bool:
    """Whether a place shows several texts by turns and this one was among them, and has not stayed."""
    if value not in place.values or len(place.values) < 3:
        return False
    run = place.run + 1 if place.values[-1] == value else 1
    return float((1.0 / len(place.values)) ** (run - 1)) >= ROTATION_ENDS


def after_visit(places: Sequence[Place], new: Reading, spans: Sequence[Span]) -> tuple[Place, ...]:
    """Note what the watched places show at a visit that was no change."""
    shown = {span[:2]: span for span in spans}
    return tuple(
        _after_showing(place, new, shown.get(place[:2])) if place.values and not place.differed else place
        for place in places
    )


def _after_showing(place: Place, new: Reading, span: Span | None) -> Place:
    if span is None:
        return place._replace(run=0)
    value = value_of(new, span.new_start, span.new_end)
    run = place.run + 1 if place.values[-1] == value else 1
    return place._replace(values=_newest(place.values, value), run=run)


def _newest(values: tuple[int, ...], *newest: int) -> tuple[int, ...]:
    return (*[each for each in values if each not in newest], *newest)[-MOST_VALUES:]


def carried_places(places: Sequence[Place], spans: Sequence[Span], new: Reading) -> list[Place]:
    """The places of the text published before as places of a new one.

    Where something came beside a noisy place, so that it would cover more lines than it showed, it is dropped.
    """
    out = []
    for place in places:
        start, end = carried(spans, place.start, place.end, grow=True)
        if new.lines_in(start, end) > place.lines:
            start, end = carried(spans, place.start, place.end)
        if place.differed and new.lines_in(start, end) > place.lines:
            continue
        out.append(place._replace(start=start, end=end, run=0))
    return out


def watched(places: Sequence[Place], old: Reading, new: Reading, spans: Sequence[Span]) -> list[Place]:
    """The places of a new text with the whole lines without a number that came and went in it."""
    out = list(places)
    for span in spans:
        start, end = span.new_start, span.new_end
        if span.words > _MOST_WORDS or new.has_number(start, end) or old.has_number(*span[:2]):
            continue
        if not (new.is_edge(start) and new.is_edge(end)):
            continue
        values = value_of(old, *span[:2]), value_of(new, start, end)
        at = next((row for row, place in enumerate(out) if place[:2] == (start, end)), None)
        if at is None:
            out.append(Place(start, end, values=values))
        else:
            out[at] = out[at]._replace(values=_newest(out[at].values, *values))
    return out
