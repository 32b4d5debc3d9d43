"""What a rule is told at a crawl, and what it may remember: the contract of every rule in this folder.

A rule is one compiled function `wait(parameters, own, visit)`: it reads its parameters, reads and writes the few
numbers `own` that it keeps for the page, and answers how many days to wait until the page is due again (infinite:
never). All of a page's `own` numbers are 0 before its first visit. A rule has no other memory and sees no other page.
"""

from __future__ import annotations

from typing import NamedTuple

from recrawl.pages import Floats

REMEMBERED = 6
"""How many numbers a rule may keep for each page."""

MINUTE = 1.0 / 1440.0
HOUR = 1.0 / 24.0
WEEK = 7.0


class Visit(NamedTuple):
    """One crawl of one page.

    Attributes:
        now: when, in days.
        gap: days since the last crawl; 0 at the first.
        changed: whether the copy differs from the last one.
        first: whether there was no copy yet. Pages that are there at the start have their first visit at 0.
        modified: when the page last changed, as its Last-Modified header would say.
        dates: times of all changes of all pages, for rules that read the dates of entries: those of this page that
            have happened are `dates[entries[0]:entries[1]]`.
        entries: where this page's dates begin and end.
        importance: the page's weight.
        rate: its true changes a day, for rules that are told.
        planned: the wait that a plan has for it, in days.
        fair: pages known by now, divided by the budget: the wait if all had the same.
        chance: a number drawn evenly from [0, 1).
    """

    now: float
    gap: float
    changed: bool
    first: bool
    modified: float
    dates: Floats
    entries: tuple[int, int]
    importance: float
    rate: float
    planned: float
    fair: float
    chance: float
