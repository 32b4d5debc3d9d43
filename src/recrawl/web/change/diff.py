r"""What changed between two texts of a page: words taken away and words added, with a little context, bounded.

Texts that differ in their words never have an empty diff, however long they are: at least the first difference is
shown. A diff shows at most `MOST_HUNKS` differences of at most `MOST_SHOWN` characters a side.

    >>> print(diff_text(b"Price $10 today\nOpen", b"Price $12 today\nOpen"))
    @@ Price [-$10-]{+$12+} today Open
"""

from __future__ import annotations

from typing import NamedTuple

from recrawl.web.change.align import Span, differing_spans, tidied
from recrawl.web.content.words import Places, Words, split_words

MOST_HUNKS = 100
MOST_SHOWN = 400
CONTEXT_WORDS = 5


class Hunk(NamedTuple):
    """One difference: the words before it, what was taken away, what was added, the words after it."""

    before: str
    removed: str
    added: str
    after: str

    def __str__(self) -> str:
        removed = f"[-{self.removed}-]" if self.removed else ""
        added = f"{{+{self.added}+}}" if self.added else ""
        return " ".join(part for part in ("@@", self.before, removed + added, self.after) if part)


class TextDiff(NamedTuple):
    """The differences of two texts.

    Args:
        hunks: the differences shown, in the order of the text.
        removed_words: words taken away, counted over all differences.
        added_words: words added, counted over all differences.
        hidden: differences that are not shown.
    """

    hunks: tuple[Hunk, ...]
    removed_words: int
    added_words: int
    hidden: int

    def __str__(self) -> str:
        more = [f"@@ {self.hidden} more"] if self.hidden else []
        return "\n".join([*map(str, self.hunks), *more])

    def __bool__(self) -> bool:
        return bool(self.hunks)


def diff_text(old: bytes, new: bytes) -> TextDiff:
    """How the words of two texts differ; empty only if their words are equal. O(words x differing words)."""
    old, new = tidied(old), tidied(new)
    before, after = split_words(old), split_words(new)
    spans = differing_spans(before.hashes, after.hashes)
    shown = tuple(_hunk((old, before), (new, after), span) for span in spans[:MOST_HUNKS])
    return TextDiff(
        shown,
        sum(span.old_end - span.old_start for span in spans),
        sum(span.new_end - span.new_start for span in spans),
        len(spans) - len(shown),
    )


def word_text(text: bytes, words: Words, start: int, end: int) -> str:
    """The words `start` to `end` of a text, on one line, cut in the middle when long."""
    if start >= end:
        return ""
    first, last = int(words.starts[start]), int(words.ends[end - 1])
    if last - first <= MOST_SHOWN:
        return text[first:last].decode("utf-8", "replace").replace("\n", " ")
    half = MOST_SHOWN // 2
    head, foot = (part.decode("utf-8", "ignore") for part in (text[first : first + half], text[last - half : last]))
    return f"{head} … {foot}".replace("\n", " ")


def _hunk(old: tuple[bytes, Words], new: tuple[bytes, Words], span: Span) -> Hunk:
    words: Places = new[1].starts
    return Hunk(
        word_text(*new, max(span.new_start - CONTEXT_WORDS, 0), span.new_start),
        word_text(*old, span.old_start, span.old_end),
        word_text(*new, span.new_start, span.new_end),
        word_text(*new, span.new_end, min(span.new_end + CONTEXT_WORDS, len(words))),
    )
