"""Differences that come because time passes or people look, not because anyone edited the page.

A fetch seconds later does not show most of these, so they are known by their form: ages, clocks, dates, and counters
with a word such as "views" on their line. Nothing is remembered of them: each visit is compared with the published
text, and a place that no longer has the form is a change.

An age ("3 hours ago") is drift if both fetches place the same event at the same moment. Clocks and dates are drift if
one time zone explains every part of them in both fetches. A date needs a day: a month or a year alone ("Plans for
2026") is content, and so is any number without a month, weekday or year beside it. Counters and ages are known in
English, dates in seven languages. A date that is content and agrees with both fetches by chance no longer does at a
later visit, and is then a change.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Literal, NamedTuple

from recrawl.web.change.align import Reading, Span, word_spans

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
_EDGES = ".,;:()[]|·•-–—!"
# Minutes east of Greenwich: whole hours, and the zones between them.
_ZONES = (*range(-720, 841, 60), -570, -210, -150, 210, 270, 330, 345, 390, 525, 570, 630, 765, 825)
_CACHED_S, _AHEAD_S = 120.0, 30.0  # by which a clock may be behind and ahead of the fetch
_HALF_DAY_S = 43_200
MOST_WORDS = 12
MOST_PARTS = 20  # of one difference
_AROUND = 6
_COUNT = re.compile(r"(\d[\d.,'’]*)([km]?)")
_GROUP = re.compile(r"\d{3}")


def word_set(written: str) -> frozenset[str]:
    """The words of a string."""
    return frozenset(written.split())


# What is counted up, and what is counted at this moment; after the number.
_TOTALS = word_set("view views visit visits visitor visitors hit hits read reads impression impressions")
_PRESENT = word_set("viewer viewers online viewing watching")
_BEFORE = word_set("views viewed visitors impressions")  # "hits: 3" and "visits: 3" may be anything
_PEOPLE = word_set("people person users user others are is currently")
_UNITS = {"s": 1.0, "m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY, "mo": 30.44 * DAY, "y": 365.25 * DAY}
_AGED = r"(\d{1,4}|an?) ?(s|m|h|d|w|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?|weeks?|months?|years?|moments?)"
_UNIT_OF_AGE = re.compile(_AGED + r"(?!\w)")
_AGE = re.compile(
    rf"(?<!\S)(?:(?:about|over|almost) )?(?:{_AGED}(?:,? and)? )+ago(?!\S)"
    r"|(?<!\S)(?:just now|moments ago|today|yesterday)(?!\S)"
)
_OF_AN_AGE = word_set(
    "about over almost a an and ago just now today yesterday s m h d w sec secs second seconds min mins minute minutes "
    "hr hrs hour hours day days week weeks month months year years moment moments"
)
_RECENT = {"just now": 600.0, "moments ago": 600.0, "today": DAY, "yesterday": 2 * DAY}

# Days from Monday and months from January in English, German, French, Spanish, Italian, Dutch and Portuguese.
_WEEKDAYS = """mon monday montag lundi lunes lunedì maandag segunda-feira
tue tues tuesday dienstag mardi martes martedì dinsdag terça-feira
wed wednesday mittwoch mercredi miércoles mercoledì woensdag quarta-feira
thu thur thurs thursday donnerstag jeudi jueves giovedì donderdag quinta-feira
fri friday freitag vendredi viernes venerdì vrijdag sexta-feira
sat saturday samstag sonnabend samedi sábado sabato zaterdag
sun sunday sonntag dimanche domingo domenica zondag"""
_MONTHS = """jan january januar janvier enero gennaio januari janeiro
feb february februar février febrero febbraio februari fevereiro
mar march märz mars marzo maart março
apr april avril abril aprile
may mai mayo maggio mei maio
jun june juni juin junio giugno junho
jul july juli juillet julio luglio julho
aug august août agosto augustus
sep sept september septembre septiembre settembre setembro
oct october oktober octobre octubre ottobre outubro
nov november novembre noviembre novembro
dec december dezember décembre diciembre dicembre dezembro"""
_ZONE_OF_STAMP = r"(?:z|[+-]\d{2}:?\d{2})?"
_CLOCK = re.compile(r"t?(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?(?:am|pm)?" + _ZONE_OF_STAMP)
_STAMP = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:(t\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)" + _ZONE_OF_STAMP + ")?")
_DAY_NUMBER = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_YEAR = re.compile(r"(?:19|20)\d{2}")
_BESIDE_A_CLOCK = word_set(
    "am pm a.m p.m utc gmt cet cest bst est edt cst cdt mst mdt pst pdt at of the de di den um le à"
)

_Kind = Literal["clock", "weekday", "day", "month", "year", "none"]


class Side(NamedTuple):
    """One side of a difference: its words, those before and after on its line, and when it was fetched, if known."""

    words: list[str]
    before: list[str]
    after: list[str]
    fetched_at: float | None


class _Part(NamedTuple):
    """One part of a time: its kind and its value, of a clock in seconds of half a day, and how many it stands for."""

    kind: _Kind
    value: int
    seconds: float = 0.0


_NAMES = {name: _Part("weekday", day) for day, line in enumerate(_WEEKDAYS.splitlines()) for name in line.split()}
_NAMES |= {name: _Part("month", month) for month, line in enumerate(_MONTHS.splitlines(), 1) for name in line.split()}


class _Moment(NamedTuple):
    """A moment as a calendar and a clock show it."""

    clock: int
    weekday: int
    day: int
    month: int
    year: int


def without_drift(
    old: Reading, new: Reading, spans: Sequence[Span], old_at: float | None, new_at: float | None
) -> list[Span]:
    """The differences that time and visitors alone do not explain. O(words of the differences)."""
    return [span for span in spans if not _is_drift(old, new, span, old_at, new_at)]


def _is_drift(old: Reading, new: Reading, span: Span, old_at: float | None, new_at: float | None) -> bool:
    """Whether time or visitors explain every part of a difference."""
    if span.old_start == span.old_end or span.new_start == span.new_end:
        return False
    parts = word_spans(old, new, span)
    if not parts or len(parts) > MOST_PARTS:
        return False
    for part in parts:
        if not _may_pass(old, *part[:2]) or not _may_pass(new, *part[2:]):
            return False  # nearly all edits end here, at their first word
        sides = _side(old, part[:2], old_at), _side(new, part[2:], new_at)
        if sides[0] is None or sides[1] is None or not passes(sides[0], sides[1]):
            return False
    return True


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


def bare(words: Sequence[str]) -> list[str]:
    """Words in lower case without the punctuation at their ends."""
    return [each for each in (word.strip(_EDGES).lower() for word in words) if each]


def may_be_time(word: str) -> bool:
    """Whether a bare word can be a part of an age, a clock or a date: False is sure, True is not."""
    return word in _OF_AN_AGE or word in _NAMES or word in _BESIDE_A_CLOCK or any(map(str.isdigit, word))


def time_passed(old: Side, new: Side) -> bool:
    """Whether both sides speak of the same event, or of the moment of their fetch. False if a fetch has no time."""
    if old.fetched_at is None or new.fetched_at is None:
        return False
    ages = [_since(side, side.fetched_at) for side in (old, new) if side.fetched_at is not None]
    if all(ages):
        (start, end), (other_start, other_end) = (each for each in ages if each is not None)
        return start <= other_end and other_start <= end
    parts, others = _time_around(old), _time_around(new)
    if parts is None or others is None:
        return False
    return any(
        _agrees(parts, old.fetched_at + zone * MINUTE) and _agrees(others, new.fetched_at + zone * MINUTE)
        for zone in _ZONES
    )


def _since(side: Side, fetched_at: float) -> tuple[float, float] | None:
    """Between which moments the event lies whose age the words of a side are part of, None if they are not."""
    before, words, after = bare(side.before), bare(side.words), bare(side.after)
    if not words:
        return None
    start = len(" ".join([*before, ""]))
    end = start + len(" ".join(words))
    for match in _AGE.finditer(" ".join(before + words + after)):
        if match.start() <= start and end <= match.end():
            oldest, youngest = _age(match[0])
            return fetched_at - oldest, fetched_at - youngest
    return None


def _age(written: str) -> tuple[float, float]:
    """The longest and the shortest age that words can mean: rounded up, down or to the nearest."""
    if written in _RECENT:
        return _RECENT[written], 0.0
    total = unit = 0.0
    for number, name in _UNIT_OF_AGE.findall(written):
        unit = _UNITS["mo" if name.startswith("mon") else "m" if name.startswith("mom") else name[0]]
        total += unit * (int(number) if number.isdigit() else 1)
    return total + unit, max(total - unit, 0.0)


def _time_around(side: Side) -> list[_Part] | None:
    """The parts of the time that the words of a side belong to, None if these are no time or have no day or clock."""
    inside = [part for word in bare(side.words) for part in _parts(word)]
    if not inside or not all(_parts(word) for word in bare(side.words)):
        return None
    before = [part for word in takewhile(_parts, reversed(bare(side.before))) for part in _parts(word)]
    after = [part for word in takewhile(_parts, bare(side.after)) for part in _parts(word)]
    kinds = {part.kind for part in (*before, *inside, *after)}
    if kinds.isdisjoint(("month", "weekday", "year")):
        # A number beside a clock need not be a day.
        before, after = ([part for part in parts if part.kind != "day"] for parts in (before, after))
        kinds = {part.kind for part in (*before, *inside, *after)}
        if "day" in kinds:
            return None
    return None if kinds.isdisjoint(("clock", "weekday", "day")) else [*before, *inside, *after]


def _parts(word: str) -> list[_Part]:
    """The parts of a time that a word is, none if it is something else."""
    stamp = _STAMP.fullmatch(word)
    if word in _BESIDE_A_CLOCK:
        return [_Part("none", 0)]
    if word in _NAMES:
        return [_NAMES[word]]
    if stamp:
        year, month, day = (int(stamp[group]) for group in (1, 2, 3))
        return [_Part("year", year), _Part("month", month), _Part("day", day), *(_clock(stamp[4]) if stamp[4] else ())]
    if _YEAR.fullmatch(word):
        return [_Part("year", int(word))]
    number = _DAY_NUMBER.fullmatch(word)
    return [_Part("day", int(number[1]))] if number else _clock(word)


def _clock(word: str) -> list[_Part]:
    clock = _CLOCK.fullmatch(word)
    if clock is None:
        return []
    seconds = (int(clock[1]) * 60 + int(clock[2])) * 60 + int(clock[3] or 0)
    return [_Part("clock", seconds % _HALF_DAY_S, 1.0 if clock[3] else MINUTE)]


def _agrees(parts: Sequence[_Part], local: float) -> bool:
    moment = _moment(local)
    return all(part.kind == "none" or _fits(part, getattr(moment, part.kind)) for part in parts)


def _fits(part: _Part, now: int) -> bool:
    if part.kind != "clock":
        return part.value == now
    behind = (now - part.value + _HALF_DAY_S // 2) % _HALF_DAY_S - _HALF_DAY_S // 2
    return -_AHEAD_S <= behind <= _CACHED_S + part.seconds


def _moment(at: float) -> _Moment:
    """A Unix time in a zone whose offset was added, by the civil calendar."""
    days = int(at // DAY)
    since = days + 719_468  # days since 0000-03-01
    era, of_era = divmod(since, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    from_march = (5 * of_year + 2) // 153
    month = (from_march + 2) % 12 + 1
    return _Moment(
        clock=int(at % DAY) % _HALF_DAY_S,
        weekday=(days + 3) % 7,
        day=of_year - (153 * from_march + 2) // 5 + 1,
        month=month,
        year=400 * era + year + (month <= 2),
    )
