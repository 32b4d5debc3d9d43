"""Hubs: home pages that link to new articles for some hours only, and the lists of a host's sections.

Articles come on top of the numbered pages: the k-th article of a host is known by host and k. It is linked for six
hours, can be read for two days, and never changes.
"""

from __future__ import annotations

from typing import NamedTuple

from recrawl.lab.livingweb.pages_html import article_title, list_html, title
from recrawl.lab.livingweb.world import LivingWorld
from recrawl.lab.livingweb.world_pages import SECTIONS

LINKED_S = 6 * 3600.0
READABLE_S = 48 * 3600.0
MOST_LINKS = 40
PAGES_A_LIST = 100


class Article(NamedTuple):
    """A short-lived article; times in Unix seconds."""

    host: int
    number: int
    path: bytes
    born: float
    linked_until: float
    gone: float


def article(world: LivingWorld, host: int, number: int, now: float) -> Article | None:
    """The article with this number if it was published by now. O(1)."""
    times = world.articles(host).until(now - world.epoch)
    if not 0 <= number < len(times) or times[number] > now - world.epoch:
        return None
    born = world.epoch + times[number]
    path = b"/news/%b-%d" % (world.pool.words[number % 500], number)
    return Article(host, number, path, born, born + LINKED_S, born + READABLE_S)


def find_article(world: LivingWorld, host: int, path: bytes, now: float) -> Article | None:
    """The article at a path, if it was published by now; it may be gone again."""
    digits = path.rpartition(b"-")[2]
    if not path.startswith(b"/news/") or not digits.isdigit() or len(digits) > 9:
        return None
    found = article(world, host, int(digits), now)
    return found if found is not None and found.path == path else None


def newest_articles(world: LivingWorld, host: int, now: float, most: int = MOST_LINKS) -> list[Article]:
    """Articles that the hub links to now, the newest first."""
    count = world.articles(host).count(now - world.epoch)
    newest = (article(world, host, number, now) for number in range(count - 1, max(-1, count - 1 - most), -1))
    return [found for found in newest if found is not None and now < found.linked_until]


def articles_between(world: LivingWorld, host: int, since: float, until: float) -> list[Article]:
    """Articles published in (since, until]."""
    times = world.articles(host)
    numbers = range(times.count(since - world.epoch), times.count(until - world.epoch))
    return [found for number in numbers if (found := article(world, host, number, until)) is not None]


def home_html(world: LivingWorld, host: int, now: float, design: int, head: bytes = b"") -> bytes:
    """The home page: sections, and the newest articles if the host has a hub."""
    links = [(b"/%b/" % section.encode(), section.title().encode()) for section in SECTIONS]
    links += [
        # Many sites mark where a reader came from: the same article under one more address.
        (found.path + (b"?utm_source=hub" if found.number % 3 == 0 else b""), article_title(world, host, found.number))
        for found in newest_articles(world, host, now)
    ]
    return list_html(world.hosts[host].name.encode(), design, links, head)


def section_html(world: LivingWorld, host: int, section: int, now: float, number: int) -> bytes | None:
    """List `number` (from 1) of the living pages of a section; None beyond the end."""
    sections = world.pages.section
    alive = [page for page in world.pages_of(host) if sections[page] == section and world.state(page, now) == "alive"]
    start = (number - 1) * PAGES_A_LIST
    if number < 1 or (number > 1 and start >= len(alive)):
        return None
    links = [(world.path_bytes(page), title(world, page)) for page in alive[start : start + PAGES_A_LIST]]
    if start + PAGES_A_LIST < len(alive):
        links.append((b"/%b/?page=%d" % (SECTIONS[section].encode(), number + 1), b"More"))
    design = world.redesigns(host).count(now - world.epoch)
    return list_html(SECTIONS[section].title().encode(), design, links)
