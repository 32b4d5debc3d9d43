"""One price against ECHO at a small size: both claims have their number."""

from __future__ import annotations

import numpy as np

from recrawl.lab.papers.beyond import compare
from recrawl.lab.papers.claims import load_claims
from recrawl.lab.papers.echo import Size


def test_every_claim_has_one_number() -> None:
    """The least over budgets, and the figure can be drawn."""
    made = compare(Size(sites=1, graphs=2))
    claims = [claim.id for claim in load_claims().values() if claim.experiment == "beyond.market"]
    assert [finding.claim for finding in made.findings] == claims
    assert all(np.isfinite(finding[1:]).all() for finding in made.findings)
    assert made.draw is not None
    assert len(made.draw().axes) == 2
