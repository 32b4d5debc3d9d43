"""Claims, fixed in `claims.toml` before any number was seen, and the verdict on each.

A claim has a bound on a number. One that says "is better" holds if the whole 95 % interval keeps the bound; one that
says "is at least as good" or names a figure holds if the measured number does, or if chance cannot tell it from one
that does, as its `judged` says. An observation has no bound and no verdict.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

from recrawl.errors import RecrawlError
from recrawl.lab.papers.experiment import Finding


@dataclass(frozen=True, slots=True)
class Claim:
    """What a paper says, or what we say beyond it.

    Attributes:
        id: paper, experiment and comparison, as `azar.fig1.edf`.
        statement: the comparison in words.
        measured: what number is held to the bound.
        kind: an observation is reported and not judged.
        at_least: the least the number may be.
        at_most: the most it may be.
        judged: `interval`: the whole interval keeps the bound; `value`: the number does; `chance`: some of the
            interval does.
    """

    id: str
    statement: str
    measured: str
    kind: Literal["claim", "observation"]
    at_least: float | None = None
    at_most: float | None = None
    judged: Literal["interval", "value", "chance"] = "value"

    @property
    def paper(self) -> str:
        """The paper it is of."""
        return self.id.split(".")[0]

    @property
    def experiment(self) -> str:
        """The experiment that measures it, with its paper."""
        return self.id.rpartition(".")[0]

    def holds(self, finding: Finding) -> bool | None:
        """The verdict; None for an observation."""
        if self.kind == "observation":
            return None
        least = -float("inf") if self.at_least is None else self.at_least
        most = float("inf") if self.at_most is None else self.at_most
        if self.judged == "value":
            return least <= finding.value <= most
        if self.judged == "interval":
            return least <= finding.low and finding.high <= most
        return least <= finding.high and finding.low <= most


def load_claims() -> dict[str, Claim]:
    """All claims by id, in the order of the file."""
    text = (files("recrawl.lab.papers") / "claims.toml").read_text(encoding="utf-8")
    return {entry["id"]: _claim(entry) for entry in tomllib.loads(text)["claim"]}


def _claim(entry: dict[str, Any]) -> Claim:
    claim = Claim(**{"kind": "claim", **entry})
    bounded = claim.at_least is not None or claim.at_most is not None
    if bounded == (claim.kind == "observation"):
        raise RecrawlError(f"claims.toml: {claim.id} needs a bound if it is a claim, and none if it is an observation")
    return claim
