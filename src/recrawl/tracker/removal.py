"""When a page that is not there is removed: after confirmations, spread over time, while its host is well. Pure.

One 404 is no removal: servers answer so under load, during a deploy, to a crawler they do not like. `gone` (410) is
said on purpose and needs fewer. Answers that say nothing of the page (an error, a block) neither count nor clear what
was counted; a page that comes clears it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from recrawl.outcomes import Outcome
from recrawl.tracker.settings.settings import RemovalRules

_SAYS_MISSING: frozenset[Outcome] = frozenset({"missing", "gone", "soft-404"})
_SAYS_HERE: frozenset[Outcome] = frozenset({"ok", "moved", "not-modified"})


@dataclass(frozen=True, slots=True)
class Absence:
    """How often in a row a page was said not to be there, and since when."""

    times: int = 0
    since: float | None = None


def says_missing(outcome: Outcome) -> bool:
    """Whether an answer says that the page is not there."""
    return outcome in _SAYS_MISSING


def absence_after(absence: Absence, outcome: Outcome, now: float, *, frozen: bool) -> Absence:
    """What is known of an absence after one more answer; while removals are frozen nothing is counted."""
    if outcome in _SAYS_HERE:
        return Absence()
    if outcome not in _SAYS_MISSING or frozen:
        return absence
    since = now if absence.since is None else absence.since
    return replace(absence, times=absence.times + 1, since=since)


def is_removed(absence: Absence, outcome: Outcome, now: float, rules: RemovalRules) -> bool:
    """Whether this answer is the one that confirms it."""
    if outcome not in _SAYS_MISSING or absence.since is None:
        return False
    times, over_s = rules.missing_times, rules.missing_over_s
    if outcome == "gone":
        times, over_s = rules.gone_times, rules.gone_over_s
    return absence.times >= times and now - absence.since >= over_s


def recheck_after_s(absence: Absence, rules: RemovalRules, outcome: Outcome) -> float:
    """How long to wait before a missing page is looked at again: so that the confirmations fill their time."""
    times, over_s = rules.missing_times, rules.missing_over_s
    if outcome == "gone":
        times, over_s = rules.gone_times, rules.gone_over_s
    return min(over_s / max(times - 1, 1) * 2.0 ** max(absence.times - times, 0), max(rules.recheck_s, over_s))
