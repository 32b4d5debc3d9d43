"""The group `scheduler`: how fast it is, how little it keeps of a page, and how close to the best its crawls come.

Speed comes first, while the process is young and small.
"""

from __future__ import annotations

from recrawl.bench.measure import Measure
from recrawl.bench.scheduler_quality import quality_measures
from recrawl.bench.scheduler_speed import speed_measures


def measures() -> tuple[Measure, ...]:
    """The measures of the group, in the order they run."""
    return (*speed_measures(), *quality_measures())
