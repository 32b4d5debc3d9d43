"""What an examined fetch does to a page: its row from then on, events, and what the scheduler is told. Pure.

| outcome | row | scheduler | event |
|---|---|---|---|
| page came, first | baseline | crawled, nothing learned | `discovered` |
| came, unchanged or noise | seen again | crawled, unchanged | `restored` if it was removed |
| came, changed | new version | crawled, changed | `changed` |
| missing, gone, soft 404 | absence counted | waits for the next look | `removed` when confirmed |
| opted out | removed | waits long | `removed` |
| refused | retired | removed | |
| anything else | failure counted | waits, longer each time | |

While the host or the network is ill, failures and absences are not counted. One 404 is no removal: servers answer so
under load, during a deploy, to a crawler they do not like. `gone` (410) is said on purpose and needs fewer. Answers
that say nothing of the page (an error, a block) neither count nor clear what was counted; a page that comes clears it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from recrawl.outcomes import Outcome
from recrawl.store.bodies import packed
from recrawl.store.rows import ChangeKind, NewChange, NewVersion, Observation, PageRow, edited
from recrawl.tracker.clock import iso
from recrawl.tracker.pipeline.examine import from_bytes
from recrawl.tracker.settings.settings import RemovalRules, Settings
from recrawl.tracker.visit import LONGEST_FRESH_S, Visit, says_missing
from recrawl.web.fetch.retry import backoff_s, seeded_uniform

_SAYS_HERE: frozenset[Outcome] = frozenset({"ok", "moved", "not-modified"})


@dataclass(frozen=True, slots=True)
class Absence:
    """How often in a row a page was said not to be there, and since when."""

    times: int = 0
    since: float | None = None


def absence_after(absence: Absence, outcome: Outcome, now: float, *, frozen: bool) -> Absence:
    """What is known of an absence after one more answer; while removals are frozen nothing is counted."""
    if outcome in _SAYS_HERE:
        return Absence()
    if not says_missing(outcome) or frozen:
        return absence
    since = now if absence.since is None else absence.since
    return replace(absence, times=absence.times + 1, since=since)


def is_removed(absence: Absence, outcome: Outcome, now: float, rules: RemovalRules) -> bool:
    """Whether this answer is the one that confirms it."""
    if not says_missing(outcome) or absence.since is None:
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


MOVED_TIMES = 2
_ILL_WAIT_S = 900.0
_NOT_THE_COPY = ("held", "flips-back")  # of detection: what came may be news yet


_DEFAULTS = Settings()


def decide(
    visit: Visit, *, ill: bool = False, quiet_until: float | None = None, settings: Settings = _DEFAULTS
) -> None:
    """Decide what follows from an examined visit that has ended, and fill it.

    Args:
        visit: examined, with the time at which it ended.
        ill: whether the host or the network is ill.
        quiet_until: until when the host that answered wants to be left alone, if it was asked too often.
        settings: when a page counts as removed, waits after failures, whether servers may call pages fresh.
    """
    visit.observation = _observation(visit)
    if visit.verdict is not None:
        _came(visit, settings)
    elif visit.outcome == "refused":
        reason = f"{visit.outcome}: {visit.reason}"[:500]
        visit.after, visit.settle_as = _attempted(visit, state="retired", reason=reason), "retired"
    elif visit.outcome == "opted-out":
        _opted_out(visit, settings)
    elif says_missing(visit.observation.outcome):
        _missing(visit, settings, ill=ill)
    elif visit.outcome == "rate-limited":
        visit.held_until, visit.settle_as = quiet_until, "rate-limited"
        visit.after = _attempted(visit) if quiet_until is None else _attempted(visit, not_before=quiet_until)
    else:
        _failed(visit, settings, ill=ill)
    if not visit.is_page:  # nobody tracks it: it is no news that it changes
        visit.after = edited(visit.row, version=visit.page.version)
        visit.events, visit.version, visit.moved_to = [], None, None


def _attempted(visit: Visit, **fields: Any) -> PageRow:
    """Return the row after a fetch, however it ended."""
    return edited(
        visit.page, attempted_at=visit.ended_at, outcome=visit.outcome, memory=visit.memory, crashes=0, **fields
    )


def _observation(visit: Visit) -> Observation:
    page, answer = visit.page, visit.answer
    assert visit.outcome is not None, "it was not examined"
    return Observation(
        page_id=page.id,
        token=visit.lease.token,
        at=visit.ended_at,
        outcome=visit.outcome,
        verdict=visit.verdict,
        trigger=visit.trigger,
        status=answer.status,
        fault=answer.fault,
        reason=visit.reason[:500],
        gap_s=None if page.fetched_at is None else max(visit.began_at - page.fetched_at, 0.0),
        requests=answer.requests + sum(again.requests for again in visit.refetched),
        wire_bytes=answer.wire_bytes + sum(again.wire_bytes for again in visit.refetched),
        elapsed_s=answer.elapsed_s,
        worker=visit.lease.worker,
    )


def _came(visit: Visit, settings: Settings) -> None:
    page = visit.page
    before, after = visit.published
    changed = visit.verdict == "changed"
    if page.state == "removed" and page.visits:
        _say(visit, "restored")
    if visit.verdict == "first" and not page.visits:
        _say(visit, "discovered", new_digest=after)
    if changed:
        seen_at, since = visit.held or (None, None)
        bound = {} if seen_at is None else {"last_seen_unchanged_at": seen_at}
        detail = _detail(reason=visit.reason or None, first_seen=iso(since))
        _say(visit, "changed", old_digest=before, new_digest=after, detail=detail, **bound)
    if visit.text is not None and after is not None:
        visit.version = NewVersion(page.version + 1, visit.ended_at, after, packed(visit.text))
    visit.moved_to, is_news = _sure_move(visit)
    if visit.moved_to is not None and is_news:
        _say(visit, "moved", detail=_detail(to=visit.moved_to))
    visit.after = _attempted(
        visit,
        state="active",
        reason="",
        fetched_at=visit.began_at,
        changed_at=visit.ended_at if changed else page.changed_at,
        failures=0,
        not_before=None,
        missing=0,
        missing_since=None,
        visits=page.visits + 1,
        changes=page.changes + changed,
        version=page.version + (visit.version is not None),
        **_copy(visit),
    )
    visit.settle_as = "unchanged" if visit.verdict == "noise" else visit.verdict
    fresh_s = min(visit.answer.fresh_for_s, LONGEST_FRESH_S) if settings.respect_max_age else 0.0
    visit.fresh_until = visit.began_at + fresh_s if fresh_s else None


def _copy(visit: Visit) -> dict[str, Any]:
    """Return what is kept of the copy: its validators and digests."""
    kept: dict[str, Any] = {}
    if visit.reason in _NOT_THE_COPY:  # seen once more, it must be looked at once more
        return kept
    if visit.validators is not None:
        final = visit.answer.final.url
        kept["etag"] = visit.validators.etag
        kept["last_modified"] = visit.validators.last_modified
        kept["validated_url"] = None if final == visit.page.url else final
    if visit.digests is not None:
        kept["raw_digest"], kept["text_digest"] = visit.digests.raw, visit.digests.text
        kept["links_digest"] = kept["metadata_digest"] = None  # of older versions; nothing reads them
    return kept


def _missing(visit: Visit, settings: Settings, *, ill: bool) -> None:
    page, at, removal = visit.page, visit.ended_at, settings.removal
    assert visit.outcome is not None
    absence = absence_after(Absence(page.missing, page.missing_since), visit.outcome, at, frozen=ill)
    fields: dict[str, Any] = {"missing": absence.times, "missing_since": absence.since}
    if page.state == "removed" and page.reason:  # without one it was added again, and may be on its way back
        held = at + removal.removed_probe_s
    elif not ill and is_removed(absence, visit.outcome, at, removal):
        held = at + removal.removed_probe_s
        fields |= {"state": "removed", "reason": visit.outcome}
        _say_removed(visit, visit.outcome)
    else:
        held = at + (_ILL_WAIT_S if ill else recheck_after_s(absence, removal, visit.outcome))
    _wait(visit, held, **fields)


def _opted_out(visit: Visit, settings: Settings) -> None:
    """The owner asks not to have it kept: it is removed at once, and looked at rarely, for they may think again."""
    _say_removed(visit, "opted-out")
    reason = f"{visit.outcome}: {visit.reason}"[:500]
    _wait(visit, visit.ended_at + settings.removal.removed_probe_s, state="removed", reason=reason)


def _failed(visit: Visit, settings: Settings, *, ill: bool) -> None:
    page = visit.page
    failures = page.failures if ill else page.failures + 1
    uniform = seeded_uniform(page.id, page.host, failures)
    wait_s = min(_ILL_WAIT_S, settings.retry.longest_s) if ill else backoff_s(failures, uniform, settings.retry)
    _wait(visit, visit.ended_at + wait_s, failures=failures)


def _wait(visit: Visit, held_until: float, **fields: Any) -> None:
    """Let the page wait after a visit that brought no copy."""
    visit.after, visit.settle_as = _attempted(visit, not_before=held_until, **fields), "failed"
    visit.held_until = held_until


def _sure_move(visit: Visit) -> tuple[str | None, bool]:
    """Return where a page has moved, once that was seen often enough, and whether that is news.

    It is no news where following it failed before, but it is of a page that had left and is tracked again.
    """
    if visit.outcome not in ("moved", "not-modified"):
        return None, False
    remembered = from_bytes(visit.memory)
    if remembered.moved_times < MOVED_TIMES or remembered.moved_to == visit.page.url:
        return None, False
    return remembered.moved_to, remembered.moved_times == MOVED_TIMES or visit.page.state == "removed"


def _say_removed(visit: Visit, reason: str) -> None:
    """Say that a page is removed, unless it was never there: then nobody has heard of it."""
    if visit.page.visits and visit.page.state != "removed":
        _say(visit, "removed", old_digest=visit.page.text_digest, detail=_detail(reason=reason))


def _say(visit: Visit, kind: ChangeKind, **said: Any) -> None:
    said = {"last_seen_unchanged_at": visit.page.fetched_at} | said
    visit.events.append(
        NewChange(
            kind,
            visit.ended_at,
            visit.page.url,
            page_id=visit.page.id,
            trigger=visit.trigger,
            token=visit.lease.token,
            **said,
        )
    )


def _detail(**values: str | None) -> str:
    said = {name: value for name, value in values.items() if value is not None}
    return json.dumps(said) if said else "{}"
