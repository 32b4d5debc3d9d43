"""What is remembered of a page between visits, to tell change from noise: small, and made of plain values.

`PageMemory` holds a digest of the text last published, the volatile slots, and the variants: digests that the page
showed before. It never holds text; whoever keeps versions hands the published text in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from recrawl.errors import InvalidInput
from recrawl.web.change.returning import MOST_GONE, GoneLine
from recrawl.web.change.volatile import MOST_SLOTS
from recrawl.web.change.volatile_mask import Slot

MOST_VARIANTS = 8
SETTLED = 0.001  # how unlikely it must be that a page which alternates shows the published text so rarely
FREE_SECOND_FETCHES = 3
_DIGEST_CHARACTERS = 32


class Variant(NamedTuple):
    """A digest the page showed before, in hexadecimal, and whether two fetches seconds apart showed it to alternate."""

    digest: str
    alternates: bool


@dataclass(frozen=True, slots=True)
class PageMemory:
    """What is known of a page.

    Args:
        signature: of the rules by which the text was made; under other rules the page starts anew.
        digest: of the published text with volatile places masked, in hexadecimal.
        exact: of the text last seen that was no change, with nothing masked.
        published_at: when the published text was fetched, in Unix seconds, if known.
        slots: volatile places.
        variants: earlier digests, the newest last.
        gone: lines that went away, the newest last.
        at_published: visits that showed the published text since it was published.
        elsewhere: visits since then that showed a variant.
        away: the last visits in a row that did not show the published text.
        visits: visits in all.
        asked: second fetches made.
        fruitless: the last second fetches in a row that taught nothing.
        waited: differences since the last second fetch.
    """

    signature: int
    digest: str
    exact: str
    published_at: float | None = None
    slots: tuple[Slot, ...] = ()
    variants: tuple[Variant, ...] = ()
    gone: tuple[GoneLine, ...] = ()
    at_published: int = 0
    elsewhere: int = 0
    away: int = 0
    visits: int = 0
    asked: int = 0
    fruitless: int = 0
    waited: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold: 0.4 kB for a page that never changed, 2 kB for a noisy one, 7 kB at most."""
        plain: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        plain["slots"] = [list(slot) for slot in self.slots]
        plain["gone"] = [list(line) for line in self.gone]
        plain["variants"] = [list(variant) for variant in self.variants]
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> PageMemory:
        """What `to_dict` gave, checked."""
        try:
            values = dict(plain)
            values["slots"] = tuple(Slot(*map(int, slot)) for slot in plain["slots"])
            values["gone"] = tuple(GoneLine(*map(int, line)) for line in plain["gone"])
            values["variants"] = tuple(Variant(str(digest), bool(seen)) for digest, seen in plain["variants"])
            memory = cls(**values)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput("is not what PageMemory.to_dict gave; drop it, and the page starts anew") from error
        sizes = len(memory.digest) == len(memory.exact) == _DIGEST_CHARACTERS and len(memory.slots) <= MOST_SLOTS
        if not sizes or len(memory.variants) > MOST_VARIANTS or len(memory.gone) > MOST_GONE:
            raise InvalidInput("is not what PageMemory.to_dict gave; drop it, and the page starts anew")
        return memory


def variant_of(memory: PageMemory, digest: str) -> Variant | None:
    """The variant with a digest, if the page showed it before."""
    return next((each for each in memory.variants if each.digest == digest), None)


def with_variant(memory: PageMemory, digest: str, alternates: bool) -> PageMemory:
    """The memory with one more variant; the oldest is forgotten when there are too many."""
    known = variant_of(memory, digest)
    others = tuple(each for each in memory.variants if each.digest != digest)
    variant = Variant(digest, alternates or (known is not None and known.alternates))
    return replace(memory, variants=(*others, variant)[-MOST_VARIANTS:])


def has_settled(memory: PageMemory, away: int) -> bool:
    """Whether a page that showed variants for so many visits in a row has left the published text for good.

    A page that alternates shows the published text with a chance that is estimated from its visits (rule of
    succession); the more often it did, the sooner its absence is a change.
    """
    earlier = memory.elsewhere - memory.away  # the run in question must not speak for itself
    chance = (memory.at_published + 1) / (memory.at_published + earlier + 2)
    return (1 - chance) ** away < SETTLED


def after_asking(memory: PageMemory, taught: Sequence[bool]) -> PageMemory:
    """The memory after a difference, given for each further fetch of the visit whether it taught something."""
    if not taught:
        return replace(memory, waited=memory.waited + 1)
    fruitless = 0 if any(taught) else memory.fruitless + len(taught)
    return replace(memory, asked=memory.asked + len(taught), fruitless=fruitless, waited=0)


def second_fetch_worth(memory: PageMemory, share: float, asked_now: int) -> bool:
    """Whether to fetch a page that differs once more, seconds later, to learn what is noise.

    Worth it up to three times on the first difference: a page that shows one of two texts by chance shows the same one
    twice half of the time. After that, while further fetches teach nothing, once on every 8th, 16th, 32nd difference.
    Never more than `share` of the visits and three.

    Args:
        memory: as `after_asking` gave it.
        share: further fetches as a share of visits.
        asked_now: further fetches of this visit.
    """
    if memory.asked >= FREE_SECOND_FETCHES + share * memory.visits:
        return False
    if asked_now:
        return 0 < memory.fruitless < FREE_SECOND_FETCHES
    return memory.waited >= 1 << min(memory.fruitless, 10)
