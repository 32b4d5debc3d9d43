"""What a competitor leaves behind: which page it crawled when. Everything is measured from that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.pages import Floats

PageNumbers = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class CrawlLog:
    """Crawls in order of time: the page's number in its world, and when.

    A crawl of a page that was removed is in it too, and found nothing.
    """

    page: PageNumbers
    time: Floats

    def __len__(self) -> int:
        return len(self.page)
