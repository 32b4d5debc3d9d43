"""WIC's experiments at a small size: every claim has its number, the same each time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from recrawl.lab.papers import wic
from recrawl.lab.papers.beyond_scheduler import captured, draw_pages
from recrawl.lab.papers.claims import load_claims
from recrawl.lab.papers.wic import stationary_gain, stationary_index
from recrawl.lab.papers.wic_guarantee import Captures, WicUtilities, best_schedule, guarantee

SMALL = wic.Size(pages=150, instants=120, days=2, coarse=True)


def test_every_claim_has_one_number() -> None:
    """In the order of the claims."""
    made = [
        wic.noise_experiment(SMALL, "wic.fig5", "spread", "wic.fig5.graceful_spread"),
        wic.noise_experiment(SMALL, "wic.fig6", "false_share", "wic.fig6.false_rates"),
        wic.completeness(SMALL),
        wic.delays(SMALL),
        wic.tradeoff(SMALL),
        guarantee(cases=3),
    ]
    assert [finding.claim for one in made for finding in one.findings] == [
        claim.id for claim in load_claims().values() if claim.paper == "wic"
    ]
    assert [claim.experiment for claim in load_claims().values() if claim.paper == "wic"] == [
        one.name for one in made for _ in one.findings
    ]
    for one in made:
        assert all(np.isfinite(finding[1:]).all() for finding in one.findings)
        assert {len(row) for row in one.table.rows} == {len(one.table.columns)}
        assert one.draw is not None


def test_the_same_size_gives_the_same_table() -> None:
    """To the bit."""
    assert wic.tradeoff(SMALL).table == wic.tradeoff(SMALL).table


def test_the_best_schedule_is_the_best_of_all() -> None:
    """Against trying every sequence of pages."""
    random = np.random.default_rng(1)
    importance, chances, captures = random.random(3), random.random((4, 3)), Captures(changes_kept=1, urgency=0.7)

    def gained(sequence: tuple[int, ...]) -> float:
        pages, total = WicUtilities(importance, captures), 0.0
        for chance, page in zip(chances, sequence, strict=True):
            pages.advance(chance)
            total += float(pages.utilities[page])
            pages.captured([page])
        return total

    best = max(gained(sequence) for sequence in itertools.product(range(3), repeat=4))
    assert best_schedule(captures, importance, chances) == pytest.approx(best)


def test_the_greedy_keeps_its_guarantee() -> None:
    """On every small case."""
    assert guarantee(cases=5).findings[0].value >= 1.0


@pytest.mark.parametrize("overwrites", [False, True])
def test_the_index_captures_more_than_the_greedy(overwrites: bool) -> None:
    """Where pages change alike in every instant."""
    pages = draw_pages(120, 1, 0.9, overwrites)
    assert captured(pages, stationary_index, 6, 800) > captured(pages, stationary_gain, 6, 800)
