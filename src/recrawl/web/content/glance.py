"""What can be seen of markup before it is parsed, compiled: most pages hide nothing, and need not be searched for it.

Nothing is missed, but a word of the text may be taken for an attribute: then the tree is searched, and nothing found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.jit import borrowing, kernel

Bytes = NDArray[np.uint8]
LONGEST_STYLE = 512  # bytes of a style before its `display`; after more it is not looked at
_CASE = np.uint8(0x20)  # sets a letter in lower case
_H, _I, _D, _S, _P = (np.uint8(byte) for byte in b"hidsp")
_DISPLAY = np.frombuffer(b"display", dtype=np.uint8)
_NONE = np.frombuffer(b"none", dtype=np.uint8)
_STYLE = np.frombuffer(b"style", dtype=np.uint8)


class Glance(NamedTuple):
    """How many `<` markup has, and whether it may hide parts by a `hidden` attribute or by `style="display:none"`."""

    openings: int
    says_hidden: bool
    hides_by_style: bool


def glance(html: bytes) -> Glance:
    """What can be seen of markup without reading its tags, in upper or lower case. O(bytes).

    >>> glance(b"<p HIDDEN>one</p><p style='display: none'>two</p>")
    Glance(openings=4, says_hidden=True, hides_by_style=True)
    """
    array = np.frombuffer(html, dtype=np.uint8)
    openings, says_hidden, says_display = _glance(array)
    return Glance(openings, says_hidden, says_display and _hides_by_style(array))


@kernel
def _glance(html: Bytes) -> tuple[int, bool, bool]:
    """The number of `<`, and whether the letters `hidd` and `disp` stand anywhere."""
    openings, hidden, display = 0, False, False
    for at in range(len(html)):
        openings += html[at] == 0x3C
    for at in range(len(html) - 3):  # without branches and without sums, so that many places are looked at together
        one, two, three, four = html[at] | _CASE, html[at + 1] | _CASE, html[at + 2] | _CASE, html[at + 3] | _CASE
        middle = two == _I
        hidden |= middle & (((one ^ _H) | (three ^ _D) | (four ^ _D)) == 0)
        display |= middle & (((one ^ _D) | (three ^ _S) | (four ^ _P)) == 0)
    return openings, hidden, display


@kernel
def _hides_by_style(html: Bytes) -> bool:
    """Whether `display:none` stands in a tag behind the word `style`; in a style sheet it does not."""
    for at in range(len(html) - len(_DISPLAY)):
        # Two letters at once: that is hardly ever so, and a branch that is hardly ever taken costs nothing.
        if (((html[at] | _CASE) ^ _D) | ((html[at + 3] | _CASE) ^ _P)) == 0 and _is_hidden_by(html, at):
            return True
    return False


@borrowing
def _is_hidden_by(html: Bytes, at: int) -> bool:
    return _stands(html, at, _DISPLAY) and _is_none(html, at + len(_DISPLAY)) and _is_in_style(html, at)


@borrowing
def _is_none(html: Bytes, at: int) -> bool:
    """Whether `:none` comes next."""
    colon = _after_blanks(html, at)
    return colon < len(html) and html[colon] == 0x3A and _stands(html, _after_blanks(html, colon + 1), _NONE)


@borrowing
def _is_in_style(html: Bytes, at: int) -> bool:
    for place in range(at - 1, max(at - LONGEST_STYLE, 0) - 1, -1):
        byte = html[place]
        if byte == 0x3C or byte == 0x3E or byte == 0x7B or byte == 0x7D:  # < > { }
            return False
        if (byte | _CASE) == _S and _stands(html, place, _STYLE):
            return True
    return False


@borrowing
def _after_blanks(html: Bytes, at: int) -> int:
    while at < len(html) and html[at] <= 0x20:
        at += 1
    return at


@borrowing
def _stands(html: Bytes, at: int, word: Bytes) -> bool:
    if at + len(word) > len(html):
        return False
    same = True
    for place in range(len(word)):
        same = same and (html[at + place] | _CASE) == word[place]
    return same
