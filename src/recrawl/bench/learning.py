"""The group `learning`: how right and how fast everything learned from crawls is.

Each part of learning has a module with its measures; to add a part, add its measures here and to the documentation.
"""

from __future__ import annotations

from recrawl.bench.learning_filter import filter_measures
from recrawl.bench.learning_rates import rate_measures
from recrawl.bench.learning_signals import signal_measures
from recrawl.bench.measure import Measure


def measures() -> tuple[Measure, ...]:
    """The measures of the group, in the order they run."""
    return (*rate_measures(), *filter_measures(), *signal_measures())
