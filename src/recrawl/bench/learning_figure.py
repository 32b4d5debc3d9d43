"""The figure of the group `learning`: precision and recall of signals, learned by likelihood and by counting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recrawl.bench.signal_worlds import audited_pages
from recrawl.plots.experiments import Estimates, trust_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PAGES, _SEED = 300, 1


def figure() -> Figure:
    """Draw what both estimators make of the pages of NCIS (Busa-Fekete et al. 2025), appendix E."""
    from recrawl.learning.signal_counting import count_trust
    from recrawl.learning.trust import fit_trust

    world = audited_pages(_PAGES, _SEED)
    fitted, counted = fit_trust(world.histories, prior=0.0), count_trust(world.histories)
    return trust_figure(
        Estimates(world.precision, fitted.precision[:, 0], counted.precision[:, 0]),
        Estimates(world.recall, fitted.recall[:, 0], counted.recall[:, 0]),
    )
