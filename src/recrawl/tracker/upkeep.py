"""What a running tracker does on the side: orders, leases that ran out, the clock, retention, a note on how it is."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from recrawl.errors import StoreError, StoreTaken
from recrawl.tracker.commands import Hand
from recrawl.tracker.orders import POLL_S, SOON_S, serve_orders
from recrawl.tracker.outside import expire
from recrawl.tracker.status_note import note_of, to_fact
from recrawl.tracker.tracker import Tracker

_NOTE_EVERY_S = 5.0
_FORGET_EVERY_S = 3600.0


async def keep_up(tracker: Tracker) -> None:
    """Run beside a tracker until it stops; a store in trouble is tried again."""
    hand = Hand(tracker.store, tracker.settings, tracker)
    now = tracker.desk.clock.now
    since = note_at = forget_at = now()
    while not tracker.stopping:
        served = 0
        try:
            served = await serve_orders(tracker.store, hand, now)
            await expire(tracker)
            if now() >= note_at:
                note_at = now() + _NOTE_EVERY_S
                await tracker.note_time()
                await tracker.store.save_facts(to_fact(note_of(tracker, since)))
            if now() >= forget_at:
                forget_at = now() + _FORGET_EVERY_S
                kept = tracker.settings.retention
                await tracker.store.forget(now() - kept.observations_s, kept.versions)
        except StoreTaken:
            raise
        except StoreError as error:
            tracker.desk.say(f"upkeep waits for the store: {error}")
            await asyncio.sleep(1.0)
        await tracker.pause(SOON_S if served else POLL_S)
    with suppress(StoreError):
        await tracker.store.save_facts(to_fact(note_of(tracker, since)))
