"""Has a page changed, or is it noise? A pure decision from what is known of the page and a new fetch.

    memory ──┐
    text ────┼─> detect ─> Decision(verdict, reason, ask_again, memory)
    previous ┘      ▲
    again ──────────┘ the texts of further fetches a second later, as long as the decision asks for one more

The new text is aligned with the text published last, and each difference is judged by the evidence at its place
(`places`): it is a change, noise, or held until a close pair decides. Differences that the passing of time or visitors
explain are noise (`passing`). One change makes the verdict `changed`; a difference that is held makes no event now, and
is published with the time it was first seen when its place turns out steady. Noise is no event, and a rate estimator
never sees it.

Where the raw bytes count (`counts = "raw"`), digests are compared and nothing else: every difference is a change.

Keep the text of the last `first` or `changed` decision and hand it in as `previous`. Without it every difference is a
change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from recrawl.errors import InvalidInput
from recrawl.web.change.align import Reading, Span, carried, differences, read_words, tidied
from recrawl.web.change.diff import word_text
from recrawl.web.change.digests import raw_digest, text_digest
from recrawl.web.change.passing import without_drift
from recrawl.web.change.places import (
    LEAST_PAIRS,
    MOST_PLACES,
    MOST_WATCHED,
    Finding,
    Place,
    Shown,
    after_pair,
    after_visit,
    bounded,
    carried_places,
    is_numeric,
    joined_differences,
    judge,
    touches,
    value_of,
    watched,
)
from recrawl.web.content.rules import DEFAULT_CONTENT_RULES, ContentRules

Verdict = Literal["first", "unchanged", "changed", "noise"]
Reason = Literal["", "new-rules", "volatile", "flips-back", "held"]

FORM = 2
FREE_PAIRS = 10  # second fetches that no share of the visits bounds
MOST_HELD = 6  # visits for which a difference is held without a pair
_MASKED_EVERY = 48  # differences before a pair tests a volatile place: 4, 8, 16, 32, 48
_OLD = 8  # differing pairs after which a volatile place is tested only from what is not reserved
_RESERVE = 3  # second fetches kept for what is in doubt
_DIGEST_CHARACTERS = 32


@dataclass(frozen=True, slots=True)
class PageMemory:
    """What is known of a page between visits: small, made of plain values, without text.

    Args:
        signature: of the rules by which the text was made; under other rules the page starts over.
        digest: of the text last published, as its event says it, in hexadecimal.
        exact: of the text last seen that was no change.
        published_at: when that was fetched, in Unix seconds, if known.
        seen_at: when nothing was held last, in Unix seconds.
        held_since: when the difference that is held was first seen, None if none is.
        held_visits: visits in a row that held one without a close pair.
        visits: visits in all.
        asked: second fetches made.
        fruitless: close pairs in a row that made no place volatile.
        waited: differences since the last close pair.
        places: of the published text.
        has_headline: whether the published text was read with its headline.
    """

    signature: int
    digest: str
    exact: str
    published_at: float | None = None
    seen_at: float | None = None
    held_since: float | None = None
    held_visits: int = 0
    visits: int = 0
    asked: int = 0
    fruitless: int = 0
    waited: int = 0
    places: tuple[Place, ...] = ()
    has_headline: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold."""
        plain: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        plain["places"] = [list(place) for place in self.places]
        return plain | {"form": FORM}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> PageMemory:
        """What `to_dict` gave, checked; of the form before, what still counts."""
        try:
            memory = cls(**_current(plain))
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput("is not what PageMemory.to_dict gave; drop it, and the page starts over") from error
        if (
            not len(memory.digest) == len(memory.exact) == _DIGEST_CHARACTERS
            or len(memory.places) > MOST_PLACES + MOST_WATCHED
        ):
            raise InvalidInput("is not what PageMemory.to_dict gave; drop it, and the page starts over")
        return memory


