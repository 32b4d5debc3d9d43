"""Addresses of PostgreSQL stores: checked, and shown without their passwords."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from recrawl.errors import InvalidInput

UNREADABLE = (
    "cannot be read as an address: write postgresql://user:password@host:port/database, "
    "with %40 for @, %3A for :, %2F for /, %3F for ? and %23 for # in a password"
)
_SHOWN_OPTIONS = ("host", "port", "user", "dbname", "database")
_PLACES = re.compile(r"(?:\[[0-9a-fA-F:.%]+\]|[^\[\]:@]*)(?::[0-9]+)?(?:,(?:[^\[\]:@,]*)(?::[0-9]+)?)*")


def safe_name(dsn: str) -> str:
    """The address of a store without its password.

    >>> safe_name("postgresql://ann:secret@db.example:5433/crawl?sslmode=require&password=x")
    'postgresql://ann@db.example:5433/crawl'
    >>> safe_name("postgresql:///crawl?host=/run/postgresql")
    'postgresql:///crawl?host=/run/postgresql'
    """
    parts = _parts(dsn)
    if parts is None:
        return "postgresql://…"
    user, at, place = parts.netloc.rpartition("@")
    shown = [(key, value) for key, value in parse_qsl(parts.query) if key in _SHOWN_OPTIONS]
    query = f"?{urlencode(shown, safe='/')}" if shown else ""
    return f"postgresql://{user.partition(':')[0]}{at}{place}{parts.path}{query}"


def check_address(dsn: str) -> None:
    """Refuse an address that cannot be read."""
    if _parts(dsn) is None:
        raise InvalidInput(UNREADABLE, field="store")


def _parts(dsn: str) -> SplitResult | None:
    """The parts of an address; None if it has none, or a password has spilled into parts that are not its own."""
    try:
        parts = urlsplit(dsn)
    except ValueError:
        return None
    user, _, place = parts.netloc.rpartition("@")
    sound = parts.scheme in ("postgresql", "postgres") and not parts.fragment and "@" not in user + parts.path
    return parts if sound and _PLACES.fullmatch(place) else None
