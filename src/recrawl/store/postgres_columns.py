"""Rows as columns: a statement takes one array for each column, however many rows there are.

PostgreSQL's texts hold neither NUL nor halves of surrogate pairs. Texts for people are cleaned of them; an address,
which is an identity, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from operator import attrgetter

from recrawl.errors import InvalidInput

_NOT_TEXT = re.compile("[\0\ud800-\udfff]")


def columns(rows: Sequence[object], fields: Sequence[str]) -> list[Sequence[object]]:
    """The fields of rows as one sequence each, texts cleaned. O(rows · fields)."""
    if not rows:
        return [()] * len(fields)
    return [_cleaned(column) for column in zip(*map(attrgetter(*fields), rows), strict=True)]


def records(rows: Sequence[object], fields: Sequence[str]) -> list[tuple[object, ...]]:
    """The same as rows, for COPY."""
    return list(zip(*columns(rows, fields), strict=True))


def clean(text: str) -> str:
    r"""A text that PostgreSQL can hold.

    >>> clean("a\0b"), clean("whole")
    ('a�b', 'whole')
    """
    return text if text.isascii() and "\0" not in text else _NOT_TEXT.sub("�", text)


def clean_or_none(text: str | None) -> str | None:
    """The same where there may be none."""
    return None if text is None else clean(text)


def url_key(url: str) -> bytes:
    """What an address is found by: a digest, since an index over texts has a bound to their length."""
    return blake2b(url.encode("utf-8", "surrogatepass"), digest_size=20).digest()


def check_urls(urls: Iterable[str]) -> None:
    """Refuse addresses that cannot be stored as they are."""
    for row, url in enumerate(urls):
        if "\0" in url or (not url.isascii() and _NOT_TEXT.search(url)):
            raise InvalidInput("holds a character that no address may have; bring it into canonical form",
                               field="url", row=row)  # fmt: skip


def _cleaned(column: tuple[object, ...]) -> Sequence[object]:
    """A column whose texts can be held; most have none to clean, which one look at all of them together tells."""
    texts = [value for value in column if isinstance(value, str)]
    if not texts:
        return column
    together = "".join(texts)
    if together.isascii() and "\0" not in together:
        return column
    return [clean(value) if isinstance(value, str) else value for value in column]
