"""Pages from the scheduler to leases, and back if they were not fetched: what is in flight, and why it was taken.

Between what the scheduler hands out and the lease that makes it durable nobody may withdraw a page: both happen under
the lock of the roster. Before what the scheduler chooses come pages that someone wants now (`Wishes`): as soon as their
hosts allow, paid for by the budget. Such a wish is durable as a signal of the kind `now`, which the fetch ends. It does
not raise the rate: it takes the next crawl that the budget gives, and the turn of its host. And a few pages are crawled
again in the first round, to learn how rates are spread (`Soundings`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Iterable
from contextlib import suppress

from recrawl.errors import RecrawlError, StoreError, StoreTaken
from recrawl.jit import has_to_wait
from recrawl.store.contract import Store
from recrawl.store.rows import LeaseRow, PageRow
from recrawl.tracker.desk import Desk
from recrawl.tracker.hours import open_again_at
from recrawl.tracker.kinds import NOW
from recrawl.tracker.pipeline.commit import MOST_AT_ONCE
from recrawl.tracker.pipeline.fetch import OUTSIDE, Flight


class Wishes:
    """Wishes that wait, by host, in the order in which they came.

    Args:
        desk: has the scheduler and the hosts.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._waiting: dict[str, dict[int, float]] = {}  # by host and page: not before, by the hours of its group

    def __len__(self) -> int:
        return sum(len(pages) for pages in self._waiting.values())

    def add(self, page_id: int, host: str) -> None:
        """Wish for a page; twice is once."""
        self._waiting.setdefault(host, {}).setdefault(page_id, 0.0)

    def grant(self, page_id: int, host: str) -> bool:
        """A page was taken; whether it was wished for, which it is no longer."""
        pages = self._waiting.get(host, {})
        granted = pages.pop(page_id, None) is not None
        if granted and not pages:
            del self._waiting[host]
        return granted

    def put_off(self, flight: Flight, until: float) -> None:
        """A page that was taken by a wish may not be fetched before a time; the wish stays."""
        if flight.trigger == NOW:
            self._waiting.setdefault(flight.page.host, {})[flight.page.id] = until

    def claim(self, most: int, now: float, flying: Container[int]) -> list[int]:
        """Take entries of the scheduler for wishes whose hosts may be asked now, while the budget pays: one a host.

        O(hosts with wishes).
        """
        if not self._waiting or most < 1:
            return []
        desk = self._desk
        claimed: list[int] = []
        for host in list(self._waiting):
            if len(claimed) >= most or not desk.schedule.has_token(now):
                break
            entry = self._next_of(host, now, flying) if desk.hosts.may_ask(host, now) else None
            if entry is not None:
                desk.schedule.claim(entry, now)
                claimed.append(entry)
        return claimed

    def _next_of(self, host: str, now: float, flying: Container[int]) -> int | None:
        for page_id, not_before in list(self._waiting[host].items()):
            if page_id in flying or page_id in self._desk.unwritten or not_before > now:
                continue
            entry = self._desk.schedule.entry_of(page_id)
            if entry is not None:
                return entry
            self.grant(page_id, host)  # it has left, or is held: nobody is waited for
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
        desk: has the scheduler and the hosts.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
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
        schedule, claimed, asked = self._desk.schedule, list[int](), set[str]()
        for entry in list(self._waiting):
            if len(claimed) >= most or not schedule.has_token(now):
                break
            if self._is_due(entry, now, asked):
                schedule.claim(entry, now)
                claimed.append(entry)
        return claimed

    def _begin(self) -> None:
        """Begin the next sounding when its time has come."""
        crawls, pages = self._desk.accounts.ended["fetched"], len(self._desk.schedule)
        if not self._left or pages < FEWEST_SOUNDED_OF or crawls < max(self._left[0] * pages, self._not_before):
            return
        if not self._drawn:
            self._drawn = self._draw(crawls)
        if self._drawn:
            self._left.pop(0)
            self._waiting += [entry for entry in self._drawn if entry not in self._waiting]
            self._names = {state.number: state.name for state in self._desk.hosts}

    def _draw(self, crawls: int) -> list[int]:
        """The pages to crawl again; none while few have a copy, and none any more where rates are known."""
        schedule = self._desk.schedule
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
        desk = self._desk
        if not desk.schedule.is_waiting(entry):
            self._waiting.remove(entry)
            return False
        name = self._names.get(desk.schedule.host_number(entry))  # the scheduler knows hosts by their numbers
        if name is not None and (name in asked or not desk.hosts.may_ask(name, now)):
            return False
        if desk.schedule.is_held(entry, now) or desk.schedule.page_of(entry) in desk.unwritten:
            return False
        self._waiting.remove(entry)
        if name is not None:
            asked.add(name)
        return True


_MOST_UNWRITTEN = 8 * MOST_AT_ONCE
_BROKEN_S = 3600.0


