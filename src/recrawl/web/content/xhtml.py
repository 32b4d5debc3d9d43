"""XHTML made readable for a parser of HTML, which knows no tags that close themselves.

To such a parser `<script src="a.js"/>` opens a script that never ends, and the page is gone. Sent as
`application/xhtml+xml`, a page means what XML means, so the tag is given the end tag it stands for.
"""

from __future__ import annotations

import re

# What HTML closes by itself, and what would else be read as two.
_VOID = frozenset(
    b"area base basefont bgsound br col embed frame hr image img input keygen link meta param source track wbr".split()
)
# A comment, section or instruction is passed over as a whole. No value of XML holds a <, so no tag reaches beyond the
# next one: each byte is looked at a bounded number of times.
_PIECE = re.compile(
    rb"<!--(?:.*?-->|.*\Z)|<!\[CDATA\[(?:.*?\]\]>|.*\Z)|<\?(?:.*?\?>|.*\Z)"
    rb"|<(?P<name>[A-Za-z][^\s/<>\"']*+)(?P<rest>(?:[^\"'<>/]++|/(?!>)|\"[^\"<]*+\"|'[^'<]*+')*+)/>",
    re.DOTALL,
)


def with_end_tags(xhtml: bytes) -> bytes:
    """XHTML in which each tag that closes itself has an end tag, unless HTML needs none. O(bytes).

    >>> with_end_tags(b"<title/><br/><script src='a/>b'/><p>one</p>")
    b"<title></title><br/><script src='a/>b'></script><p>one</p>"
    """
    return _PIECE.sub(_spelled_out, xhtml) if b"/>" in xhtml else xhtml


def _spelled_out(piece: re.Match[bytes]) -> bytes:
    name = piece["name"]
    if name is None or name.lower() in _VOID:
        return piece[0]
    return b"<%b%b></%b>" % (name, piece["rest"], name)
