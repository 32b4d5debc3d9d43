"""Measurements as Prometheus reads them: text exposition format 0.0.4. Pure. No label names a page or a host.

Counters come from the store and go on over restarts; gauges are of the last measurement, some seconds old.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from recrawl.service.monitor.vitals import Vitals
from recrawl.version import __version__

CONTENT_TYPE = "text/plain; version=0.0.4"
"""The application adds the charset."""
_SHARES = (0.5, 0.9, 0.99)


class Family(NamedTuple):
    """A metric: its name, what it means, and its samples by labels."""

    name: str
    kind: Literal["gauge", "counter"]
    means: str
    samples: list[tuple[dict[str, str], float]]


def exposition(vitals: Vitals) -> str:
    """The whole answer; what is not known yet is left out."""
    return "".join(_family_text(family) for family in families(vitals) if family.samples)


def families(vitals: Vitals) -> list[Family]:
    """All metrics, in the order of the documentation."""
    return [*_freshness(vitals), *_market(vitals), *_fetches(vitals), *_rest(vitals)]


def _gauge(name: str, means: str, value: float | None) -> Family:
    return Family(name, "gauge", means, [] if value is None else [({}, float(value))])


def _by(
    name: str, kind: Literal["gauge", "counter"], means: str, label: str, values: Iterable[tuple[str, float | None]]
) -> Family:
    return Family(name, kind, means, [({label: key}, float(value)) for key, value in values if value is not None])


def _freshness(vitals: Vitals) -> Iterator[Family]:
    estimates = vitals.estimates
    known = [("believed", estimates.believed), ("audited", estimates.freshness)]
    means = "Share of the importance whose copy is current: as believed, and corrected by what crawls found."
    yield _by("recrawl_freshness", "gauge", means, "by", known)
    ends = zip(("low", "high"), vitals.freshness_range, strict=True)
    means = "Between which values the audited freshness is, in 95 of 100 cases."
    yield _by("recrawl_freshness_range", "gauge", means, "by", ends)
    yield _gauge("recrawl_fresh_pages", "Estimated share of the pages whose copy is current.", estimates.fresh_pages)
    means = "Changes that fetches found by those that were expected; 1 if beliefs hold."
    yield _gauge("recrawl_changes_found_by_expected", means, vitals.found_by_expected)
    ages = [(str(share), estimates.ages.percentile(share)) for share in _SHARES]
    yield _by("recrawl_copy_age_seconds", "gauge", "Age of the copies.", "quantile", ages)
    late = zip(("0.5", "0.9"), vitals.delays_s, strict=True)
    means = "From a change to its detection, expected: half the time since the page was seen before."
    yield _by("recrawl_detection_delay_seconds", "gauge", means, "quantile", late)
    yield _gauge("recrawl_pages_without_copy", "Pages that were never fetched.", estimates.no_copy)


def _market(vitals: Vitals) -> Iterator[Family]:
    yield _gauge("recrawl_price", "What a crawl must be worth to be made.", vitals.price)
    yield _gauge("recrawl_budget_per_second", "Requests that may be made.", vitals.budget_per_day / 86_400.0)
    yield _gauge("recrawl_budget_usable", "Share of the budget that least intervals let be used.", vitals.budget_usable)
    yield _gauge("recrawl_budget_used", "Share of the budget that was used in the last minute.", vitals.budget_used)
    means = "Share of the last fetches that brought nothing new."
    yield _gauge("recrawl_wasted_fetches", means, vitals.wasted)
    yield _gauge("recrawl_listening_pages", "Pages that listen to signals.", vitals.estimates.listening)
    believed = [("recall", vitals.estimates.recall), ("precision", vitals.estimates.precision)]
    yield _by("recrawl_signal_trust", "gauge", "Believed of signals, on average over listening pages.", "of", believed)
    scores = vitals.scores
    means = "Share of the crawls that a kind of signal caused that found a change."
    yield _by("recrawl_signal_precision", "gauge", means, "kind", ((each.kind, each.precision) for each in scores))
    means = "Share of the changes found that a kind of signal announced."
    yield _by("recrawl_signal_recall", "gauge", means, "kind", ((each.kind, each.recall) for each in scores))


def _fetches(vitals: Vitals) -> Iterator[Family]:
    tallies = vitals.tallies
    for end, means in (("fetched", "answered or failed"), ("deferred", "not sent"), ("retired", "of pages that left")):
        label = "outcome" if end == "fetched" else "reason"
        name = "recrawl_fetches_total" if end == "fetched" else f"recrawl_{end}_total"
        yield _by(name, "counter", f"Fetches that were {means}.", label, _ended(tallies, end))
    yield _counter("recrawl_requests_total", "Requests sent; all count against the budget.", tallies, "requests")
    yield _counter("recrawl_received_bytes_total", "Bytes of bodies as they came.", tallies, "wire_bytes")
    yield _counter("recrawl_taken_total", "Pages taken from the scheduler.", tallies, "taken")
    yield Family("recrawl_events_total", "counter", "Events in the change log.", [({}, vitals.counts.last_cursor)])


def _ended(tallies: Mapping[str, int], end: str) -> list[tuple[str, float]]:
    return sorted((name[len(end) + 1 :], count) for name, count in tallies.items() if name.startswith(f"{end}:"))


def _counter(name: str, means: str, tallies: Mapping[str, int], tally: str) -> Family:
    return Family(name, "counter", means, [({}, float(tallies.get(tally, 0)))])


def _rest(vitals: Vitals) -> Iterator[Family]:
    estimates = vitals.estimates
    backlog = [("offer", estimates.on_offer), ("host", estimates.at_hosts), ("in-flight", estimates.in_flight)]
    means = "Pages that are worth their price and not fetched yet, by what they wait for."
    yield _by("recrawl_backlog_pages", "gauge", means, "at", backlog)
    yield _gauge("recrawl_longest_due_seconds", "How long the page waits that is due longest.", estimates.latest_due_s)
    since = None if vitals.last_success_at is None else max(vitals.at - vitals.last_success_at, 0.0)
    yield _gauge("recrawl_last_success_age_seconds", "Since a page last came.", since)
    yield _by("recrawl_pages", "gauge", "Pages by state.", "state", vitals.counts.pages.items())
    yield _by("recrawl_hosts", "gauge", "Hosts by how they are.", "class", vitals.hosts.classes.items())
    yield _gauge("recrawl_network_down", "1 while no host can be reached.", vitals.network_down)
    yield _gauge("recrawl_unwritten_results", "Results that are not durable yet.", vitals.unwritten)
    yield _by("recrawl_sink_lag_events", "gauge", "Events that a sink has yet to take.", "sink", _lags(vitals))
    measured = [({"version": __version__}, 1.0)]
    yield Family("recrawl_info", "gauge", "Version of the program.", measured)
    yield _gauge("recrawl_measured_timestamp_seconds", "When this was measured.", vitals.at)


def _lags(vitals: Vitals) -> list[tuple[str, float]]:
    return [(each.name, each.behind) for each in vitals.sinks]


def _family_text(family: Family) -> str:
    lines = [f"# HELP {family.name} {_escaped(family.means, quote=False)}\n# TYPE {family.name} {family.kind}\n"]
    for labels, value in family.samples:
        said = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
        lines.append(f"{family.name}{f'{{{said}}}' if said else ''} {_number(value)}\n")
    return "".join(lines)


def _escaped(text: str, *, quote: bool = True) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quote else text


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    return repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))
