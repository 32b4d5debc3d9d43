"""The text of pages by version, and noise that differs from one moment to the next.

**Text.** Paragraphs are cut from a pool of sentences and changed one at a time. The k-th change of a page touches one
paragraph, in turn. So the state of any paragraph at any version is known from the number of its turns alone:
O(paragraphs) for any version, with nothing stored. A change always changes the text: numbers and words of even and odd
turns come from separate sets.

**Noise** is what a page shows differently although nothing has changed: a function of the page and the moment alone.
Kinds that differ with each request do so with each 1/1024 s; `rotation` differs by the ten minutes, so that a second
fetch at once cannot show it.
"""

from __future__ import annotations

import time
from typing import Literal, get_args

import numpy as np

from recrawl.lab.livingweb.chance import mix, stream
from recrawl.lab.livingweb.clock import DAY_S
from recrawl.lab.livingweb.laws import GRID

_SENTENCES = 4096
_PER_PARAGRAPH = 14
_STARTS = ("ba", "co", "du", "fe", "gri", "ho", "ka", "lu", "me", "no", "pra", "ri", "sto", "tu", "ve")
_MIDDLES = ("l", "m", "nd", "r", "st", "t")
_ENDS = ("a", "en", "i", "o", "ing", "us")


NoiseKind = Literal["clock", "nonce", "request-id", "ads", "variants", "views", "age", "related", "rotation"]
NOISES: tuple[NoiseKind, ...] = get_args(NoiseKind)

_CLOCK, _NONCE, _REQUEST, _ADS, _VARIANTS, _VIEWS, _AGE, _RELATED, _ROTATION = (1 << i for i in range(len(NOISES)))
_ROTATION_S = 600.0
_ADVERTS, _CHOICES, _PROMOTIONS = 8, 12, 4


