"""Worlds of pages that change at a constant rate, by the law of their importance and rates.

`uniform` is the population of NCIS (Busa-Fekete et al. 2025), `zipf` that of Azar et al. 2018, `web` is shaped like a
large web index. Rates are changes a day. Nothing here does IO.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.lab.populations import web_population
from recrawl.lab.simulation.world import World
from recrawl.lab.worlds.drawing import check_size, poisson_events, stream, whole_span
from recrawl.pages import Floats

_ZIPF_EXPONENT = 2.0
_ZIPF_RANGE = 10_000


class Population(NamedTuple):
    """What each page is worth and how often it changes, in changes a day."""

    importance: Floats
    change_rate: Floats


def uniform(pages: int, horizon: float, seed: int) -> World:
    """Importance and change rate uniform in (0, 1), Poisson change.

    O(pages + changes), as for the other two.

    >>> world = uniform(pages=100, horizon=10.0, seed=0)
    >>> len(world), world.poisson, world.horizon
    (100, True, 10.0)
    """
    return poisson_world("uniform", pages, horizon, seed)


def zipf(pages: int, horizon: float, seed: int) -> World:
    """Importance by Zipf's law with exponent 2 from 1 to 10,000, change rate uniform in (0, 1)."""
    return poisson_world("zipf", pages, horizon, seed)


def web(pages: int, horizon: float, seed: int) -> World:
    """Importance lognormal, change rates from once in three years to seven a day, as on the web."""
    return poisson_world("web", pages, horizon, seed)


def poisson_world(law: str, pages: int, horizon: float, seed: int) -> World:
    """A world of a law of `POPULATIONS`, all pages there from the start and for good."""
    check_size(pages, horizon)
    return world_of(draw_population(law, pages, seed), horizon, seed, name=law)


def world_of(population: Population, horizon: float, seed: int, *, name: str) -> World:
    """Draw the changes of any population, as a Poisson process for each page."""
    pages = len(population.importance)
    check_size(pages, horizon)
    return World(
        name=name,
        horizon=float(horizon),
        importance=population.importance,
        changes=poisson_events(stream(seed, "changes"), population.change_rate, whole_span(pages, horizon)),
        change_rate=population.change_rate,
        poisson=True,
        born=np.zeros(pages),
        removed=np.full(pages, np.inf),
    )


def draw_population(law: str, pages: int, seed: int) -> Population:
    """Draw importance and change rates by a law of `POPULATIONS`."""
    if law not in POPULATIONS:
        raise InvalidInput(f"is {law!r}, but must be one of {', '.join(POPULATIONS)}", field="law")
    return POPULATIONS[law](pages, seed)


def _uniform(pages: int, seed: int) -> Population:
    importance, change_rate = stream(seed, "uniform population").random((2, pages))
    return Population(importance, change_rate)


def _zipf(pages: int, seed: int) -> Population:
    random = stream(seed, "zipf population")
    chance = np.cumsum(np.arange(1.0, _ZIPF_RANGE + 1) ** -_ZIPF_EXPONENT)
    importance = 1.0 + np.searchsorted(chance, random.random(pages) * chance[-1], side="right")
    return Population(np.minimum(importance, _ZIPF_RANGE), random.random(pages))


def _web(pages: int, seed: int) -> Population:
    stream(seed, "")  # refuses a seed below 0
    columns = web_population(pages, seed)
    return Population(columns["importance"], columns["change_rate"])


POPULATIONS: dict[str, Callable[[int, int], Population]] = {"uniform": _uniform, "zipf": _zipf, "web": _web}
"""Laws of importance and change rate by name."""
