"""What a running tracker does on the side: orders, leases, signals, what all pages teach, the clock, retention."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from recrawl.errors import StoreError, StoreTaken
from recrawl.tracker.commands.client import serve_orders
from recrawl.tracker.commands.commands import Hand
from recrawl.tracker.commands.status import note_of, to_fact
from recrawl.tracker.outside import expire
from recrawl.tracker.refitting import Refitting
from recrawl.tracker.tracker import Tracker


async def keep_up(tracker: Tracker) -> None:
    """Run beside a tracker until it stops; a store in trouble is tried again."""
    hand = Hand(tracker.store, tracker.settings, tracker)
    # Periods go by the steady clock, whatever the pace of the tracker's own.
    timing, now, steady = tracker.desk.timing, tracker.desk.clock.now, asyncio.get_running_loop().time
    hearing, refitting = tracker.desk.hearing, Refitting(tracker.desk)
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
                if tracker.sources is not None:
                    await tracker.sources.tend()
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
            tracker.desk.say(f"upkeep waits for the store: {error}")
            await asyncio.sleep(timing.upkeep_retry_s)
        await tracker.pause(timing.more_orders_s if served else timing.orders_s)
    with suppress(StoreError):
        await tracker.store.save_facts(to_fact(note_of(tracker, since)))
