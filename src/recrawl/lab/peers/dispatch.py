"""Every rule by its number, for the compiled engine, which cannot be handed functions.

To add a rule, write it in a file of its own, give it a number here, and name it in `registry.py`.
"""

from __future__ import annotations

from recrawl.jit import borrowing
from recrawl.lab.peers.aduana import aduana_wait
from recrawl.lab.peers.bubing import bubing_wait
from recrawl.lab.peers.change_first import change_first_wait
from recrawl.lab.peers.changedetection import changedetection_wait
from recrawl.lab.peers.cho_interval import cho_interval_wait
from recrawl.lab.peers.even import even_wait
from recrawl.lab.peers.fixed import fixed_wait
from recrawl.lab.peers.heritrix import heritrix_wait
from recrawl.lab.peers.kinds import (
    ADUANA,
    BUBING,
    BY_IMPORTANCE,
    BY_RATE,
    CHANGE_FIRST,
    CHANGEDETECTION,
    CHO_INTERVAL,
    EVEN,
    FIXED,
    HERITRIX,
    LM_FACTOR,
    MINIFLUX,
    MIRROR_PROBE,
    NUTCH,
    POISSON_PROBE,
    STORMCRAWLER,
)
from recrawl.lab.peers.lm_factor import lm_factor_wait
from recrawl.lab.peers.miniflux import miniflux_wait
from recrawl.lab.peers.mirror_probe import mirror_probe_wait
from recrawl.lab.peers.nutch import nutch_wait
from recrawl.lab.peers.planned import planned_wait
from recrawl.lab.peers.poisson_probe import poisson_probe_wait
from recrawl.lab.peers.stormcrawler import stormcrawler_wait
from recrawl.lab.peers.visit import Visit
from recrawl.lab.peers.weighted import by_importance_wait, by_rate_wait
from recrawl.pages import Floats


@borrowing
def ask_rule(kind: int, parameters: Floats, own: Floats, visit: Visit) -> float:  # noqa: C901, PLR0911, PLR0912 - a line each
    """How many days the rule of this kind waits after a visit."""
    if kind == FIXED:
        return fixed_wait(parameters, own, visit)
    if kind == EVEN:
        return even_wait(parameters, own, visit)
    if kind == BY_RATE:
        return by_rate_wait(parameters, own, visit)
    if kind == BY_IMPORTANCE:
        return by_importance_wait(parameters, own, visit)
    if kind == CHANGEDETECTION:
        return changedetection_wait(parameters, own, visit)
    if kind == NUTCH:
        return nutch_wait(parameters, own, visit)
    if kind == STORMCRAWLER:
        return stormcrawler_wait(parameters, own, visit)
    if kind == HERITRIX:
        return heritrix_wait(parameters, own, visit)
    if kind == BUBING:
        return bubing_wait(parameters, own, visit)
    if kind == ADUANA:
        return aduana_wait(parameters, own, visit)
    if kind == MINIFLUX:
        return miniflux_wait(parameters, own, visit)
    if kind == LM_FACTOR:
        return lm_factor_wait(parameters, own, visit)
    if kind == CHO_INTERVAL:
        return cho_interval_wait(parameters, own, visit)
    if kind == CHANGE_FIRST:
        return change_first_wait(parameters, own, visit)
    if kind == POISSON_PROBE:
        return poisson_probe_wait(parameters, own, visit)
    if kind == MIRROR_PROBE:
        return mirror_probe_wait(parameters, own, visit)
    return planned_wait(parameters, own, visit)
