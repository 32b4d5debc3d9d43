"""The truth about a living web: what each page is at any time, what changed, and how fresh a crawler's copies are.

Everything is computed from the seed; the same questions are answered over HTTP by `truth_answers.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from heapq import merge
from typing import Literal, NamedTuple

from recrawl.errors import InvalidInput
from recrawl.lab.livingweb.noise import noise_kinds
from recrawl.lab.livingweb.world import MASS_EDITS_PER_DAY, LivingWorld, State
from recrawl.lab.livingweb.world_pages import NEVER, SECTIONS

EventKind = Literal["born", "edit", "mass-edit", "redesign", "moved", "gone"]


@dataclass(frozen=True, slots=True)
class PageTruth:
    """A page at a moment; times in Unix seconds, None for never.

    Args:
        page: its number.
        url: its address at the time.
        state: whether it exists.
        version: real changes so far.
        changed_at: the last of them, or the birth.
        text_digest: of what it says, without noise and frame; equal digests say the same.
    """

    page: int
    url: str
    state: State
    version: int
    changed_at: float
    text_digest: str


class Event(NamedTuple):
    """Something that happened to a page; `real` if it changed what the page says or where it is."""

    at: float
    page: int
    kind: EventKind
    real: bool


class Copy(NamedTuple):
    """A crawler's copy: the page and when it was fetched, None if never."""

    page: int
    fetched_at: float | None


class Freshness(NamedTuple):
    """Share of the existing pages whose copy says what the page says; by number and weighted by clicks."""

    pages: float
    clicks: float
    existing: int


def page_truth(world: LivingWorld, page: int, now: float, port: int) -> PageTruth:
    """The truth about one page."""
    _check_page(world, page)
    version, changed_at = world.version_and_time(page, now)
    text = b"\n".join(world.pool.paragraphs(page, version, world.pages.paragraphs[page]))
    digest = blake2b(text, digest_size=8).hexdigest()
    return PageTruth(page, world.url(page, port, now), world.state(page, now), version, changed_at, digest)


def page_facts(world: LivingWorld, page: int) -> dict[str, object]:
    """What never changes about a page: its law, rates, noise and fate; times in Unix seconds."""
    _check_page(world, page)
    columns = world.pages
    return {
        "page": page,
        "host": world.hosts[columns.host[page]].name,
        "path": world.path(page),
        "section": SECTIONS[columns.section[page]],
        "law": world.law(page),
        "changes_per_day": change_rate(world, page),
        "clicks_per_day": columns.clicks[page],
        "noise": noise_kinds(columns.noise[page]),
        "born_at": world.epoch + columns.born[page],
        "moved_at": _or_never(world.epoch + columns.moved[page]),
        "gone_at": _or_never(world.epoch + columns.gone[page]),
    }


def change_rate(world: LivingWorld, page: int) -> float:
    """True mean rate of real changes a day: the page's own and the mass edits of its section."""
    return float(world.pages.rate[page]) + MASS_EDITS_PER_DAY


def is_fresh(world: LivingWorld, copy: Copy, now: float) -> bool:
    """Whether a copy says what the page says now. O(log changes)."""
    if copy.fetched_at is None or world.state(copy.page, copy.fetched_at) in ("unborn", "gone"):
        return False
    return world.version(copy.page, copy.fetched_at) == world.version(copy.page, now)


def freshness(world: LivingWorld, copies: Iterable[Copy], now: float) -> Freshness:
    """The real freshness of a crawler's copies over all pages that exist now; a page without a copy is stale."""
    fetched: dict[int, float | None] = {copy.page: copy.fetched_at for copy in copies}
    fresh = existing = 0
    fresh_clicks = all_clicks = 0.0
    for page in range(len(world)):
        if world.state(page, now) not in ("alive", "moved"):
            continue
        existing += 1
        all_clicks += world.pages.clicks[page]
        if is_fresh(world, Copy(page, fetched.get(page)), now):
            fresh += 1
            fresh_clicks += world.pages.clicks[page]
    return Freshness(fresh / max(1, existing), fresh_clicks / all_clicks if all_clicks else 0.0, existing)


def events(world: LivingWorld, pages: Sequence[int], since: float, until: float) -> list[Event]:
    """All that happened to some pages in (since, until], in order of time."""
    return list(merge(*(_events_of(world, page, since, until) for page in pages)))


def _events_of(world: LivingWorld, page: int, since: float, until: float) -> list[Event]:
    _check_page(world, page)
    columns = world.pages
    host, epoch = columns.host[page], world.epoch
    mass = set(world.mass_edits(host, columns.section[page]).between(since - epoch, until - epoch))
    found = [
        Event(at, page, "mass-edit" if at - epoch in mass else "edit", True) for at in world.changes(page, since, until)
    ]
    fates: tuple[tuple[EventKind, float], ...] = (
        ("born", columns.born[page]), ("moved", columns.moved[page]), ("gone", columns.gone[page]),
    )  # fmt: skip
    found += [Event(epoch + at, page, kind, True) for kind, at in fates if since < epoch + at <= until]
    found += [
        Event(epoch + at, page, "redesign", False)
        for at in world.redesigns(host).between(since - epoch, until - epoch)
        if columns.born[page] < at < columns.gone[page]
    ]
    return sorted(found)


def _check_page(world: LivingWorld, page: int) -> None:
    if not 0 <= page < len(world):
        raise InvalidInput(f"is {page}, but the pages are 0 to {len(world) - 1}", field="page")


def _or_never(at: float) -> float | None:
    return None if at == NEVER else at
