"""Heaps of pages by due time: pairing heaps through the page records. Scalar kernels.

`child` is a page's first child, `next` its right sibling, `prev` its left sibling or, of a first child, its parent.
Pages leave from anywhere in the heap. O(log pages) amortised to take out, O(1) to put in. A paced host has two: of
pages that will be due, and behind them of pages that time alone does not bring, by the most they are worth.
"""

from __future__ import annotations

import numpy as np

from recrawl.jit import borrowing
from recrawl.scheduling.table.records import AT_HOST, Record, Records
from recrawl.scheduling.worth import FOR_EVER


@borrowing
def due_time(page: Record) -> float:
    """When a page is due at the price it was placed at."""
    return page["last"] + np.float64(page["wait"])


@borrowing
def put(pages: Records, host: Record, slot: int) -> None:
    """Let a page wait at its host. O(1)."""
    page = pages[slot]
    page["state"] = AT_HOST
    if page["wait"] < FOR_EVER:
        host["root"] = put_in(pages, host["root"], slot)
    else:
        host["behind"] = put_in(pages, host["behind"], slot)
    host["waiting"] += 1


@borrowing
def take_out(pages: Records, host: Record, slot: int) -> None:
    """Take a page out of the heap of its host. O(log pages), amortised."""
    if pages[slot]["wait"] < FOR_EVER:
        host["root"] = take_from(pages, host["root"], slot)
    else:
        host["behind"] = take_from(pages, host["behind"], slot)
    host["waiting"] -= 1


@borrowing
def put_in(pages: Records, root: int, slot: int) -> int:
    """Put a page into a heap; the root of that. O(1)."""
    page = pages[slot]
    page["child"] = page["next"] = page["prev"] = -1
    return _meld(pages, root, slot)


@borrowing
def take_from(pages: Records, root: int, slot: int) -> int:
    """Take a page out of a heap; the root of the rest, or -1. O(log pages), amortised."""
    page = pages[slot]
    if root != slot:
        before = page["prev"]
        if pages[before]["child"] == slot:
            pages[before]["child"] = page["next"]
        else:
            pages[before]["next"] = page["next"]
        if page["next"] >= 0:
            pages[page["next"]]["prev"] = before
    rest = _join_children(pages, page["child"])
    page["child"] = page["next"] = page["prev"] = -1
    return rest if root == slot else _meld(pages, root, rest)


@borrowing
def gather(pages: Records, root: int, other: int) -> int:
    """Turn two heaps into a chain through `next` and return its first page; `child` and `prev` are lost. O(pages)."""
    # A page's children are appended to the end of the chain as it is passed.
    if root < 0:
        root, other = other, -1
    if root < 0:
        return -1
    pages[root]["next"] = other
    last = root if other < 0 else other
    slot = root
    while slot >= 0:
        page = pages[slot]
        child = page["child"]
        if child >= 0:
            pages[last]["next"] = child
            last = child
            while pages[last]["next"] >= 0:
                last = pages[last]["next"]
            page["child"] = -1
        slot = page["next"]
    return root


@borrowing
def _meld(pages: Records, a: int, b: int) -> int:
    if a < 0:
        return b
    if b < 0:
        return a
    if due_time(pages[b]) < due_time(pages[a]):
        a, b = b, a
    parent, loser = pages[a], pages[b]
    first = parent["child"]
    loser["next"] = first
    loser["prev"] = a
    if first >= 0:
        pages[first]["prev"] = b
    parent["child"] = b
    parent["next"] = parent["prev"] = -1
    return a


@borrowing
def _join_children(pages: Records, first: int) -> int:
    """Two passes: meld in pairs from the left, then the pairs from the right."""
    stack = -1
    while first >= 0:
        a = first
        b = pages[a]["next"]
        first = pages[b]["next"] if b >= 0 else -1
        pages[a]["next"] = pages[a]["prev"] = -1
        if b >= 0:
            pages[b]["next"] = pages[b]["prev"] = -1
        pair = _meld(pages, a, b)
        pages[pair]["prev"] = stack  # `prev` chains the pairs until they are melded
        stack = pair
    root = -1
    while stack >= 0:
        before = pages[stack]["prev"]
        pages[stack]["prev"] = -1
        root = _meld(pages, root, stack)
        stack = before
    return root
