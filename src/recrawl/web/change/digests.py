"""Digests of a page in layers, so that a user can choose what counts as a change.

`raw` covers the body byte for byte, `text` the visible words, `links` the set of link targets whatever their order,
`metadata` what the head says. Digests are xxh3 of 128 bits: fast, and safe against accident, not against someone who
makes two pages with one digest on purpose. Such a page could only hide its own changes.

    >>> body = b"<p>Good day</p>"
    >>> page = read_page(body)
    >>> digest_page(body, page).text == digest_page(b"", read_page(b"<h1>Good <i>day</i></h1>")).text
    True
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from recrawl.jit import kernel
from recrawl.web.content.page import Page, read_page
from recrawl.web.content.rules import Layer

__all__ = ["Digests", "digest_page", "layer_text", "read_page"]


class Digests(NamedTuple):
    """Digests of one fetch, 16 bytes each."""

    raw: bytes
    text: bytes


def digest_page(body: bytes, page: Page) -> Digests:
    """The digests of a page that are kept. O(bytes)."""
    return Digests(raw_digest(body), text_digest(page.text))


def raw_digest(body: bytes) -> bytes:
    """Digest of a body byte for byte: equal to the last one, nothing needs to be parsed."""
    return _digest(body)


def text_digest(text: bytes) -> bytes:
    """Digest of a tidied text without its white space: a word set in bold or made a link is no change.

    Two numbers stay apart: cells that say 1 and 11 are not cells that say 11 and 1.
    """
    return _digest(_without_space(np.frombuffer(text, dtype=np.uint8)).tobytes())


def layer_text(layer: Layer, body: bytes, page: Page, *, with_lead: bool = True) -> bytes:
    """The text whose change counts, in UTF-8 with one item a line; for `raw`, the body itself. O(bytes).

    The headline belongs to the text wherever it stands, and the title where there is no headline. A page without text,
    such as the shell of an application, is compared by its title, its canonical address and where it sends readers by
    itself; without these, like an image, by the digest of its body. Not so where selectors chose the text and none
    matched.

    Args:
        layer: what counts.
        body: the decoded body.
        page: what was read of it.
        with_lead: whether headline, title and addresses count; texts published by older versions have none.
    """
    if layer == "text":
        if page.kind != "other" and (page.text or page.kind == "text" or page.selected):
            return b"\n".join([page.lead, page.text]) if with_lead and page.lead else page.text
        shell = (page.metadata.title, page.metadata.canonical, page.metadata.refresh)
        if with_lead and any(shell):
            return "\n".join(each for each in shell if each).encode("utf-8", "replace")
        return raw_digest(body).hex().encode()
    if layer == "raw":
        return body
    if layer == "links":
        return "\n".join(sorted({link.href for link in page.links})).encode("utf-8", "replace")
    said = page.metadata
    kept = (said.title, said.description, said.canonical, said.language, said.base, *said.robots)
    return "\n".join(kept).encode("utf-8", "replace")


def _digest(content: bytes) -> bytes:
    return xxhash.xxh3_128_digest(content)


@kernel
def _without_space(text: NDArray[np.uint8]) -> NDArray[np.uint8]:
    out = np.empty(len(text), dtype=np.uint8)
    size = 0
    for at in range(len(text)):
        byte = text[at]
        if byte == 0x20 or byte == 0x0A:
            if size == 0 or at + 1 == len(text):
                continue
            before, after = out[size - 1], text[at + 1]
            if not (0x30 <= before <= 0x39 and 0x30 <= after <= 0x39):
                continue
            byte = np.uint8(0x20)
        out[size] = byte
        size += 1
    return out[:size]
