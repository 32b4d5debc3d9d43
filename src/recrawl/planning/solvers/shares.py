"""The rules of thumb: the budget in equal shares, or in proportion to change rate or importance.

They are what most crawlers do, and the yardstick for everything else. They ignore what a crawl costs and have no
price; floors, ceilings and host caps are kept, the rest of the budget is shared by the same rule.
"""

from __future__ import annotations

import numpy as np

from recrawl.pages import Floats, Pages
from recrawl.planning.draft import Draft
from recrawl.planning.laws import SHARE


def draft_uniform(pages: Pages) -> Draft:
    """Draft the same rate for every page."""
    return _share(pages, np.ones(len(pages)))


def draft_proportional(pages: Pages) -> Draft:
    """Draft rates in proportion to the change rate, as adaptive intervals do."""
    return _share(pages, pages.change_rate)


def draft_importance(pages: Pages) -> Draft:
    """Draft rates in proportion to importance."""
    return _share(pages, pages.importance)


def _share(pages: Pages, weight: Floats) -> Draft:
    return Draft(SHARE, "poisson", weight, pages.change_rate, charged=False)
