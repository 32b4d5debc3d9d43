"""What a user may choose about the content of a page: which digest counts, what to keep, what to drop.

Selectors are checked when the rules are made. A hostile page must not make them slow, so they are CSS without
functions, without `~` and with at most one descendant step: `article`, `#main > p`, `div.price`, `main .row`.

    >>> ContentRules(keep=("#main",)).counts
    'text'
    >>> ContentRules(drop=("p:has(a)",))
    Traceback (most recent call last):
        ...
    recrawl.errors.InvalidInput: drop[0] 'p:has(a)' uses a function, and a hostile page could make that take minutes; name tags, classes, ids or attributes instead
"""  # noqa: E501 - the sentence of the doctest

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import xxhash
from selectolax.lexbor import LexborHTMLParser

from recrawl.errors import InvalidInput

Layer = Literal["raw", "text", "links", "metadata"]
LAYERS: tuple[Layer, ...] = get_args(Layer)
MOST_SELECTORS = 16
SELECTOR_CHARACTERS = 200
MAX_HTML_BYTES = 2 << 20
"""What is read of a page; the rest is cut off, and the raw digest alone covers it."""
MAX_TEXT_BYTES = 1 << 20
"""Visible text that is kept."""

_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_DESCENDANT = re.compile(r"[^\s>+,]\s+(?=[^\s>+,])")


@dataclass(frozen=True, slots=True)
class ContentRules:
    """What counts on a page.

    Args:
        counts: the digest whose change is a change of the page; for `raw` every difference counts, and no noise is
            learned.
        keep: CSS selectors; if any is given, only what they match is read for text, also inside navigation, headers,
            footers and asides. A page where none matches has no text.
        drop: CSS selectors of what is left out of the text.
        keep_boilerplate: whether navigation, headers, footers and asides belong to the text.
        honour_noindex: whether a page that asks not to be indexed is left alone.
        learn_noise: whether volatile words and variants of a page may be learned; without, every difference counts.
        second_fetch_share: second fetches, to learn what is volatile, as a share of the visits of a page.
    """

    counts: Layer = "text"
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    keep_boilerplate: bool = False
    honour_noindex: bool = True
    learn_noise: bool = True
    second_fetch_share: float = 0.05
    signature: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.counts not in LAYERS:
            raise InvalidInput(f"is {self.counts!r}, but must be one of {', '.join(LAYERS)}", field="counts")
        if not 0 <= self.second_fetch_share <= 1:
            raise InvalidInput(f"is {self.second_fetch_share}, but must be 0 to 1", field="second_fetch_share")
        check_selectors(self.keep, "keep")
        check_selectors(self.drop, "drop")
        # Only what changes the content that is compared: a share or a switch of learning does not.
        shaping = (self.counts, self.keep, self.drop, self.keep_boilerplate, MAX_HTML_BYTES, MAX_TEXT_BYTES)
        object.__setattr__(self, "signature", xxhash.xxh3_64_intdigest(repr((2, *shaping)).encode()))


def check_selectors(selectors: Sequence[str], name: str) -> None:
    """Refuse selectors that cannot be read, or that a hostile page could make slow."""
    if not isinstance(selectors, tuple) or len(selectors) > MOST_SELECTORS:
        raise InvalidInput(f"must be a tuple of at most {MOST_SELECTORS} CSS selectors", field=name)
    for row, selector in enumerate(selectors):
        problem = _problem(selector)
        if problem:
            raise InvalidInput(f"{_shown(selector)} {problem}", field=name, row=row)


def _problem(selector: str) -> str:
    if not str(selector).strip() or len(selector) > SELECTOR_CHARACTERS:
        return f"must be a CSS selector of 1 to {SELECTOR_CHARACTERS} characters"
    bare = _QUOTED.sub("q", selector)
    if "(" in bare:
        return (
            "uses a function, and a hostile page could make that take minutes; "
            "name tags, classes, ids or attributes instead"
        )
    if "~" in bare.replace("~=", ""):
        return "uses ~, and a hostile page could make that take minutes; use > or name a class instead"
    if any(len(_DESCENDANT.findall(part.strip())) > 1 for part in bare.split(",")):
        return "has more than one descendant step, and a hostile page could make that take minutes; use > instead"
    try:
        LexborHTMLParser("<p>").css(selector)
    except Exception:  # selectolax raises an error of its own, which differs by version
        return "is not a CSS selector; write one such as article, #main > p or div.price"
    return ""


def _shown(selector: object) -> str:
    text = repr(selector)
    return text if len(text) <= 80 else text[:77] + "..."


DEFAULT_CONTENT_RULES = ContentRules()