class Taker:
    """Takes pages that are worth their price, leases them, and gives them back.

    Args:
        store: where leases are.
        desk: has the scheduler.
        lock: of the roster.
        on_trouble: told in a sentence when the store cannot write, and with "" when it can again.
    """

    def __init__(self, store: Store, desk: Desk, lock: asyncio.Lock, on_trouble: Callable[[str], None]) -> None:
        self._store = store
        self._desk = desk
        self._lock = lock
        self._trouble = on_trouble
        self.flights: dict[int, Flight] = {}  # by token
        self.wishes = Wishes(desk)
        self._soundings = Soundings(desk)
        self._flying: set[int] = set()  # pages that are being leased, or in flight
        self._groups = {group.name: group for group in desk.settings.groups if group.hours}
        self._probe_at = 0.0
        self._undoing: set[asyncio.Future[None]] = set()  # kept, lest they are collected before they end

    def may_take(self) -> bool:
        """Whether the store keeps up, the budget of bytes is not overdrawn, and no compiler is waited for."""
        committer, now = self._desk.committer, self._desk.clock.now()
        if has_to_wait("scheduling", len(self._desk.schedule)):
            return False
        return len(committer) < _MOST_UNWRITTEN and not committer.trouble and self._desk.bytes_left.wait_s(now) <= 0

    def room(self, running: int) -> int:
        """How many more fetches may start now, while so many run."""
        now = self._desk.clock.now()
        if not self.may_take():
            return 0
        room = self._desk.settings.concurrency - running
        if self._desk.network.down:
            if now < self._probe_at:
                return 0
            self._probe_at = now + self._desk.timing.down_probe_s
            return min(room, 1)
        return max(room, 0)

    async def take(self, most: int, worker: str) -> list[Flight]:
        """Take pages that are worth their price and lease them to a worker; durable when this returns.

        A caller that is cancelled gets none: what was taken for it is given back.
        """
        taking = asyncio.ensure_future(self._take_alone(most, worker))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            undoing = asyncio.ensure_future(self._give_back_all(taking))
            self._undoing.add(undoing)
            undoing.add_done_callback(self._undoing.discard)
            raise

    async def _take_alone(self, most: int, worker: str) -> list[Flight]:
        async with self._lock:
            return await self._take(most, worker)

    async def _give_back_all(self, taking: asyncio.Future[list[Flight]]) -> None:
        with suppress(StoreError):  # said and settled where it was raised
            for flight in await taking:
                await self.release(flight, "cancelled")

    async def _take(self, most: int, worker: str) -> list[Flight]:
        desk = self._desk
        now = desk.clock.now()  # of the choice and of the leases, so that the gaps of hosts are seen in both
        wanted = self.wishes.claim(most, now, self._flying)
        wanted += self._soundings.claim(most - len(wanted), now)
        wanted += desk.schedule.take(now, most - len(wanted))
        if not wanted:
            return []
        desk.accounts.take(len(wanted))
        scheduled = self._by_page(wanted)
        self._wait_for_commits(scheduled)
        try:
            leased = await self._store.lease(list(scheduled), worker, now, now + desk.settings.lease_s)
        except StoreTaken:
            raise
        except StoreError as error:
            self.give_back(list(scheduled.values()), "store")
            self._trouble(str(error))
            return []
        if not desk.committer.trouble:
            self._trouble("")
        flights, early = [], []
        for page, lease in leased:
            entry = scheduled.pop(page.id)
            if worker.startswith(OUTSIDE) and not desk.hosts.may_ask(page.host):
                early.append((page, lease, entry))
            else:
                flights.append(self._flight(page, lease, entry))
        if early:
            await self._put_off(early)
        if scheduled:
            await self._clear_up(scheduled)
        return await self._open_now(flights) if self._groups else flights

    def take_over(self, lease: LeaseRow, page: PageRow, scheduled: int) -> None:
        """Go on with a lease of an earlier life: its page is in flight, and paid for."""
        self._desk.schedule.claim(scheduled, self._desk.clock.now())
        self._desk.accounts.take(1)
        self._flight(page, lease, scheduled)

    def landed(self, token: int) -> bool:
        """Let a flight end; whether it had not been withdrawn, or run out."""
        flight = self.flights.pop(token, None)
        if flight is None:
            return False
        self._flying.discard(flight.page.id)
        if flight.is_outside:
            self._desk.hosts.returned(flight.page.host)
        return True

    async def release(self, flight: Flight, reason: str, held_until: float | None = None) -> None:
        """Give a page back that was not fetched; it is not taken before it may be leased again, nor before a time."""
        if not self.landed(flight.lease.token):
            return
        self._desk.hearing.gave_back(flight.page.id)
        try:
            with suppress(StoreError):  # else its lease is cleared up when it is taken next
                await self._store.release([flight.lease.token])
        finally:  # also if whoever waits is told to stop: a page that was taken ends once
            self._end(flight, reason, held_until)

    def _end(self, flight: Flight, reason: str, held_until: float | None) -> None:
        """Let the scheduler have a page again that was not fetched, unless it has left meanwhile."""
        if not self._desk.schedule.has(flight.page.id, flight.scheduled):  # it has left meanwhile
            self._desk.accounts.end("retired", reason)
            return
        self.wishes.put_off(flight, held_until or 0.0)
        self.give_back([flight.scheduled], reason, held_until)

    async def release_pages(self, numbers: Iterable[int], reason: str) -> None:
        """Give back those of these pages that are in flight."""
        wanted = set(numbers)
        for flight in [each for each in self.flights.values() if each.page.id in wanted]:
            await self.release(flight, reason)

    async def give_up(self, flight: Flight) -> None:
        """Put off a page over which something broke, however far it came."""
        until = self._desk.clock.now() + _BROKEN_S
        if flight.lease.token in self.flights:
            await self.release(flight, "error", until)
            return
        self._desk.hearing.gave_back(flight.page.id)
        with suppress(RecrawlError):  # it may be settled, or gone
            self.give_back([flight.scheduled], "error", until)
        with suppress(StoreError):
            await self._store.release([flight.lease.token])

    def give_back(self, scheduled: list[int], reason: str, held_until: float | None = None) -> None:
        """Give entries back to the scheduler that were not fetched, which may hold them until a time."""
        self._desk.schedule.give_back(scheduled, held_until)
        self._desk.accounts.end("deferred", reason, len(scheduled))

    def _by_page(self, entries: list[int]) -> dict[int, int]:
        """Entries by the page behind them; those whose page is on its way already are given back."""
        desk, found, twice = self._desk, dict[int, int](), []
        for entry in entries:
            number = desk.schedule.page_of(entry)
            if number in found or number in self._flying:
                twice.append(entry)
            else:
                found[number] = entry
        if twice:
            self.give_back(twice, "in-flight", desk.clock.now() + desk.timing.retake_s)
        return found

    def _flight(self, page: PageRow, lease: LeaseRow, scheduled: int) -> Flight:
        wished = self.wishes.grant(page.id, page.host)
        flight = Flight(page, lease, scheduled, NOW if wished else self._desk.hearing.trigger_of(page))
        self.flights[lease.token] = flight
        self._flying.add(page.id)
        if flight.is_outside:
            self._desk.hosts.lend(page.host)
        if page.role == "page":
            self._desk.hearing.took(page.id)
        return flight

    async def _put_off(self, early: list[tuple[PageRow, LeaseRow, int]]) -> None:
        """Give back pages whose hosts may not be asked yet: our own fetches wait for their turns, outside ones cannot.

        The scheduler counts gaps from the starts of crawls, hosts count them from the ends of requests.
        """
        desk = self._desk
        with suppress(StoreError):  # else the leases are cleared up when the pages are taken next
            await self._store.release([lease.token for _, lease, _ in early])
        now = desk.clock.now()
        for page, _, entry in early:
            free_at = desk.hosts.postpone(page.host)
            self.give_back([entry], "pacing", free_at if free_at > now else now + desk.timing.retake_s)

    async def _clear_up(self, scheduled: dict[int, int]) -> None:
        """Pages that could not be leased are no longer tracked, or the store did more than we were told of.

        A server that was lost may have leased a page, or not given it back; such a lease is nobody's, and ends here.
        """
        desk = self._desk
        try:
            rows = await self._store.read_pages(list(scheduled))
            tracked = {row.id for row in rows if row.state not in ("retired", "quarantined")}
            held = await self._store.leases() if tracked else []
            await self._store.release(
                [lease.token for lease in held if lease.page_id in tracked and lease.token not in self.flights]
            )
        except StoreError as error:
            tracked = set(scheduled)
            self._trouble(str(error))
        for number, each in scheduled.items():
            if number in tracked:
                self.give_back([each], "store")
                continue
            desk.schedule.leave(number)
            desk.hearing.left(number)
            desk.accounts.end("retired", "not-tracked")

    async def _open_now(self, flights: list[Flight]) -> list[Flight]:
        """Those whose groups may be crawled at this hour; the others wait until theirs comes."""
        desk = self._desk
        now = desk.clock.now()
        closed: dict[int, tuple[Flight, float]] = {}
        for flight in flights:
            group = self._groups.get(flight.page.group)
            opens = None if group is None else open_again_at(group.hours, group.time_zone, now)
            if opens is not None:
                closed[flight.lease.token] = flight, opens
        with suppress(StoreError):  # else the leases are cleared up when the pages are taken next
            await self._store.release(list(closed))
        for token, (flight, opens) in closed.items():
            self.landed(token)
            desk.hearing.gave_back(flight.page.id)
            self.wishes.put_off(flight, opens)
            self.give_back([flight.scheduled], "hours", opens)
        return [flight for flight in flights if flight.lease.token not in closed]

    def _wait_for_commits(self, scheduled: dict[int, int]) -> None:
        """Put off pages whose last result is not durable yet: it must be known before they are leased anew."""
        desk = self._desk
        early = {number: each for number, each in scheduled.items() if number in desk.unwritten}
        if early:
            self.give_back(list(early.values()), "unwritten", desk.clock.now() + desk.timing.retake_s)
            for number in early:
                del scheduled[number]
