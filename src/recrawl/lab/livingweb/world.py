"""The living web itself: what exists when, at which address, in which version. No IO and no clock.

    settings + seed ─> hosts (behaviour.py) + pages (world_pages.py) + laws (laws.py)
                            │
    LivingWorld.version(page, now), .state(page, now), .find(host, path), ...

Every question takes `now` in Unix seconds. Change times are drawn when first asked for, and are all that is kept of
a page; nothing is kept of a request.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from recrawl.lab.livingweb.chance import stream
from recrawl.lab.livingweb.clock import DAY_S
from recrawl.lab.livingweb.hosts import HostProfile, draw_hosts
from recrawl.lab.livingweb.laws import GRID, LAWS, WINDOW_S, EventTimes, Law, Times, draw_window
from recrawl.lab.livingweb.text import NOISES, TextPool
from recrawl.lab.livingweb.world_settings import WorldSettings

SECTIONS = ("guides", "products", "reports", "people", "private")
NEVER = float("inf")

_OLDEST_DAYS = 365.0
_BORN_LATER, _BORN_WITHIN_DAYS = 0.12, 14.0
_MORTAL, _LIFE_DAYS = 0.12, 10.0
_MOVERS, _STAY_DAYS = 0.06, 8.0
_LAW_SHARES = (0.2, 0.4, 0.2, 0.2)
_FASTEST = 100.0
_PARETO = 1.2
_PARAGRAPH_BYTES = 720.0
_ONE_MORE_NOISE, _HARD_NOISE = 0.4, 0.02


State = Literal["unborn", "alive", "moved", "gone"]
MASS_EDITS_PER_DAY = 0.1
REDESIGNS_PER_DAY = 0.07
ARTICLES_PER_DAY = 24.0

_SECTION_BYTES = tuple(section.encode() for section in SECTIONS)


@dataclass(frozen=True, slots=True)
class PageColumns:
    """The pages of a living web as columns: who hosts them, how they change, when they are born, move and end.

    All columns are drawn at once from the seed; some 50 bytes a page. Times are in seconds since the web began.

    Columns by page number, as memory views that give plain numbers.

    Args:
        first: the first page of each host; the pages of a host are in a row.
        host: index of the host.
        section: index into `SECTIONS`.
        law: index into `LAWS`.
        rate: own changes a day.
        phase: shift of the day, in hours.
        clicks: clicks a day.
        born: when the page appears; below zero for those that are older than the web.
        moved: when it moves to another address, `NEVER` if it stays.
        gone: when it is removed, `NEVER` if it stays.
        new_host: where it moves to.
        noise: bits by `NOISES`.
        paragraphs: how many it has.
    """

    first: list[int]
    host: memoryview[Any]
    section: memoryview[Any]
    law: memoryview[Any]
    rate: memoryview[Any]
    phase: memoryview[Any]
    clicks: memoryview[Any]
    born: memoryview[Any]
    moved: memoryview[Any]
    gone: memoryview[Any]
    new_host: memoryview[Any]
    noise: memoryview[Any]
    paragraphs: memoryview[Any]


def draw_pages(settings: WorldSettings) -> PageColumns:
    """All pages of a web. O(pages)."""
    pages, random = settings.pages, stream(settings.seed, "pages")
    host = _hosts(pages, settings.hosts, random)
    section = random.integers(0, len(SECTIONS), pages)
    likeness = random.normal(0, 0.8, (settings.hosts, len(SECTIONS)))[host, section]
    law = random.choice(len(LAWS), pages, p=_LAW_SHARES)
    speed = _mean_one(np.exp(likeness + random.normal(0, 1.0, pages)))
    rate = np.where(law > 0, np.minimum(settings.changes_per_day * speed, _FASTEST), 0.0)
    clicks = settings.clicks_per_day * _mean_one(np.exp(random.normal(0, 1.5, pages)))
    if settings.decades:
        law = np.maximum(law, 1)
        rate = settings.changes_per_day * _spread_over(settings.decades, pages, stream(settings.seed, "decades"))
    if settings.laws != "mixed":
        law = np.where(law > 0, LAWS.index(settings.laws), 0)
    if settings.interest != "lognormal":
        clicks = settings.clicks_per_day * _interest(settings, stream(settings.seed, "interest"))
    born, moved, gone = _fates(pages, random)
    return PageColumns(
        first=np.searchsorted(host, np.arange(settings.hosts + 1)).tolist(),
        host=_view(host, np.uint16),
        section=_view(section, np.uint8),
        law=_view(law, np.uint8),
        rate=_view(rate, np.float64),
        phase=_view(random.integers(0, 24, pages), np.uint8),
        clicks=_view(clicks, np.float64),
        born=_view(born, np.float64),
        moved=_view(moved, np.float64),
        gone=_view(gone, np.float64),
        new_host=_view(
            np.where(random.random(pages) < 0.5, host, random.integers(0, settings.hosts, pages)), np.uint16
        ),
        noise=_view(_noises(pages, settings.noise_share, random), np.uint16),
        paragraphs=_view(_sizes(pages, settings.kilobytes, random), np.uint16),
    )


def _spread_over(decades: float, pages: int, random: np.random.Generator) -> NDArray[Any]:
    """Rates with a mean of one, each power of ten alike."""
    return _mean_one(10.0 ** random.permutation(np.linspace(0.0, decades, pages)))


def _interest(settings: WorldSettings, random: np.random.Generator) -> NDArray[Any]:
    """Clicks with a mean of one."""
    if settings.interest == "uniform":
        return np.ones(settings.pages)
    return _mean_one(1.0 + random.pareto(_PARETO, settings.pages))


def _view(column: NDArray[Any], kind: type[np.generic]) -> memoryview[Any]:
    return np.ascontiguousarray(column.astype(kind)).data


def _hosts(pages: int, hosts: int, random: np.random.Generator) -> NDArray[Any]:
    """Few large hosts and many small ones, each with a page at least."""
    shares = random.lognormal(0, 1.2, hosts)
    rest = random.choice(hosts, pages - hosts, p=shares / shares.sum())
    return np.sort(np.concatenate([np.arange(hosts), rest]))


def _fates(pages: int, random: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    later = random.random(pages) < _BORN_LATER
    born = np.where(later, _BORN_WITHIN_DAYS * random.random(pages), -_OLDEST_DAYS * random.random(pages))
    seen = np.maximum(born, 0.0)
    fate = random.random(pages)
    gone = np.where(fate < _MORTAL, seen + random.exponential(_LIFE_DAYS, pages), NEVER)
    moves = fate > 1 - _MOVERS
    moved = np.where(moves, seen + random.exponential(_STAY_DAYS, pages), NEVER)
    return _on_grid(born), _on_grid(moved), _on_grid(gone)


def _on_grid(days: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(np.floor(days * DAY_S * GRID) / GRID)


def _noises(pages: int, noisy_share: float, random: np.random.Generator) -> NDArray[Any]:
    """One to three common kinds for a noisy page; the hard one for a few."""
    common = len(NOISES) - 1
    bits = 1 << random.integers(0, common, pages)
    for _ in range(2):
        bits |= np.where(random.random(pages) < _ONE_MORE_NOISE, 1 << random.integers(0, common, pages), 0)
    bits |= np.where(random.random(pages) < _HARD_NOISE, 1 << common, 0)
    return np.where(random.random(pages) < noisy_share, bits, 0)


def _sizes(pages: int, kilobytes: float, random: np.random.Generator) -> NDArray[Any]:
    mean = max(0.0, kilobytes * 1000 - 1500) / _PARAGRAPH_BYTES
    return np.clip(np.rint(mean * random.lognormal(-0.08, 0.4, pages)), 3, 1000)


def _mean_one(values: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(values / values.mean())


class LivingWorld:
    """A web that changes by itself.

    Args:
        settings: what it is made from; equal settings make an equal web.
    """

    def __init__(self, settings: WorldSettings | None = None) -> None:
        self.settings = settings or WorldSettings()
        self.seed = self.settings.seed
        self.epoch = self.settings.epoch
        drawn = draw_hosts(self.settings.hosts, self.seed, self.settings.domain)
        self.hosts: list[HostProfile] = [replace(host, **self.settings.every_host) for host in drawn]
        self.host_numbers = {host.name.encode(): i for i, host in enumerate(self.hosts)}
        self.pages = draw_pages(self.settings)
        self.pool = TextPool(self.seed)
        self._arrivals = self._movers_by_new_host()
        self._changes: dict[int, EventTimes] = {}
        self._mass_edits: dict[tuple[int, int], EventTimes] = {}
        self._redesigns: dict[int, EventTimes] = {}
        self._articles: dict[int, EventTimes] = {}

    def __len__(self) -> int:
        return self.settings.pages

    def pages_of(self, host: int) -> range:
        """Numbers of the pages that were born on a host."""
        return range(self.pages.first[host], self.pages.first[host + 1])

    def arrivals(self, host: int) -> list[int]:
        """Numbers of the pages that move to a host sooner or later."""
        return self._arrivals.get(host, [])

    def version(self, page: int, now: float) -> int:
        """How many real changes a page has had; the birth is version 0. O(log changes)."""
        return self._times(page).count(now - self.epoch)

    def changed_at(self, page: int, now: float) -> float:
        """When a page last changed in earnest, or was born, in Unix seconds."""
        last = self._times(page).last(now - self.epoch)
        return self.epoch + (self.pages.born[page] if last is None else last)

    def version_and_time(self, page: int, now: float) -> tuple[int, float]:
        """Both of the above in one look."""
        at = now - self.epoch
        times = self._times(page).until(at)
        version = bisect_right(times, at)
        return version, self.epoch + (times[version - 1] if version else self.pages.born[page])

    def changes(self, page: int, since: float, until: float) -> list[float]:
        """Times of the real changes of a page in (since, until], in Unix seconds."""
        times = self._times(page).between(since - self.epoch, until - self.epoch)
        return [self.epoch + time for time in times]

    def state(self, page: int, now: float) -> State:
        """Whether a page exists; a page that moved is alive elsewhere."""
        at = now - self.epoch
        if at < self.pages.born[page]:
            return "unborn"
        if at >= self.pages.gone[page]:
            return "gone"
        return "moved" if at >= self.pages.moved[page] else "alive"

    def mass_edits(self, host: int, section: int) -> EventTimes:
        """Moments at which all pages of a section change at once, in seconds since the web began."""
        times = self._mass_edits.get((host, section))
        if times is None:
            times = EventTimes(lambda window: self._poisson("mass", MASS_EDITS_PER_DAY, host, section, window))
            self._mass_edits[host, section] = times
        return times

    def redesigns(self, host: int) -> EventTimes:
        """Moments at which what frames all pages of a host changes, and nothing they say."""
        times = self._redesigns.get(host)
        if times is None:
            times = EventTimes(lambda window: self._poisson("redesign", REDESIGNS_PER_DAY, host, 0, window))
            self._redesigns[host] = times
        return times

    def articles(self, host: int) -> EventTimes:
        """Moments at which the hub of a host publishes an article; none if it has no hub."""
        times = self._articles.get(host)
        if times is None:
            times = EventTimes(lambda window: self._rhythm_of(host, window))
            self._articles[host] = times
        return times

    def path(self, page: int) -> str:
        """The path at which a page was born."""
        return self.path_bytes(page).decode()

    def path_bytes(self, page: int) -> bytes:
        """The same in bytes."""
        return b"/%b/%b-%d" % (_SECTION_BYTES[self.pages.section[page]], self.pool.words[page % 500], page)

    def moved_path_bytes(self, page: int) -> bytes:
        """The path of a page after its move."""
        return b"/archive/%b-%d" % (self.pool.words[page % 500], page)

    def address(self, page: int, now: float) -> tuple[int, bytes]:
        """Host and path of a page at a time."""
        if now - self.epoch >= self.pages.moved[page]:
            return self.pages.new_host[page], self.moved_path_bytes(page)
        return self.pages.host[page], self.path_bytes(page)

    def url(self, page: int, port: int, now: float | None = None) -> str:
        """The URL of a page: that of its birth, or the one it has at a time."""
        host, path = self.address(page, self.epoch + self.pages.born[page] if now is None else now)
        return f"http://{self.hosts[host].name}:{port}{path.decode()}"

    def find(self, host: int, path: bytes) -> tuple[int, bool] | None:
        """The page that has, had or will have this address, and whether it is the address after its move. O(1)."""
        digits = path.rpartition(b"-")[2]
        if not digits.isdigit() or len(digits) > 9:
            return None
        page = int(digits)
        if page >= len(self):
            return None
        if self.pages.host[page] == host and self.path_bytes(page) == path:
            return page, False
        if self.pages.new_host[page] == host and self.moved_path_bytes(page) == path and self.pages.moved[page] < NEVER:
            return page, True
        return None

    def page_of(self, url: str) -> int | None:
        """The page of a URL, whatever its port and query; None for any other URL."""
        _, _, rest = url.partition("://")
        authority, _, path = rest.partition("/")
        host = self.host_numbers.get(authority.partition(":")[0].lower().encode())
        found = None if host is None else self.find(host, b"/" + path.partition("?")[0].encode())
        return None if found is None else found[0]

    def law(self, page: int) -> Law:
        """The law of a page's own changes."""
        law: Law = LAWS[self.pages.law[page]]
        return law

    def _movers_by_new_host(self) -> dict[int, list[int]]:
        movers: dict[int, list[int]] = {}
        for page in np.flatnonzero(np.isfinite(np.asarray(self.pages.moved))).tolist():
            movers.setdefault(self.pages.new_host[page], []).append(page)
        return movers

    def _times(self, page: int) -> EventTimes:
        times = self._changes.get(page)
        if times is None:
            times = self._changes[page] = EventTimes(lambda window: self._window(page, window))
        return times

    def _window(self, page: int, window: int) -> Times:
        """Real changes of a page in one window: its own and those of its section, while it lives."""
        columns = self.pages
        random = stream(self.seed, "changes", page, window)
        times = draw_window(self.law(page), columns.rate[page], columns.phase[page], random)
        start = window * WINDOW_S
        mass = self.mass_edits(columns.host[page], columns.section[page]).between(start - 1 / GRID, start + WINDOW_S)
        if mass:
            times = np.sort(np.concatenate([times, [time - start for time in mass if time < start + WINDOW_S]]))
        born, gone = columns.born[page] - start, columns.gone[page] - start
        if born > 0 or gone < WINDOW_S:
            times = times[(times > born) & (times < gone)]
        return times

    def _poisson(self, purpose: str, rate_per_day: float, host: int, part: int, window: int) -> Times:
        return draw_window("poisson", rate_per_day, 0, stream(self.seed, purpose, host, part, window))

    def _rhythm_of(self, host: int, window: int) -> Times:
        if not self.hosts[host].hub:
            return np.empty(0)
        return draw_window("rhythm", ARTICLES_PER_DAY, host % 24, stream(self.seed, "articles", host, window))
