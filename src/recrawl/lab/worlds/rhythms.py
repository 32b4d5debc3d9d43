"""Worlds where change is not Poisson: in bursts, by the clock, by day and by week.

Each takes importance and mean rates from a law of `poisson.POPULATIONS`; `change_rate` is the long-run mean and
`poisson` is False, so nobody takes closed forms for the truth. Nothing here does IO.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.lab.simulation.world import Events, World
from recrawl.lab.worlds.drawing import (
    Spans,
    check_events,
    check_size,
    group,
    only,
    page_of_events,
    poisson_events,
    stream,
    whole_span,
)
from recrawl.lab.worlds.poisson import Population, draw_population

# So many times its mean delay after a burst began, it is over.
_BURST_IS_OVER = 30.0
_PEAK_HOUR = 14.0
_HOURS_AROUND_PEAK = 3.0
_WORKING_DAYS, _DAYS = 5, 7


class Burst(NamedTuple):
    """A burst: a first change, on average `followers` more, each after an exponential delay of `spread` days."""

    followers: float = 4.0
    spread: float = 0.25


ONE_OF_FIVE = Burst()


def bursty(pages: int, horizon: float, seed: int, law: str = "uniform", burst: Burst = ONE_OF_FIVE) -> World:
    """Changes come in bursts: five on average within hours, then a long quiet.

    Bursts begin as a Poisson process (Neyman and Scott's clusters); a page's mean rate is that of its law.
    O(changes · log changes).
    """
    if not (0 <= burst.followers < np.inf and 0 < burst.spread < np.inf):
        raise InvalidInput("must have 0 or more followers and a spread above 0 days", field="burst")
    check_size(pages, horizon)
    population = draw_population(law, pages, seed)
    check_events(float(population.change_rate.sum()) * horizon)
    random = stream(seed, "bursts")
    # Bursts that began before the start still have changes to come.
    spans = Spans(np.full(pages, -_BURST_IS_OVER * burst.spread), np.full(pages, float(horizon)))
    begun = poisson_events(random, population.change_rate / (1 + burst.followers), spans)
    followers = random.poisson(burst.followers, len(begun.times))
    first_page = page_of_events(begun)
    times = np.repeat(begun.times, followers) + random.exponential(burst.spread, int(followers.sum()))
    every_page = np.concatenate([first_page, np.repeat(first_page, followers)])
    every_time = np.concatenate([begun.times, times])
    inside = (every_time >= 0) & (every_time <= horizon)
    return _world("bursty", population, horizon, group(every_page[inside], every_time[inside], pages))


def periodic(pages: int, horizon: float, seed: int, law: str = "uniform", jitter: float = 0.1) -> World:
    """Each page changes by the clock: its period is one over its rate, give or take a twentieth.

    Change k of a page lies within a part `jitter` of its period (0: exactly by the clock, 1: anywhere in it) around
    k periods from a first time, which is uniform. O(pages + changes).
    """
    if not 0 <= jitter <= 1:
        raise InvalidInput(f"is {jitter!r}, but must be between 0 and 1", field="jitter")
    check_size(pages, horizon)
    population = draw_population(law, pages, seed)
    rate = population.change_rate
    check_events(float(rate.sum()) * horizon + 3 * pages)
    random = stream(seed, "periods")
    phase = random.random(pages)
    # Numbered in periods: change k stands at phase + k, from one before the start to one after the horizon.
    counts = np.ceil(rate * horizon).astype(np.int64) + 3
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    page = np.repeat(np.arange(pages), counts)
    number = np.arange(len(page)) - offsets[page] - 1
    place = phase[page] + number + jitter * (random.random(len(page)) - 0.5)
    inside = (place >= 0) & (place <= (rate * horizon)[page]) & (rate[page] > 0)
    times = np.minimum(place / np.where(rate > 0, rate, 1.0)[page], horizon)
    return _world("periodic", population, horizon, only(Events(offsets, times), inside))


def daily(pages: int, horizon: float, seed: int, law: str = "uniform", depth: float = 0.9) -> World:
    """Changes come by day rather than by night: a daily wave with its peak near 14:00.

    The rate is the mean times 1 + depth · cos(2π(t − peak)); time 0 is midnight; the peaks of pages lie within three
    hours around 14:00. O(pages + changes).
    """
    if not 0 <= depth <= 1:
        raise InvalidInput(f"is {depth!r}, but must be between 0 and 1", field="depth")
    check_size(pages, horizon)
    population = draw_population(law, pages, seed)
    random = stream(seed, "daily")
    peak = (_PEAK_HOUR + _HOURS_AROUND_PEAK * random.uniform(-1, 1, pages)) / 24
    busiest = poisson_events(random, population.change_rate * (1 + depth), whole_span(pages, horizon))
    wave = 1 + depth * np.cos(2 * np.pi * (busiest.times - peak[page_of_events(busiest)]))
    kept = random.random(len(wave)) * (1 + depth) < wave
    return _world("daily", population, horizon, only(busiest, kept))


def weekly(pages: int, horizon: float, seed: int, law: str = "uniform", weekend: float = 0.1) -> World:
    """Changes come on working days: five full days, then two with a tenth of the changes.

    Time 0 is the midnight that begins Monday; `weekend` is the rate of a weekend day over that of a working day. The
    mean over a week is the rate by law. O(pages + changes).
    """
    if not 0 <= weekend <= 1:
        raise InvalidInput(f"is {weekend!r}, but must be between 0 and 1", field="weekend")
    check_size(pages, horizon)
    population = draw_population(law, pages, seed)
    random = stream(seed, "weekly")
    working = _DAYS / (_WORKING_DAYS + (_DAYS - _WORKING_DAYS) * weekend)
    busiest = poisson_events(random, population.change_rate * working, whole_span(pages, horizon))
    at_weekend = np.floor(busiest.times) % _DAYS >= _WORKING_DAYS
    kept = ~at_weekend | (random.random(len(at_weekend)) < weekend)
    return _world("weekly", population, horizon, only(busiest, kept))


def _world(name: str, population: Population, horizon: float, changes: Events) -> World:
    pages = len(population.importance)
    return World(
        name=name,
        horizon=float(horizon),
        importance=population.importance,
        changes=changes,
        change_rate=population.change_rate,
        born=np.zeros(pages),
        removed=np.full(pages, np.inf),
    )
