"""What no paper has: the experiments that set recrawl's own rules beside the papers' (claims `beyond.*`)."""

from __future__ import annotations

from collections.abc import Iterator

from recrawl.lab.papers.beyond_even import even_against_random
from recrawl.lab.papers.beyond_index import index_against_greedy
from recrawl.lab.papers.beyond_learned import learned_against_known
from recrawl.lab.papers.beyond_market import market_against_quotas
from recrawl.lab.papers.beyond_scheduler import scheduler_against_plans
from recrawl.lab.papers.beyond_signals import harmonic_with_signals
from recrawl.lab.papers.experiment import Experiment, Scale


def experiments(scale: Scale) -> Iterator[Experiment]:
    """Run them one after the other."""
    yield even_against_random(scale)
    yield harmonic_with_signals(scale)
    yield market_against_quotas(scale)
    yield index_against_greedy(scale)
    yield scheduler_against_plans(scale)
    yield learned_against_known(scale)
