"""Why a page is, or is not, crawled now, in plain values: what is known, believed, heard and waited for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recrawl.store.bodies import unpacked
from recrawl.store.rows import Observation, PageRow, PendingSignal
from recrawl.store.store import Store
from recrawl.tracker.admission import least_interval_s
from recrawl.tracker.clock import DAY_S, iso
from recrawl.tracker.pipeline.examine import from_bytes
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.signals.trust import KindTrust, trust_of_bytes
from recrawl.web.change.detect import volatile_words

if TYPE_CHECKING:
    from recrawl.scheduling.explain import Explanation
    from recrawl.tracker.signals.signals import SignalTracker

VISITS = 20


async def explained(
    store: Store,
    page: PageRow,
    settings: Settings,
    scheduled: Explanation | None,
    hearing: SignalTracker | None,
    now: float,
) -> dict[str, Any]:
    """All that there is to say of a page.

    Args:
        store: where its history is.
        page: its row.
        settings: which bounds hold.
        scheduled: what the scheduler says; None if the page is not scheduled.
        hearing: what the tracker has heard; None if none runs.
        now: Unix seconds.
    """
    pending = await store.pending_signals([page.id])
    visits = await store.observations(page.id, VISITS)
    remembered = from_bytes(page.memory)
    packed = None if remembered.page is None else await store.read_text(page.id)
    volatile = [] if remembered.page is None or packed is None else volatile_words(remembered.page, unpacked(packed))
    return {
        "url": page.url,
        "page": page.id,
        "host": page.host,
        "group": page.group or None,
        "state": page.state,
        "reason": page.reason or None,
        "importance": page.importance,
        "objective": page.objective or settings.objective,
        "bounds": _bounds(page, settings),
        "last_fetched": iso(page.fetched_at),
        "last_changed": iso(page.changed_at),
        "last_outcome": page.outcome,
        "visits": page.visits,
        "changes": page.changes,
        "failures": page.failures,
        "missing": page.missing,
        "validators": remembered.validators.trust,
        "noise": None if remembered.page is None else sum(each.is_volatile for each in remembered.page.places),
        "volatile": volatile,
        "source": page.source,
        "signals": _signals(pending, None if hearing is None else hearing.heard_of(page.id)),
        "trust": [each._asdict() for each in await _trust(store, page.host, hearing)],
        "schedule": None if scheduled is None else _schedule(scheduled, now),
        "last_visits": [_visit(each) for each in visits],
    }


def _signals(pending: Sequence[PendingSignal], counts: Mapping[str, int] | None) -> list[dict[str, Any]]:
    """What was heard since the last crawl, by kind: as the tracker counts it, or else as the store kept it."""
    kept = {each.kind: each for each in pending}
    heard = {each.kind: each.count for each in pending}
    heard |= counts or {}
    last = {kind: iso(kept[kind].last_at) if kind in kept else None for kind in heard}
    return [{"kind": kind, "count": count, "last_at": last[kind]} for kind, count in sorted(heard.items())]


async def _trust(store: Store, host: str, hearing: SignalTracker | None) -> Sequence[KindTrust]:
    if hearing is not None:
        return hearing.trust_in(host)
    rows = await store.hosts([host])
    return trust_of_bytes(rows[0].learned) if rows else []


def _bounds(page: PageRow, settings: Settings) -> dict[str, Any]:
    longest = page.max_interval_s
    least = least_interval_s(page.min_interval_s, longest, settings)
    return {"min_interval_s": least, "max_interval_s": longest, "not_before": iso(page.not_before)}


def _schedule(said: Explanation, now: float) -> dict[str, Any]:
    interval = said.change_rate_interval
    return {
        "state": said.state,
        "value": said.value,
        "price": said.price,
        "due_at": _at(said.due),
        "waits_for": said.waits_for,
        "until": _at(said.until),
        "limits": list(said.limits),
        "changes_per_day": said.change_rate,
        "changes_per_day_90": None if interval is None else list(interval),
        "seconds_until_due": None if said.due is None else max(said.due * DAY_S - now, 0.0),
    }


def _at(days: float | None) -> str | None:
    if days is None or not math.isfinite(days) or days * DAY_S > 2e11:
        return None
    return iso(days * DAY_S)


def _visit(seen: Observation) -> dict[str, Any]:
    return {
        "at": iso(seen.at),
        "outcome": seen.outcome,
        "verdict": seen.verdict,
        "status": seen.status,
        "trigger": seen.trigger,
        "reason": seen.reason or None,
        "requests": seen.requests,
        "bytes": seen.wire_bytes,
    }


def sentences(facts: dict[str, Any]) -> Sequence[str]:
    """The same for people, line by line."""
    lines = [f"{facts['url']} ({facts['state']}{': ' + facts['reason'] if facts['reason'] else ''})"]
    plan = facts["schedule"]
    if plan is not None:
        low, high = plan["changes_per_day_90"] or (None, None)
        if plan["changes_per_day"] is not None:
            doubt = "" if low is None else f" (90 %: {low:.3g} to {high:.3g})"
            lines.append(f"changes {plan['changes_per_day']:.3g} times a day as far as is known{doubt}")
        lines.append(f"a crawl now is worth {plan['value']:.4g}, the price is {plan['price']:.4g}")
        until = f" until {plan['until']}" if plan["until"] else ""
        lines.append(f"waits for {plan['waits_for']}{until}; due {plan['due_at'] or 'never, as things are'}")
    last = facts["last_fetched"] or "never"
    lines.append(f"fetched {facts['visits']} times, changed {facts['changes']} times, last fetched {last}")
    lines += [
        f"differs at every look, so it is no news: {words!r}; to count it, set learn-noise = false for its group, "
        "or choose what counts with keep and drop (CSS selectors)"
        for words in facts["volatile"]
    ]
    heard = ", ".join(f"{each['count']} of {each['kind']}" for each in facts["signals"])
    lines += [f"signals heard since the last crawl: {heard}"] if heard else []
    lines += [_trust_line(facts["host"], each) for each in facts["trust"]]
    for visit in facts["last_visits"]:
        verdict = visit["verdict"] or visit["reason"] or ""
        why = "" if visit["trigger"] in ("", "schedule") else f" ({visit['trigger']})"
        lines.append(f"  {visit['at']}  {visit['outcome']:<14} {verdict}{why}")
    return lines


def _trust_line(host: str, trust: Mapping[str, Any]) -> str:
    listened = "" if trust["listened"] else "; not listened to"
    true = f"{100 * trust['precision']:.0f} ± {100 * trust['precision_error']:.0f} %"
    announced = f"{100 * trust['recall']:.0f} ± {100 * trust['recall_error']:.0f} %"
    return (
        f"{trust['kind']} on {host}: {true} of signals are true, {announced} of changes are announced, as "
        f"{trust['audits']} crawls say{listened}"
    )
