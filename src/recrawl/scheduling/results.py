"""What the scheduler takes and gives beside arrays: signals, batches, explanations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from numpy.typing import ArrayLike

from recrawl.pages import Floats
from recrawl.scheduling.page_table import Ids


@dataclass(frozen=True, slots=True)
class Signal:
    """How far a kind of signal can be trusted, for one page or for each.

    Args:
        recall: probability that a change comes with this signal; 0: signals of this kind are ignored.
        precision: probability that such a signal means a change.
    """

    recall: ArrayLike
    precision: ArrayLike


class Batch(NamedTuple):
    """Pages to crawl, most valuable first, each in flight until settled.

    `values` is what each crawl is worth by unit of cost, `price` what a crawl must be worth at present.
    """

    ids: Ids
    values: Floats
    price: float

    def __len__(self) -> int:
        return len(self.ids)
