"""Pages by their addresses, in SQLite: lists of many thousands in one statement."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import xxhash

from recrawl.store.rows import PageRole
from recrawl.store.sqlite.session import Session


def is_address(url: str) -> bool:
    """Whether a text can be kept as an address as it is."""
    return "\0" not in url and (url.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in url))


def find_addresses(
    session: Session, urls: Sequence[str], role: PageRole | None = "page", *, retired: bool = False
) -> dict[str, int]:
    """Ids by address; of one role or both, perhaps retired ones too. O(addresses · log n)."""
    asked = {url for url in urls if is_address(url)}
    wanted = json.dumps(_url_hashes(asked))
    found = session.rows("pages_find", (wanted, retired, None if role is None else role == "source"))
    return {url: page_id for url, page_id in found if url in asked}


def _url_hashes(urls: set[str]) -> list[int]:
    """As `url_hash` of each, in order: neighbours in the index are read one after the other."""
    digests = b"".join(map(xxhash.xxh3_64_digest, map(str.encode, urls)))
    numbers: list[int] = np.sort(np.frombuffer(digests, ">i8")).tolist()
    return numbers
