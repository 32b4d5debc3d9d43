"""The scheduler: which pages to crawl next, at a constant rate, within limits.

Checks arguments, keeps ids, time, the budget and counts; a policy chooses the pages (`policies/contract.py`). The
caller gives the time with each call. Time never runs backwards: an earlier time counts as the latest one. Calls that
raise an error change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from recrawl.errors import InvalidInput
from recrawl.learning.filter_state import FilterState
from recrawl.learning.grid import RatePrior
from recrawl.learning.inputs import Flags, check_made
from recrawl.outcomes import CODES, Codes, Settlement, check_settlements
from recrawl.pages import check_number
from recrawl.scheduling.budget import Clocks, TokenBucket, claim, lease, unspent
from recrawl.scheduling.columns import (
    PageColumns,
    PageObjective,
    check_burst,
    check_objective,
    check_start,
    check_time,
    is_whole,
    not_in_flight,
    read_beliefs,
    read_entries,
    read_failures,
    read_flags,
    read_holds,
    read_waits,
)
from recrawl.scheduling.completion import back_off, complete, end_flight, hold_back, refresh
from recrawl.scheduling.learner import Crawls, Learner
from recrawl.scheduling.policies.registry import make_policy
from recrawl.scheduling.table.entries import lift_holds, merged_entries, write_entries, write_holds
from recrawl.scheduling.table.hosts import block_hosts, checked_name, hosts_of, move_pages, read_hosts
from recrawl.scheduling.table.pages import PageTable, comes_again
from recrawl.scheduling.table.records import FREE, IN_FLIGHT, LEARNS, NO_COPY, ONCE, HostName, Ids, Slots
from recrawl.scheduling.table.signals import SignalKinds, count_signals, takes_signals
from recrawl.scheduling.types import Batch, Counts, Signal, Status, Tuning

if TYPE_CHECKING:
    from recrawl.learning.calibration import Correction
    from recrawl.pages import Objective
    from recrawl.scheduling.budget_curve import Point
    from recrawl.scheduling.estimates import Estimator
    from recrawl.scheduling.explain import Explanation
    from recrawl.scheduling.snapshot import FilePath, Source

_USUAL = Tuning()


class Scheduler:
    """Hands out the next crawls of any number of pages at a constant total rate.

    Args:
        budget: crawls, or cost, per unit time.
        objective: default objective of pages.
        now: the time at the start, in the caller's unit.
        burst: most crawls at once after a pause; any window w has at most budget·w + burst.
        seed: of all random draws.
        policy: name of the policy that chooses pages: `price`, or another for comparison (`policies/`).
        tuning: settings that are seldom changed.

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
        check_start(objective, burst, seed, tuning)
        self._objective: PageObjective = objective
        self._now = check_time(now)
        self._seed = seed
        self._tuning = tuning
        self._policy_name = policy
        self._bucket = TokenBucket(budget, float(burst), self._now)
        self._table = PageTable(float(burst))
        self._kinds = SignalKinds()
        self._learner: Learner | None = None
        self._policy = make_policy(policy, self._table, budget, seed, self._now)
        self.counts = Counts()

    def __len__(self) -> int:
        return self._table.live

    @property
    def now(self) -> float:
        """The latest time that a call gave."""
        return self._now

    @property
    def budget(self) -> float:
        """Crawls, or cost, per unit time."""
        return self._bucket.rate

    @property
    def tokens(self) -> float:
        """Crawls, or cost, that the budget allows at the time `now`; below 0 for a debt."""
        return self._bucket.tokens

    @property
    def price(self) -> float:
        """What a crawl must be worth at present, by unit of cost.

        Also what one more crawl per unit time would add to the objective, per unit time.
        """
        return self._policy.price()

    @property
    def prior(self) -> RatePrior | None:
        """The prior of learned change rates; None if none was given or fitted."""
        return self._tuning.prior

    @property
    def state_bytes_per_page(self) -> float:
        """Bytes of state per page, with lists and learned rates."""
        lists = getattr(self._policy, "nbytes", 0) + self._kinds.nbytes + self._table.flights.nbytes
        return self._table.bytes_per_page + lists / max(self._table.live, 1)

    def add(self, **columns: Unpack[PageColumns]) -> Ids:
        """Add pages and return their ids. O(pages), amortised.

        Each argument is one value for all pages or a column; see `PageColumns`.
        """
        objective = self._objective if columns.get("objective") is None else check_objective(columns["objective"])
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
            self._get_learner().begin(slots, self._table.hosts.names)
        self._policy.place(slots, self._now)
        return self._table.ids_of(slots)

    def update(self, ids: ArrayLike, **columns: Unpack[PageColumns]) -> None:
        """Change columns of pages; columns that are not given stay, and `host=None` removes the host. O(ids).

        All pages of a call have the same objective. A page that changes its objective needs all that the new one
        asks for. A `once` page in flight that becomes another kind of page stays after its crawl.
        """
        slots = self._table.distinct_slots_of(ids)
        if not len(slots):
            return
        entries = merged_entries(self._table, slots, columns, self._now)
        staged = None if columns.get("signals") is None else self._kinds.read(columns["signals"], len(slots))
        hosts = read_hosts(columns["host"], len(slots)) if columns.get("host") is not None else None
        with self._withdrawn(slots):
            kept = self._table.pages["flags"][slots] & LEARNS != 0
            write_entries(self._table, slots, entries, self._now, again=True)
            if "host" in columns:
                numbers = np.full(len(slots), -1) if hosts is None else self._table.hosts.numbers(hosts)
                touched = move_pages(self._table, slots, numbers)
                if len(touched):
                    self._policy.hosts_changed(touched, self._now)
            if staged is not None:
                self._kinds.set_trust(self._table, slots, staged)
            if entries.learns:
                self._get_learner().begin(slots[~kept], self._table.hosts.names)
                self._get_learner().believe(slots[kept])

    def beliefs(self, ids: ArrayLike) -> FilterState:
        """Return what was learned of pages, 40 bytes each, to store and to give to `resume` after a restart. O(ids)."""
        slots = self._table.slots_of(ids)
        self._table.need_beliefs()
        return self._table.beliefs[slots]

    def learned(self, most: int) -> FilterState:
        """Return what was learned of pages crawled twice or more, or of a random sample of `most` of them. O(pages)."""
        self._table.need_beliefs()
        used = self._table.used
        states = self._table.beliefs[:used]
        known = (states["changes"] > 0) | (states["unchanged_time"] > 0)
        slots = np.flatnonzero(known & (self._table.pages["flags"][:used] & LEARNS != 0))
        if len(slots) > most:
            slots = np.random.default_rng(self._seed).choice(slots, most, replace=False)
        return states[slots]

    def copied(self, most: int) -> Ids:
        """Return the pages that have a copy and learn their rate, or a random sample of `most` of them. O(pages)."""
        table = self._table
        pages = table.pages[: table.used]
        wanted = (pages["flags"] & (LEARNS | NO_COPY)) == LEARNS
        slots = np.flatnonzero(wanted & (pages["state"] != FREE) & (pages["state"] != IN_FLIGHT))
        if len(slots) > most:
            slots = np.random.default_rng(self._seed).choice(slots, most, replace=False)
        return table.ids_of(slots)

    def is_held(self, page: int, now: float) -> bool:
        """Return whether a page waits: for its least interval, for `held_until`, or after failures. O(1)."""
        record = self._table.pages[self._table.slot_of(page)]
        return bool(now - record["last"] < float(record["not_before"]))

    def most_rate(self, enough: float) -> float:
        """Return the cost per unit time that the least intervals of pages allow, infinity if one has none. O(pages).

        Args:
            enough: stop the sum once it reaches this.
        """
        return self._table.most_rate(enough)

    def host_of(self, page: int) -> HostName | None:
        """Return the host of a page, None if it has no host. O(1)."""
        number = int(self._table.pages["host"][self._table.slot_of(page)])
        return None if number < 0 else self._table.hosts.names[number]

    def set_prior(self, prior: RatePrior) -> None:
        """Learn by this prior from now on, as if it had been given at the start. O(pages).

        Pages that have not learned yet are valued by it at once, others after their next crawl.

        Args:
            prior: one for all hosts.
        """
        check_made(prior, RatePrior, "prior", "fit_prior")
        if prior.host_rows:
            raise InvalidInput("has priors of hosts, which pages cannot be given later", field="prior")
        self._tuning = replace(self._tuning, prior=prior)
        learner = self._get_learner()
        learner.set_prior(prior)
        unknown = learner.unknown()
        with self._withdrawn(unknown):
            learner.believe_alike(unknown)

    def resume(
        self,
        ids: ArrayLike,
        beliefs: object = None,
        failures: ArrayLike = 0,
        held_until: ArrayLike = float("nan"),
    ) -> None:
        """Restore what an earlier scheduler knew of pages that were added again. O(ids).

        Args:
            ids: pages that are not in flight.
            beliefs: what `beliefs` returned, or its bytes; ignored for pages whose rate is given.
            failures: in a row.
            held_until: time before which a page is not taken; NaN: no such time.
        """
        slots = self._table.distinct_slots_of(ids)
        known = None if beliefs is None else read_beliefs(beliefs, len(slots))
        failed, held = read_failures(failures, len(slots)), read_holds(held_until, len(slots))
        if (self._table.pages["state"][slots] == IN_FLIGHT).any():
            raise InvalidInput("holds a page in flight: settle it first", field="ids")
        with self._withdrawn(slots):
            learning = self._table.pages["flags"][slots] & LEARNS != 0
            if known is not None and learning.any():
                learner = self._get_learner()
                known["prior_row"] = self._table.beliefs["prior_row"][slots]  # of this scheduler's own prior
                learners, known = (slots, known) if learning.all() else (slots[learning], known[learning])
                self._table.beliefs[learners] = known
                learner.believe(learners)
            write_holds(self._table, slots, failed, held)

    def let_go(self, ids: ArrayLike) -> None:
        """End the waits of `held_until`; waits for least intervals and after failures stay. O(ids)."""
        slots = self._table.distinct_slots_of(ids)
        with self._withdrawn(slots):
            lift_holds(self._table, slots)

    def in_flight(self, page: int) -> bool:
        """Return whether a page was taken and its result is not known yet. O(1)."""
        return bool(self._table.pages["state"][self._table.slot_of(page)] == IN_FLIGHT)

    def spend(self, cost: float, now: float) -> None:
        """Spend budget on something else, such as robots.txt or a redirect. May leave a debt."""
        cost = check_number(cost, "cost")
        self._bucket.fill(self._clock(now))
        self._bucket.spend(cost)

    def remove(self, ids: ArrayLike) -> None:
        """Remove pages; their ids are unknown from then on. O(ids)."""
        slots = self._table.distinct_slots_of(ids)
        self._drop(slots)

    def take(self, now: float, n: int = 1) -> Batch:
        """Take the most valuable pages that budget and hosts allow now, at most n. Amortised O(1) per page.

        A page is in flight until `crawled`, `failed`, `release` or `remove`.
        """
        if not is_whole(n) or n < 0:
            raise InvalidInput(f"is {n!r}, but must be a whole number of 0 or more", field="n")
        now = self._clock(now)
        tokens = self._bucket.fill(now)
        chosen = self._policy.choose(now, int(n), tokens)
        self._bucket.spend(self._table.cost(chosen.slots))
        self.counts.taken += len(chosen.slots)
        return Batch(lease(self._table, chosen.slots, self._bucket.clock), chosen.values, self._policy.price())

    def claim(self, ids: ArrayLike, now: float) -> None:
        """Take these pages and spend budget on them, without asking for values, budget or host limits. O(ids).

        For pages that are being crawled already, for example by a worker that outlived a restart.
        """
        slots = self._table.distinct_slots_of(ids)
        if (self._table.pages["state"][slots] == IN_FLIGHT).any():
            raise InvalidInput("holds a page that is in flight already", field="ids")
        now = self._clock(now)
        self._policy.withdraw(slots, now)
        claim(self._table.pages, self._table.hosts.records, slots, now)
        self._bucket.fill(now)
        self._bucket.spend(self._table.cost(slots))
        self.counts.taken += len(slots)
        lease(self._table, slots, self._bucket.clock)
        self._hosts_changed(slots)

    def crawled(
        self, ids: ArrayLike, now: float, changed: ArrayLike | None = None, outcome: Sequence[Settlement] | None = None
    ) -> None:
        """Complete crawls that fetched their pages. O(ids).

        Args:
            ids: pages in flight.
            now: the time.
            changed: whether a page had changed, one value for all or one for each; None: unknown, nothing is learned.
            outcome: instead of `changed`, how each crawl ended: `changed`, `unchanged`, `gone` (the page is removed),
                `blocked` or `failed` (as `failed` without Retry-After).
        """
        slots = self._table.slots_of(ids)
        now = check_time(now)
        if outcome is not None:
            if changed is not None:
                raise InvalidInput("says again what changed says: give one of them", field="outcome")
            self._settle_by_outcome(slots, now, check_settlements(outcome, len(slots)))
            return
        self._settle_crawled(slots, now, None if changed is None else read_flags(changed, len(slots)))

    def _settle_by_outcome(self, slots: Slots, now: float, outcomes: Codes) -> None:
        state = self._table.pages["state"][slots]
        wrong = (state != IN_FLIGHT) | comes_again(slots)
        if wrong.any():
            raise not_in_flight(int(np.argmax(wrong)))
        ended = outcomes == CODES["gone"]
        brought = ended | (outcomes == CODES["changed"]) | (outcomes == CODES["unchanged"])
        self._settle_crawled(slots[brought], now, outcomes[brought] != CODES["unchanged"])
        self.failed(self._table.ids_of(slots[~brought]), now)
        ended &= self._table.pages["law"][slots] != ONCE
        self._drop(slots[ended])

    def _settle_crawled(self, slots: Slots, now: float, flags: Flags | None) -> None:
        table = self._table
        tables = table.pages, table.limits, table.flights, table.hosts.records
        gaps, heard = np.empty(len(slots)), np.empty(len(slots))
        latest, seen = max(now, self._now), now + self._tuning.signal_delay
        bad, once = complete(tables, slots, latest, seen, gaps, heard)
        if bad >= 0:
            raise not_in_flight(bad)
        if flags is not None and self._learner is not None:
            self._get_learner().learn(Crawls(slots, gaps, heard, flags))
        now = self._advance(now)
        self.counts.crawled += len(slots)
        self._place_copied(slots, once, now)

    def _place_copied(self, slots: Slots, once: int, now: float) -> None:
        """Place pages with a new copy, and remove those that are crawled only once; `once` is their number."""
        if once:
            ended = self._table.pages["law"][slots] == ONCE
            self._table.free(slots[ended])
            self._hosts_changed(slots[ended])
            slots = slots[~ended]
        self._policy.place(slots, now)

    def seen(self, ids: ArrayLike, now: float, changed: ArrayLike | None = None) -> None:
        """Note new copies of pages that were not taken, because another fetch returned them. O(ids).

        As `crawled`, but without cost, and not counted at the hosts. Signals counted so far are forgotten.

        Args:
            ids: pages not in flight.
            now: the time.
            changed: whether a page had changed, one value for all or one for each; None: unknown, nothing is learned.
        """
        table = self._table
        slots = table.distinct_slots_of(ids)
        now = check_time(now)
        flags = None if changed is None else read_flags(changed, len(slots))
        in_flight = table.pages["state"][slots] == IN_FLIGHT
        if in_flight.any():
            raise InvalidInput("is in flight: settle it with crawled", field="ids", row=int(np.argmax(in_flight)))
        now = self._advance(now)
        self._policy.withdraw(slots, now)
        gaps, heard, once = refresh(table, slots, now)
        if flags is not None and self._learner is not None:
            self._get_learner().learn(Crawls(slots, gaps, heard, flags))
        self.counts.seen += len(slots)
        self._place_copied(slots, once, now)

    def failed(self, ids: ArrayLike, now: float, retry_after: ArrayLike | None = None) -> None:
        """Complete crawls that failed; the pages back off, longer with each failure in a row. O(ids).

        Nothing is learned from failures.

        Args:
            ids: pages in flight.
            now: the time.
            retry_after: how long the server asked to wait, one value for all or one for each. Blocks the whole host, or
                the page if it has no host.
        """
        slots = self._table.slots_of(ids)
        waits = None if retry_after is None else read_waits(retry_after, len(slots))
        now, _ = self._end_flight(slots, check_time(now))
        self.counts.failed += len(slots)
        if waits is None:
            back_off(self._table, slots, now, (self._policy.price(), self._bucket.rate), self._tuning, self._seed)
        else:
            hold_back(self._table.pages, slots, now, waits)
            block_hosts(self._table, slots, now, waits)
        self._policy.place(slots, now)
        self._hosts_changed(slots)

    def release(self, ids: ArrayLike, now: float) -> None:
        """Release pages that were not crawled; refund their cost minus the budget that came since. O(ids)."""
        slots = self._table.slots_of(ids)
        now, taken_at = self._end_flight(slots, check_time(now))
        self.counts.released += len(slots)
        self._bucket.fill(now)
        costs = self._table.costs(slots)
        self._bucket.refund(unspent(costs, taken_at, self._bucket.clock, self._bucket.tick))
        self._policy.place(slots, now)
        self._hosts_changed(slots)

    def signal(self, ids: ArrayLike, now: float, kind: str) -> int:
        """Count a signal of this kind for each id, which may come more than once; return how many counted it. O(ids).

        Ignored by pages that do not listen to the kind, have no copy yet, or were crawled within the signal delay.
        """
        number = self._kinds.number(kind)
        slots = self._table.slots_of(ids)
        now = self._clock(now)
        delay = self._tuning.signal_delay
        table = self._table
        profiles, times = self._kinds.profiles, (now, delay)
        moved, heard = count_signals(table.pages, table.signals, table.flights, profiles, slots, number, times)
        if len(moved):
            self._policy.signalled(moved, now)
        self.counts.signals_heard += heard
        self.counts.signals_ignored += len(slots) - heard
        return int(heard)

    def takes_signals(self, ids: ArrayLike) -> Flags:
        """Return which of these pages have an objective that can use signals: `freshness` or `harmonic`. O(ids)."""
        return takes_signals(self._table, self._table.slots_of(ids))

    def trust(self, ids: ArrayLike, signals: Mapping[str, Signal]) -> None:
        """Set the kinds of signals that pages trust; other kinds are ignored from now on. O(ids · kinds).

        Does the same as `update(ids, signals=...)`, but pages of several objectives may come in one call. Signals that
        were counted since the last crawl are forgotten: send them again if they still hold.

        Args:
            ids: pages for which `takes_signals` is true.
            signals: by kind, a value for all pages or one for each.
        """
        table = self._table
        slots = table.distinct_slots_of(ids)
        if not len(slots):
            return
        trust = self._kinds.read(signals, len(slots))
        able = takes_signals(table, slots)
        if not able.all():
            raise InvalidInput("has an objective that cannot use signals", field="ids", row=int(np.argmin(able)))
        with self._withdrawn(slots):
            self._kinds.set_trust(table, slots, trust)
            learning = slots[table.pages["flags"][slots] & LEARNS != 0]
            if len(learning):
                self._get_learner().believe(learning)

    def set_budget(self, budget: float, now: float, burst: float | None = None) -> None:
        """Change the budget from now on, and the burst if one is given; the price follows."""
        budget = check_number(budget, "budget")
        burst = self._bucket.burst if burst is None else check_burst(burst)
        self._bucket.fill(self._clock(now))
        self._bucket.rate = budget
        self._policy.budget = budget
        if burst != self._bucket.burst:
            self._bucket.resize(burst)
            self._table.burst = burst
            self._policy.hosts_changed(np.arange(len(self._table.hosts)), self._now)  # caps allow a burst, too

    def set_host(
        self,
        host: HostName,
        min_gap: float | None = None,
        max_in_flight: int | None = None,
        rate_cap: float | None = None,
        blocked_until: float | None = None,
    ) -> None:
        """Change limits of one host, which need not have pages yet; None keeps a limit. As `set_hosts`."""
        self.set_hosts([host], min_gap, max_in_flight, rate_cap, blocked_until)

    def set_hosts(
        self,
        hosts: Sequence[HostName],
        min_gap: ArrayLike | None = None,
        max_in_flight: ArrayLike | None = None,
        rate_cap: ArrayLike | None = None,
        blocked_until: ArrayLike | None = None,
    ) -> None:
        """Change limits of hosts, which need not have pages yet. O(hosts).

        Each limit is one value for all hosts or one for each; None keeps the limit as it is.

        Args:
            hosts: their names, each once.
            min_gap: least time between the starts of two crawls.
            max_in_flight: most crawls at once.
            rate_cap: most crawls per unit time; infinity: no cap.
            blocked_until: time before which no crawl starts.
        """
        given = {
            "min_gap": min_gap,
            "max_in_flight": max_in_flight,
            "rate_cap": rate_cap,
            "blocked_until": blocked_until,
        }
        limits = {field: values for field, values in given.items() if values is not None}
        numbers = self._table.hosts.set_limits(hosts, self._now, limits)
        self._policy.hosts_changed(numbers, self._now)

    def host_number(self, host: HostName) -> int | None:
        """Return the row of a host in sums by host (`estimates.HostSums`), None if the host is unknown. O(1)."""
        return self._table.hosts.find(checked_name(host))

    def explain(self, page: int, now: float) -> Explanation:
        """Explain why a page is, or is not, crawled at this time; change nothing. O(1)."""
        from recrawl.scheduling.explain import Quote, explain_page

        slot = self._table.slot_of(page)
        now = max(check_time(now), self._now)
        learns = self._learner is not None and self._table.pages["flags"][slot] & LEARNS != 0
        interval = self._get_learner().interval(slot) if learns else None
        return explain_page(self._table, slot, now, Quote(self.price, self._bucket, interval))

    def status(self) -> Status:
        """Return prices, counts and where the pages are. O(pages), a fraction of a second for ten million."""
        table, price = self._table, self.price
        in_flight, on_offer, waiting = table.count_states()
        return Status(
            now=self._now,
            budget=self.budget,
            price=price,
            pages=table.live,
            in_flight=in_flight,
            on_offer=on_offer,
            waiting=waiting,
            hosts=len(table.hosts),
            hosts_saturated=table.hosts.saturated(price),
            counts=replace(self.counts),
        )

    def ids(self) -> Ids:
        """Return the ids of all pages, in order of their slots. O(pages)."""
        return self._table.ids_of(np.flatnonzero(self._table.pages["state"][: self._table.used] != FREE))

    def estimator(self, unit_s: float = 86_400.0) -> Estimator:
        """Return an `Estimator` of the freshness of all pages, which reads this scheduler whenever it looks.

        Args:
            unit_s: seconds in one unit of the caller's time; a day unless given.
        """
        from recrawl.scheduling.estimates import Estimator

        return Estimator(self._table, unit_s, self._policy.price)

    def budget_curve(self, gone: Ids | None = None, correction: Correction | None = None) -> list[Point]:
        """Return the freshness and the price at budgets from an eighth to eight times the present one.

        The plan is for the objective of the scheduler, `freshness` or `harmonic`, and for pages with one of these.
        Empty without such pages or budget. Gaps between crawls of a host count as caps on its pages, least intervals as
        caps on single pages. Signals are left out: with them the same budget buys more. O(pages), some seconds for
        many pages. May run in a thread.

        Args:
            gone: ids of pages to leave out, because they no longer exist on the web.
            correction: factors on the believed change rates.
        """
        from recrawl.learning.calibration import NO_CORRECTION
        from recrawl.scheduling.budget_curve import budget_curve

        objective: Objective = "freshness" if self._objective == "freshness" else "harmonic"
        return budget_curve(self._table, self.budget, objective, gone, correction or NO_CORRECTION)

    def host_price(self, host: HostName) -> float:
        """Return what a crawl of a host must be worth by unit of cost: above `price` if the host is saturated. O(1)."""
        number = self.host_number(host)
        if number is None:
            raise InvalidInput(f"is {host!r}, which no page or limit has named", field="host")
        return max(self.price, float(self._table.hosts.records["price"][number]))

    @overload
    def snapshot(self, path: None = None) -> bytes: ...

    @overload
    def snapshot(self, path: FilePath) -> None: ...

    def snapshot(self, path: FilePath | None = None) -> bytes | None:
        """Return the whole state as bytes, or write it to a file, which is replaced atomically. O(pages)."""
        from recrawl.scheduling.snapshot import to_bytes, to_file

        if path is None:
            return to_bytes(self)
        to_file(self, path)
        return None

    @staticmethod
    def restore(source: Source) -> Scheduler:
        """Return the scheduler of a snapshot: bytes, a path or an open file. O(pages).

        The same calls then give the same results, except that policies which follow a plan make a new one.
        """
        from recrawl.scheduling.snapshot import from_source

        return from_source(source)

    @contextmanager
    def _withdrawn(self, slots: Slots) -> Iterator[None]:
        """Withdraw the waiting ones of these pages from the policy, and place them again at the end of the block."""
        waiting = slots[self._table.pages["state"][slots] != IN_FLIGHT]
        self._policy.withdraw(waiting, self._now)
        yield
        self._policy.place(waiting, self._now)

    def _get_learner(self) -> Learner:
        if self._learner is None:
            self._learner = Learner(self._table, self._tuning.prior, self._tuning.memory)
        self._learner.scale(self._bucket.rate / max(self._table.live, 1))
        return self._learner

    def _clock(self, now: float) -> float:
        """Check the time of a call and advance the clock; return the time it is now."""
        return self._advance(check_time(now))

    def _advance(self, now: float) -> float:
        if now < self._now:
            self.counts.clock_went_back += 1
        else:
            self._now = now
        return self._now

    def _end_flight(self, slots: Slots, now: float) -> tuple[float, Clocks]:
        """Take pages out of flight; return the time it is then, and the clock at which each page was taken."""
        taken_at = np.empty(len(slots), dtype=np.int64)
        bad = end_flight(self._table.pages, self._table.hosts.records, self._table.flights, slots, taken_at)
        if bad >= 0:
            raise not_in_flight(bad)
        return self._advance(now), taken_at

    def _drop(self, slots: Slots) -> None:
        in_flight = self._table.pages["state"][slots] == IN_FLIGHT
        self._policy.withdraw(slots[~in_flight], self._now)
        if in_flight.any():
            self._end_flight(slots[in_flight], self._now)
        self._table.free(slots)
        self._hosts_changed(slots[in_flight])

    def _hosts_changed(self, slots: Slots) -> None:
        numbers = hosts_of(self._table, slots)
        if len(numbers):
            self._policy.hosts_changed(numbers, self._now)

    # Former names, kept for callers.
    believe_in = set_prior
    flies = in_flight
