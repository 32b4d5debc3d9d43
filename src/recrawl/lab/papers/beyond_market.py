"""One price for sources and new pages against ECHO, which pays for every new page, and against a fixed quota.

The market, ECHO-newpages and the quota crawl the same graphs and learn in the same way (`lab/simulation/news.py`).
"""

from __future__ import annotations

import numpy as np

from recrawl.lab.papers.echo import CONFIRMING, GRAPH_NOTES, Size, quality_panel, quality_table, run_graphs, size_note
from recrawl.lab.papers.experiment import Experiment, Scale, mean_finding
from recrawl.lab.worlds.news import PAPER_SITES
from recrawl.plots.experiments import BarPanel, Series, bars_figure

POLICIES = ("fixed-quota", "echo-newpages", "market")
RATES = (0.025, 0.05, 0.1, 0.2)
_RIVAL_NAMES = {"against_newpages": "ECHO-newpages", "against_quota": "the quota"}
_RIVALS = {"against_newpages": "echo-newpages", "against_quota": "fixed-quota"}
_MARKET = (
    "Each crawl goes to the largest value, of a page P·exp(−κ·age) or of a source, which counts only pages worth the "
    "price, and only pages that no source had shown before. The price moves so that in one slot of ten nothing is "
    "worth it; that slot goes to the source not crawled for longest. This last rule was added after a first run on "
    "small graphs, in which sources of which nothing was known were never looked at again."
)


def market_against_quotas(scale: Scale) -> Experiment:
    """Hits captured by one price, by ECHO-newpages and by ECHO's sources with half of the crawls, over budgets."""
    return compare(Size(20, 4) if scale.quick else Size(PAPER_SITES, 4, CONFIRMING), scale.workers)


def compare(size: Size, processes: int = 1) -> Experiment:
    """Run the three on graphs of a size."""
    outcomes = run_graphs(size, POLICIES, RATES, processes)
    quality = np.array([outcome.quality for outcome in outcomes])
    market = quality[:, POLICIES.index("market")]
    ratios = {claim: market / quality[:, POLICIES.index(rival)] for claim, rival in _RIVALS.items()}
    found = {
        claim: [mean_finding(f"beyond.market.{claim}", ratio[:, r].tolist()) for r in range(len(RATES))]
        for claim, ratio in ratios.items()
    }
    gains = BarPanel(
        "One price over its rivals", "ratio of hits captured", [f"{rate:g} crawls/s" for rate in RATES],
        [
            Series(f"over {_RIVAL_NAMES[claim]}", *np.array([each[1:] for each in findings]).T)
            for claim, findings in found.items()
        ],
        reference=1.0,
    )  # fmt: skip
    seen = "; ".join(
        f"{rate:g} crawls a second: {found['against_newpages'][r].value:.3f} of ECHO-newpages, "
        f"{found['against_quota'][r].value:.3f} of the quota"
        for r, rate in enumerate(RATES)
    )
    return Experiment(
        "beyond.market",
        "One price against ECHO and against quotas",
        quality_table(outcomes, POLICIES, RATES),
        tuple(min(findings, key=lambda each: each.value) for findings in found.values()),
        lambda: bars_figure([quality_panel(outcomes, POLICIES, RATES), gains]),
        (*GRAPH_NOTES, _MARKET, f"Hits captured by one price, at {seen}.", *size_note(size)),
    )
