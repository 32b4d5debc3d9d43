"""How long the parts of a tracker wait for one another: between two looks at something, before they try again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Waiting times of a tracker, in seconds. They trade latency for load; no result depends on them.

    Args:
        tick_s: between two rounds of taking pages.
        together_s: fetches that end within this time are settled together.
        retake_s: until a page is looked at again that cannot be leased yet; by the tracker's clock.
        down_probe_s: between two fetches while the network is down; by the tracker's clock.
        commit_s: how long a result waits for others to be written with it.
        commit_retry_s: before a batch is written again that the store refused; doubled each time.
        commit_longest_retry_s: bound of that.
        flush_s: how long pages that come back wait for their last result to be durable.
        orders_s: between two looks at the orders of commands.
        more_orders_s: the same, if there was one: more may follow.
        keep_s: between two writes of signals, and two looks at sources.
        note_s: between two notes of time, hosts and counts.
        forget_s: between two rounds of retention.
        upkeep_retry_s: before upkeep goes on after the store failed.
        sink_s: between two looks of a sink for events.
        companions_s: for what runs beside a tracker to end by itself.
    """

    tick_s: float = 0.05
    together_s: float = 0.01
    retake_s: float = 0.5
    down_probe_s: float = 5.0
    commit_s: float = 0.1
    commit_retry_s: float = 0.1
    commit_longest_retry_s: float = 5.0
    flush_s: float = 2.0
    orders_s: float = 0.25
    more_orders_s: float = 0.02
    keep_s: float = 1.0
    note_s: float = 5.0
    forget_s: float = 3600.0
    upkeep_retry_s: float = 1.0
    sink_s: float = 0.5
    companions_s: float = 5.0


TIMING = Timing()
"""Of every tracker that is told nothing else."""
