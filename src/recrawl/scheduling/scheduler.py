"""The scheduler: which pages to crawl next, at a constant rate, within limits.

Checks what enters, keeps ids, time and the budget, and counts; a policy chooses (`policy.py`). Time is given by the
caller with each call and never runs backwards: an earlier time counts as the latest one. Calls that are refused
change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from recrawl.errors import InvalidInput
from recrawl.learning.inputs import Flags
from recrawl.outcomes import CODES, Codes, Outcome, check_outcomes
from recrawl.pages import LARGEST, Floats, check_number
from recrawl.scheduling.budget import TokenBucket
from recrawl.scheduling.counts import Counts
from recrawl.scheduling.hearing import Kinds, hear
from recrawl.scheduling.hosts import HostName, read_hosts
from recrawl.scheduling.intake import PAGE_OBJECTIVES, PageColumns, PageObjective, read_entries
from recrawl.scheduling.laws import ONCE
from recrawl.scheduling.learner import Learner, wide_prior
from recrawl.scheduling.page_record import IN_FLIGHT, LEARNS, Slots
from recrawl.scheduling.page_table import Ids, PageTable
from recrawl.scheduling.policies.registry import make_policy
from recrawl.scheduling.results import Batch
from recrawl.scheduling.settling import hold_back, land, look_back, put_off, renew
from recrawl.scheduling.tuning import LONGEST, Tuning
from recrawl.scheduling.writing import columns_of, objective_of, write_entries

if TYPE_CHECKING:
    from recrawl.scheduling.explain import Explanation
    from recrawl.scheduling.snapshot import FilePath, Source
    from recrawl.scheduling.status import Status


_USUAL = Tuning()


class Scheduler:
    """Hands out the next crawls of any number of pages at a constant total rate.

    Args:
        budget: crawls, or cost, per unit time.
        objective: of pages for which nothing else is said: `freshness` or `harmonic`.
        now: the time at the start, in the caller's unit.
        burst: how many crawls may be made at once after a pause; any window w has at most budget·w + burst.
        seed: of everything random.
        policy: who chooses; `price` is the one for use, others are for comparison (`policies/`).
        tuning: what is seldom changed.

    >>> scheduler = Scheduler(budget=1.0)
    >>> ids = scheduler.add(importance=[3.0, 1.0], change_rate=[0.5, 2.0], last_crawled=0.0)
    >>> batch = scheduler.take(now=1.0, n=10)
    >>> batch.ids.tolist() == [ids[0]]
    True
    >>> scheduler.crawled(batch.ids, now=1.1, changed=[True])
    """

    def __init__(
        self,
        budget: float,
        objective: PageObjective = "harmonic",
        now: float = 0.0,
        burst: float = 1.0,
        seed: int = 0,
        policy: str = "price",
        tuning: Tuning = _USUAL,
    ) -> None:
        budget = check_number(budget, "budget")
        if objective not in PAGE_OBJECTIVES:
            raise InvalidInput(f"is {objective!r}, but must be one of {', '.join(PAGE_OBJECTIVES)}", field="objective")
        if check_number(burst, "burst") <= 0:
            raise InvalidInput(f"is {burst!r}, but must be above 0", field="burst")
        if not _is_whole(seed) or not 0 <= seed < 2**63:
            raise InvalidInput(f"is {seed!r}, but must be a whole number from 0 to 2⁶³ − 1", field="seed")
        self._objective: PageObjective = objective
        self._now = _check_time(now)
        self._seed = seed
        self._tuning = tuning
        self._policy_name = policy
        self._bucket = TokenBucket(budget, float(burst), self._now)
        self._table = PageTable(float(burst))
        self._kinds = Kinds()
        self._learner: Learner | None = None
        self._policy = make_policy(policy, self._table, budget, seed, self._now)
        self.counts = Counts()

    def __len__(self) -> int:
        return self._table.live

    @property
    def now(self) -> float:
        """The latest time the scheduler was told."""
        return self._now

    @property
    def budget(self) -> float:
        """Crawls, or cost, per unit time."""
        return self._bucket.rate

    @property
    def price(self) -> float:
        """What a crawl must be worth at present, by unit of cost.

        Also what one more crawl per unit time would add to the objective, per unit time.
        """
        return self._policy.price()

    @property
    def state_bytes_per_page(self) -> float:
        """What the scheduler keeps of each page, lists and learned rates included."""
        lists = getattr(self._policy, "nbytes", 0)
        return self._table.bytes_per_page + lists / max(self._table.live, 1)

    def add(self, **columns: Unpack[PageColumns]) -> Ids:
        """Add pages and return their ids. O(pages), amortised.

        Each argument is one value for all pages or a column; see `PageColumns`.
        """
        objective = columns.get("objective") or self._objective
        entries = read_entries(columns, objective, self._now)
        staged = None if columns.get("signals") is None else self._kinds.read(columns["signals"], len(entries))
        hosts = None if columns.get("host") is None else read_hosts(columns["host"], len(entries))
        slots = self._table.allocate(len(entries))
        write_entries(self._table, slots, entries, self._now)
        if hosts is not None:
            self._table.pages["host"][slots] = self._table.hosts.numbers(hosts)
        if staged is not None:
            self._kinds.listen(self._table, slots, staged)
        if entries.learns:
            self._teacher().begin(slots, self._table.hosts.names)
        self._policy.place(slots, self._now)
        return self._table.ids_of(slots)

    def update(self, ids: ArrayLike, **columns: Unpack[PageColumns]) -> None:
        """Change what is known of pages; what is not given stays as it is. O(ids).

        All pages of a call have the same objective. A page that changes its objective needs all that the new one
        asks for. A `once` page in flight that becomes another kind of page stays after its crawl.
        """
        slots = self._table.slots_of(ids)
        if len(np.unique(slots)) < len(slots):
            raise InvalidInput("holds an id twice", field="ids")
        if not len(slots):
            return
        present = objective_of(self._table, slots)
        objective = columns.get("objective") or present
        merged = cast(
            PageColumns, {**(columns_of(self._table, slots, present) if objective == present else {}), **columns}
        )
        entries = read_entries(merged, objective, self._now)
        if len(entries) == 1 < len(slots):
            merged["cost"] = np.full(len(slots), 1.0 if entries.cost is None else float(entries.cost[0]))
            entries = read_entries(merged, objective, self._now)
        if len(entries) != len(slots):
            raise InvalidInput(f"there are {len(entries)} values for {len(slots)} ids")
        signals = columns.get("signals")
        staged = None if signals is None else self._kinds.read(signals, len(slots))
        hosts = None if columns.get("host") is None else read_hosts(columns["host"], len(slots))
        waiting = slots[self._table.pages["state"][slots] != IN_FLIGHT]
        self._policy.withdraw(waiting, self._now)
        kept = self._table.pages["flags"][slots] & LEARNS != 0
        write_entries(self._table, slots, entries, self._now, again=True)
        if hosts is not None:
            self._move_hosts(slots, self._table.hosts.numbers(hosts))
        if staged is not None:
            self._kinds.forget(self._table, slots)
            self._kinds.listen(self._table, slots, staged)
        if entries.learns:
            self._teacher().begin(slots[~kept], self._table.hosts.names)
            self._teacher().believe(slots[kept])
        self._policy.place(waiting, self._now)

    def remove(self, ids: ArrayLike) -> None:
        """Remove pages; their ids are unknown from then on. O(ids)."""
        slots = self._table.slots_of(ids)
        if len(np.unique(slots)) < len(slots):
            raise InvalidInput("holds an id twice", field="ids")
        self._drop(slots)

    def take(self, now: float, n: int = 1) -> Batch:
        """The most valuable crawls that budget and hosts allow now, at most n, each in flight until settled.

        Amortised O(1) per crawl.
        """
        if not _is_whole(n) or n < 0:
            raise InvalidInput(f"is {n!r}, but must be a whole number of 0 or more", field="n")
        now = self._clock(now)
        tokens = self._bucket.fill(now)
        chosen = self._policy.choose(now, int(n), tokens)
        self._bucket.spend(self._table.cost(chosen.slots))
        self.counts.taken += len(chosen.slots)
        return Batch(self._table.ids_of(chosen.slots), chosen.values, self._policy.price())

    def crawled(
        self, ids: ArrayLike, now: float, changed: ArrayLike | None = None, outcome: Sequence[Outcome] | None = None
    ) -> None:
        """Settle crawls that brought the pages. O(ids).

        Args:
            ids: pages in flight.
            now: the time.
            changed: which of them had changed, for all or for each; None: unknown, and nothing is learned.
            outcome: instead of `changed`, how each crawl ended: `changed`, `unchanged`, `gone` (the page is removed),
                `blocked` or `failed` (as `failed` without Retry-After).
        """
        slots = self._table.slots_of(ids)
        now = _check_time(now)
        if outcome is not None:
            if changed is not None:
                raise InvalidInput("says again what changed says: give one of them", field="outcome")
            self._settle_by_outcome(slots, now, check_outcomes(outcome, len(slots)))
            return
        self._settle_crawled(slots, now, None if changed is None else _flags(changed, len(slots)))

    def _settle_by_outcome(self, slots: Slots, now: float, outcomes: Codes) -> None:
        state = self._table.pages["state"][slots]
        if (state != IN_FLIGHT).any() or len(np.unique(slots)) < len(slots):
            raise _not_in_flight(int(np.argmax(state != IN_FLIGHT)))
        ended = outcomes == CODES["gone"]
        brought = ended | (outcomes == CODES["changed"]) | (outcomes == CODES["unchanged"])
        self._settle_crawled(slots[brought], now, outcomes[brought] != CODES["unchanged"])
        self.failed(self._table.ids_of(slots[~brought]), now)
        ended &= self._table.pages["law"][slots] != ONCE
        self._drop(slots[ended])

    def _settle_crawled(self, slots: Slots, now: float, flags: Flags | None) -> None:
        table, learner = self._table, self._learner
        if flags is not None and learner is not None:
            gaps, heard = look_back(table.pages, slots, max(now, self._now))
        bad, once = renew(table.pages, table.limits, table.hosts.records, slots, max(now, self._now))
        if bad >= 0:
            raise _not_in_flight(bad)
        now = self._advance(now)
        if flags is not None and learner is not None:
            taught = learner.instructive(slots, gaps, heard)
            if taught.any():
                learner.observe(slots[taught], gaps[taught], flags[taught])
        self.counts.crawled += len(slots)
        if once:
            ended = self._table.pages["law"][slots] == ONCE
            self._table.free(slots[ended])
            self._hosts_changed(slots[ended])
            slots = slots[~ended]
        self._policy.place(slots, now)

    def failed(self, ids: ArrayLike, now: float, retry_after: ArrayLike | None = None) -> None:
        """Settle crawls that brought nothing; the pages wait, longer with each failure in a row. O(ids).

        Failures say nothing of changes and are not learned from.

        Args:
            ids: pages in flight.
            now: the time.
            retry_after: how long the server asked to be left alone, for all or for each: the whole host is, or the
                page alone if it has no host.
        """
        slots = self._table.slots_of(ids)
        waits = None if retry_after is None else _waits(retry_after, len(slots))
        now = _check_time(now)
        self._land(slots)
        now = self._advance(now)
        self.counts.failed += len(slots)
        pages = self._table.pages
        if waits is None:
            cycle = self._table.live / self._bucket.rate if self._bucket.rate > 0 else 1.0
            bounds = (self._tuning.shortest_retry, self._tuning.longest_retry)
            put_off(pages, slots, now, cycle, bounds, self._seed)
        else:
            hold_back(pages, slots, now, waits)
            numbers = pages["host"][slots]
            for number in np.unique(numbers[numbers >= 0]).tolist():
                until = now + float(waits[numbers == number].max())
                record = self._table.hosts.records[number]
                record["blocked_until"] = max(float(record["blocked_until"]), until)
                record["paced"] = 1
        self._policy.place(slots, now)
        self._hosts_changed(slots)

    def release(self, ids: ArrayLike, now: float) -> None:
        """Give back pages that were taken and not crawled, and the budget for them. O(ids)."""
        slots = self._table.slots_of(ids)
        now = _check_time(now)
        self._land(slots)
        now = self._advance(now)
        self.counts.released += len(slots)
        self._bucket.refund(self._table.cost(slots))
        self._policy.place(slots, now)
        self._hosts_changed(slots)

    def signal(self, ids: ArrayLike, now: float, kind: str) -> int:
        """Count a signal of this kind for each of these pages, which may come more than once; how many heard it.

        Pages that do not listen to this kind, have no copy yet, or were crawled within the delay do not. O(ids).
        """
        number = self._kinds.number(kind)
        slots = self._table.slots_of(ids)
        now = self._clock(now)
        delay = self._tuning.signal_delay
        table = self._table
        moved, heard = hear(table.pages, table.signals, self._kinds.profiles, slots, number, now, delay)
        if len(moved):
            self._policy.signalled(moved, now)
        self.counts.signals_heard += heard
        self.counts.signals_ignored += len(slots) - heard
        return int(heard)

    def set_budget(self, budget: float, now: float) -> None:
        """Change the budget from now on; the price follows by itself."""
        budget = check_number(budget, "budget")
        self._bucket.fill(self._clock(now))
        self._bucket.rate = budget
        self._policy.budget = budget

    def set_host(
        self,
        host: HostName,
        min_gap: float | None = None,
        max_in_flight: int | None = None,
        rate_cap: float | None = None,
        blocked_until: float | None = None,
    ) -> None:
        """Change the limits of a host, which need not have pages yet; None: as it is.

        Args:
            host: its name.
            min_gap: time between the starts of two crawls.
            max_in_flight: crawls at once.
            rate_cap: crawls per unit time.
            blocked_until: a time before which it is left alone.
        """
        limits = {"min_gap": min_gap, "max_in_flight": max_in_flight, "rate_cap": rate_cap}
        number = self._table.hosts.set_limits(host, self._now, **limits, blocked_until=blocked_until)
        self._policy.hosts_changed(np.array([number]), self._now)

    def explain(self, page: int, now: float) -> Explanation:
        """Why a page is, or is not, crawled at this time, given what is known so far; changes nothing. O(1)."""
        from recrawl.scheduling.explain import Quote, explain_page

        slots = self._table.slots_of(page)
        if len(slots) != 1:
            raise InvalidInput(f"holds {len(slots)} ids, but one page is explained at a time", field="page")
        slot = int(slots[0])
        now = max(_check_time(now), self._now)
        learns = self._learner is not None and self._table.pages["flags"][slot] & LEARNS != 0
        interval = self._teacher().interval(slot) if learns else None
        return explain_page(self._table, slot, now, Quote(self.price, self._bucket, interval))

    def status(self) -> Status:
        """Prices, and where the pages are. O(pages), a fraction of a second for ten million."""
        from recrawl.scheduling.status import Status, count_states, saturated

        dear = saturated(self._table.hosts, self.price)
        places = count_states(self._table)
        return Status(
            self._now, self.budget, self.price, len(self), *places, len(self._table.hosts), dear, replace(self.counts)
        )

    def host_price(self, host: HostName) -> float:
        """What a crawl of this host must be worth, by unit of cost: above `price` if it cannot serve all that is."""
        number = self._table.hosts.find(host)
        if number is None:
            raise InvalidInput(f"is {host!r}, which no page or limit has named", field="host")
        return max(self.price, float(self._table.hosts.records["price"][number]))

    @overload
    def snapshot(self, path: None = None) -> bytes: ...

    @overload
    def snapshot(self, path: FilePath) -> None: ...

    def snapshot(self, path: FilePath | None = None) -> bytes | None:
        """The whole state, for `restore`: as bytes, or in a file, which is replaced when that is whole. O(pages)."""
        from recrawl.scheduling.snapshot import to_bytes, to_file

        if path is None:
            return to_bytes(self)
        to_file(self, path)
        return None

    @staticmethod
    def restore(source: Source) -> Scheduler:
        """The scheduler of a snapshot: bytes, a path or an open file. O(pages).

        From then on the same calls give the same answers; policies that follow a plan begin it anew.
        """
        from recrawl.scheduling.snapshot import from_source

        return from_source(source)

    def _teacher(self) -> Learner:
        if self._learner is None:
            prior = wide_prior() if self._tuning.prior is None else self._tuning.prior
            self._learner = Learner(self._table, prior, self._tuning.memory)
        return self._learner

    def _clock(self, now: float) -> float:
        """Take a time from the caller, which does not run backwards; the time it is now."""
        return self._advance(_check_time(now))

    def _advance(self, now: float) -> float:
        if now < self._now:
            self.counts.clock_went_back += 1
        else:
            self._now = now
        return self._now

    def _land(self, slots: Slots) -> None:
        bad = land(self._table.pages, self._table.hosts.records, slots)
        if bad >= 0:
            raise _not_in_flight(bad)

    def _drop(self, slots: Slots) -> None:
        flying = self._table.pages["state"][slots] == IN_FLIGHT
        self._policy.withdraw(slots[~flying], self._now)
        land(self._table.pages, self._table.hosts.records, slots[flying])
        self._table.free(slots)
        self._hosts_changed(slots[flying])

    def _move_hosts(self, slots: Slots, numbers: Slots) -> None:
        """Let pages be of other hosts, which then count those in flight as theirs."""
        pages, records = self._table.pages, self._table.hosts.records
        flying = pages["state"][slots] == IN_FLIGHT
        left = pages["host"][slots[flying]]
        np.subtract.at(records["in_flight"], left[left >= 0], 1)
        np.add.at(records["in_flight"], numbers[flying], 1)
        pages["host"][slots] = numbers
        touched = np.unique(np.concatenate([left[left >= 0], numbers[flying]])).astype(np.int64)
        if len(touched):
            self._policy.hosts_changed(touched, self._now)

    def _hosts_changed(self, slots: Slots) -> None:
        numbers = self._table.pages["host"][slots]
        numbers = np.unique(numbers[numbers >= 0])
        if len(numbers):
            self._policy.hosts_changed(numbers.astype(np.int64), self._now)


def _is_whole(number: Any) -> bool:
    return isinstance(number, (int, np.integer)) and not isinstance(number, bool)


def _not_in_flight(row: int) -> InvalidInput:
    problem = "is not in flight: only a page that was taken can be settled, and once"
    return InvalidInput(problem, field="ids", row=int(row))


def _check_time(now: Any) -> float:
    try:
        time = float(now)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"is {now!r}, but must be a time", field="now") from None
    if not -LARGEST <= time <= LARGEST:
        raise InvalidInput(f"is {time!r}, but must be a time", field="now")
    return time


def _flags(changed: ArrayLike, count: int) -> Flags:
    try:
        flags = np.broadcast_to(np.asarray(changed), count)
    except ValueError:
        raise InvalidInput(f"must be one value or {count}, as many as ids", field="changed") from None
    if (count and flags.dtype.kind not in "biu") or (count and not ((flags == 0) | (flags == 1)).all()):
        raise InvalidInput("must hold True and False", field="changed")
    return flags.astype(np.bool_)


def _waits(retry_after: ArrayLike, count: int) -> Floats:
    try:
        waits = np.broadcast_to(np.asarray(retry_after, dtype=np.float64), count)
    except (TypeError, ValueError):
        raise InvalidInput(f"must be a time, or {count} of them", field="retry_after") from None
    if not ((waits >= 0) & (waits <= LONGEST)).all():
        row = int(np.argmax(~((waits >= 0) & (waits <= LONGEST))))
        raise InvalidInput(f"is {float(waits[row])!r}, but must be 0 or more", field="retry_after", row=row)
    return waits
