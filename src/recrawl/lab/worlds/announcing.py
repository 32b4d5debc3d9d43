"""Hosts that tell of changes, honestly or not: worlds in which trust in signals has to be earned.

Importance and change rate are uniform as in NCIS (Busa-Fekete et al. 2025); pages live on hosts of equal size, and all
pages of a host are announced alike. An honest host announces nine changes in ten, and nine signals in ten are true. A
useless host sends as many signals as an honest one with such pages, each page at its own rate, but at random times. The
others are silent. Adding signals changes nothing else of the world. Nothing here does IO.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.lab.simulation.world import Hosts, SignalQuality, World
from recrawl.lab.worlds.drawing import stream
from recrawl.lab.worlds.poisson import uniform
from recrawl.lab.worlds.signalling import SignalLaw, with_signals
from recrawl.pages import Floats

Flags = NDArray[np.bool_]
KIND = "sitemap"
RECALL, PRECISION = 0.9, 0.9
PAGES_A_HOST = 40


class Manners(NamedTuple):
    """What share of the hosts is honest, and what share useless."""

    honest: float
    useless: float


def announcing(pages: int, horizon: float, seed: int, manners: Manners) -> World:
    """Draw a world; that of another share of honest hosts with the same seed has the same pages and changes.

    >>> world = announcing(400, 5.0, seed=1, manners=Manners(honest=0.3, useless=0.2))
    >>> quality = world.signals[KIND].quality
    >>> int((quality.recall > 0).sum()), len(world.hosts.names)
    (120, 10)
    """
    if min(manners) < 0 or sum(manners) > 1:
        raise InvalidInput("must be shares of the hosts, together at most 1", field="manners")
    world = uniform(pages, horizon, seed)
    number = np.arange(pages, dtype=np.int64) // PAGES_A_HOST
    count = int(number[-1]) + 1
    place = stream(seed, "manners of hosts").permutation(count)[number]
    honest = place < round(manners.honest * count)
    useless = ~honest & (place < round((manners.honest + manners.useless) * count))
    names = tuple(f"host-{host + 1}.example" for host in range(count))
    return replace(told_of(world, honest, useless, seed), name="announcing", hosts=Hosts(number, names))


def told_of(world: World, honest: Flags, useless: Flags, seed: int) -> World:
    """A world whose change rates are known, with signals for pages of honest and of useless hosts."""
    assert world.change_rate is not None
    true = RECALL * world.change_rate
    law = SignalLaw(
        recall=np.where(honest, RECALL, 0.0),
        false_signal_rate=np.where(honest, true * (1 / PRECISION - 1), np.where(useless, true / PRECISION, 0.0)),
    )
    return with_signals(world, law, kind=KIND, seed=seed)


def taken_at_their_word(world: World) -> World:
    """The same world as one sees it who takes every host that signals for honest."""
    signals = world.signals[KIND]
    number = world.hosts.number if world.hosts is not None else np.zeros(len(world), dtype=np.int64)
    heard = np.bincount(number, weights=np.diff(signals.events.offsets)) > 0
    recall: Floats = np.where(heard[number], RECALL, 0.0)
    quality = SignalQuality(recall, np.where(recall > 0, PRECISION, 0.0))
    return replace(world, signals={KIND: signals._replace(quality=quality)})
