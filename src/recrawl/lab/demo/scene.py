"""What a demo is made of: so many pages, so many crawls a second, and a web that changes five times as fast.

A web whose pages change a few times a day would take weeks to show anything, so its time runs faster than ours. The
budget is in crawls a real second; the web is sped up until it buys so many crawls for each change of a page, on
average.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recrawl.errors import InvalidInput
from recrawl.lab.livingweb.world_settings import Interest, WorldSettings
from recrawl.tracker.clock import DAY_S

CRAWLS_A_CHANGE = 0.2
CHANGES_A_DAY = 24.0
DECADES = 3.0
MOST_PAGES = 100_000
MOST_BUDGET = 2_000.0
_LONGEST_SPEEDUP = 1e5
_PAGES_A_HOST = 10
_MOST_HOSTS = 500
# Hosts that close pages, fail for hours or lie about their validators would be measured as ours, and the shadows do not
# meet them: the demo compares schedules.
_CALM: dict[str, Any] = {"robots": "allow", "trouble": "calm", "etag": "true", "modified": "true"}


@dataclass(frozen=True, slots=True)
class Scene:
    """The numbers of a demo.

    Args:
        pages: of the web.
        budget_per_s: crawls a real second.
        interest: how importance is spread over pages.
        crawls_a_change: for the average page.
        seed: another seed, another web.
    """

    pages: int = 2000
    budget_per_s: float = 200.0
    interest: Interest = "pareto"
    crawls_a_change: float = CRAWLS_A_CHANGE
    seed: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.pages <= MOST_PAGES:
            raise InvalidInput(f"is {self.pages}, but must lie between 1 and {MOST_PAGES}", field="pages")
        if not 0 < self.budget_per_s <= MOST_BUDGET:
            raise InvalidInput(
                f"is {self.budget_per_s:g} crawls a second, but must be above 0 and at most {MOST_BUDGET:g}",
                field="budget",
            )
        if self.speedup > _LONGEST_SPEEDUP:
            raise InvalidInput(
                f"is {self.budget_per_s:g} crawls a second, which is too much for {self.pages} pages", field="budget"
            )

    @property
    def hosts(self) -> int:
        """Virtual hosts of the web."""
        return max(1, min(self.pages // _PAGES_A_HOST, _MOST_HOSTS))

    @property
    def speedup(self) -> float:
        """Seconds of the web in one real second."""
        changes_a_second = self.budget_per_s / self.pages / self.crawls_a_change
        return changes_a_second * DAY_S / CHANGES_A_DAY

    @property
    def budget_per_day(self) -> float:
        """Crawls in a day of the web."""
        return self.budget_per_s * DAY_S / self.speedup

    def world(self, epoch: int) -> WorldSettings:
        """The web that begins at this time."""
        return WorldSettings(
            pages=self.pages,
            hosts=self.hosts,
            seed=self.seed,
            epoch=epoch,
            changes_per_day=CHANGES_A_DAY,
            laws="poisson",  # under which a page's rate is all that there is to know, and the optimum is one
            decades=DECADES,
            interest=self.interest,
            kilobytes=3.0,
            every_host=_CALM,
        )
