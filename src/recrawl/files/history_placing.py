"""Where the changes of a crawl log lie: each at a point of the interval it was seen at the end of, uniform by a seed.

A log knows that a page changed between two crawls, not when; more changes than one cannot be told from one. A page
exists from its first crawl. Nothing here does IO or loads Arrow.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from recrawl.files.history import CHANGED, CREATED, ChangeHistory, ObservedCrawls, PageEvents

_STREAM = 0x6372  # of random numbers, apart from others of the same seed


def place_changes(crawls: ObservedCrawls, seed: int) -> PageEvents:
    """Creations at first crawls, and a change somewhere in each interval that saw one. O(crawls · log crawls)."""
    by_page = np.lexsort((crawls.time, crawls.page))
    page, time, changed = crawls.page[by_page], crawls.time[by_page], crawls.changed[by_page]
    again = np.append(False, page[1:] == page[:-1])
    seen = np.flatnonzero(again & changed)
    random = np.random.Generator(np.random.PCG64([seed, _STREAM]))
    # After the earlier crawl, and no later than the one that saw it.
    when = time[seen] - random.random(len(seen)) * (time[seen] - time[seen - 1])
    every_page = np.concatenate([page[~again], page[seen]])
    every_time = np.concatenate([time[~again], when])
    every_kind = np.repeat(np.array([CREATED, CHANGED], dtype=np.int8), [len(page) - int(again.sum()), len(seen)])
    order = np.argsort(every_time, kind="stable")
    return PageEvents(every_page[order], every_time[order], every_kind[order])


def place_again(history: ChangeHistory, seed: int) -> ChangeHistory:
    """A history as the same crawls may have seen it: a crawl log with its changes elsewhere; any other as it is."""
    return history if history.crawls is None else replace(history, events=place_changes(history.crawls, seed))
