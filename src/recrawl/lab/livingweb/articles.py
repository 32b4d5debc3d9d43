"""HTML of the living web: pages, articles of hubs, the lists that link to them; and the clicks of readers.

Articles come on top of the numbered pages: the k-th article of a host is known by host and k. It is linked for six
hours, can be read for two days, and never changes.

Clicks are as an access log has them: steady for pages, fading within hours for articles. They are drawn from the seed
by host and hour, so that any stretch of the log can be read again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recrawl.lab.livingweb.chance import mix, share, stream
from recrawl.lab.livingweb.clock import DAY_S
from recrawl.lab.livingweb.text import Moment, bottom_noise, head_noise, top_noise
from recrawl.lab.livingweb.world import SECTIONS, LivingWorld

LINKED_S = 6 * 3600.0
READABLE_S = 48 * 3600.0
MOST_LINKS = 40
PAGES_A_LIST = 100


HOUR_S = 3600.0
FADING_S = 3 * HOUR_S
ARTICLE_CLICKS = 60.0


SOFT_MISSING = (
    b"<!doctype html><html lang=en><head><meta charset=utf-8><title>Oops</title></head><body><main><h1>Oops</h1>"
    b"<p>We are sorry, the page you are looking for could not be found.</p></main></body></html>"
)

_NAVIGATION = b"".join(b'<li><a href="/%b/">%b</a>' % (name.encode(), name.title().encode()) for name in SECTIONS)

_LINKS = 5


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


class Click(NamedTuple):
    """One hit of a reader; `at` in Unix seconds."""

    at: float
    host: int
    path: bytes


def clicks(world: LivingWorld, host: int, since: float, until: float) -> list[Click]:
    """Clicks on a host in (since, until], in order. O(hours x pages of the host + clicks)."""
    first, last = int((since - world.epoch) // HOUR_S), int((until - world.epoch) // HOUR_S)
    hits = [hit for hour in range(max(0, first), last + 1) for hit in _page_clicks(world, host, hour)]
    for found in articles_between(world, host, since - READABLE_S, until):
        hits += _article_clicks(world, found)
    return sorted(hit for hit in hits if since < hit.at <= until)


def log_line(world: LivingWorld, click: Click) -> str:
    """A click in the combined log format, with the host in front."""
    when = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(click.at))
    reader = int(share(world.seed, click.host, int(click.at * 1024)) * 254) + 1
    name = world.hosts[click.host].name
    return f'{name} 192.0.2.{reader} - - [{when}] "GET {click.path.decode()} HTTP/1.1" 200 10000 "-" "Mozilla/5.0"'


def article_click_rate(found: Article, now: float) -> float:
    """Expected clicks a day on an article at a time: exponential decay from its birth."""
    if not found.born <= now < found.gone:
        return 0.0
    return ARTICLE_CLICKS / (FADING_S / DAY_S) * float(np.exp(-(now - found.born) / FADING_S))


def _page_clicks(world: LivingWorld, host: int, hour: int) -> list[Click]:
    pages = world.pages_of(host)
    random = stream(world.seed, "clicks", host, hour)
    rates = np.asarray(world.pages.clicks)[pages.start : pages.stop] * (HOUR_S / DAY_S)
    counts = random.poisson(rates)
    where = np.repeat(np.arange(pages.start, pages.stop), counts).tolist()
    when = world.epoch + (hour + random.random(len(where))) * HOUR_S
    return [
        Click(at, *world.address(page, at))
        for at, page in zip(when.tolist(), where, strict=True)
        if world.state(page, at) in ("alive", "moved")
    ]


def _article_clicks(world: LivingWorld, found: Article) -> list[Click]:
    random = stream(world.seed, "article-clicks", found.host, found.number)
    delays = random.exponential(FADING_S, random.poisson(ARTICLE_CLICKS))
    return [Click(found.born + delay, found.host, found.path) for delay in delays.tolist() if delay < READABLE_S]


def title(world: LivingWorld, page: int) -> bytes:
    """The title of a page, for ever the same."""
    return world.pool.phrase(page, 1, 4).capitalize()


def page_html(world: LivingWorld, page: int, version: int, moment: Moment, design: int) -> bytes:
    """A page as one request gets it. O(bytes).

    Args:
        world: the web.
        page: its number.
        version: real changes so far; decides what it says.
        moment: decides the noise.
        design: redesigns so far; decide what frames it.
    """
    columns, pool = world.pages, world.pool
    bits = columns.noise[page]
    text = pool.paragraphs(page, version, columns.paragraphs[page])
    name = title(world, page)
    canonical = b'<link rel=canonical href="%b">' % world.address(page, moment.now)[1]
    return b"".join(
        [
            _open(name, design, canonical + head_noise(bits, moment)),
            b"<article><h1>",
            name,
            b"</h1>",
            top_noise(bits, moment, pool) if bits else b"",
            b'<p class="t">',
            b'</p>\n<p class="t">'.join(text),
            b"</p></article><ul>",
            _links(world, page),
            b"</ul>",
            bottom_noise(bits, moment, pool) if bits else b"",
            _close(design),
        ]
    )  # fmt: skip


def article_html(world: LivingWorld, host: int, number: int, design: int) -> bytes:
    """A short-lived article of a hub; it never changes."""
    key = mix(world.seed, host, number)
    name = article_title(world, host, number)
    text = world.pool.sentences(key, 8), world.pool.sentences(key >> 20, 8)
    return b'%b<article><h1>%b</h1><p class="t">%b</p><p class="t">%b</p></article>%b' % (
        _open(name, design), name, *(part.rstrip() for part in text), _close(design),
    )  # fmt: skip


def article_title(world: LivingWorld, host: int, number: int) -> bytes:
    """The title of an article."""
    return world.pool.phrase(mix(world.seed, host, number), 2, 5).capitalize()


def list_html(name: bytes, design: int, links: Sequence[tuple[bytes, bytes]], head: bytes = b"") -> bytes:
    """A page of links: pairs of an address and its text."""
    rows = b"\n".join([b'<li><a href="%b">%b</a>' % link for link in links])
    return b"%b<h1>%b</h1><ul>%b</ul>%b" % (_open(name, design, head), name, rows, _close(design))


def _open(name: bytes, design: int, head: bytes = b"") -> bytes:
    return (
        b"<!doctype html><html lang=en><head><meta charset=utf-8><title>%b</title>%b</head>"
        b'<body class="look-%d"><header><b>Living web</b></header><nav><ul><li><a href="/">%b</a>%b</ul></nav><main>'
    ) % (name, head, design, b"Home" if design % 2 else b"Front page", _NAVIGATION)


def _close(design: int) -> bytes:
    return b"</main><footer><p>Layout %d of the living web</p></footer></body></html>" % (design + 1)


def _links(world: LivingWorld, page: int) -> bytes:
    """Links to other pages of the host, for ever the same."""
    pages = world.pages_of(world.pages.host[page])
    key = mix(world.seed, page, 23)
    targets = [pages[(key >> (11 * i)) % len(pages)] for i in range(_LINKS)]
    return b"".join(
        [b'<li><a href="%b">%b</a>' % (world.path_bytes(to), world.pool.phrase(to, 1, 4)) for to in targets]
    )
