"""What trust in signals brought in some worlds, as readings: for `signals_trust.py` and its living twin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from recrawl.bench.measure import Reading

if TYPE_CHECKING:
    from recrawl.lab.worlds.world import World

Scene = Literal["honest", "useless", "mixture"]
Ears = Literal["none", "learned", "all"]
Way = tuple[Scene, Ears]

POINT = 0.01
SHARES: dict[Scene, tuple[float, float]] = {"honest": (0.3, 0.0), "useless": (0.0, 0.3), "mixture": (0.3, 0.3)}
"""What share is honest, and what share useless."""
WAYS: tuple[Way, ...] = (
    ("honest", "none"), ("honest", "learned"), ("useless", "learned"), ("mixture", "learned"), ("mixture", "all"),
)  # fmt: skip
"""In which ways a world is crawled; who hears nothing does the same in all scenes."""


class Outcome(NamedTuple):
    """Of one world: freshness by scene and ears, and what optima with and without signals would have if honest.

    `size` is for people.
    """

    freshness: dict[Way, float]
    optimum: float
    optimum_without: float
    size: str = ""


class TrustReadings:
    """Readings of all worlds together.

    Args:
        outcomes: of each world; asked for when something is read.
    """

    def __init__(self, outcomes: Callable[[], Sequence[Outcome]]) -> None:
        self._outcomes = outcomes

    def _mean(self, way: Way) -> float:
        return float(np.mean([outcome.freshness[way] for outcome in self._outcomes()]))

    def _difference(self, ours: Way, theirs: Way) -> Reading:
        """Points of freshness between two ways in the same worlds."""
        gaps = [(one.freshness[ours] - one.freshness[theirs]) / POINT for one in self._outcomes()]
        return Reading(
            float(np.mean(gaps)), None, f"{self._mean(theirs):.4f} against {self._mean(ours):.4f}; {_spread(gaps)}"
        )

    def read_honest(self) -> Reading:
        """Freshness with honest signals, less what the optimum would have."""
        way: Way = ("honest", "learned")
        found = self._outcomes()
        gaps = [(one.freshness[way] - one.optimum) / POINT for one in found]
        best = np.mean([one.optimum for one in found])
        shown = f"{best:.4f} against {self._mean(way):.4f}; {_spread(gaps)}"
        return Reading(float(np.mean(gaps)), None, f"{shown}; {found[0].size}" if found[0].size else shown)

    def read_gain(self) -> Reading:
        """What honest signals bring over ignoring them, less what they bring the optimum."""
        outcomes = self._outcomes()
        found = [one.freshness["honest", "learned"] - one.freshness["honest", "none"] for one in outcomes]
        best = [one.optimum - one.optimum_without for one in outcomes]
        gaps = [(ours - theirs) / POINT for ours, theirs in zip(found, best, strict=True)]
        away = np.mean([one.freshness["honest", "learned"] - one.optimum for one in outcomes]) / POINT
        shown = (
            f"{np.mean(best):.4f} against {np.mean(found):.4f}; {_spread(gaps)}; freshness {away:+.2f} off the optimum"
        )
        return Reading(float(np.mean(gaps)), None, shown)

    def read_useless(self) -> Reading:
        """What listening to signals at random times costs."""
        return self._difference(("useless", "learned"), ("honest", "none"))

    def read_over_all(self) -> Reading:
        """Honest and useless hosts: learned trust over believing all of them."""
        return self._difference(("mixture", "learned"), ("mixture", "all"))

    def read_over_none(self) -> Reading:
        """The same over believing none."""
        return self._difference(("mixture", "learned"), ("honest", "none"))


def optima(world: World, kind: str, budget: float) -> tuple[float, float]:
    """The best freshness with signals of a kind, and without, for who knows all about them (NCIS)."""
    from recrawl.planning.solve import plan

    quality = world.signals[kind].quality
    assert quality is not None
    columns = {"importance": world.importance, "change_rate": world.change_rate}
    noisy = {**columns, "recall": quality.recall, "precision": np.where(quality.recall > 0, quality.precision, 1.0)}
    best = plan(noisy, budget, "freshness", solver="signals").freshness
    return best, plan(columns, budget, "freshness").freshness


def _spread(gaps: Sequence[float]) -> str:
    """The points of each world."""
    return "by world " + ", ".join(f"{gap:+.2f}" for gap in gaps)
