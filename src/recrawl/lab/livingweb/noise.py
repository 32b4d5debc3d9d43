"""Noise: what a page shows differently from one moment to the next although nothing has changed.

A function of the page and the moment alone. Kinds that differ with each request do so with each 1/1024 s;
`rotation` differs by the ten minutes, so that a second fetch at once cannot show it.
"""

from __future__ import annotations

import time
from typing import Literal, get_args

from recrawl.lab.livingweb.chance import mix
from recrawl.lab.livingweb.clock import DAY_S
from recrawl.lab.livingweb.laws import GRID
from recrawl.lab.livingweb.pages_text import TextPool

NoiseKind = Literal["clock", "nonce", "request-id", "ads", "variants", "views", "age", "related", "rotation"]
NOISES: tuple[NoiseKind, ...] = get_args(NoiseKind)

_CLOCK, _NONCE, _REQUEST, _ADS, _VARIANTS, _VIEWS, _AGE, _RELATED, _ROTATION = (1 << i for i in range(len(NOISES)))
_ROTATION_S = 600.0
_ADVERTS, _CHOICES, _PROMOTIONS = 8, 12, 4


class Moment:
    """What the noise of one answer is made from.

    Args:
        page: its number.
        now: Unix seconds.
        clicks_per_day: of the page.
        born: when the page was born, in Unix seconds.
        changed: when it last changed, in Unix seconds.
    """

    __slots__ = ("born", "changed", "clicks_per_day", "now", "page")

    def __init__(self, page: int, now: float, clicks_per_day: float, born: float, changed: float) -> None:
        self.page = page
        self.now = now
        self.clicks_per_day = clicks_per_day
        self.born = born
        self.changed = changed


def noise_kinds(bits: int) -> list[NoiseKind]:
    """The kinds in a column of bits.

    >>> noise_kinds(0b101)
    ['clock', 'request-id']
    """
    return [kind for i, kind in enumerate(NOISES) if bits >> i & 1]


def head_noise(bits: int, moment: Moment) -> bytes:
    """Noise that no reader sees, for the head of the page."""
    if not bits & _NONCE:
        return b""
    tick = _tick(moment)
    return b'<script nonce="%016x">var t="%016x"</script>' % (mix(tick, 1), mix(tick, 2))


def top_noise(bits: int, moment: Moment, pool: TextPool) -> bytes:
    """Noise above the text."""
    parts = []
    if bits & _CLOCK:
        hours, minutes, seconds = time.gmtime(moment.now)[3:6]
        parts.append(b"<div>Server time <b>%02d:%02d:%02d</b> UTC</div>" % (hours, minutes, seconds))
    if bits & _VARIANTS:
        which = mix(moment.page, _tick(moment)) >> 9 & 1
        parts.append(b"<div>%b</div>" % pool.sentences(mix(moment.page, 5, which), 1).rstrip())
    if bits & _AGE:
        parts.append(b"<div>Updated %b</div>" % _age(moment.now - moment.changed))
    return b"".join(parts)


def bottom_noise(bits: int, moment: Moment, pool: TextPool) -> bytes:
    """Noise below the text."""
    parts = []
    if bits & _ADS:
        which = mix(_tick(moment), 7) % _ADVERTS
        parts.append(b'<div class="ad">%b</div>' % pool.sentences(which * 31, 1).rstrip())
    if bits & _VIEWS:
        parts.append(b"<div>%d views</div>" % views(moment))
    if bits & _RELATED:
        first = mix(_tick(moment), 8) % _CHOICES
        rows = [pool.phrase(moment.page + (first + i) % _CHOICES, 3, 4) for i in range(3)]
        parts.append(b"<ul class=related><li>%b<li>%b<li>%b</ul>" % (rows[0], rows[1], rows[2]))
    if bits & _ROTATION:
        which = mix(moment.page, int(moment.now // _ROTATION_S)) % _PROMOTIONS
        parts.append(b"<div>%b</div>" % pool.sentences(which * 37 + 1000, 1).rstrip())
    if bits & _REQUEST:
        parts.append(b"<div>Request %016x</div>" % mix(_tick(moment), moment.page, 4))
    return b"".join(parts)


def views(moment: Moment) -> int:
    """What the view counter shows: it only grows."""
    return int((moment.now - moment.born) / DAY_S * moment.clicks_per_day)


def _tick(moment: Moment) -> int:
    return mix(int(moment.now * GRID), moment.page)


def _age(seconds: float) -> bytes:
    if seconds < 3600:
        return b"%d minutes ago" % (seconds // 60)
    if seconds < 2 * DAY_S:
        return b"%d hours ago" % (seconds // 3600)
    return b"%d days ago" % (seconds // DAY_S)
