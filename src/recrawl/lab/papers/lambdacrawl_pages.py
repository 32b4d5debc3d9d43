"""Pages shaped like those of the LambdaCrawl paper (Kolobov et al. 2019), whose data are not public.

What the paper says of its 18.5 million pages: importance is skewed, most of it below 1,000 (figure 5); most pages
change once in a few days (figure 6); rates come from an estimator that clips them to [0.0005, 7] a day; 4 % have
complete observations; the budget is 0.2 crawls per page and day. The laws chosen here: importance lognormal around 100
(6 % are above 1,000), change rate lognormal around once in four days, independent of each other. Complete pages are
drawn at random; where they are to hold more than their share of importance, it is scaled up.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from recrawl.pages import Floats

Variant = Literal["share", "important"]
VARIANTS: tuple[Variant, Variant] = ("share", "important")
VARIANT_NAMES = {
    "share": "complete pages hold 4 % of importance",
    "important": "complete pages hold 26 % of importance",
}

CRAWLS_PER_PAGE = 0.2
MEDIAN_DAYS = 4.0
"""The typical page changes once in so many days."""

_COMPLETE_SHARE = 0.04
_COMPLETE_IMPORTANCE = 0.26
_IMPORTANCE_MEDIAN, _IMPORTANCE_SPREAD = 100.0, 1.5
_RATE_SPREAD = 1.0
_RATE_RANGE = (0.0005, 7.0)
_SEED = 2019


def draw_pages(pages: int, variant: Variant, repetition: int) -> dict[str, Floats]:
    """Draw a population; complete pages have recall and precision 1, the others 0. O(pages).

    >>> columns = draw_pages(1000, "important", 0)
    >>> complete = columns["recall"] == 1
    >>> share = columns["importance"][complete].sum() / columns["importance"].sum()
    >>> int(complete.sum()), round(float(share), 3)
    (40, 0.26)
    """
    random = np.random.Generator(np.random.PCG64([_SEED, pages, repetition]))
    importance = _IMPORTANCE_MEDIAN * np.exp(_IMPORTANCE_SPREAD * random.standard_normal(pages))
    change_rate = np.clip(np.exp(_RATE_SPREAD * random.standard_normal(pages)) / MEDIAN_DAYS, *_RATE_RANGE)
    complete = np.zeros(pages)
    complete[random.permutation(pages)[: round(_COMPLETE_SHARE * pages)]] = 1.0
    if variant == "important":
        held = float(importance @ complete)
        rest = float(importance.sum()) - held
        wanted = rest * _COMPLETE_IMPORTANCE / (1 - _COMPLETE_IMPORTANCE)
        importance = np.where(complete == 1.0, importance * (wanted / held), importance)
    return {"importance": importance, "change_rate": change_rate, "recall": complete, "precision": complete.copy()}


def complete_only(columns: dict[str, Floats]) -> dict[str, Floats]:
    """The pages with complete observations."""
    complete = columns["recall"] == 1.0
    return {name: values[complete] for name, values in columns.items()}


def as_incomplete(columns: dict[str, Floats]) -> dict[str, Floats]:
    """The same pages, of which nothing is known but what crawls show."""
    return {name: columns[name] for name in ("importance", "change_rate")}
