"""How the value of a page grows: the codes in a page's `law`, and what `gain` and `decay` mean for each."""

from __future__ import annotations

FRESHNESS = 0  # (gain/decay) g(decay·elapsed): freshness, or changes captured before they fade
HARMONIC = 1  # (gain/decay) h(decay·elapsed)
WINDOW = 2  # 0 until `decay` time has passed, then gain·decay: captured changes that stay for a window
SOURCE = 3  # as FRESHNESS, but only new pages still worth their price count; gain is profit × rate of new pages
ONCE = 4  # gain·e^{−decay·elapsed} since it was found; crawled once
LEARNED_FRESHNESS = 5  # change rate by a Gamma distribution: mean `decay`, shape `belief`
LEARNED_HARMONIC = 6
NOISY_FRESHNESS = 7  # with change-indicating signals
NOISY_HARMONIC = 8

NAMES = (
    "freshness",
    "harmonic",
    "window",
    "source",
    "once",
    "learned freshness",
    "learned harmonic",
    "freshness with signals",
    "harmonic with signals",
)
