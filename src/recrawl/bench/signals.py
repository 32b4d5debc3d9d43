"""The group `signals`: hearing of changes, finding new pages, and one price for both.

Trust in signals (`signals_trust.py`), news (`signals_news.py`) and both in one market (`signals_mixed.py`) are
simulated, with the scheduler itself. A tracker is flooded with pings (`signals_flood.py`), reads sitemaps of the
living web (`signals_living.py`), is told of changes by its sites (`signals_living_trust.py`), finds its news
(`signals_living_news.py`), and does both with one budget (`signals_living_mixed.py`). What a signal costs the scheduler
is timed here.
"""

from __future__ import annotations

from recrawl.bench.measure import Bound, Measure, Reading
from recrawl.bench.scheduler_speed import signal_speeds
from recrawl.bench.signals_flood import flood_measures
from recrawl.bench.signals_living import living_measures
from recrawl.bench.signals_living_mixed import living_mixed_measures
from recrawl.bench.signals_living_news import living_news_measures
from recrawl.bench.signals_living_trust import living_trust_measures
from recrawl.bench.signals_mixed import mixed_measures
from recrawl.bench.signals_news import news_measures
from recrawl.bench.signals_trust import trust_measures

_PAGES = 1_000_000
_SIGNALS = 500_000
_MILLION = 1e6


def measures() -> tuple[Measure, ...]:
    """The measures, in the order they run; nothing is computed yet."""
    speed = Measure("signal_calls", "million/s", "none", Bound("value", floor=1), read_speed)
    simulated = (*trust_measures(), *news_measures(), *mixed_measures())
    living = (*living_measures(), *living_trust_measures(), *living_news_measures(), *living_mixed_measures())
    return (*simulated, speed, *flood_measures(), *living)


def read_speed(pages: int = _PAGES, signals: int = _SIGNALS) -> Reading:
    """Signals that a scheduler takes in for each second of CPU time, a thousand at a time, crawls in between."""
    found = sorted(speed / _MILLION for speed in signal_speeds(pages, "freshness", signals))
    return Reading(found[-1], None, "runs of " + ", ".join(f"{speed:.2f}" for speed in found))
