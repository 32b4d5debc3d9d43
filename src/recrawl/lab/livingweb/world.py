"""The living web itself: what exists when, at which address, in which version. No IO and no clock.

    settings + seed ─> hosts (behaviour.py) + pages (world_pages.py) + laws (laws.py)
                            │
    LivingWorld.version(page, now), .state(page, now), .find(host, path), ...

Every question takes `now` in Unix seconds. Change times are drawn when first asked for, and are all that is kept of
a page; nothing is kept of a request.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from typing import Literal

import numpy as np

from recrawl.lab.livingweb.behaviour import HostProfile, draw_hosts
from recrawl.lab.livingweb.chance import stream
from recrawl.lab.livingweb.laws import GRID, LAWS, WINDOW_S, EventTimes, Law, Times, draw_window
from recrawl.lab.livingweb.pages_text import TextPool
from recrawl.lab.livingweb.world_pages import NEVER, SECTIONS, draw_pages
from recrawl.lab.livingweb.world_settings import WorldSettings

State = Literal["unborn", "alive", "moved", "gone"]
MASS_EDITS_PER_DAY = 0.1
REDESIGNS_PER_DAY = 0.07
ARTICLES_PER_DAY = 24.0


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


_SECTION_BYTES = tuple(section.encode() for section in SECTIONS)
