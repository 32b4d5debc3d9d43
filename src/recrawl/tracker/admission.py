"""Addresses that become pages: checked, in canonical form, with what their group says. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from re import Pattern
from re import compile as compile_pattern

from recrawl.store.rows import NewPage, PageRow, PauseKind
from recrawl.tracker.settings.settings import GroupRule, Settings, fits_bounds
from recrawl.web.fetch.egress import check_target
from recrawl.web.refused import Refused
from recrawl.web.url.address import read_address
from recrawl.web.url.canonical import canonical_form, host_key

SMALLEST_IMPORTANCE, LARGEST_IMPORTANCE = 1e-12, 1e12
_UNTRACKED = ("retired", "quarantined")


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A page as a user names it; None where nothing is said."""

    url: str
    importance: float | None = None
    group: str | None = None
    min_interval_s: float | None = None
    max_interval_s: float | None = None
    source: str = "user"


@dataclass(frozen=True, slots=True)
class Rejected:
    """An address that cannot be tracked, and why."""

    url: str
    reason: str


def address_of(url: str) -> tuple[str, str]:
    """The address under which the store has a page, and why nobody can name it; "" if one can.

    Settings have no say: a page that they no longer allow is still found.
    """
    address = read_address(url.strip())
    if isinstance(address, Refused):
        return url.strip(), address.reason
    return canonical_form(address).url, ""


def admit(wanted: PageRequest, settings: Settings, now: float) -> NewPage | Rejected:
    """Return the page of an address, or why it cannot be tracked."""
    address = read_address(wanted.url.strip(), settings.address_rules)
    if isinstance(address, Refused):
        return Rejected(wanted.url[:200], address.reason)
    target = check_target(address, settings.egress)
    if target is not None:
        return Rejected(wanted.url[:200], target.reason)
    address = canonical_form(address)
    group = _group(address.url, wanted.group, settings.groups)
    if isinstance(group, Rejected):
        return group
    importance = wanted.importance
    if importance is None:
        importance = 1.0 if group is None or group.importance is None else group.importance
    if not (importance == 0 or SMALLEST_IMPORTANCE <= importance <= LARGEST_IMPORTANCE):
        known = f"0, or from {SMALLEST_IMPORTANCE:g} to {LARGEST_IMPORTANCE:g}"
        return Rejected(wanted.url[:200], f"importance is {importance}, but must be {known}")
    low = _or(wanted.min_interval_s, None if group is None else group.min_interval_s)
    high = _or(wanted.max_interval_s, None if group is None else group.max_interval_s)
    if not fits_bounds(low, high):
        return Rejected(
            wanted.url[:200],
            "its shortest interval must be 0 to 100 years, its longest at least a second and not below it",
        )
    return NewPage(
        address.url,
        host_key(address, settings.pace_by),
        "" if group is None else group.name,
        importance,
        None if group is None or group.objective == "news" else group.objective,
        low,
        high,
        wanted.source[:2000],
        now,
        "source" if group is not None and group.objective == "news" else "page",
    )


def _or(said: float | None, usual: float | None) -> float | None:
    return usual if said is None else said


def least_interval_s(low_s: float | None, high_s: float | None, settings: Settings) -> float:
    """The seconds between two crawls of a page, at least: what it says, or else the tracker, up to its longest."""
    if low_s is not None:
        return low_s
    return settings.min_interval_s if high_s is None else min(settings.min_interval_s, high_s)


def is_paused(page: PageRow, paused: Collection[tuple[PauseKind, str]]) -> bool:
    """Return whether one of the pauses of a store holds a page: by its address, its group or its host."""
    return ("page", page.url) in paused or ("group", page.group) in paused or ("host", page.host) in paused


def is_held(page: PageRow, paused: Collection[tuple[PauseKind, str]] = ()) -> bool:
    """Return whether a page may not be scheduled: it is no longer tracked, or paused."""
    return page.state in _UNTRACKED or is_paused(page, paused)


def follows(page_group: str, settings: Settings) -> bool:
    """Whether the sites of the pages of a group are followed to new pages; "" for pages without one. O(groups)."""
    group = next((each for each in settings.groups if each.name == page_group), None)
    if group is None or group.discover is None:
        return settings.discover or (group is not None and group.objective == "news")
    return group.discover


def any_follows(settings: Settings) -> bool:
    """Whether any site is followed."""
    return settings.discover or any(group.discover or group.objective == "news" for group in settings.groups)


def _group(url: str, name: str | None, groups: Sequence[GroupRule]) -> GroupRule | Rejected | None:
    if name:
        found = next((group for group in groups if group.name == name), None)
        return found or Rejected(url[:200], f"group {name!r} is not in the settings")
    return group_of(url, groups)


def group_of(url: str, groups: Sequence[GroupRule]) -> GroupRule | None:
    """The first group that an address fits."""
    return next((group for group in groups if any(_pattern(each).match(url) for each in group.patterns)), None)


def fits(url: str, pattern: str) -> bool:
    """Whether an address fits a pattern with `*` for anything."""
    return _pattern(pattern).match(url) is not None


@lru_cache(maxsize=4096)
def _pattern(text: str) -> Pattern[str]:
    return compile_pattern(translate(text))