def _current(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a memory, from this form or from the one before, which knew places by their neighbours."""
    values = dict(plain)
    if "form" not in values:
        kept = ("signature", "digest", "exact", "published_at", "visits", "asked")
        return {name: values[name] for name in kept} | {"has_headline": False}
    if values.pop("form") != FORM:
        raise ValueError
    values["places"] = tuple(_place(each) for each in values["places"])
    return values


def _place(plain: Sequence[Any]) -> Place:
    place = Place(*plain)
    return place._replace(values=tuple(map(int, place.values)))


@dataclass(frozen=True, slots=True)
class Visit:
    """One fetch of a page.

    Args:
        text: the text of the layer that counts (`digests.layer_text`).
        previous: the same of the last decision that was `first` or `changed`, if it was kept.
        again: the same of further fetches, each as soon after the one before as pacing allowed.
        fetched_at: when, in Unix seconds; helps to know clocks and dates.
    """

    text: bytes
    previous: bytes | None = None
    again: tuple[bytes, ...] = ()
    fetched_at: float | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What a visit means.

    Args:
        verdict: `first` is a baseline, not a change.
        reason: why, where the verdict alone does not say it.
        ask_again: one more fetch, as soon as pacing allows, is worth its cost; decide again with it, from the memory
            before.
        memory: what to remember of the page; nothing else may be remembered of an earlier decision on this visit.
        since: of a change that was held: when the page last showed the published text, and when it first did not.
    """

    verdict: Verdict
    reason: Reason
    ask_again: bool
    memory: PageMemory
    since: tuple[float | None, float | None] | None = None

    @property
    def counts_as_change(self) -> bool:
        """What an estimator of change rates is told."""
        return self.verdict == "changed"


def detect(memory: PageMemory | None, visit: Visit, rules: ContentRules = DEFAULT_CONTENT_RULES) -> Decision:
    """Decide what a visit means. O(bytes) if nothing differs, else O(words x differing words), bounded."""
    if rules.counts == "raw":
        exact = raw_digest(visit.text).hex()
    else:
        visit = replace(visit, text=tidied(visit.text))
        exact = text_digest(visit.text).hex()
    if memory is None or memory.signature != rules.signature:
        first = PageMemory(rules.signature, exact, exact, visit.fetched_at, visit.fetched_at, visits=1)
        return Decision("first", "" if memory is None else "new-rules", False, first)
    if exact == memory.exact:
        return Decision("unchanged", "", False, seen_again(memory, visit.fetched_at))
    memory = replace(memory, visits=memory.visits + 1)
    if rules.counts == "raw" or not rules.learn_noise or visit.previous is None:
        return Decision("changed", "", False, _published(memory, exact, visit))
    return _Comparison(memory, visit, tidied(visit.previous)).decide(exact, rules.second_fetch_share)


def seen_again(memory: PageMemory, at: float | None) -> PageMemory:
    """The memory after a visit that found the published text."""
    places = tuple(place._replace(run=0) if place.run else place for place in memory.places)
    return replace(memory, visits=memory.visits + 1, seen_at=at, held_since=None, held_visits=0, places=places)


def with_headline(memory: PageMemory, text: bytes, *, is_new: bool) -> PageMemory:
    """The memory of a page whose published text is replaced by the same with its headline.

    Args:
        memory: of the text without it.
        text: the whole text.
        is_new: whether an event publishes it.
    """
    exact = text_digest(tidied(text)).hex()
    digest = exact if is_new else memory.digest
    places = memory.places if exact == memory.exact else ()
    return replace(memory, digest=digest, exact=exact, places=places, has_headline=True)


def volatile_words(memory: PageMemory, text: bytes | None) -> list[str]:
    """The published words of the volatile places, to be shown to people; none if another text is given."""
    tidy = tidied(text or b"")
    if text_digest(tidy).hex() != memory.digest:
        return []
    reading = read_words(tidy)
    return [word_text(tidy, reading.words, *place[:2]) for place in memory.places if place.is_volatile]


def _published(memory: PageMemory, exact: str, visit: Visit, places: tuple[Place, ...] = ()) -> PageMemory:
    return replace(
        memory,
        digest=exact,
        exact=exact,
        published_at=visit.fetched_at,
        seen_at=visit.fetched_at,
        held_since=None,
        held_visits=0,
        places=places,
    )


class _Pair(NamedTuple):
    """A close pair: where it differs, in words of the published text and of the new one, and what went back."""

    in_old: list[Shown]
    in_new: list[Shown]
    back: list[Span]


class _Comparison:
    """A text that differs from the published one, with what further fetches showed."""

    def __init__(self, memory: PageMemory, visit: Visit, previous: bytes) -> None:
        self.memory = memory
        self.visit = visit
        self.old = read_words(previous)
        self.new = read_words(visit.text)
        noisy = [place[:2] for place in memory.places if place.differed]
        self.every = differences(self.old, self.new, noisy)
        self.spans = without_drift(self.old, self.new, self.every, memory.published_at, visit.fetched_at)

    def decide(self, exact: str, share: float) -> Decision:
        """Decide by the places of the differences."""
        memory, visit = self.memory, self.visit
        if not self.spans:
            same = replace(seen_again(memory, visit.fetched_at), visits=memory.visits)
            verdict: Verdict = "noise" if self.every else "unchanged"
            return Decision(verdict, "volatile" if self.every else "", False, same)
        pairs = [self._pair(read_words(tidied(text))) for text in visit.again]
        before, places = memory.places, self._after_pairs(pairs)
        returned = [span for pair in pairs for span in pair.back]
        findings = [judge(places, self.old, self.new, span, went_back=span in returned) for span in self.spans]
        places, doubtful = self._tested(places, pairs)
        taught = sum(place.is_volatile for place in places) > sum(place.is_volatile for place in before)
        memory = _after_asking(replace(memory, places=places), len(pairs), taught)
        steady = bool(pairs) and not any(self._is_news(shown) for pair in pairs for shown in pair.in_old)
        ask = _is_pair_worth(memory, findings, share, len(pairs), steady, doubtful)
        held = "held" in findings
        memory = replace(memory, held_visits=memory.held_visits + 1 if held and not pairs else 0)
        # Without a pair in sight, a place that was steady before is believed to change.
        patience = 0 if not ask and not pairs and _was_steady(places) else MOST_HELD
        if "change" in findings or memory.held_visits > patience:
            since = None if memory.held_since is None else (memory.seen_at, memory.held_since)
            now = self._places_of_new(places, pairs)
            return Decision("changed", "", ask, _published(memory, exact, visit, now), since)
        memory = replace(memory, places=after_visit(memory.places, self.new, self.spans))
        if held:
            since_then = memory.held_since if memory.held_since is not None else visit.fetched_at
            return Decision("noise", "held", ask, replace(memory, held_since=since_then))
        reason: Reason = "flips-back" if "returns" in findings else "volatile"
        return Decision("noise", reason, ask, replace(memory, held_since=None, seen_at=visit.fetched_at))

    def _pair(self, other: Reading) -> _Pair:
        """What a further fetch shows beside the fetch of the visit."""
        at = self.visit.fetched_at
        raw = without_drift(self.new, other, differences(self.new, other), at, at)
        left = without_drift(self.old, other, differences(self.old, other), self.memory.published_at, at)
        back_to_new = [span.flipped for span in self.every]
        in_old, in_new = [], []
        for span in joined_differences(self.new, other, raw):
            start, end = carried(back_to_new, *span[:2], grow=self._grows(span))
            now = value_of(self.new, span.old_start, span.old_end)
            shown = Shown(
                start,
                end,
                max(self.new.lines_in(*span[:2]), other.lines_in(*span[2:])),
                is_numeric(self.new, other, span),
                not any(start <= each.old_end and each.old_start <= end for each in left),
                (value_of(self.old, start, end), now),
            )
            in_old.append(shown)
            in_new.append(shown._replace(start=span.old_start, end=span.old_end))
        return _Pair(in_old, in_new, [span for span in self.spans if not _meets_any(span, left)])

    def _grows(self, span: Span) -> bool:
        """Whether what differs from the published text right beside a difference of a pair belongs to it.

        A part of a line beside whole lines does not: it is news above an advertisement.
        """
        beside = [each for each in self.every if each.new_start <= span.old_end and span.old_start <= each.new_end]
        whole = all(map(self.new.is_edge, span[:2]))
        return not whole or all(self.new.is_edge(each.new_start) and self.new.is_edge(each.new_end) for each in beside)

    def _after_pairs(self, pairs: Sequence[_Pair]) -> tuple[Place, ...]:
        places, counted = self.memory.places, set[tuple[int, int]]()
        for pair in pairs:
            places = after_pair(places, pair.in_old, counted, self.old)
        return places

    def _is_news(self, shown: Shown) -> bool:
        """Whether a pair differs where nothing volatile was known."""
        return not any(place.is_volatile and touches(place, *shown[:2]) for place in self.memory.places)

    def _tested(self, places: tuple[Place, ...], pairs: Sequence[_Pair]) -> tuple[tuple[Place, ...], bool]:
        """The places, with steady pairs counted where an earlier value is back, and whether more pairs are worth it."""
        shown = {span[:2]: value_of(self.new, span.new_start, span.new_end) for span in self.spans}
        out, doubtful = [], False
        for place in places:
            back = not place.is_volatile and shown.get(place[:2]) in place.values
            doubtful |= back and place.tested < place.tests_needed
            differed = any(touches(place, *each[:2]) for pair in pairs for each in pair.in_old)
            out.append(place._replace(tested=place.tested + len(pairs)) if back and not differed else place)
        return tuple(out), doubtful

    def _places_of_new(self, places: tuple[Place, ...], pairs: Sequence[_Pair]) -> tuple[Place, ...]:
        """The places of the new text, which is published."""
        tested = {place[:2]: place.tested for place in places}
        before = [place._replace(tested=tested.get(place[:2], place.tested)) for place in self.memory.places]
        found = tuple(carried_places(before, self.every, self.new))
        counted = set[tuple[int, int]]()
        for pair in pairs:
            found = after_pair(found, pair.in_new, counted, self.new)
        return bounded(watched(found, self.old, self.new, self.spans))


def _meets_any(span: Span, others: Sequence[Span]) -> bool:
    return any(span.old_start <= other.old_end and other.old_start <= span.old_end for other in others)


def _after_asking(memory: PageMemory, pairs: int, taught: bool) -> PageMemory:
    """The memory after a difference with so many close pairs."""
    if not pairs:
        return replace(memory, waited=memory.waited + 1)
    fruitless = 0 if taught else memory.fruitless + 1
    return replace(memory, asked=memory.asked + pairs, fruitless=fruitless, waited=0)


def _is_pair_worth(
    memory: PageMemory, findings: Sequence[Finding], share: float, asked_now: int, steady: bool, doubtful: bool
) -> bool:
    """Whether one more fetch is worth its cost.

    Worth it most where it decides something: a difference that is held, a volatile place of which the last pair was
    steady. Then for news, ever more rarely while pairs teach nothing, and last for volatile places, the young sooner.

    Args:
        memory: as `_after_asking` gave it.
        findings: on the differences.
        share: second fetches as a share of visits after the tenth.
        asked_now: second fetches of this visit.
        steady: whether these taught nothing.
        doubtful: whether an earlier value is back that few pairs have tested.
    """
    spare = FREE_PAIRS + share * max(0, memory.visits - 10) - memory.asked
    fresh = "change" in findings
    if spare < 1:
        return False
    if asked_now:
        return steady and asked_now < 3 and ((fresh and memory.asked < 3) or (doubtful and spare >= 4))
    volatile = [place for place in memory.places if place.is_volatile]
    in_doubt = doubtful or any(place.steady for place in volatile)
    if in_doubt or "held" in findings:
        return in_doubt or memory.waited > _pause(memory)
    if fresh and spare >= _RESERVE and memory.waited >= 1 << min(max(memory.fruitless - 2, 0), 6):
        return True
    youngest = min((place.differed for place in volatile), default=0)
    tests = youngest > 0 and (youngest < _OLD or spare >= _RESERVE)
    return tests and memory.waited >= min(1 << min(youngest, 7) - 1, _MASKED_EVERY)


def _was_steady(places: Sequence[Place]) -> bool:
    """Whether all suspected places were steady in at least half of the pairs before."""
    suspected = [place for place in places if place.differed and not place.is_volatile]
    return all(place.cleared >= max(place.varied, 2) for place in suspected)


def _pause(memory: PageMemory) -> int:
    """Differences to wait before the pair that may make a suspected place volatile.

    A page that changes every few seconds and is visited as regularly differs in several pairs in a row if one does: so
    the visits of the last pairs stand apart, by a number that is drawn from the digest, while no pair was ever steady.
    """
    suspected = [place.differed for place in memory.places if not place.is_volatile and not place.cleared]
    if max(suspected, default=0) < LEAST_PAIRS - 1:
        return 0
    return 1 + int(memory.exact[:4], 16) % (MOST_HELD - 2)
