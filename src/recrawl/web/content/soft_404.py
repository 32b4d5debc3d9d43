"""Missing pages that answer with status 200, known by what their host answers for a page that cannot exist.

    probe = bogus_path("/guides/lamp-7", token)        ask the host for it, once in a while
    missing = missing_page(read_page(body), probe)      what a missing page looks like there
    if tells_apart(missing, home) and looks_missing(read_page(body), path, missing): ...

A host that answers every address with one and the same shell cannot be judged that way: compare its home page first.
Pure functions; the caller fetches the probe.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

import xxhash

from recrawl.errors import InvalidInput
from recrawl.web.content.page import Page

FEWEST_WORDS = 3  # a page with fewer says nothing that could be compared
LONG_WORDS = 150  # fewer must be the same
_SAME_LENGTH = 0.05
_SAME_WORDS = 0.9
_MOST_WORDS = 2000  # compared one by one; the rest counts by the digest alone
_PIECE = re.compile(r"[^\W_]+")
_SHORTEST_PIECE = 4  # characters; shorter parts of a path are words of any text
_DIGITS = re.compile(r"\d+")


class MissingPage(NamedTuple):
    """What a host answers for a page that cannot exist, without the words of its address and without numbers.

    Args:
        digest: of title and text, 16 bytes in hexadecimal.
        title: its title.
        words: their number.
        hashes: of the first 2,000 words, sorted, 32 bits each.
    """

    digest: str
    title: str
    words: int
    hashes: tuple[int, ...]


def bogus_path(path: str, token: str) -> str:
    """A path beside a path that no page has: hosts answer differently in different parts.

    Args:
        path: of a page of the host.
        token: at least 12 random letters and digits.

    >>> bogus_path("/guides/lamp-7.html", "k3v9x2m4q8w1")
    '/guides/k3v9x2m4q8w1.html'
    >>> bogus_path("/", "k3v9x2m4q8w1")
    '/k3v9x2m4q8w1'
    """
    if not (token.isascii() and token.isalnum() and len(token) >= 12):
        raise InvalidInput("must be at least 12 random letters and digits", field="token")
    folder, _, name = path.partition("?")[0].rpartition("/")
    extension = re.search(r"\.[A-Za-z]{1,5}$", name)
    return f"{folder}/{token}{extension[0] if extension else ''}"


def missing_page(page: Page, path: str) -> MissingPage:
    """What the answer for a bogus path looks like. O(bytes).

    Args:
        page: as read from an answer with status 200.
        path: that was asked for; its words are left out, since such answers repeat it.
    """
    title = _plain(page.metadata.title, path)
    words = _plain(page.text.decode("utf-8", "replace"), path)
    digest = xxhash.xxh3_128_hexdigest("\n".join((" ".join(title), " ".join(words))).encode())
    hashes = sorted(xxhash.xxh32_intdigest(word.encode()) for word in words[:_MOST_WORDS])
    return MissingPage(digest, " ".join(title), len(words), tuple(hashes))


def looks_missing(page: Page, path: str, missing: MissingPage) -> bool:
    """Whether a page is the host's answer for pages that do not exist. O(bytes).

    The same words are; so is a long text with the same title that differs in a few words, as lists of proposals do.
    """
    if " ".join(_plain(page.metadata.title, path)) != missing.title:
        return False  # nearly all pages end here
    shown = missing_page(page, path)
    if min(shown.words, missing.words) < FEWEST_WORDS:
        return False
    if shown.digest == missing.digest:
        return True
    longest = max(shown.words, missing.words)
    if min(shown.words, missing.words) < LONG_WORDS or abs(shown.words - missing.words) > _SAME_LENGTH * longest:
        return False
    return _shared(shown, missing) >= _SAME_WORDS


def tells_apart(missing: MissingPage, home: Page) -> bool:
    """Whether the answer for a bogus path differs from the home page; if not, it says nothing about other pages."""
    return missing.words >= FEWEST_WORDS and not looks_missing(home, "/", missing)


def _plain(text: str, path: str) -> list[str]:
    """The words of a text in lower case without numbers and without those of a path."""
    pieces = {piece for piece in _PIECE.findall(path.lower()) if len(piece) >= _SHORTEST_PIECE}
    words = [_DIGITS.sub("0", word) for word in text.lower().split() if pieces.isdisjoint(_PIECE.findall(word))]
    return [word for word in words if word.strip("0.,:;#-/")]


def _shared(one: MissingPage, other: MissingPage) -> float:
    """The share of words that two texts have in common."""
    common = (Counter(one.hashes) & Counter(other.hashes)).total()
    return common / max(len(one.hashes), len(other.hashes))
