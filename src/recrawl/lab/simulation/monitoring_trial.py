"""Auctions repeated: who captures bids as they come, for `compare`. Nothing is compiled until one crawls.

An instant is a minute. Policies believe in probabilities of change that are partly wrong and spread in time, as WIC's
(Pandey et al. 2004); those whose name ends in `-known` are told every change, and round robin needs no beliefs. Bids
append: each that is seen in the end counts as captured, with the delay since it was made.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, NamedTuple

from recrawl.errors import InvalidInput
from recrawl.lab.simulation.compare import seeds_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recrawl.lab.worlds.auctions import Changes

Beliefs = Literal["uncertain", "known", "none"]

INSTANTS_A_DAY = 1440
FALSE_SHARE, SPREAD = 0.1, 2.0
"""What beliefs are like: one in ten is false, and they are spread by two minutes (WIC, figures 7 to 9)."""

_URGENCIES = (0.5, 0.9)  # that utilities are told for
_MOST_CELLS = 30_000_000  # pages times instants


class _Monitor(NamedTuple):
    """How a policy chooses: for this urgency, by beliefs that are uncertain, the truth, or the same for every page."""

    summary: str
    urgency: float
    beliefs: Beliefs = "uncertain"


_POLICIES = {
    "wic-1": _Monitor("WIC for completeness: a bid is worth the same whenever it is seen", 1.0),
    "wic-0.9": _Monitor("WIC, a bid loses a tenth of its worth each minute", 0.9),
    "wic-0.5": _Monitor("WIC, a bid loses half of its worth each minute", 0.5),
    "wic-0": _Monitor("WIC for timeliness: a bid is worth something only in its own minute", 0.0),
    "wic-1-known": _Monitor("WIC for completeness, told every bid", 1.0, "known"),
    "wic-0-known": _Monitor("WIC for timeliness, told every bid", 0.0, "known"),
    "round-robin": _Monitor("the page that was crawled longest ago", 1.0, "none"),
}

MONITORING_SUMMARIES = {name: policy.summary for name, policy in _POLICIES.items()}
"""Policies, each with a line that says what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuctionTrial:
    """What is repeated; see `compare.Repeated`.

    Attributes:
        names: of the policies.
        pages: auctions, each a page.
        days: how long, of 1,440 minutes each.
        budget: crawls a day.
        repetitions: how often.
        seed: the first seed.
    """

    names: tuple[str, ...]
    pages: int
    days: float
    budget: float
    repetitions: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in _POLICIES:
                near = get_close_matches(name.lower(), _POLICIES, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]!r}?" if near else f"use {', '.join(_POLICIES)}"
                raise InvalidInput(f"is {name!r}, but auctions have none of that name; {hint}", field="policy")
        if self.pages * self.instants > _MOST_CELLS:
            problem = f"{self.pages:,} auctions over {self.days:g} days are more than fit: give fewer pages or days"
            raise InvalidInput(problem)

    @property
    def instants(self) -> int:
        """Minutes, at least one."""
        return max(round(self.days * INSTANTS_A_DAY), 1)

    def repeat(self, number: int) -> list[dict[str, float]]:
        """One time of auctions: the numbers of each policy."""
        from recrawl.lab.simulation.monitoring import Rule, monitor
        from recrawl.lab.worlds.auctions import auction_changes

        world_seed, belief_seed = seeds_of(self.seed, number)
        changes = auction_changes(self.pages, self.instants, world_seed)
        policies = [_POLICIES[name] for name in self.names]
        believed = {
            beliefs: _believed(changes, beliefs, belief_seed) for beliefs in {each.beliefs for each in policies}
        }
        numbers = []
        for policy in policies:
            rule = Rule(overwrites=False, urgency=policy.urgency)
            captured = monitor(changes, believed[policy.beliefs], self.budget / INSTANTS_A_DAY, rule)
            numbers.append(
                {
                    "completeness": captured.completeness,
                    "timely": captured.timely,
                    "delay": captured.delay,
                    **{f"utility_{urgency:g}": captured.utility(urgency) for urgency in _URGENCIES},
                    "changes": float(captured.changes),
                }
            )
        return numbers


def _believed(changes: Changes, beliefs: Beliefs, seed: int) -> NDArray[np.float32]:
    """Probabilities of change, instants × pages."""
    import numpy as np

    from recrawl.lab.worlds.auctions import believed_probabilities

    if beliefs == "known":
        return changes.astype(np.float32)
    if beliefs == "none":  # then the page that was left alone for longest is worth most
        return np.ones(changes.shape, dtype=np.float32)
    return believed_probabilities(changes, FALSE_SHARE, SPREAD, seed)
