"""What a running tracker does on the side: orders, leases, signals, the fit of the prior, the clock, retention.

A tracker starts with rates around its budget for a page, which may be far off: then it spends its whole first round on
first copies while the copies that matter go stale, or gives pages up too early. How rates are spread over its pages
shows long before the rate of any one of them does, so the prior is fitted again as crawls come in.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from recrawl.errors import StoreError, StoreTaken
from recrawl.learning.population import fit_population
from recrawl.log import room_log
from recrawl.scheduling.learner import prior_around
from recrawl.tracker.commands.commands import CommandHandler, serve_orders
from recrawl.tracker.commands.status import note_of, to_fact
from recrawl.tracker.pipeline.dispatch import FEWEST_PAGES
from recrawl.tracker.remote_workers import expire
from recrawl.tracker.schedule import Schedule
from recrawl.tracker.tracker import Tracker
from recrawl.tracker.usage import Accounts

_LOG = room_log("tracker")
_MOST_PAGES = 8192
_ROUND_SHARE = 0.25  # of a round, between two fits
_LEAST_RATE = 1e-9  # crawls of a page in a day; with less there is nothing to learn from


class Refitting:
    """Fits the prior of a tracker's scheduler when it is due.

    Args:
        schedule: has the pages.
        accounts: say how many crawls were made.
    """

    def __init__(self, schedule: Schedule, accounts: Accounts) -> None:
        self._schedule = schedule
        self._accounts = accounts
        self._next = 0

    async def tend(self) -> bool:
        """Fit if part of a round of crawls has passed, and enough pages were crawled twice; whether it did."""
        crawls, pages = self._accounts.ended["fetched"], len(self._schedule)
        if crawls < self._next or pages < FEWEST_PAGES:
            return False
        scheduler = self._schedule.scheduler
        states, crawl_rate = scheduler.learned(_MOST_PAGES), scheduler.budget / pages
        if len(states) < FEWEST_PAGES or not crawl_rate > _LEAST_RATE:
            self._next = crawls + FEWEST_PAGES
            return False
        self._next = crawls + max(int(_ROUND_SHARE * pages), FEWEST_PAGES)
        try:
            prior = await asyncio.to_thread(fit_population, states, prior_around(crawl_rate))
            scheduler.set_prior(prior)
        except Exception:  # crawling goes on with what was believed before
            _LOG.exception("the spread of change rates could not be learned")
            return False
        return True


async def run_maintenance(tracker: Tracker) -> None:
    """Run beside a tracker until it stops; a store in trouble is tried again."""
    hand = CommandHandler(tracker.store, tracker.settings, tracker)
    # Periods go by the steady clock, whatever the pace of the tracker's own.
    timing, now, steady = tracker.timing, tracker.clock.now, asyncio.get_running_loop().time
    hearing, refitting = tracker.signals, Refitting(tracker.schedule, tracker.usage)
    since, keep_at, note_at, forget_at = now(), 0.0, 0.0, 0.0
    while not tracker.stopping:
        served = 0
        try:
            served = await serve_orders(tracker.store, hand, now)
            await expire(tracker)
            if hearing.trust.hosts:
                hearing.relearn(now())
            if steady() >= keep_at:
                keep_at = steady() + timing.keep_s
                await refitting.tend()
                await hearing.flush()
                await tracker.discovery.tend()
            if steady() >= note_at:
                note_at = steady() + timing.note_s
                await tracker.note_time()
                await tracker.store.save_facts(to_fact(note_of(tracker, since)))
            if steady() >= forget_at:
                forget_at = steady() + timing.forget_s
                kept = tracker.settings.retention
                await tracker.store.forget(now() - kept.observations_s, kept.versions)
        except StoreTaken:
            raise
        except StoreError as error:
            _LOG.warning("maintenance waits for the store: %s", error)
            await asyncio.sleep(timing.upkeep_retry_s)
        await tracker.pause(timing.more_orders_s if served else timing.orders_s)
    with suppress(StoreError):
        await tracker.store.save_facts(to_fact(note_of(tracker, since)))
