"""Templates and how values are written in them. Everything is escaped; only http and https become links.

Numbers are written as people read them: a few digits that mean something, with their unit.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_HERE = Path(__file__).parent
_SCHEMES = ("http://", "https://")
_DASH = "–"
# Half of a range: up to the first it is not worth saying, above the second it is all that is said.
_CLOSE, _FAR = 0.03, 0.12
_STEPS = ((60.0, "s"), (60.0, "min"), (24.0, "h"), (365.25, "d"), (math.inf, "y"))
_MEDIA = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class StaticFile(NamedTuple):
    """A file that goes with the pages."""

    content: bytes
    media_type: str
    digest: str


def _read_static() -> dict[str, StaticFile]:
    files = {}
    for path in sorted((_HERE / "static").iterdir()):
        if path.suffix in _MEDIA:
            content = path.read_bytes()
            files[path.name] = StaticFile(content, _MEDIA[path.suffix], blake2b(content, digest_size=6).hexdigest())
    return files


STATIC = _read_static()
"""By name; there are no others, whatever is asked for."""


def static_url(name: str) -> str:
    """The address of a static file, which changes with its content so that browsers may keep it."""
    return f"/static/{name}?{STATIC[name].digest}"


def percent(value: float | None, digits: int = 1) -> str:
    """A share.

    >>> percent(0.8734).split(), percent(None)
    (['87.3', '%'], '–')
    """
    return _DASH if value is None or math.isnan(value) else f"{100 * value:.{digits}f}\N{NARROW NO-BREAK SPACE}%"


def freshness(value: float, between: tuple[float, float]) -> str:
    """A share that is estimated: with what it can be off by if that is some points, as a range if it is many.

    >>> freshness(0.684, (0.67, 0.70)).split(), freshness(0.684, (0.61, 0.75)), freshness(0.684, (0.31, 0.92))[:5]
    (['68.4', '%'], '68 ± 7\u202f%', '31–92')
    """
    low, high = between
    half = (high - low) / 2
    if half <= _CLOSE:
        return percent(value)
    if half <= _FAR:
        return f"{100 * value:.0f} ± {max(100 * half, 1):.0f}\N{NARROW NO-BREAK SPACE}%"
    return f"{100 * low:.0f}–{100 * high:.0f}\N{NARROW NO-BREAK SPACE}%"


def whole(value: float | None) -> str:
    """A count.

    >>> whole(1234567)
    '1,234,567'
    """
    return _DASH if value is None else f"{value:,.0f}"


def short(value: float | None) -> str:
    """A number of any size in about three digits.

    >>> short(0.000123), short(0.5), short(12345.6), short(2.5e9), short(0)
    ('0.000123', '0.5', '12.3k', '2.5G', '0')
    """
    if value is None or math.isnan(value):
        return _DASH
    if math.isinf(value):
        return "∞"
    size = abs(value)
    if size and (size < 1e-5 or size >= 1e15):
        return f"{value:.3g}"
    for limit, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= limit:
            return f"{value / (1e3 if letter == 'k' else limit):.3g}{letter}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.3g}"


def rate(per_day: float | None, pace: float = 1.0) -> str:
    """How often something happens, in the unit that suits; by a real clock where the tracker's runs at a pace.

    >>> rate(86400.0), rate(800.0), rate(12.0), rate(0.0), rate(48.0, 1800.0)
    ('1/s', '33.3/h', '12/day', '0/day', '1/s')
    """
    if per_day is None or math.isnan(per_day):
        return _DASH
    per_day *= pace
    for size, unit in ((86_400.0, "s"), (1440.0, "min"), (24.0, "h")):
        if per_day >= size:
            return f"{short(per_day / size)}/{unit}"
    return f"{short(per_day)}/day"


def bare(url: object) -> str:
    """An address without what all addresses begin with, for tables.

    >>> bare("https://example.com/a"), bare("example.com")
    ('example.com/a', 'example.com')
    """
    text = str(url)
    return next((text[len(scheme) :] for scheme in _SCHEMES if text.startswith(scheme)), text)


def duration(seconds: float | None, pace: float = 1.0) -> str:
    """A time span in its largest unit; by a real clock where the tracker's runs at a pace.

    >>> duration(0.26), duration(90), duration(7200), duration(3 * 86400), duration(7200, 1800.0)
    ('0.3 s', '1.5 min', '2 h', '3 d', '4 s')
    """
    if seconds is None or math.isnan(seconds):
        return _DASH
    value = max(seconds / pace, 0.0)
    for size, unit in _STEPS:
        if value < size:
            digits = 0 if value >= 10 else 1
            text = f"{value:.{digits}f}"
            return f"{text.removesuffix('.0')} {unit}"
        value /= size
    return _DASH  # not reached: the last step has no end


def pace_text(pace: float) -> str:
    """What a web's time is to ours, where it runs faster.

    >>> pace_text(1800.0)
    "1 s here is 30 min of the web's time"
    """
    return f"1 s here is {duration(pace)} of the web's time"


def ago(at: float | None, now: float, pace: float = 1.0) -> str:
    """When something was, from now; by a real clock where the tracker's runs at a pace.

    >>> ago(100.0, 160.0), ago(None, 0.0), ago(160.0, 100.0), ago(100.0, 160.0, 30.0)
    ('1 min ago', 'never', 'in 1 min', '2 s ago')
    """
    if at is None:
        return "never"
    if at > now + pace:
        return f"in {duration(at - now, pace)}"
    return "now" if now - at < pace else f"{duration(now - at, pace)} ago"


def stamp(at: float | None) -> str:
    """A time in full, in UTC.

    >>> stamp(0.0)
    '1970-01-01 00:00:00'
    """
    if at is None or not -6e10 < at < 2e11:
        return _DASH
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def link(url: object) -> str | None:
    """An address that may be a link; None for all others.

    >>> link("https://example.com/"), link("javascript:alert(1)"), link(" http://x/")
    ('https://example.com/', None, None)
    """
    text = str(url)
    return text if text.lower().startswith(_SCHEMES) else None


def plain(value: Any) -> str:
    """A setting as one would say it.

    >>> plain(True), plain([]), plain(["a", "b"]), plain(None), plain(86400.0)
    ('yes', 'none', 'a, b', 'none', '86,400')
    """
    if value is None or value in ("", [], ()):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return f"{value:,.12g}" if isinstance(value, (int, float)) else str(value)


def environment() -> Environment:
    """The templates, strict and escaped."""
    templates = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    templates.filters |= {
        "percent": percent,
        "freshness": freshness,
        "whole": whole,
        "short": short,
        "duration": duration,
        "ago": ago,
        "stamp": stamp,
        "link": link,
        "plain": plain,
        "rate": rate,
        "bare": bare,
    }
    templates.globals |= {"static": static_url, "pace_text": pace_text}
    return templates


_TEMPLATES = environment()
TEMPLATE_NAMES = tuple(sorted(name for name in _TEMPLATES.list_templates() if not name.startswith("_")))
"""Those that are pages or parts of their own; the tests feed each with hostile text."""


def render(template: str, **values: Any) -> str:
    """A page."""
    return _TEMPLATES.get_template(template).render(**values)
