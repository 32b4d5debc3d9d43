"""From the scheduler to leases, and back if a page was not fetched: which visits start, and why.

Between what the scheduler hands out and the lease that makes it durable nobody may withdraw a page: both happen under
the lock of `InFlight`. Before what the scheduler chooses come pages that someone wants now (`FetchNowQueue`): as soon
as their hosts allow, paid for by the budget. Such a request is durable as a signal of the kind `now`, which the fetch
ends. It does not raise the rate: it takes the next crawl that the budget gives, and the turn of its host. And a few
pages are crawled again in the first round, to learn how rates are spread (`Soundings`).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import heappop, heappush

from recrawl.errors import RecrawlError, StoreError, StoreTaken
from recrawl.jit import has_to_wait
from recrawl.store.rows import LeaseRow, PageRow
from recrawl.store.store import Store
from recrawl.tracker.admission import is_held
from recrawl.tracker.clock import TIMING, Timing, TrackerClock
from recrawl.tracker.hosts import HostBook, NetworkHealth
from recrawl.tracker.hours import open_again_at
from recrawl.tracker.kinds import NOW
from recrawl.tracker.pipeline.commit import MOST_AT_ONCE, Committer
from recrawl.tracker.schedule import Schedule
from recrawl.tracker.settings.settings import GroupRule, Settings
from recrawl.tracker.signals.signals import SignalTracker
from recrawl.tracker.usage import Accounts, Usage
from recrawl.tracker.visit import OUTSIDE, InFlight, Visit

_MOST_UNWRITTEN = 8 * MOST_AT_ONCE
_BROKEN_S = 3600.0


class FetchNowQueue:
    """Pages that someone wants fetched now, by host, in the order in which they were asked for.

    Args:
        schedule: has the pages.
        hosts: of the pages.
        in_flight: all visits.
    """

    def __init__(self, schedule: Schedule, hosts: HostBook, in_flight: InFlight) -> None:
        self._schedule = schedule
        self._hosts = hosts
        self._in_flight = in_flight
        self._waiting: dict[str, dict[int, float]] = {}  # by host and page: not before, by the hours of its group
        self._due: list[tuple[float, str]] = []  # a heap of these hosts, by when to look at each

    def __len__(self) -> int:
        return sum(len(pages) for pages in self._waiting.values())

    def add(self, page_id: int, host: str) -> None:
        """Ask for a page; twice is once."""
        self._of(host).setdefault(page_id, 0.0)

    def _of(self, host: str) -> dict[int, float]:
        """Return the requests for pages of a host, which is looked at soon if it has none yet."""
        if host not in self._waiting:
            self._waiting[host] = {}
            heappush(self._due, (0.0, host))
        return self._waiting[host]

    def pop(self, page_id: int, host: str) -> bool:
        """Drop the request for a page that was taken; return whether there was one."""
        return self._waiting.get(host, {}).pop(page_id, None) is not None

    def postpone(self, visit: Visit, until: float) -> None:
        """Keep the request of a visit that was given back, not to be fetched before a time."""
        if visit.trigger == NOW:
            self._of(visit.page.host)[visit.page.id] = until

    def claim(self, most: int, now: float) -> list[int]:
        """Take entries for requests whose hosts may be asked now, while the budget pays: one a host.

        O(hosts with requests whose gaps are over).
        """
        claimed: list[int] = []
        seen: list[str] = []
        while self._due and self._due[0][0] <= now and len(claimed) < most and self._schedule.has_token(now):
            host = heappop(self._due)[1]
            if not self._waiting[host]:
                del self._waiting[host]
                continue
            seen.append(host)
            entry = self._next_of(host, now) if self._hosts.may_ask(host, now) else None
            if entry is not None:
                self._schedule.claim(entry, now)
                claimed.append(entry)
        for host in seen:
            heappush(self._due, (max(self._hosts.free_at(host), math.nextafter(now, math.inf)), host))
        return claimed

    def _next_of(self, host: str, now: float) -> int | None:
        for page_id, not_before in list(self._waiting[host].items()):
            if page_id in self._in_flight.by_page or not_before > now:
                continue
            entry = self._schedule.entry_of(page_id)
            if entry is not None:
                return entry
            self.pop(page_id, host)  # the page is gone or paused
        return None


SOUNDED = 64
"""Pages that are crawled again in the first round."""
FEWEST_SOUNDED_OF = 1024
"""Pages of a tracker that sounds: with fewer, soundings would take much of the first round, which is short."""
_SOUNDINGS = (0.1, 0.3)  # of a round, from the start: gaps of two lengths
FEWEST_PAGES = 50
"""Pages that were crawled twice, before rates are learned from all of them."""


class Soundings:
    """Crawls the same few pages again, twice in the first round, to learn how fast pages change here.

    Args:
        schedule: has the pages.
        hosts: of the pages.
        in_flight: all visits.
        accounts: say how many crawls were made.
    """

    def __init__(self, schedule: Schedule, hosts: HostBook, in_flight: InFlight, accounts: Accounts) -> None:
        self._schedule = schedule
        self._hosts = hosts
        self._in_flight = in_flight
        self._accounts = accounts
        self._left = list(_SOUNDINGS)
        self._drawn: list[int] = []
        self._waiting: list[int] = []
        self._names: dict[int | None, str] = {}
        self._not_before = 0  # crawls

    def claim(self, most: int, now: float) -> list[int]:
        """Take entries that are due for a sounding and whose hosts may be asked, while the budget pays: one a host.

        O(pages of the sounding that are left).
        """
        self._begin()
        if not self._waiting or most < 1:
            return []
        schedule, claimed, asked = self._schedule, list[int](), set[str]()
        for entry in list(self._waiting):
            if len(claimed) >= most or not schedule.has_token(now):
                break
            if self._is_due(entry, now, asked):
                schedule.claim(entry, now)
                claimed.append(entry)
        return claimed

    def _begin(self) -> None:
        """Begin the next sounding when its time has come."""
        crawls, pages = self._accounts.ended["fetched"], len(self._schedule)
        if not self._left or pages < FEWEST_SOUNDED_OF or crawls < max(self._left[0] * pages, self._not_before):
            return
        if not self._drawn:
            self._drawn = self._draw(crawls)
        if self._drawn:
            self._left.pop(0)
            self._waiting += [entry for entry in self._drawn if entry not in self._waiting]
            self._names = {state.number: state.name for state in self._hosts}

    def _draw(self, crawls: int) -> list[int]:
        """The pages to crawl again; none while few have a copy, and none any more where rates are known."""
        schedule = self._schedule
        if len(schedule.scheduler.learned(FEWEST_PAGES)) >= FEWEST_PAGES:
            self._left.clear()
            return []
        drawn = schedule.copied(SOUNDED)
        self._not_before = crawls + SOUNDED
        return drawn if len(drawn) == SOUNDED else []

    def _is_due(self, entry: int, now: float, asked: set[str]) -> bool:
        """Whether a page can be claimed now; one that has left or is on its way needs no sounding.

        Args:
            entry: the page.
            now: Unix seconds.
            asked: hosts of which a page was claimed already; this one joins them.
        """
        schedule = self._schedule
        if not schedule.is_waiting(entry):
            self._waiting.remove(entry)
            return False
        name = self._names.get(schedule.host_number(entry))  # the scheduler knows hosts by their numbers
        if name is not None and (name in asked or not self._hosts.may_ask(name, now)):
            return False
        if schedule.is_held(entry, now) or schedule.page_of(entry) in self._in_flight.by_page:
            return False
        self._waiting.remove(entry)
        if name is not None:
            asked.add(name)
        return True


@dataclass(slots=True, kw_only=True)
class Dispatcher:
    """Takes pages that are worth their price, leases them, and gives them back.

    Args:
        store: where leases are.
        schedule: hands out pages.
        in_flight: all visits, and the lock.
        hosts: who may be asked when.
        signals: say why a page is taken.
        usage: counts, and the budget of bytes.
        network: whether it is down.
        committer: whether the store keeps up.
        settings: of the tracker.
        clock: of the tracker.
        on_trouble: told in a sentence when the store cannot write, and with "" when it can again.
        timing: how long pages wait that cannot be leased yet.
    """

    store: Store
    schedule: Schedule
    in_flight: InFlight
    hosts: HostBook
    signals: SignalTracker
    usage: Usage
    network: NetworkHealth
    committer: Committer
    settings: Settings
    clock: TrackerClock
    on_trouble: Callable[[str], None]
    timing: Timing = TIMING
    fetch_now: FetchNowQueue = field(init=False)
    _soundings: Soundings = field(init=False)
    _groups: dict[str, GroupRule] = field(init=False)
    _probe_at: float = 0.0
    _undoing: set[asyncio.Future[None]] = field(default_factory=set)  # kept, lest they are collected before they end

    def __post_init__(self) -> None:
        self.fetch_now = FetchNowQueue(self.schedule, self.hosts, self.in_flight)
        self._soundings = Soundings(self.schedule, self.hosts, self.in_flight, self.usage)
        self._groups = {group.name: group for group in self.settings.groups if group.hours}

    def may_take(self) -> bool:
        """Return whether the store keeps up, the byte budget is not overdrawn, and no compiler is waited for."""
        committer = self.committer
        if has_to_wait("scheduling", len(self.schedule)):
            return False
        paid = self.usage.bytes_left.wait_s(self.clock.now()) <= 0
        return len(committer) < _MOST_UNWRITTEN and not committer.trouble and paid

    def room(self, running: int) -> int:
        """Return how many more fetches may start now, while `running` run."""
        now = self.clock.now()
        if not self.may_take():
            return 0
        room = self.settings.concurrency - running
        if self.network.down:
            if now < self._probe_at:
                return 0
            self._probe_at = now + self.timing.down_probe_s
            return min(room, 1)
        return max(room, 0)

    async def take(self, most: int, worker: str) -> list[Visit]:
        """Take pages that are worth their price and lease them to a worker; durable when this returns.

        If the caller is cancelled, what was taken for it is given back.
        """
        taking = asyncio.ensure_future(self._take_alone(most, worker))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            undoing = asyncio.ensure_future(self._give_back_all(taking))
            self._undoing.add(undoing)
            undoing.add_done_callback(self._undoing.discard)
            raise

    async def _take_alone(self, most: int, worker: str) -> list[Visit]:
        async with self.in_flight.lock:
            return await self._take(most, worker)

    async def _give_back_all(self, taking: asyncio.Future[list[Visit]]) -> None:
        with suppress(StoreError):  # said and settled where it was raised
            for visit in await taking:
                await self.release(visit, "cancelled")

    async def _take(self, most: int, worker: str) -> list[Visit]:
        now = self.clock.now()  # of the choice and of the leases, so that the gaps of hosts are seen in both
        entries = self.fetch_now.claim(most, now)
        entries += self._soundings.claim(most - len(entries), now)
        entries += self.schedule.take(now, most - len(entries))
        if not entries:
            return []
        self.usage.take(len(entries))
        wanted = self._by_page(entries)
        try:
            leased = await self.store.lease(list(wanted), worker, now, now + self.settings.lease_s)
        except StoreTaken:
            raise
        except StoreError as error:
            self._give_back(list(wanted.values()), "store")
            self.on_trouble(str(error))
            return []
        if not self.committer.trouble:
            self.on_trouble("")
        visits, early = [], []
        for page, lease in leased:
            entry = wanted.pop(page.id)
            if worker.startswith(OUTSIDE) and not self.hosts.may_ask(page.host):
                early.append((page, lease, entry))
            else:
                visits.append(self._start(page, lease, entry))
        if early:
            await self._wait_for_hosts(early)
        if wanted:
            await self._clear_up(wanted)
        return await self._open_now(visits) if self._groups else visits

    def adopt(self, lease: LeaseRow, page: PageRow) -> None:
        """Go on with a lease of an earlier process: its page is in flight, and paid for."""
        entry = self.schedule.entry_of(page.id)
        if entry is not None:
            self.schedule.claim(entry, self.clock.now())
            self.usage.take(1)
            self._start(page, lease, entry)

    def _start(self, page: PageRow, lease: LeaseRow, entry: int) -> Visit:
        wanted_now = self.fetch_now.pop(page.id, page.host)
        visit = Visit(page, lease, entry, NOW if wanted_now else self.signals.trigger_of(page))
        self.in_flight.add(visit)
        if visit.is_remote:
            self.hosts.lend(page.host)
        return visit

    # giving back

    async def defer(self, visit: Visit) -> None:
        """Give back a visit whose host could not be asked, until it may be; what was sent is charged."""
        self.usage.charge_wasted(visit.answer)
        state = self.hosts.passing(self.hosts.name_of(visit.answer.final))
        free_at = max(state.blocked_until, state.next_at, self.clock.now() + self.settings.longest_turn_s)
        await self.release(visit, "pacing", free_at)

    async def release(self, visit: Visit, reason: str, held_until: float | None = None) -> None:
        """Give a page back that was not fetched; it is not taken before it may be leased again, nor before a time."""
        if not self._withdraw(visit):
            return
        try:
            with suppress(StoreError):  # else its lease is cleared up when it is taken next
                await self.store.release([visit.lease.token])
        finally:  # also if the caller is cancelled: a page that was taken ends once
            self._end(visit, reason, held_until)

    def _withdraw(self, visit: Visit) -> bool:
        withdrawn = self.in_flight.withdraw(visit)
        if withdrawn and visit.is_remote:
            self.hosts.returned(visit.page.host)
        return withdrawn

    def _end(self, visit: Visit, reason: str, held_until: float | None) -> None:
        """Give the scheduler a page back that was not fetched, unless it has left."""
        if not self.schedule.has(visit.page.id, visit.entry):
            self.usage.end("retired", reason)
            return
        self.fetch_now.postpone(visit, held_until or 0.0)
        self._give_back([visit.entry], reason, held_until)

    async def withdraw(self, page_ids: Iterable[int]) -> None:
        """Give back those of these pages that are in flight; results of running fetches are discarded."""
        for visit in [self.in_flight.by_page[number] for number in self.in_flight.by_page.keys() & set(page_ids)]:
            await self.release(visit, "withdrawn")

    async def give_up(self, visit: Visit) -> None:
        """Put off a page over which something broke, however far it came."""
        until = self.clock.now() + _BROKEN_S
        if self.in_flight.find(visit.lease.token) is visit:
            await self.release(visit, "error", until)
            return
        with suppress(RecrawlError):  # it may be settled, or gone
            self._give_back([visit.entry], "error", until)
        with suppress(StoreError):
            await self.store.release([visit.lease.token])

    def _give_back(self, entries: list[int], reason: str, held_until: float | None = None) -> None:
        self.schedule.give_back(entries, held_until)
        self.usage.end("deferred", reason, len(entries))

    def _by_page(self, entries: list[int]) -> dict[int, int]:
        """Return entries by page; give back those whose page is in flight, or whose last result is not durable yet."""
        found: dict[int, int] = {}
        early: dict[str, list[int]] = {}
        for entry in entries:
            page_id = self.schedule.page_of(entry)
            visit = self.in_flight.by_page.get(page_id)
            if page_id in found or visit is not None:
                reason = "unwritten" if visit is not None and visit.completing else "in-flight"
                early.setdefault(reason, []).append(entry)
            else:
                found[page_id] = entry
        for reason, some in early.items():
            self._give_back(some, reason, self.clock.now() + self.timing.retake_s)
        return found

    async def _wait_for_hosts(self, early: list[tuple[PageRow, LeaseRow, int]]) -> None:
        """Give back pages whose hosts may not be asked yet: our own fetches wait for their turns, remote ones cannot.

        The scheduler counts gaps from the starts of crawls, hosts count them from the ends of requests.
        """
        with suppress(StoreError):  # else the leases are cleared up when the pages are taken next
            await self.store.release([lease.token for _, lease, _ in early])
        now = self.clock.now()
        for page, _, entry in early:
            free_at = self.hosts.postpone(page.host)
            self._give_back([entry], "pacing", free_at if free_at > now else now + self.timing.retake_s)

    async def _clear_up(self, wanted: dict[int, int]) -> None:
        """Handle pages that the store refused to lease, by page and entry.

        Remove untracked pages from the scheduler; release leases that a lost connection left.
        """
        try:
            rows = await self.store.read_pages(list(wanted))
            tracked = {row.id for row in rows if not is_held(row)}
            held = await self.store.leases() if tracked else []
            ours = self.in_flight.by_token
            await self.store.release(
                [lease.token for lease in held if lease.page_id in tracked and lease.token not in ours]
            )
        except StoreError as error:
            tracked = set(wanted)
            self.on_trouble(str(error))
        for page_id, entry in wanted.items():
            if page_id in tracked:
                self._give_back([entry], "store")
                continue
            self.schedule.leave(page_id)
            self.usage.end("retired", "not-tracked")

    async def _open_now(self, visits: list[Visit]) -> list[Visit]:
        """Return those whose groups may be crawled at this hour; the others wait until theirs comes."""
        now = self.clock.now()
        closed: dict[Visit, float] = {}
        for visit in visits:
            group = self._groups.get(visit.page.group)
            opens = None if group is None else open_again_at(group.hours, group.time_zone, now)
            if opens is not None:
                closed[visit] = opens
        with suppress(StoreError):  # else the leases are cleared up when the pages are taken next
            await self.store.release([visit.lease.token for visit in closed])
        for visit, opens in closed.items():
            self._withdraw(visit)
            self.fetch_now.postpone(visit, opens)
            self._give_back([visit.entry], "hours", opens)
        return [visit for visit in visits if visit not in closed]
