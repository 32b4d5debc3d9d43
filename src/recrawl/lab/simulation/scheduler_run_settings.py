"""How `recrawl.Scheduler` is run in a world: what it is told, what it must learn, and how it learns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from recrawl.errors import InvalidInput
from recrawl.learning.filter_state import Memory
from recrawl.learning.grid import RatePrior
from recrawl.pages import check_number

Rates = Literal["learned", "known"]
Hearing = Literal["nothing", "learned", "known"]
_MOST_TIMES = 100_000  # that a scheduler is asked in a run


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a scheduler is told of a world, and how it learns the rest.

    Attributes:
        objective: what pages are crawled for.
        policy: who chooses, a name of `recrawl.Scheduler`.
        rates: change rates are learned from crawls, or told: those of the law, or if there is none the mean over each
            page's life, which no crawler can know.
        hearing: signals are not heard, or heard with their quality learned from crawls, or told. Where nobody knows
            the quality it is learned.
        memory: what learning of change rates forgets.
        prior: of change rates that are learned; around what a page is crawled on average if None.
        section_depth: folders of a page's name that make a section; 0: the host is all there is. Sections stand for
            hosts in the prior and in trust.
        assumed_quality: recall and precision of signals before there are audits.
        relearn_interval: days between two looks at the quality of signals.
        audits_needed: crawls before the first look.
        audits_remembered: about how many of its latest audits count for a section; infinite: all.
        batch: crawls taken at a time; None: by `batch_size`.
    """

    objective: Literal["freshness", "harmonic"] = "harmonic"
    policy: str = "price"
    rates: Rates = "learned"
    hearing: Hearing = "learned"
    memory: Memory = field(default_factory=Memory)
    prior: RatePrior | None = None
    section_depth: int = 0
    assumed_quality: tuple[float, float] = (0.5, 0.5)
    relearn_interval: float = 14.0
    audits_needed: int = 50
    audits_remembered: float = float("inf")
    batch: int | None = None

    def __post_init__(self) -> None:
        if check_number(self.relearn_interval, "relearn_interval") <= 0:
            raise InvalidInput(f"is {self.relearn_interval!r}, but must be above 0", field="relearn_interval")
        if self.batch is not None and self.batch < 1:
            raise InvalidInput(f"is {self.batch!r}, but must be at least 1", field="batch")


def batch_size(pages: int, crawls: float) -> int:
    """Crawls taken at a time: a two-thousandth of the pages, so that waiting for the others is no part of the cycle.

    A long run takes more, up to a hundredth of the pages, so that it asks no more than 100,000 times.

    >>> batch_size(1_000, 50_000), batch_size(100_000, 2e6), batch_size(5_000, 1e6), batch_size(5_000, 1e7)
    (1, 50, 10, 50)
    """
    return max(pages // 2_000, min(int(crawls / _MOST_TIMES), pages // 100), 1)
