"""A look at a set-up: versions, the settings that hold, and whether beliefs follow from what was observed."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from xml.parsers import expat

import apsw
import numpy as np

from recrawl.errors import InvalidInput
from recrawl.learning.filter_state import PAGE_STATE
from recrawl.learning.online_filter import OnlineFilter
from recrawl.scheduling.learner import TURN_DOUBT, prior_around
from recrawl.scheduling.types import Tuning
from recrawl.store.postgres.address import safe_name
from recrawl.store.rows import HostRow, Observation
from recrawl.store.sqlite.errors import sqlite_warning
from recrawl.store.store import Store
from recrawl.tracker.clock import DAY_S
from recrawl.tracker.settings.file import Chosen
from recrawl.tracker.settings.table import LISTS, OTHERS, PLAIN, TABLES
from recrawl.tracker.signals.trust import from_bytes
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


_BATCH = 5000
_SAME = 0.02  # of a rate; sums are kept in single precision
_SHOWN = 10


@dataclass(slots=True)
class BeliefAudit:
    """How many pages there are with something learned, and how many of them came out the same.

    Args:
        pages: with a belief.
        agree: learned from the log as they are in the store.
        differ: not so, although the log has all their crawls.
        heard: not so, but on a host whose signals were followed: they teach as well, and are not in the log.
        partial: whose older crawls are no longer kept.
        differing: addresses of the first that differ.
    """

    pages: int = 0
    agree: int = 0
    differ: int = 0
    heard: int = 0
    partial: int = 0
    differing: list[str] = field(default_factory=list)


async def replay(store: Store, crawl_rate: float, report: Callable[[int, int | None], None]) -> BeliefAudit:
    """Learn from the log of a store and compare. O(fetches + pages), 140 bytes of memory a page.

    Args:
        store: may be running.
        crawl_rate: crawls a day of an average page, around which rates are believed.
        report: called with the number of fetches read, and of all there are.
    """
    counts = await store.counts()
    pages = counts.last_page_id
    log = _Log(pages + 1, crawl_rate)
    after, done = 0, 0
    while seen := await store.all_observations(after, _BATCH):
        after, done = seen[-1][0], done + len(seen)
        log.learn([each for _, each in seen if each.verdict is not None and each.page_id <= pages])
        report(done, counts.observations)
    return await _compare(store, log)


class _Log:
    """What the log of fetches teaches.

    The scheduler learns from the time between the ends of visits, captures from the time between the starts of fetches,
    which is the gap in the log. A second look or a slow answer makes them differ, so both are learned.
    """

    def __init__(self, pages: int, crawl_rate: float) -> None:
        self.visits = np.zeros(pages, dtype=np.int64)
        self.by_start, self.by_end = (_filter(pages, crawl_rate) for _ in range(2))
        self._ended_at = np.full(pages, np.nan)

    def learn(self, seen: list[Observation]) -> None:
        """Learn from fetches that told the content of a page, in their order."""
        np.add.at(self.visits, [each.page_id for each in seen], 1)
        pages, starts, ends, changed = list[int](), list[float](), list[float](), list[bool]()
        for each in seen:
            before, self._ended_at[each.page_id] = float(self._ended_at[each.page_id]), each.at
            if each.verdict != "first" and each.gap_s is not None:
                pages.append(each.page_id)
                starts.append(each.gap_s / DAY_S)
                ends.append(starts[-1] if np.isnan(before) else max(each.at - before, 0.0) / DAY_S)
                changed.append(each.verdict == "changed")
        self.by_start.update_many(pages, starts, changed)
        self.by_end.update_many(pages, ends, changed)


def _filter(pages: int, crawl_rate: float) -> OnlineFilter:
    return OnlineFilter(prior_around(crawl_rate), pages, memory=Tuning().memory, doubt=TURN_DOUBT)


async def _compare(store: Store, log: _Log) -> BeliefAudit:
    found = BeliefAudit()
    learned, visits = (log.by_start, log.by_end), log.visits
    kept = OnlineFilter(log.by_end.prior, len(visits), memory=log.by_end.memory, doubt=TURN_DOUBT)
    followed = {row.name for row in await store.hosts() if _followed(row)}
    after = 0
    while rows := await store.list_pages(after, _BATCH):
        after = rows[-1].id
        known = [
            row
            for row in rows
            if row.belief is not None and len(row.belief) == PAGE_STATE.itemsize and row.id < len(visits)
        ]
        found.pages += len(known)
        whole = [row for row in known if visits[row.id] == row.visits]
        found.partial += len(known) - len(whole)
        if not whole:
            continue
        ids = np.array([row.id for row in whole])
        kept.state[ids] = np.frombuffer(b"".join(row.belief or b"" for row in whole), dtype=PAGE_STATE)
        kept.state["prior_row"][ids] = 0
        stored, again = kept.estimate(ids).mean, np.array([each.estimate(ids).mean for each in learned])
        same = (np.abs(stored - again) <= _SAME * np.maximum(stored, again)).any(axis=0)
        found.agree += int(same.sum())
        others = [row for row, equal in zip(whole, same.tolist(), strict=True) if not equal]
        silent = [row.url for row in others if row.host not in followed]
        found.differ += len(silent)
        found.heard += len(others) - len(silent)
        found.differing += silent[: _SHOWN - len(found.differing)]
    return found


def _followed(host: HostRow) -> bool:
    """Whether pages of a host ever listened to its signals, as far as can be read."""
    try:
        return host.learned is not None and from_bytes(host.learned).followed
    except InvalidInput:
        return True
