"""What the options of `recrawl plan` mean: text from the command line in, checked values out."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recrawl.errors import InvalidInput
from recrawl.units import Budget, parse_budget

if TYPE_CHECKING:
    from recrawl.pages import Hosts

_EVERY_OBJECTIVE = ("host", "cost", "min_rate", "max_rate")
_WEIGHTS = ("importance", "change_rate")
_COLUMNS = {
    "freshness": (*_WEIGHTS, *_EVERY_OBJECTIVE, "recall", "precision", "false_signal_rate"),
    "harmonic": (*_WEIGHTS, *_EVERY_OBJECTIVE, "recall", "precision", "false_signal_rate"),
    "captures": (*_WEIGHTS, *_EVERY_OBJECTIVE, "decay", "life", "window"),
    "news": ("profit", "new_page_rate", "decay", *_EVERY_OBJECTIVE),
}


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The command line of `recrawl plan`, as typed."""

    pages: Path
    budget: str | None
    objective: str | None
    solver: str
    host_cap: tuple[str, ...]
    host_caps: Path | None
    target_freshness: str | None
    out: Path | None
    plot: Path | None
    as_json: bool

    def parsed_budget(self) -> Budget | None:
        """The budget, or None if a freshness is asked for instead."""
        if self.budget is not None:
            return parse_budget(self.budget)
        if self.target_freshness is None:
            raise InvalidInput(
                "a plan needs --budget, such as 2000/day, 2/s or 20%, or --target-freshness, such as 0.95"
            )
        return None

    def parsed_target(self) -> float | None:
        """The freshness asked for, in (0, 1), or None."""
        if self.target_freshness is None:
            return None
        if self.column_set() == "news":
            raise InvalidInput("has no meaning for news, which are found and not kept fresh", field="target-freshness")
        return parse_share(self.target_freshness)

    def column_set(self) -> str:
        """The objective whose columns the plan reads; solvers with an objective of their own share the others'."""
        return self.objective or ("news" if self.solver.startswith("echo") else "harmonic")


def parse_share(text: str) -> float:
    """Read `0.95` or `95%`.

    >>> parse_share("95%"), parse_share("0.5")
    (0.95, 0.5)
    """
    plain = text.strip()
    try:
        share = float(plain.removesuffix("%")) / (100 if plain.endswith("%") else 1)
    except ValueError:
        share = math.nan
    if not 0 < share < 1:
        raise InvalidInput(f"is {text!r}: write a share between 0 and 1, such as 0.95 or 95%", field="target-freshness")
    return share


def parse_host_caps(texts: Iterable[str]) -> dict[str, float]:
    """Read `example.org=500/day` as crawls per day by host.

    >>> parse_host_caps(["example.org=1/min"])
    {'example.org': 1440.0}
    """
    caps: dict[str, float] = {}
    for text in texts:
        host, equals, rate = text.rpartition("=")
        if not equals or not host:
            raise InvalidInput(f"is {text!r}: write HOST=RATE, such as example.org=500/day", field="host-cap")
        if host in caps:
            raise InvalidInput(f"names {host!r} twice: give each host one cap", field="host-cap")
        caps[host] = _rate(rate, text)
    return caps


def _rate(rate: str, text: str) -> float:
    try:
        crawls_per_day = parse_budget(rate).crawls_per_day
    except InvalidInput:
        crawls_per_day = None
    if crawls_per_day is None:
        raise InvalidInput(
            f"is {text!r}: write the rate as a number and a unit, such as example.org=500/day",
            field="host-cap",
        )
    return crawls_per_day


def caps_of(
    known: Hosts | None, named: Mapping[str, float], listed: Mapping[str, float]
) -> dict[Hashable, float] | None:
    """Caps by the hosts that the pages are on.

    A host `named` on the command line must have pages; a `listed` one, from a file of caps, need not. The
    command line wins over the file.
    """
    if not named and not listed:
        return None
    if known is None:
        raise InvalidInput("there is no column 'host', which host caps need")
    names = {str(name): name for name in known.names}
    for host in named:
        if host not in names:
            raise InvalidInput(f"names {host!r}, but no page is on that host", field="host-cap")
    return {names[host]: cap for host, cap in {**listed, **named}.items() if host in names}


def columns_for(objective: str, present: Iterable[str]) -> list[str]:
    """Columns of a file that a plan for this objective reads; columns it needs are named even if absent."""
    there = set(present)
    needed = ("profit", "new_page_rate", "decay") if objective == "news" else _WEIGHTS
    return [name for name in _COLUMNS[objective] if name in there or name in needed]


def weights_of(columns: Mapping[str, Any], objective: str) -> tuple[Any, Any]:
    """The two columns a report shows: what a page is worth, how often it changes (news: has new pages)."""
    if objective == "news":
        return columns["profit"], columns["new_page_rate"]
    return columns["importance"], columns["change_rate"]
