"""Every world by law under its name, for the command line and for tests that hold all of them to one contract."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from recrawl.errors import InvalidInput
from recrawl.lab.worlds.laws import bursty, churn, daily, hosts, periodic, uniform, web, weekly, zipf
from recrawl.lab.worlds.signals import announced, ncis
from recrawl.lab.worlds.world import World

Builder = Callable[[int, float, int], World]

WORLDS: dict[str, Builder] = {
    "uniform": uniform,
    "zipf": zipf,
    "web": web,
    "ncis": ncis,
    "announced": announced,
    "bursty": bursty,
    "periodic": periodic,
    "daily": daily,
    "weekly": weekly,
    "churn": churn,
    "hosts": hosts,
}
"""Builders by name; each is called with pages, horizon in days, and seed."""


def world_names() -> tuple[str, ...]:
    """The names, the plainest first."""
    return tuple(WORLDS)


def summary_of(name: str) -> str:
    """What a world is, in one line."""
    return (_builder(name).__doc__ or "").strip().splitlines()[0]


def build_world(name: str, pages: int, horizon: float, seed: int) -> World:
    """Build a world by its name.

    Args:
        name: one of `world_names()`.
        pages: how many pages; in `churn`, how many there are at any one time.
        horizon: how many days.
        seed: 0 or more; the same seed gives the same world.

    >>> len(build_world("zipf", pages=50, horizon=7.0, seed=1))
    50
    """
    return _builder(name)(pages, horizon, seed)


def _builder(name: str) -> Builder:
    if name in WORLDS:
        return WORLDS[name]
    near = get_close_matches(name.lower(), WORLDS, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(WORLDS)}"
    raise InvalidInput(f"is {name!r}, which is no world that recrawl knows: {hint}", field="world")
