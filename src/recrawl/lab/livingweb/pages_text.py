"""What a page says, by version: paragraphs cut from a pool of sentences, changed one at a time, never replayed.

The k-th change of a page touches one paragraph, in turn. So the state of any paragraph at any version is known from
the number of its turns alone: O(paragraphs) for any version, with nothing stored. A change always changes the text:
numbers and words of even and odd turns come from separate sets.
"""

from __future__ import annotations

import numpy as np

from recrawl.lab.livingweb.chance import mix, stream

_SENTENCES = 4096
_PER_PARAGRAPH = 14
_STARTS = ("ba", "co", "du", "fe", "gri", "ho", "ka", "lu", "me", "no", "pra", "ri", "sto", "tu", "ve")
_MIDDLES = ("l", "m", "nd", "r", "st", "t")
_ENDS = ("a", "en", "i", "o", "ing", "us")


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
