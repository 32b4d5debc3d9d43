"""What `recrawl doctor` looks at: versions against the floors that are known to be safe, settings and who set them.

Warns in sentences, and refuses nothing.
"""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from xml.parsers import expat

import apsw

from recrawl.store.opening import safe_name
from recrawl.store.sqlite_faults import sqlite_warning
from recrawl.tracker.settings.file import Chosen
from recrawl.tracker.settings.table import LISTS, OTHERS, PLAIN, TABLES
from recrawl.version import __version__

_FLOORS = {"aiohttp": (3, 14, 1), "pyarrow": (14, 0, 1)}
_EXPAT = (2, 6, 0)
_PYTHON: dict[tuple[int, ...], tuple[int, ...]] = {(3, 11): (3, 11, 10), (3, 12): (3, 12, 4)}
_UNITS = {"_s": "s", "budget_per_day": "crawls/day", "bytes_per_day": "bytes/day", "_bytes": "bytes"}
_LIBRARIES = ("aiohttp", "apsw", "asyncpg", "msgspec", "numba", "numpy", "pyarrow", "pyyaml", "uvloop")


def versions() -> dict[str, str | None]:
    """Versions of everything that matters, by name; None for what is not installed."""
    found: dict[str, str | None] = {
        "recrawl": __version__,
        "python": platform.python_version(),
        "expat": ".".join(map(str, expat.version_info)),
        "sqlite": apsw.sqlite_lib_version(),
    }
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def warnings_of(found: dict[str, str | None]) -> list[str]:
    """Sentences on versions with known faults.

    >>> warnings_of({"aiohttp": "3.9.0", "expat": "2.6.0", "sqlite": "3.54.1", "python": "3.13.0", "pyarrow": None})
    ['aiohttp 3.9.0 has known faults: use 3.14.1 or newer']
    """
    warnings = []
    for name, floor in _FLOORS.items():
        has = found.get(name)
        if has is not None and _numbers(has) < floor:
            warnings.append(f"{name} {has} has known faults: use {'.'.join(map(str, floor))} or newer")
    expat_has, python = _numbers(found["expat"] or ""), _numbers(found["python"] or "")
    if expat_has < _EXPAT:
        warnings.append(
            f"expat {found['expat']} takes long for XML that comes in pieces; recrawl parses in one piece, other "
            "programs may not: 2.6.0 or newer is better"
        )
    safe = _PYTHON.get(python[:2], (3, 11))
    if python < safe:
        warnings.append(f"Python {found['python']} has known faults: use {'.'.join(map(str, safe))} or newer")
    old_sqlite = sqlite_warning(found["sqlite"] or "0.0.0")
    if old_sqlite is not None:
        warnings.append(old_sqlite)
    if sys.flags.optimize:
        warnings.append("Python runs with -O, which leaves out checks: run without it")
    return warnings


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3] if part.isdigit())


def effective(chosen: Chosen) -> list[dict[str, Any]]:
    """Every setting: its name, value and unit, and who set it. No secret is among them."""
    settings, origins = chosen.settings, chosen.origins

    def row(name: str, value: Any, unit: str | None = None) -> dict[str, Any]:
        return {"name": name, "value": value, "unit": unit, "from": origins.get(name, "default")}

    rows = []
    for each in PLAIN:
        value = getattr(settings, each.field)
        shown = safe_name(value) if each.name == "store" and "://" in value else value
        rows.append(row(each.name, shown, _unit(each.field)))
    for table, (_, inner) in TABLES.items():
        made = getattr(settings, table)
        rows += [row(f"{table}.{each.name}", _plain(getattr(made, each.field)), _unit(each.field)) for each in inner]
    for table in LISTS:
        rows.append(row(table, [getattr(rule, "name", None) or rule.pattern for rule in getattr(settings, table)]))
    names, unchecked = sorted(settings.address_rules.local_names), sorted(settings.unverified_tls)
    origin = {"from": origins.get("network", "default")}
    rows += [row("network.local-names", names) | origin, row("network.unverified-tls", unchecked) | origin]
    rows += [row(name, "given" if name in origins else None) for name in ("network", *OTHERS)]
    return rows


def _unit(field: str) -> str | None:
    return next((unit for ending, unit in _UNITS.items() if field.endswith(ending)), None)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, (tuple, frozenset)) else value
