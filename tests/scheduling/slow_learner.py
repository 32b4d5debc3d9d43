"""What crawls teach, in plain NumPy: the slow twin of `scheduling/learner.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from recrawl.learning.filter import believe_many, update_many
from recrawl.scheduling.table.records import LEARNS, NOISY_FRESHNESS

_MEAN, _SHAPE = 0, 5
_SHORT, _MOST_AT_ONCE, _LEAST_SILENT, _MOST_DOUBT, _TAIL = 0.6, 8, 0.1, 4.0, 0.05


def learn_slowly(ledger: Any, law: Any, crawls: Any) -> None:
    """All pages without signals first, then all with them, each step for all pages at once."""
    slots, gaps, heard, changed = crawls
    taught = (ledger.pages["flags"][slots] & LEARNS != 0) & ~np.isnan(gaps)
    listening = ledger.pages["law"][slots] >= NOISY_FRESHNESS
    for chosen, learn in ((taught & ~listening, _without_signals), (taught & listening, _with_signals)):
        if chosen.any():
            learn(ledger, law, slots[chosen], gaps[chosen], heard[chosen], changed[chosen])
    believe_slowly(ledger, law, slots[taught])


def believe_slowly(ledger: Any, law: Any, slots: Any) -> None:
    numbers = believe_many(ledger.beliefs, law, slots, _TAIL)
    rates, shapes = numbers[:, _MEAN], numbers[:, _SHAPE]
    doubtful = ledger.pages["law"][slots] == NOISY_FRESHNESS
    rates[doubtful] *= ((1 + 0.5 / shapes) * np.exp(-np.minimum(1 / shapes, _MOST_DOUBT)))[doubtful]
    ledger.pages["decay"][slots] = rates
    ledger.pages["belief"][slots] = shapes


def _without_signals(ledger: Any, law: Any, slots: Any, gaps: Any, _: Any, changed: Any) -> None:
    update_many(ledger.beliefs, law, slots, gaps, changed)


def _with_signals(ledger: Any, law: Any, slots: Any, gaps: Any, heard: Any, changed: Any) -> None:
    signals = ledger.signals[slots]
    precision = signals["precision"].astype(np.float64)
    announced = np.minimum(signals["recall"].astype(np.float64), 1 - _LEAST_SILENT)
    silent_gaps, announced_gaps = gaps * (1 - announced), gaps * announced
    chance = _uniform(slots, gaps)
    true_signals = np.minimum(np.floor(heard * precision + chance), _MOST_AT_ONCE).astype(np.int64)
    quiet = np.exp(-ledger.pages["decay"][slots] * silent_gaps)
    silent = changed & (chance * (1 - (1 - precision) ** heard * quiet) < 1 - quiet)
    again = np.repeat(np.arange(len(slots)), true_signals)
    short = _SHORT * announced_gaps[again] / true_signals[again]
    rest = np.where(true_signals > 0, (1 - _SHORT) * announced_gaps, announced_gaps)
    update_many(
        ledger.beliefs,
        law._replace(notices_turns=False),
        np.concatenate([slots, slots, slots[again]]),
        np.concatenate([silent_gaps, rest, short]),
        np.concatenate([silent, np.zeros(len(slots), dtype=np.bool_), np.ones(len(again), dtype=np.bool_)]),
    )


def _uniform(slots: Any, gaps: Any) -> Any:
    words = slots.astype(np.uint64) * np.uint64(0xBF58476D1CE4E5B9) + gaps.view(np.uint64) * np.uint64(
        0x94D049BB133111EB
    )
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        words = (words ^ (words >> np.uint64(shift))) * factor
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
