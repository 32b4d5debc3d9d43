"""Markup that would take a parser too long, made harmless before it is parsed.

A tree builder takes quadratic time or memory on a few inputs: tags nested by the thousand, thousands of attributes on
one tag, formatting that is opened and never closed. One compiled pass reads the tags as the HTML Standard does and
measures these. Nearly all pages are then parsed as they are. On the others the pass blanks, byte for byte: start tags
nested deeper than `MOST_DEPTH`, attributes after the first `MOST_ATTRIBUTES` of a tag, and, if nesting or formatting is
beyond its bound, formatting tags such as `<b>`; and it renames `svg`, `math`, `template`, `select` and `frameset`,
inside which other rules hold. All text stays. A title, style or script of nothing but text is read the same under all
rules, so that an image with a title changes nothing.

Nesting is counted without building a tree, by open tags of each name. The tree is at most about four times as deep:
a table brings three elements more, and some end tags are ignored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import borrowing, kernel

MOST_DEPTH = 512  # where browsers stop too
MOST_ATTRIBUTES = 64
MOST_FORMATTING = 200_000  # open formatting tags times other tags: elements a parser may have to make again
SMALL_BYTES = 16 * 1024  # such a page with few tags cannot take long
SMALL_TAGS = 512

Bytes = NDArray[np.uint8]
Tally = NDArray[np.int64]
# Places in the tally: the greatest depth, attributes, formatting; tags; what is open now; whether in doubt.
_DEPTH, _ATTRIBUTES, _FORMATS, _TAGS, _OPEN, _UNCLOSED, _INSIDE, _DOUBTFUL = range(8)

_PLAIN, _VOID, _RAW, _SCRIPT, _FORMATTING, _FOREIGN, _REST = 0, 1, 2, 3, 4, 5, 6
# What closes by itself cannot nest without something else that is counted, so it is not counted either.
_NAMES = {
    _VOID: "area base basefont bgsound br col embed frame hr image img input keygen link meta param source track wbr "
    "p li dt dd option optgroup tr td th thead tbody tfoot colgroup caption rp rt rb rtc html head body a",
    _RAW: "style xmp iframe noembed noframes noscript textarea title",
    _SCRIPT: "script",
    _FORMATTING: "b big code em font i nobr s small strike strong tt u",
    _FOREIGN: "svg math template select frameset",
    _REST: "plaintext",
}
_FNV_START, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


def _name_hash(name: str) -> int:
    value = _FNV_START
    for byte in name.encode():
        value = ((value ^ byte) * _FNV_PRIME) & 0xFFFFFFFFFFFFFFFF
    return value


_KNOWN = sorted((_name_hash(name), kind) for kind, names in _NAMES.items() for name in names.split())
_HASHES = np.array([value for value, _ in _KNOWN], dtype=np.uint64)
_KINDS = np.array([kind for _, kind in _KNOWN], dtype=np.int64)
_TABLE = 512  # names that are counted apart; further ones count as never closed


class Markup(NamedTuple):
    """What makes parsing slow: deepest nesting, most attributes of a tag, open formatting, tags, doubtful places."""

    depth: int
    attributes: int
    formatting: int
    tags: int
    doubtful: bool


def harmless(html: bytes, openings: int | None = None) -> tuple[bytes, bool]:
    """Markup that can be parsed in linear time, and whether it had to be changed for that. O(bytes).

    Args:
        html: the markup.
        openings: how many `<` it has, where that is known.

    >>> harmless(b"<p>one</p>")
    (b'<p>one</p>', False)
    >>> harmless(b"<div>" * 600 + b"deep")[0].count(b"<div>")
    512
    """
    if len(html) <= SMALL_BYTES and (html.count(b"<") if openings is None else openings) <= SMALL_TAGS:
        return html, False
    markup = measure(html)
    bare = markup.depth > MOST_DEPTH or markup.formatting * markup.tags > MOST_FORMATTING
    if not bare and markup.attributes <= MOST_ATTRIBUTES and not markup.doubtful:
        return html, False
    changed = np.frombuffer(html, dtype=np.uint8).copy()
    _walk(changed, True, bare)
    return changed.tobytes(), True


def measure(html: bytes) -> Markup:
    """What would make parsing slow. O(bytes)."""
    tally = _walk(np.frombuffer(html, dtype=np.uint8).copy(), False, False)
    depth, attributes, formatting, tags = (int(each) for each in tally[:4])
    return Markup(depth, attributes, formatting, tags, bool(tally[_DOUBTFUL]))


@kernel
def _walk(html: Bytes, change: bool, bare: bool) -> Tally:
    """Read all tags; with `change`, blank and rename what would be slow, in place; with `bare`, formatting as well."""
    names = np.zeros(_TABLE, dtype=np.uint64)
    counts = np.zeros(_TABLE, dtype=np.int64)
    tally = np.zeros(_DOUBTFUL + 1, dtype=np.int64)
    at = 0
    while at < len(html) - 1:
        if html[at] != 0x3C:  # <
            at += 1
            continue
        closing = html[at + 1] == 0x2F
        first = at + 2 if closing else at + 1
        if first < len(html) and _is_letter(html[first]):
            at = _tag(html, (at, first), names, counts, tally, (change, bare))
        elif closing or html[first] == 0x21 or html[first] == 0x3F:
            # Only foreign content knows <![CDATA[: elsewhere it is a comment that ends with the next >.
            tally[_DOUBTFUL] |= html[at + 1] == 0x21 and at + 2 < len(html) and html[at + 2] == 0x5B
            at = _after_comment(html, at)
        else:
            at += 1
    return tally


@borrowing
def _tag(
    html: Bytes,
    place: tuple[int, int],
    names: NDArray[np.uint64],
    counts: Tally,
    tally: Tally,
    wanted: tuple[bool, bool],
) -> int:
    """Count one tag that starts and whose name starts at the two places; where to read on."""
    start, first = place
    change, bare = wanted
    end, name = _after_name(html, first)
    kind = _kind(name)
    after, attributes, kept = _after_attributes(html, end)
    tally[_ATTRIBUTES] = max(tally[_ATTRIBUTES], attributes)
    if change:
        if attributes > MOST_ATTRIBUTES:
            _blank(html, kept, after - 1)
        if kind == _FORMATTING and bare:
            _blank(html, start, after)
            return after
        if kind == _FOREIGN:
            html[first], html[first + 1] = 0x78, 0x2D  # x-, a name without rules of its own
    slot = _slot(names, name)
    if first > start + 1:
        if kind != _VOID and slot >= 0 and counts[slot] > 0:
            counts[slot] -= 1
            _count(tally, kind, -1)
        return after
    tally[_TAGS] += 1
    if kind == _REST:
        return len(html)
    if kind == _RAW or kind == _SCRIPT:  # noqa: SIM109 - compiled, a tuple would be made
        until = _after_raw(html, after, first, end - first, kind == _SCRIPT)
        tally[_DOUBTFUL] |= tally[_INSIDE] > 0 and not _is_text(html, after, until)
        return until
    if change and kind != _VOID and tally[_OPEN] >= MOST_DEPTH:
        _blank(html, start, after)
    elif kind != _VOID:
        if slot >= 0:
            counts[slot] += 1
        _count(tally, kind, 1)
    return after


@borrowing
def _count(tally: Tally, kind: int, step: int) -> None:
    tally[_OPEN] += step
    tally[_DEPTH] = max(tally[_DEPTH], tally[_OPEN])
    if kind == _FORMATTING:
        tally[_UNCLOSED] += step
        tally[_FORMATS] = max(tally[_FORMATS], tally[_UNCLOSED])
    elif kind == _FOREIGN:
        tally[_INSIDE] += step


@borrowing
def _blank(html: Bytes, start: int, end: int) -> None:
    for place in range(start, end):
        html[place] = 0x20


@borrowing
def _is_text(html: Bytes, start: int, end: int) -> bool:
    """Whether what stands between two tags reads the same if the first is a tag like others: closed, and text alone."""
    if end >= len(html) or html[start - 2] == 0x2F:
        return False
    openings = 0
    for place in range(start, end):
        openings += html[place] == 0x3C
    return openings == 0


@borrowing
def _is_letter(byte: int) -> bool:
    return 0x61 <= (byte | 0x20) <= 0x7A


@borrowing
def _ends_name(byte: int) -> bool:
    """White space, a slash or the end of a tag."""
    return byte == 0x20 or (0x09 <= byte <= 0x0D and byte != 0x0B) or byte == 0x2F or byte == 0x3E


@borrowing
def _after_name(html: Bytes, at: int) -> tuple[int, np.uint64]:
    value = np.uint64(_FNV_START)
    while at < len(html) and not _ends_name(html[at]):
        byte = html[at]
        lower = byte | 0x20 if 0x41 <= byte <= 0x5A else byte
        value = (value ^ np.uint64(lower)) * np.uint64(_FNV_PRIME)
        at += 1
    return at, value


@borrowing
def _kind(name: np.uint64) -> int:
    low, high = 0, len(_HASHES)
    while low < high:
        middle = (low + high) // 2
        if _HASHES[middle] < name:
            low = middle + 1
        else:
            high = middle
    return _KINDS[low] if low < len(_HASHES) and _HASHES[low] == name else _PLAIN


@borrowing
def _slot(names: NDArray[np.uint64], name: np.uint64) -> int:
    """The counter of a name, -1 when all are taken: then it counts as never closed."""
    for step in range(32):
        slot = int(name + np.uint64(step)) & (_TABLE - 1)
        if names[slot] == name:
            return slot
        if names[slot] == 0:
            names[slot] = name
            return slot
    return -1


@borrowing
def _after_attributes(html: Bytes, at: int) -> tuple[int, int, int]:
    """The place after a tag, the number of its attributes, and where those that are kept end."""
    count, kept, total = 0, at, len(html)
    while at < total:
        while at < total and _ends_name(html[at]) and html[at] != 0x3E:
            at += 1
        if at >= total or html[at] == 0x3E:
            return min(at + 1, total), count, kept
        count += 1
        at += 1
        while at < total and not _ends_name(html[at]) and html[at] != 0x3D:
            at += 1
        while at < total and _ends_name(html[at]) and html[at] != 0x3E and html[at] != 0x2F:
            at += 1
        if at < total and html[at] == 0x3D:
            at = _after_value(html, at + 1)
        if count == MOST_ATTRIBUTES:
            kept = at
    return total, count, kept


@borrowing
def _after_value(html: Bytes, at: int) -> int:
    total = len(html)
    while at < total and _ends_name(html[at]) and html[at] != 0x3E and html[at] != 0x2F:
        at += 1
    if at >= total:
        return total
    quote = html[at]
    if quote == 0x22 or quote == 0x27:
        at += 1
        while at < total and html[at] != quote:
            at += 1
        return min(at + 1, total)
    while at < total and html[at] != 0x3E and (html[at] == 0x2F or not _ends_name(html[at])):
        at += 1
    return at


@borrowing
def _after_comment(html: Bytes, at: int) -> int:
    total = len(html)
    if at + 3 < total and html[at + 1] == 0x21 and html[at + 2] == 0x2D and html[at + 3] == 0x2D:
        at += 4  # <!--> and <!---> are whole comments: the dashes may be shared
        while at < total:
            if html[at] == 0x3E and html[at - 1] == 0x2D and html[at - 2] == 0x2D:
                return at + 1
            if html[at] == 0x3E and html[at - 1] == 0x21 and html[at - 2] == 0x2D and html[at - 3] == 0x2D:
                return at + 1
            at += 1
        return total
    while at < total and html[at] != 0x3E:
        at += 1
    return min(at + 1, total)


@borrowing
def _after_raw(html: Bytes, at: int, name: int, length: int, script: bool) -> int:
    """Where the end tag of raw text starts; in a script that hides `<!-- <script>`, the end tag after that."""
    escaped, twice, total = False, False, len(html)
    while at < total:
        if script and html[at] == 0x2D and at + 2 < total and html[at + 1] == 0x2D and html[at + 2] == 0x3E:
            escaped = twice = False
        if html[at] == 0x3C and at + 3 < total:
            if script and html[at + 1] == 0x21 and html[at + 2] == 0x2D and html[at + 3] == 0x2D:
                escaped = True
                at += 2  # <!--> opens and ends it
                continue
            if html[at + 1] == 0x2F and _same_name(html, at + 2, name, length):
                if not twice:
                    return at
                twice = False
            elif escaped and not twice and _same_name(html, at + 1, name, length):
                twice = True
        at += 1
    return total


@borrowing
def _same_name(html: Bytes, at: int, name: int, length: int) -> bool:
    if at + length >= len(html) or not _ends_name(html[at + length]):
        return False
    same = True
    for place in range(length):
        same = same and (html[at + place] | 0x20) == (html[name + place] | 0x20)
    return same
