"""A search index held against the site that it is of: what each address says at a moment, and what the index has. Pure.

The site is the living web. What a page says is known from the seed, without noise and frame: an entry is right if all
of it is in the entry. So a copy that is one change old is found out, whoever made it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recrawl.lab.livingweb.pages_html import title
from recrawl.lab.livingweb.world import LivingWorld
from recrawl.lab.livingweb.world_pages import SECTIONS

_EXISTS = ("alive", "moved")


@dataclass(frozen=True, slots=True)
class Comparison:
    """An index against a site, by address.

    Args:
        right: entries that say what the page says.
        stale: entries that say something else.
        missing: pages of the site without an entry.
        surplus: entries of pages that are not there.
    """

    right: int
    stale: tuple[str, ...]
    missing: tuple[str, ...]
    surplus: tuple[str, ...]


def compare(world: LivingWorld, port: int, now: float, entries: Mapping[str, str]) -> Comparison:
    """Hold an index, texts by address, against the site as it is at a time. O(all texts)."""
    stale, surplus, right = [], [], 0
    for url, text in entries.items():
        said = says(world, port, now, url)
        if said is None:
            surplus.append(url)
        elif all(part in text for part in said):
            right += 1
        else:
            stale.append(url)
    there = [world.url(page, port, now) for page in range(len(world)) if world.state(page, now) in _EXISTS]
    return Comparison(right, tuple(stale), tuple(url for url in there if url not in entries), tuple(surplus))


def says(world: LivingWorld, port: int, now: float, url: str) -> Sequence[str] | None:
    """What must be read at an address at a time: paragraphs, or the titles of a list; None if nothing is there."""
    page = world.page_of(url)
    if page is not None:
        if world.state(page, now) not in _EXISTS or world.url(page, port, now) != url:
            return None
        version, paragraphs = world.version(page, now), world.pages.paragraphs[page]
        return [part.decode() for part in world.pool.paragraphs(page, version, paragraphs)]
    name, _, path = url.partition("://")[2].partition("/")
    host = world.host_numbers.get(name.partition(":")[0].encode())
    section = path.strip("/")
    if host is None or (path and section not in SECTIONS):
        return None
    listed = SECTIONS.index(section) if section else None
    return [
        title(world, each).decode()
        for each in world.pages_of(host)
        if world.pages.section[each] == listed and world.state(each, now) == "alive"
    ]


def true_changes(world: LivingWorld, since: float, until: float) -> int:
    """How often pages of the site changed what they say in a time."""
    return sum(len(world.changes(page, since, until)) for page in range(len(world)))
