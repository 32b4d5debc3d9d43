"""A world whose pages come and go: births at a steady rate, exponential lifetimes, Poisson change in between.

Nothing here does IO.
"""

from __future__ import annotations

import math

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.lab.simulation.world import World
from recrawl.lab.worlds.drawing import Spans, check_events, check_size, poisson_events, stream
from recrawl.lab.worlds.poisson import draw_population


def churn(pages: int, horizon: float, seed: int, law: str = "uniform", lifetime: float | None = None) -> World:
    """Pages are born and removed, about as many as there are within the horizon.

    The world begins with `pages` pages, and as many are born as go: `pages / lifetime` a day, each at a time of its
    own, uniform over the horizon. So about `pages` live at any one time, and the world holds more in all. A page that
    is there at the start was born at 0 and has, as an exponential life knows no age, a whole life before it.
    O(pages + changes).

    Args:
        pages: how many live at the start.
        horizon: days.
        seed: 0 or more.
        law: importance and rates, of `poisson.POPULATIONS`.
        lifetime: mean life in days; by default the horizon.
    """
    check_size(pages, horizon)
    life = float(horizon) if lifetime is None else lifetime
    if not (math.isfinite(life) and life > 0):
        raise InvalidInput(f"is {life!r}, but must be a number of days above 0", field="lifetime")
    check_events(pages * horizon / life)
    random = stream(seed, "churn")
    births = int(random.poisson(pages * horizon / life))
    born = np.concatenate([np.zeros(pages), np.sort(horizon * (1 - random.random(births)))])
    removed = born + random.exponential(life, len(born))
    population = draw_population(law, len(born), seed)
    spans = Spans(born, np.minimum(removed, horizon))
    return World(
        name="churn",
        horizon=float(horizon),
        importance=population.importance,
        changes=poisson_events(stream(seed, "changes"), population.change_rate, spans),
        change_rate=population.change_rate,
        poisson=True,
        born=born,
        removed=np.where(removed <= horizon, removed, np.inf),
    )
