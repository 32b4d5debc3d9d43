"""What is remembered of a page between visits, to tell change from noise: small, and made of plain values.

`PageMemory` holds a digest of the text last published, the volatile slots, and the variants: digests that the page
showed before. It never holds text; whoever keeps versions hands the published text in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from recrawl.errors import InvalidInput
from recrawl.web.volatile import MOST_SLOTS, lines_without_digits
from recrawl.web.volatile_mask import Reading, Slot

MOST_VARIANTS = 8
SETTLED = 0.001  # how unlikely it must be that a page which alternates shows the published text so rarely
FREE_SECOND_FETCHES = 3
MOST_GONE = 32
RETURNS_OF_NOISE = 2  # times a line came back before it is held for noise
_DIGEST_CHARACTERS = 32


class Variant(NamedTuple):
    """A digest the page showed before, in hexadecimal, and whether two fetches seconds apart showed it to alternate."""

    digest: str
    alternates: bool


class GoneLine(NamedTuple):
    """A line that went away, by the hash and number of its words, and how often it came back since."""

    line: int
    words: int
    returns: int


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
        plain = asdict(self)
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


def with_lines(memory: PageMemory, old: Reading, new: Reading) -> tuple[PageMemory, tuple[Slot, ...]]:
    """The memory after lines went and came, and those that come and go so often that they are noise. O(words).

    Lines with a digit are not followed: a price that goes back and forth is no noise.
    """
    before, after = lines_without_digits(old), lines_without_digits(new)
    gone = {(line, words): returns for line, words, returns in memory.gone}
    noise = []
    for line in after:
        key = (line.left, line.left_words)
        if line not in before and key in gone:
            gone[key] += 1
            if gone[key] >= RETURNS_OF_NOISE:
                noise.append(line)
                del gone[key]
    went = [line for line in before if line not in after]
    if noise and len(went) <= len(noise) + 1:  # what it took turns with
        noise += went
    for line in went:
        gone.setdefault((line.left, line.left_words), 0)
    kept = tuple(GoneLine(*key, returns) for key, returns in gone.items())[-MOST_GONE:]
    return replace(memory, gone=kept), tuple(noise)


def has_settled(memory: PageMemory, away: int) -> bool:
    """Whether a page that showed variants for so many visits in a row has left the published text for good.

    A page that alternates shows the published text with a chance that is estimated from its visits (rule of
    succession); the more often it did, the sooner its absence is a change.
    """
    earlier = memory.elsewhere - memory.away  # the run in question must not speak for itself
    chance = (memory.at_published + 1) / (memory.at_published + earlier + 2)
    return (1 - chance) ** away < SETTLED


def second_fetch_worth(memory: PageMemory, share: float, returned: bool) -> bool:
    """Whether to fetch a page that differs once more, seconds later, to learn what is noise.

    Worth it on the first difference; after second fetches that taught nothing only on every 2nd, 4th, 8th difference,
    and when the page returned to a text it showed before. Never more than `share` of the visits and three.
    """
    if memory.asked >= FREE_SECOND_FETCHES + share * memory.visits:
        return False
    return returned or memory.fruitless == 0 or memory.waited + 1 >= 1 << min(memory.fruitless, 10)
