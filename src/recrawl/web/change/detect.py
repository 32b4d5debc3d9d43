"""Has a page changed, or is it noise? A pure decision from what is known of the page and a new fetch.

    memory ──┐
    text ────┼─> detect ─> Decision(verdict, reason, ask_again, memory)
    previous ┘      ▲
    again ──────────┘ the texts of further fetches seconds later, as long as the decision asks for one more

Noise is a difference in volatile places, times and counters of visitors alone (`volatile`), a text that a second fetch
no longer shows, or a text or lines that the page showed before (`flips-back`, `known-variant`). Noise is no event and
`counts_as_change` is False: a rate estimator never sees it. A page that stays on a variant has changed after all
(`settled`). Numbers stay visible: a price is never volatile, and a return to an earlier number is a change at once.

Where the raw bytes count (`counts = "raw"`), digests are compared and nothing else: every difference is a change.

Keep the text of the last `first` or `changed` decision and hand it in as `previous`. Without it the decision still
works, but noise that is met for the first time is a change once, and there is no diff to show.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from recrawl.web.change.diff_lines import line_spans
from recrawl.web.change.digests import raw_digest, text_digest
from recrawl.web.change.passing import with_times_of
from recrawl.web.change.returning import follow_lines, only_returns, turns
from recrawl.web.change.variants import (
    PageMemory,
    after_asking,
    has_settled,
    second_fetch_worth,
    variant_of,
    with_variant,
)
from recrawl.web.change.volatile import differs_in_numbers, is_numeric, joined_slots, learn_slots
from recrawl.web.change.volatile_mask import Reading, Slot, fitting_slots, masked_digest, read_words
from recrawl.web.content.rules import DEFAULT_CONTENT_RULES, ContentRules
from recrawl.web.content.words import tidy_text

Verdict = Literal["first", "unchanged", "changed", "noise"]
Reason = Literal["", "new-rules", "volatile", "flips-back", "known-variant", "settled"]


@dataclass(frozen=True, slots=True)
class Visit:
    """One fetch of a page.

    Args:
        text: the text of the layer that counts (`digests.layer_text`).
        previous: the same of the last decision that was `first` or `changed`, if it was kept.
        again: the same of further fetches, each some seconds after the one before.
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
        ask_again: one more fetch some seconds later is worth its cost; decide anew with it, from the memory before.
        memory: what to remember of the page; nothing else may be remembered of an earlier decision on this visit.
    """

    verdict: Verdict
    reason: Reason
    ask_again: bool
    memory: PageMemory

    @property
    def counts_as_change(self) -> bool:
        """What an estimator of change rates is told."""
        return self.verdict == "changed"


def detect(memory: PageMemory | None, visit: Visit, rules: ContentRules = DEFAULT_CONTENT_RULES) -> Decision:
    """Decide what a visit means. O(bytes) if nothing differs, else O(words x differing words), bounded."""
    return (_by_bytes if rules.counts == "raw" else _by_words)(memory, visit, rules)


def _by_words(memory: PageMemory | None, visit: Visit, rules: ContentRules) -> Decision:
    text = _tidied(visit.text)
    exact = text_digest(text).hex()
    if memory is None or memory.signature != rules.signature:
        reason: Reason = "" if memory is None else "new-rules"
        return _first(read_words(text), exact, visit, rules, reason)
    memory = replace(memory, visits=memory.visits + 1)
    if exact == memory.exact:
        return Decision("unchanged", "", False, _seen_published(memory))
    new = read_words(text)
    digest = masked_digest(new, memory.slots).hex()
    if digest == memory.digest:
        return Decision("noise", "volatile", False, replace(_seen_published(memory), exact=exact))
    if not rules.learn_noise:
        return Decision("changed", "", False, _published(memory, new, exact, visit))
    old = None if visit.previous is None else read_words(_tidied(visit.previous))
    if old is not None and text_digest(old.text).hex() == exact:
        return Decision("unchanged", "", False, replace(_seen_published(memory), exact=exact))
    return _difference(memory, old, (new, digest, exact), visit, rules)


def _by_bytes(memory: PageMemory | None, visit: Visit, rules: ContentRules) -> Decision:
    """Decide by the digest of a whole body, which may be large: every difference is a change. O(bytes)."""
    exact = raw_digest(visit.text).hex()
    if memory is None or memory.signature != rules.signature:
        reason: Reason = "" if memory is None else "new-rules"
        return Decision("first", reason, False, PageMemory(rules.signature, exact, exact, visit.fetched_at, visits=1))
    visits = memory.visits + 1
    if exact == memory.exact:
        return Decision("unchanged", "", False, _seen_published(replace(memory, visits=visits)))
    changed = PageMemory(rules.signature, exact, exact, visit.fetched_at, visits=visits, asked=memory.asked)
    return Decision("changed", "", False, changed)


def _first(new: Reading, exact: str, visit: Visit, rules: ContentRules, reason: Reason) -> Decision:
    slots: tuple[Slot, ...] = ()
    for again in visit.again if rules.learn_noise else ():
        other = read_words(_tidied(again))
        slots = joined_slots(slots, learn_slots(new, with_times_of(new, other, visit.fetched_at, visit.fetched_at)))
    digest = masked_digest(new, slots).hex()
    memory = PageMemory(rules.signature, digest, exact, visit.fetched_at, slots, visits=1, asked=len(visit.again))
    return Decision("first", reason, False, memory)


def _difference(
    memory: PageMemory, old: Reading | None, fetch: tuple[Reading, str, str], visit: Visit, rules: ContentRules
) -> Decision:
    """Decide on a text, with its digests, that differs from the published one outside the known volatile places."""
    fetched, digest, exact = fetch
    new, *again = _at_one_time(memory, old, fetched, visit)
    if new is not fetched:
        digest = masked_digest(new, memory.slots).hex()
    if digest == memory.digest:
        # What passes today need not pass tomorrow: the exact text is not remembered.
        return Decision("noise", "volatile", False, _seen_published(memory))
    shown = [masked_digest(each, memory.slots).hex() for each in again]
    flips = memory.digest in shown
    learned: list[Slot] = []
    for each, other in zip(again, shown, strict=True):
        if other != digest and not (other == memory.digest and _any_number(new, each)):
            learned += learn_slots(new, each)
    returned = variant_of(memory, digest)
    memory, back = (memory, False) if old is None else _with_lines(memory, old, new, learned)
    memory = after_asking(memory, [other != digest for other in shown])
    ask = second_fetch_worth(memory, rules.second_fetch_share, len(again))
    if learned:
        slots = joined_slots(memory.slots, learned)
        digest = masked_digest(new, slots).hex()
        # Digests under other slots cannot be compared: without the old text the page starts anew from this one.
        published = digest if old is None else masked_digest(old, slots).hex()
        memory = replace(memory, slots=slots, digest=published, variants=())
        if digest == published and old is not None:
            return Decision("noise", "volatile", False, _seen_published(memory))
        returned = None
    if flips:
        known_now = replace(with_variant(memory, digest, True), elsewhere=memory.elsewhere + 1)
        return Decision("noise", "flips-back", False, _seen_published(known_now))
    if returned is not None and (returned.alternates or old is None or not differs_in_numbers(old, new, memory.slots)):
        back = True
    if not back:
        return Decision("changed", "", ask, _published(memory, fetched, exact, visit))
    shown_now = 1 + sum(masked_digest(each, memory.slots).hex() == digest for each in again)
    if has_settled(memory, memory.away + shown_now):
        return Decision("changed", "settled", False, _published(memory, fetched, exact, visit))
    return _variant(memory, shown_now, digest, ask)


def _with_lines(memory: PageMemory, old: Reading, new: Reading, learned: list[Slot]) -> tuple[PageMemory, bool]:
    """The memory with the lines that went and came, and whether all that came had been there before."""
    if not memory.gone and memory.away:
        return memory, False
    slots = (*memory.slots, *learned)
    places = turns(old, new, slots)
    back = only_returns(memory.gone, places, old, new, slots)
    return (memory if memory.away else replace(memory, gone=follow_lines(memory.gone, places))), back


def _at_one_time(memory: PageMemory, old: Reading | None, new: Reading, visit: Visit) -> list[Reading]:
    """The text of a visit and those of its further fetches, with times and counters as they were published."""
    published, published_at = (new, visit.fetched_at) if old is None else (old, memory.published_at)
    read: dict[bytes, Reading] = {}  # most pages show the same words again
    if old is None:
        read[new.text] = new
    for text, reading in [(new.text, new), *((_tidied(each), None) for each in visit.again)]:
        if text not in read:
            read[text] = with_times_of(published, reading or read_words(text), published_at, visit.fetched_at)
    return [read[text] for text in (new.text, *map(_tidied, visit.again))]


def _variant(memory: PageMemory, shown: int, digest: str, ask: bool) -> Decision:
    """The decision on a text that the page showed before, while it may go back."""
    known = variant_of(memory, digest)
    reason: Reason = "known-variant" if known is not None and known.alternates else "flips-back"
    away = replace(memory, elsewhere=memory.elsewhere + shown, away=memory.away + shown)
    return Decision("noise", reason, ask, away)


def _any_number(one: Reading, other: Reading) -> bool:
    """Whether two fetches differ in numbers alone somewhere: then they are variants, and no place is masked."""
    spans = line_spans(one, other)
    return any(is_numeric(one, other, span) for span in spans)


def _seen_published(memory: PageMemory) -> PageMemory:
    return replace(memory, at_published=memory.at_published + 1, away=0)


def _published(memory: PageMemory, new: Reading, exact: str, visit: Visit) -> PageMemory:
    """The memory after a change: the text before it becomes a variant."""
    slots = fitting_slots(new, memory.slots)
    if slots != memory.slots:
        memory = replace(memory, slots=slots, variants=())  # under other slots, which cannot be compared
    digest = masked_digest(new, slots).hex()
    memory = memory if memory.digest == digest else with_variant(memory, memory.digest, False)
    variants = tuple(each for each in memory.variants if each.digest != digest)
    return replace(
        memory,
        digest=digest,
        exact=exact,
        published_at=visit.fetched_at,
        variants=variants,
        at_published=0,
        elsewhere=0,
        away=0,
    )


def _tidied(text: bytes) -> bytes:
    return tidy_text(text.replace(b"\n", b"\x1e"))
