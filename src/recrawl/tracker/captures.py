"""Pages of groups with the objective `captures`: what is worth capturing on them, and how often that comes.

The scheduler wants their change rates given. They are learned here by the same filter as all others, kept in the same
bytes with the page, and told on when they have changed enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.learning.filter_state import PAGE_STATE
from recrawl.learning.online_filter import OnlineFilter
from recrawl.scheduling.columns import PageColumns
from recrawl.scheduling.learner import TURN_DOUBT, prior_around
from recrawl.scheduling.scheduler import Scheduler
from recrawl.scheduling.types import Tuning
from recrawl.store.pages import PageStore
from recrawl.store.rows import PageRow
from recrawl.tracker.clock import DAY_S
from recrawl.tracker.settings.settings import GroupRule, Settings

Numbers = NDArray[np.int64]
CAPTURES = "captures"
_BATCH = 1000
_NONE = -1
_STEP = 0.15  # of the logarithm of a rate: less is not worth telling
_LEAST_RATE, _MOST_RATE = 1e-9, 1e9  # changes a day
_NO_GROUP = GroupRule("", ("*",), objective="captures")


class CaptureBook:
    """Change rates of pages whose changes are to be captured.

    Args:
        scheduler: learns the rates.
        settings: groups, and the budget.
    """

    def __init__(self, scheduler: Scheduler, settings: Settings) -> None:
        self._scheduler = scheduler
        self._settings = settings
        self._rules = [_NO_GROUP, *(group for group in settings.groups if group.objective == CAPTURES)]
        self._places: NDArray[np.int32] = np.full(0, _NONE, dtype=np.int32)  # by page of the store
        self._rule: list[int] = []  # by place
        self._told: list[float] = []
        self._filter: OnlineFilter | None = None

    async def load(self, store: PageStore) -> None:
        """Note which pages are in groups of this kind. O(their pages)."""
        for rule in self._rules[1:]:
            after = 0
            while pages := await store.list_pages(after, _BATCH, group=rule.name):
                after = pages[-1].id
                self.note(pages)

    def note(self, pages: Iterable[PageRow]) -> None:
        """Note the groups of pages, before they enter the scheduler. O(pages), amortised."""
        numbers = {rule.name: number for number, rule in enumerate(self._rules)}
        for page in pages:
            if page.objective == CAPTURES:
                self._rule[self._place(page.id)] = numbers.get(page.group, 0)

    def entries(self, pages: Numbers, beliefs: NDArray[np.uint8]) -> Iterator[tuple[Numbers, PageColumns]]:
        """What the scheduler takes of pages, group by group: their places among `pages`, and columns.

        Args:
            pages: of the store.
            beliefs: what was learned of each, as bytes; without columns if nothing was.
        """
        places = np.array([self._place(page) for page in pages.tolist()], dtype=np.int64)
        learned = self._learned()
        if beliefs.shape[-1] == PAGE_STATE.itemsize:
            state = np.ascontiguousarray(beliefs).reshape(-1).view(PAGE_STATE)
            learned.state[places] = state
            learned.state["prior_row"][places] = 0
        rates = np.clip(learned.estimate(places).mean, _LEAST_RATE, _MOST_RATE)
        rules = np.array([self._rule[place] for place in places.tolist()])
        for place, rate in zip(places.tolist(), rates.tolist(), strict=True):
            self._told[place] = rate
        for number in np.unique(rules).tolist():
            chosen = np.flatnonzero(rules == number)
            yield chosen, _terms(self._rules[number], rates[chosen])

    def crawled(self, page: PageRow, scheduled: int, gap_s: float | None, changed: bool | None) -> None:
        """A page was crawled; its rate may be another."""
        place, learned = self._place(page.id), self._learned()
        if changed is None or gap_s is None:
            return
        learned.update(place, gap_s / DAY_S, changed)
        rate = min(max(float(learned.estimate([place]).mean[0]), _LEAST_RATE), _MOST_RATE)
        if abs(math.log(rate / self._told[place])) > _STEP:
            self._told[place] = rate
            columns = _terms(self._rules[self._rule[place]], rate)
            columns["importance"] = page.importance
            self._scheduler.update([scheduled], **columns)

    def belief(self, page_id: int) -> bytes:
        """What was learned of a page, to be kept with it."""
        place = self._place(page_id)
        return self._learned().state[place : place + 1].tobytes()

    def _learned(self) -> OnlineFilter:
        if self._filter is None:
            rate = self._settings.budget_per_day / max(len(self._scheduler), len(self._rule), 1)
            self._filter = OnlineFilter(prior_around(rate), memory=Tuning().memory, doubt=TURN_DOUBT)
        if len(self._filter) < len(self._rule):
            self._filter.add(len(self._rule) - len(self._filter))
        return self._filter

    def _place(self, page_id: int) -> int:
        """Where a page is in the filter, which may be new."""
        if page_id >= len(self._places):
            more = max(page_id + 1, len(self._places) * 3 // 2) - len(self._places)
            self._places = np.concatenate([self._places, np.full(more, _NONE, dtype=np.int32)])
        if self._places[page_id] == _NONE:
            self._places[page_id] = len(self._rule)
            self._rule.append(0)
            self._told.append(1.0)
        return int(self._places[page_id])


def _terms(rule: GroupRule, rates: ArrayLike) -> PageColumns:
    """What a group says of captured changes, and how often they come, as the scheduler takes it."""
    terms: PageColumns = {
        "objective": "captures",
        "change_rate": rates,
        "decay": DAY_S / rule.urgency_s,
        "life": rule.life,
    }
    if rule.life == "window":
        terms["window"] = rule.window_s / DAY_S
    return terms
