"""The truth about a living web: what each page is at any time, what changed, and how fresh a crawler's copies are.

Everything is computed from the seed; the same questions are answered over HTTP by `TruthHost`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from heapq import merge
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qs

from recrawl.errors import InvalidInput
from recrawl.lab.livingweb.answers import Answer, Request
from recrawl.lab.livingweb.articles import articles_between, clicks, log_line
from recrawl.lab.livingweb.hosts import Audit
from recrawl.lab.livingweb.text import noise_kinds
from recrawl.lab.livingweb.world import MASS_EDITS_PER_DAY, NEVER, SECTIONS, LivingWorld, State

EventKind = Literal["born", "edit", "mass-edit", "redesign", "moved", "gone"]


MOST_PAGES_AT_ONCE = 10_000
_JSON = b"application/json"


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


class TruthHost:
    """The control host `truth.living.test`: the truth over HTTP, in JSON. It is no part of the web and needs no robots.

        /truth?page=3&at=...         one page; `url=` finds it by address
        /truth/clock                 now, and the settings that make the same world elsewhere
        /truth/hosts                 every host with its behaviour
        /truth/pages?first=0&count=  what never changes about pages: law, rates, noise, fate
        /truth/versions?at=...       version and state of a run of pages, by number
        /truth/changes?since=&until= events of a run of pages in order of time, real or not
        /truth/articles?since=&until= articles of the hubs
        /truth/clicks?since=&until=  an access log in the combined format
        /truth/audit                 what the hosts think of the crawler

    Times are Unix seconds of the web; `at` and `until` are now by default, `since` the beginning. Pages come in runs of
    at most 10,000 (`first`, `count`), or those of one `host`.

    Answers questions about a web.

    Args:
        world: the web.
        audit: what its hosts have seen.
    """

    def __init__(self, world: LivingWorld, audit: Audit) -> None:
        self._world = world
        self._audit = audit
        self._routes: dict[bytes, Callable[[dict[str, str], float, int], Any]] = {
            b"/truth": self._page,
            b"/truth/clock": self._clock,
            b"/truth/hosts": self._hosts,
            b"/truth/pages": self._pages,
            b"/truth/versions": self._versions,
            b"/truth/changes": self._changes,
            b"/truth/articles": self._articles,
            b"/truth/clicks": self._clicks,
            b"/truth/audit": self._audits,
        }

    def answer(self, request: Request, now: float) -> Answer:
        """The answer to a request to the control host."""
        route = self._routes.get(request.path)
        if route is None:
            return _json(404, {"error": f"no such question; ask one of {[path.decode() for path in self._routes]}"})
        asked = {name: values[-1] for name, values in parse_qs(request.query.decode("latin-1")).items()}
        try:
            told = route(asked, now, int(request.port[1:] or 80))
        except InvalidInput as problem:
            return _json(400, {"error": str(problem)})
        if isinstance(told, bytes):
            return Answer(200, told, b"text/plain; charset=utf-8")
        return _json(200, told)

    def _page(self, asked: dict[str, str], now: float, port: int) -> Any:
        url = asked.get("url")
        page = self._world.page_of(url) if url is not None else _whole(asked, "page", 0)
        if page is None:
            raise InvalidInput(f"is {url!r}, which is no page of this web", field="url")
        return asdict(page_truth(self._world, page, self._time(asked, "at", now), port))

    def _clock(self, asked: dict[str, str], now: float, port: int) -> Any:
        del asked, port
        return {"now": now, "settings": asdict(self._world.settings)}

    def _hosts(self, asked: dict[str, str], now: float, port: int) -> Any:
        del asked, now, port
        pages = self._world.pages_of
        return [{**asdict(host), "pages": len(pages(i))} for i, host in enumerate(self._world.hosts)]

    def _pages(self, asked: dict[str, str], now: float, port: int) -> Any:
        del now, port
        return [page_facts(self._world, page) for page in self._run(asked)]

    def _versions(self, asked: dict[str, str], now: float, port: int) -> Any:
        del port
        at, world, pages = self._time(asked, "at", now), self._world, self._run(asked)
        return {
            "at": at,
            "first": pages.start,
            "versions": [world.version(page, at) for page in pages],
            "states": [world.state(page, at) for page in pages],
        }

    def _changes(self, asked: dict[str, str], now: float, port: int) -> Any:
        del port
        since, until = self._span(asked, now)
        return [event._asdict() for event in events(self._world, self._run(asked), since, until)]

    def _articles(self, asked: dict[str, str], now: float, port: int) -> Any:
        since, until = self._span(asked, now)
        return [
            {
                "url": f"http://{self._world.hosts[host].name}:{port}{found.path.decode()}",
                "born_at": found.born,
                "linked_until": found.linked_until,
                "gone_at": found.gone,
            }
            for host in self._some_hosts(asked)
            for found in articles_between(self._world, host, since, until)
        ]

    def _clicks(self, asked: dict[str, str], now: float, port: int) -> bytes:
        del port
        since, until = self._span(asked, now)
        hits = [hit for host in self._some_hosts(asked) for hit in clicks(self._world, host, since, until)]
        return "".join(f"{log_line(self._world, hit)}\n" for hit in sorted(hits)).encode()

    def _audits(self, asked: dict[str, str], now: float, port: int) -> Any:
        del asked, now, port
        return self._audit.totals()

    def _run(self, asked: dict[str, str]) -> range:
        if "host" in asked:
            return self._world.pages_of(self._some_hosts(asked)[0])
        first = _whole(asked, "first", 0)
        count = min(_whole(asked, "count", MOST_PAGES_AT_ONCE), MOST_PAGES_AT_ONCE)
        return range(min(first, len(self._world)), min(first + count, len(self._world)))

    def _some_hosts(self, asked: dict[str, str]) -> list[int]:
        if "host" not in asked:
            return list(range(len(self._world.hosts)))
        host = self._world.host_numbers.get(asked["host"].encode())
        if host is None:
            raise InvalidInput(f"is {asked['host']!r}, which is no host of this web", field="host")
        return [host]

    def _span(self, asked: dict[str, str], now: float) -> tuple[float, float]:
        return self._time(asked, "since", float(self._world.epoch)), self._time(asked, "until", now)

    def _time(self, asked: dict[str, str], name: str, usual: float) -> float:
        try:
            at = float(asked[name]) if name in asked else usual
        except ValueError:
            at = math.nan
        latest = self._world.epoch + 400 * 86_400 * 10
        if not self._world.epoch <= at <= latest:
            raise InvalidInput(f"must be Unix seconds from {self._world.epoch} to {latest}", field=name)
        return at


def _whole(asked: dict[str, str], name: str, usual: int) -> int:
    text = asked.get(name, str(usual))
    if not text.isdecimal() or len(text) > 9:
        raise InvalidInput(f"is {text!r}, but must be a whole number", field=name)
    return int(text)


def _json(status: int, told: Any) -> Answer:
    return Answer(status, json.dumps(told).encode() + b"\n", _JSON)
