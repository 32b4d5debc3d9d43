"""HTML of pages, articles, lists and the polite lie that a missing page is fine."""

from __future__ import annotations

from collections.abc import Sequence

from recrawl.lab.livingweb.chance import mix
from recrawl.lab.livingweb.noise import Moment, bottom_noise, head_noise, top_noise
from recrawl.lab.livingweb.world import LivingWorld
from recrawl.lab.livingweb.world_pages import SECTIONS

_NAVIGATION = b"".join(b'<li><a href="/%b/">%b</a>' % (name.encode(), name.title().encode()) for name in SECTIONS)
_LINKS = 5

SOFT_MISSING = (
    b"<!doctype html><html lang=en><head><meta charset=utf-8><title>Oops</title></head><body><main><h1>Oops</h1>"
    b"<p>We are sorry, the page you are looking for could not be found.</p></main></body></html>"
)


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