class TextPool:
    """The words and sentences of one web; some 350 kB."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        random = stream(seed, "words")
        words = [f"{a}{b}{c}" for a in _STARTS for b in _MIDDLES for c in _ENDS]
        random.shuffle(words)
        self.words = [word.encode() for word in words]
        sentences = [self._sentence(random) for _ in range(_SENTENCES)]
        self._blob = b"".join(sentences)
        lengths = [len(sentence) for sentence in sentences]
        self._starts: list[int] = np.concatenate([[0], np.cumsum(lengths)]).tolist()

    def _sentence(self, random: np.random.Generator) -> bytes:
        picked = random.integers(0, len(self.words), int(random.integers(9, 15))).tolist()
        return b" ".join([self.words[i] for i in picked]).capitalize() + b". "

    def phrase(self, key: int, kind: int, words: int) -> bytes:
        """Some words for a title or a link."""
        bits = mix(self._seed, key, kind)
        count = len(self.words)
        return b" ".join([self.words[(bits >> (10 * i)) % count] for i in range(words)])

    def sentences(self, start: int, count: int) -> bytes:
        """Sentences in a row from a place in the pool, with a space at the end."""
        start %= _SENTENCES - count
        return self._blob[self._starts[start] : self._starts[start + count]]

    def paragraphs(self, page: int, version: int, count: int) -> list[bytes]:
        """The text of a page at a version: `count` paragraphs without markup. O(count)."""
        key = mix(self._seed, page, 17)
        offset = key % count
        return [self._paragraph(key, slot, _turns(version, slot, offset, count)) for slot in range(count)]

    def _paragraph(self, key: int, slot: int, turn: int) -> bytes:
        base = (key >> 5) + slot * 1013
        now = mix(key, slot, turn) if turn else base
        even, kind = turn & 1, (slot + key) & 3
        if kind == 0:  # a price or a count alone
            return b"Price %d.%02d for %b." % (base % 900 + 1, (now % 50) * 2 + even, self.words[base % 500])
        if kind == 1:  # a word
            text = self.sentences(base, _PER_PARAGRAPH)
            middle = text.find(b" ", len(text) // 2)
            return text[:middle] + b" " + self.words[(now % 250) * 2 + even] + text[middle:-1]
        if kind == 2:  # a sentence at the end
            return self.sentences(base, _PER_PARAGRAPH - 1) + self.sentences((now % 2000) * 2 + even, 1)[:-1]
        return self.sentences((now % 2000) * 2 + even, _PER_PARAGRAPH)[:-1]


def _turns(version: int, slot: int, offset: int, count: int) -> int:
    """How many of the changes 1..version touched a slot, if change k touches slot (k + offset) modulo count."""
    return (version + (offset - slot) % count) // count


class Moment:
    """What the noise of one answer is made from.

    Args:
        page: its number.
        now: Unix seconds.
        clicks_per_day: of the page.
        born: when the page was born, in Unix seconds.
        changed: when it last changed, in Unix seconds.
    """

    __slots__ = ("born", "changed", "clicks_per_day", "now", "page")

    def __init__(self, page: int, now: float, clicks_per_day: float, born: float, changed: float) -> None:
        self.page = page
        self.now = now
        self.clicks_per_day = clicks_per_day
        self.born = born
        self.changed = changed


def noise_kinds(bits: int) -> list[NoiseKind]:
    """The kinds in a column of bits.

    >>> noise_kinds(0b101)
    ['clock', 'request-id']
    """
    return [kind for i, kind in enumerate(NOISES) if bits >> i & 1]


def head_noise(bits: int, moment: Moment) -> bytes:
    """Noise that no reader sees, for the head of the page."""
    if not bits & _NONCE:
        return b""
    tick = _tick(moment)
    return b'<script nonce="%016x">var t="%016x"</script>' % (mix(tick, 1), mix(tick, 2))


def top_noise(bits: int, moment: Moment, pool: TextPool) -> bytes:
    """Noise above the text."""
    parts = []
    if bits & _CLOCK:
        hours, minutes, seconds = time.gmtime(moment.now)[3:6]
        parts.append(b"<div>Server time <b>%02d:%02d:%02d</b> UTC</div>" % (hours, minutes, seconds))
    if bits & _VARIANTS:
        which = mix(moment.page, _tick(moment)) >> 9 & 1
        parts.append(b"<div>%b</div>" % pool.sentences(mix(moment.page, 5, which), 1).rstrip())
    if bits & _AGE:
        parts.append(b"<div>Updated %b</div>" % _age(moment.now - moment.changed))
    return b"".join(parts)


def bottom_noise(bits: int, moment: Moment, pool: TextPool) -> bytes:
    """Noise below the text."""
    parts = []
    if bits & _ADS:
        which = mix(_tick(moment), 7) % _ADVERTS
        parts.append(b'<div class="ad">%b</div>' % pool.sentences(which * 31, 1).rstrip())
    if bits & _VIEWS:
        parts.append(b"<div>%d views</div>" % views(moment))
    if bits & _RELATED:
        first = mix(_tick(moment), 8) % _CHOICES
        rows = [pool.phrase(moment.page + (first + i) % _CHOICES, 3, 4) for i in range(3)]
        parts.append(b"<ul class=related><li>%b<li>%b<li>%b</ul>" % (rows[0], rows[1], rows[2]))
    if bits & _ROTATION:
        which = mix(moment.page, int(moment.now // _ROTATION_S)) % _PROMOTIONS
        parts.append(b"<div>%b</div>" % pool.sentences(which * 37 + 1000, 1).rstrip())
    if bits & _REQUEST:
        parts.append(b"<div>Request %016x</div>" % mix(_tick(moment), moment.page, 4))
    return b"".join(parts)


def views(moment: Moment) -> int:
    """What the view counter shows: it only grows."""
    return int((moment.now - moment.born) / DAY_S * moment.clicks_per_day)


def _tick(moment: Moment) -> int:
    return mix(int(moment.now * GRID), moment.page)


def _age(seconds: float) -> bytes:
    if seconds < 3600:
        return b"%d minutes ago" % (seconds // 60)
    if seconds < 2 * DAY_S:
        return b"%d hours ago" % (seconds // 3600)
    return b"%d days ago" % (seconds // DAY_S)
