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
from typing import Any, Literal

from recrawl.outcomes import Outcome
from recrawl.store.packing import packed
from recrawl.store.records import record
from recrawl.store.rows import ChangeKind, NewChange, NewVersion, Observation, PageRow, edited
from recrawl.tracker.pipeline.examine import Examined, from_bytes
from recrawl.tracker.settings.settings import DEFAULT_REMOVAL, RemovalRules
from recrawl.web.backoff import DEFAULT_BACKOFF, BackoffRules, backoff_s, seeded_uniform
from recrawl.web.fetch_result import FetchResult

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


Told = Literal["first", "unchanged", "changed", "failed", "rate-limited", "retired"]
"""What the scheduler is told."""

MOVED_TIMES = 2
LONGEST_FRESH_S = 3600.0
"""A server that calls a copy fresh for longer is asked again after this time."""
_ILL_WAIT_S = 900.0
_VARIANTS = ("known-variant", "flips-back")  # of detection: what came is a text that the page showed before


@record
class Circumstances:
    """What the fetch was made in.

    Args:
        at: when it ended.
        began_at: when its first request began: what came is the page of that time.
        token: of its lease.
        worker: who fetched.
        trigger: why.
        ill: whether the host or the network is ill.
        removal: when a page counts as removed.
        retry: waits after failures.
        respect_max_age: whether pages are left alone while their servers call them fresh.
    """

    at: float
    began_at: float
    token: int
    worker: str = ""
    trigger: str = "schedule"
    ill: bool = False
    removal: RemovalRules = DEFAULT_REMOVAL
    retry: BackoffRules = DEFAULT_BACKOFF
    respect_max_age: bool = False


@record
class Settled:
    """All that follows from a fetch.

    Args:
        page: the row from now on, without what the scheduler learned.
        observation: to be remembered.
        told: to the scheduler.
        changes: events.
        version: to be published.
        held_until: the page is not to be taken before.
        retry_after_s: what the host asked for.
        moved_to: where the page lives from now on, once that is sure.
        fresh_until: the page is not to be taken before, unless somebody asks for it or says that it changed.
    """

    page: PageRow
    observation: Observation
    told: Told
    changes: tuple[NewChange, ...] = ()
    version: NewVersion | None = None
    held_until: float | None = None
    retry_after_s: float | None = None
    moved_to: str | None = None
    fresh_until: float | None = None


def settle(page: PageRow, examined: Examined, result: FetchResult, around: Circumstances) -> Settled:
    """What follows from a fetch of a page."""
    observation = _observation(page, examined, result, around)
    if examined.verdict is not None:
        return _came(page, examined, result, around, observation)
    reason = f"{examined.outcome}: {examined.reason}"[:500]
    if examined.outcome == "refused":
        return Settled(_attempted(page, examined, around, state="retired", reason=reason), observation, "retired")
    if examined.outcome == "opted-out":
        return _opted_out(page, examined, around, observation, reason)
    if says_missing(examined.outcome):
        return _missing(page, examined, around, observation)
    return _failed(page, examined, result, around, observation)


def _attempted(page: PageRow, examined: Examined, around: Circumstances, **fields: Any) -> PageRow:
    """The row after a fetch, however it ended."""
    return edited(page, attempted_at=around.at, outcome=examined.outcome, memory=examined.memory, crashes=0, **fields)


def _observation(page: PageRow, examined: Examined, result: FetchResult, around: Circumstances) -> Observation:
    requests, wire_bytes = result.requests, result.wire_bytes
    for again in examined.again:
        requests += again.requests
        wire_bytes += again.wire_bytes
    return Observation(
        page_id=page.id,
        token=around.token,
        at=around.at,
        outcome=examined.outcome,
        verdict=examined.verdict,
        trigger=around.trigger,
        status=result.status,
        fault=result.fault,
        reason=examined.reason[:500],
        gap_s=None if page.fetched_at is None else max(around.began_at - page.fetched_at, 0.0),
        requests=requests,
        wire_bytes=wire_bytes,
        elapsed_s=result.elapsed_s,
        worker=around.worker,
    )


def _came(
    page: PageRow, examined: Examined, result: FetchResult, around: Circumstances, observation: Observation
) -> Settled:
    events: list[NewChange] = []
    before, after = examined.published
    if page.state == "removed" and page.visits:
        events.append(_event("restored", page, around))
    if examined.verdict == "first" and not page.visits:
        events.append(_event("discovered", page, around, new_digest=after))
    if examined.verdict == "changed":
        detail = _detail(reason=examined.reason or None)
        events.append(_event("changed", page, around, old_digest=before, new_digest=after, detail=detail))
    version = None
    if examined.text is not None and after is not None:
        version = NewVersion(page.version + 1, around.at, after, packed(examined.text))
    moved_to, is_news = _sure_move(page, examined)
    if moved_to is not None and is_news:
        events.append(_event("moved", page, around, detail=_detail(to=moved_to)))
    changed = examined.verdict == "changed"
    seen = _attempted(
        page,
        examined,
        around,
        state="active",
        reason="",
        fetched_at=around.began_at,
        changed_at=around.at if changed else page.changed_at,
        failures=0,
        not_before=None,
        missing=0,
        missing_since=None,
        visits=page.visits + 1,
        changes=page.changes + changed,
        version=page.version + (version is not None),
        **_copy(page, examined, result),
    )
    told: Told = "unchanged" if examined.verdict == "noise" else examined.verdict or "unchanged"
    fresh_s = min(result.fresh_for_s, LONGEST_FRESH_S) if around.respect_max_age else 0.0
    fresh_until = around.began_at + fresh_s if fresh_s else None
    return Settled(seen, observation, told, tuple(events), version, moved_to=moved_to, fresh_until=fresh_until)


def _copy(page: PageRow, examined: Examined, result: FetchResult) -> dict[str, Any]:
    """What is kept of the copy: its validators and digests."""
    kept: dict[str, Any] = {}
    if examined.reason in _VARIANTS:  # it is not the copy: seen once more, it must be looked at once more
        return kept
    if examined.validators is not None:
        kept["etag"] = examined.validators.etag
        kept["last_modified"] = examined.validators.last_modified
        kept["validated_url"] = None if result.final.url == page.url else result.final.url
    if examined.digests is not None:
        kept["raw_digest"], kept["text_digest"] = examined.digests.raw, examined.digests.text
        kept["links_digest"], kept["metadata_digest"] = examined.digests.links, examined.digests.metadata
    return kept


def _missing(page: PageRow, examined: Examined, around: Circumstances, observation: Observation) -> Settled:
    outcome, rules = observation.outcome, around.removal
    absence = absence_after(Absence(page.missing, page.missing_since), outcome, around.at, frozen=around.ill)
    fields: dict[str, Any] = {"missing": absence.times, "missing_since": absence.since}
    events: tuple[NewChange, ...] = ()
    if page.state == "removed" and page.reason:  # without one it was added again, and may be on its way back
        held = around.at + rules.removed_probe_s
    elif not around.ill and is_removed(absence, outcome, around.at, rules):
        held = around.at + rules.removed_probe_s
        fields |= {"state": "removed", "reason": outcome}
        event = _event("removed", page, around, old_digest=page.text_digest, detail=_detail(reason=outcome))
        news = page.visits and page.state != "removed"  # what was never there is not removed: nobody has heard of it
        events = (event,) if news else ()
    else:
        held = around.at + (_ILL_WAIT_S if around.ill else recheck_after_s(absence, rules, outcome))
    row = _attempted(page, examined, around, not_before=held, **fields)
    return Settled(row, observation, "failed", events, held_until=held)


def _opted_out(
    page: PageRow, examined: Examined, around: Circumstances, observation: Observation, reason: str
) -> Settled:
    """The owner asks not to have it kept: it is removed at once, and looked at rarely, for they may think again."""
    held = around.at + around.removal.removed_probe_s
    event = _event("removed", page, around, old_digest=page.text_digest, detail=_detail(reason="opted-out"))
    events = (event,) if page.visits and page.state != "removed" else ()
    row = _attempted(page, examined, around, state="removed", reason=reason, not_before=held)
    return Settled(row, observation, "failed", events, held_until=held)


def _failed(
    page: PageRow, examined: Examined, result: FetchResult, around: Circumstances, observation: Observation
) -> Settled:
    if observation.outcome == "rate-limited":
        row = _attempted(page, examined, around)
        return Settled(row, observation, "rate-limited", retry_after_s=result.retry_after_s)
    failures = page.failures if around.ill else page.failures + 1
    uniform = seeded_uniform(page.id, page.host, failures)
    wait_s = min(_ILL_WAIT_S, around.retry.longest_s) if around.ill else backoff_s(failures, uniform, around.retry)
    held = around.at + wait_s
    row = _attempted(page, examined, around, failures=failures, not_before=held)
    return Settled(row, observation, "failed", held_until=held)


def _sure_move(page: PageRow, examined: Examined) -> tuple[str | None, bool]:
    """Where a page has moved, once that was seen often enough, and whether that is news.

    It is no news where following it failed before, but it is of a page that had left and was taken up again.
    """
    if examined.outcome not in ("moved", "not-modified"):
        return None, False
    remembered = from_bytes(examined.memory)
    if remembered.moved_times < MOVED_TIMES or remembered.moved_to == page.url:
        return None, False
    return remembered.moved_to, remembered.moved_times == MOVED_TIMES or page.state == "removed"


def _event(kind: ChangeKind, page: PageRow, around: Circumstances, **said: Any) -> NewChange:
    return NewChange(
        kind,
        around.at,
        page.url,
        page_id=page.id,
        last_seen_unchanged_at=page.fetched_at,
        trigger=around.trigger,
        token=around.token,
        **said,
    )


def _detail(**values: str | None) -> str:
    said = {name: value for name, value in values.items() if value is not None}
    return json.dumps(said) if said else "{}"
