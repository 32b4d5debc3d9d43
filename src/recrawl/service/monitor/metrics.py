"""Measurements as Prometheus reads them: text exposition format 0.0.4. Pure. No label names a page or a host.

Counters come from the store and go on over restarts; gauges are of the last measurement, some seconds old.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from recrawl.service.monitor.monitor import Vitals
from recrawl.version import __version__

CONTENT_TYPE = "text/plain; version=0.0.4"
"""The application adds the charset."""
_SHARES = (0.5, 0.9, 0.99)
Kind = Literal["gauge", "counter"]
Values = Iterable[tuple[str, float | None]]


class Family(NamedTuple):
    """A metric: its name, what it means, and its samples by labels."""

    name: str
    kind: Kind
    means: str
    samples: list[tuple[dict[str, str], float]]


class Metric(NamedTuple):
    """A row of the table of metrics; without `label`, `read` returns one value, else values by the label."""

    name: str
    means: str
    read: Callable[[Vitals], float | None] | Callable[[Vitals], Values]
    label: str = ""
    kind: Kind = "gauge"

    def family(self, vitals: Vitals) -> Family:
        """Return the metric as measured; what is not known is left out."""
        found = self.read(vitals)
        values: Values = found if self.label else [("", found)]  # type: ignore[assignment,list-item]  # by `label`
        known = [(key, float(value)) for key, value in values if value is not None]
        samples = [({self.label: key} if self.label else {}, value) for key, value in known]
        return Family(self.name, self.kind, self.means, samples)


def _ended(end: str) -> Callable[[Vitals], Values]:
    """Return counts of fetches that ended in a way, by its detail."""
    cut = len(end) + 1
    return lambda v: sorted((name[cut:], count) for name, count in v.tallies.items() if name.startswith(f"{end}:"))


def _tally(name: str) -> Callable[[Vitals], float]:
    return lambda v: v.tallies.get(name, 0)


METRICS = (
    Metric("recrawl_freshness",
           "Share of the importance whose copy is current: as believed, and corrected by what crawls found.",
           lambda v: [("believed", v.estimates.believed), ("audited", v.estimates.freshness)], "by"),
    Metric("recrawl_freshness_range", "Between which values the audited freshness is, in 95 of 100 cases.",
           lambda v: zip(("low", "high"), v.freshness_range, strict=True), "by"),
    Metric("recrawl_fresh_pages", "Estimated share of the pages whose copy is current.",
           lambda v: v.estimates.fresh_pages),
    Metric("recrawl_changes_found_by_expected",
           "Changes that fetches found by those that were expected; 1 if beliefs hold.",
           lambda v: v.found_by_expected),
    Metric("recrawl_copy_age_seconds", "Age of the copies.",
           lambda v: [(str(share), v.estimates.ages.percentile(share)) for share in _SHARES], "quantile"),
    Metric("recrawl_detection_delay_seconds",
           "From a change to its detection, expected: half the time since the page was seen before.",
           lambda v: zip(("0.5", "0.9"), v.delays_s, strict=True), "quantile"),
    Metric("recrawl_pages_without_copy", "Pages that were never fetched.", lambda v: v.estimates.no_copy),
    Metric("recrawl_price", "What a crawl must be worth to be made.", lambda v: v.price),
    Metric("recrawl_budget_per_second", "Requests that may be made.", lambda v: v.budget_per_day / 86_400.0),
    Metric("recrawl_budget_usable", "Share of the budget that least intervals let be used.",
           lambda v: v.budget_usable),
    Metric("recrawl_budget_used", "Share of the budget that was used in the last minute.", lambda v: v.budget_used),
    Metric("recrawl_wasted_fetches", "Share of the last fetches that brought nothing new.", lambda v: v.wasted),
    Metric("recrawl_listening_pages", "Pages that listen to signals.", lambda v: v.estimates.listening),
    Metric("recrawl_signal_trust", "Believed of signals, on average over listening pages.",
           lambda v: [("recall", v.estimates.recall), ("precision", v.estimates.precision)], "of"),
    Metric("recrawl_signal_precision", "Share of the crawls that a kind of signal caused that found a change.",
           lambda v: [(each.kind, each.precision) for each in v.scores], "kind"),
    Metric("recrawl_signal_recall", "Share of the changes found that a kind of signal announced.",
           lambda v: [(each.kind, each.recall) for each in v.scores], "kind"),
    Metric("recrawl_fetches_total", "Fetches that were answered or failed.", _ended("fetched"), "outcome", "counter"),
    Metric("recrawl_deferred_total", "Fetches that were not sent.", _ended("deferred"), "reason", "counter"),
    Metric("recrawl_retired_total", "Fetches that were of pages that left.", _ended("retired"), "reason", "counter"),
    Metric("recrawl_requests_total", "Requests sent; all count against the budget.", _tally("requests"),
           kind="counter"),
    Metric("recrawl_received_bytes_total", "Bytes of bodies as they came.", _tally("wire_bytes"), kind="counter"),
    Metric("recrawl_taken_total", "Pages taken from the scheduler.", _tally("taken"), kind="counter"),
    Metric("recrawl_events_total", "Events in the change log.", lambda v: v.counts.last_cursor, kind="counter"),
    Metric("recrawl_backlog_pages", "Pages that are worth their price and not fetched yet, by what they wait for.",
           lambda v: [("offer", v.estimates.on_offer), ("host", v.estimates.at_hosts),
                      ("in-flight", v.estimates.in_flight)], "at"),
    Metric("recrawl_longest_due_seconds", "How long the page waits that is due longest.",
           lambda v: v.estimates.latest_due_s),
    Metric("recrawl_last_success_age_seconds", "Since a page last came.",
           lambda v: None if v.last_success_at is None else max(v.at - v.last_success_at, 0.0)),
    Metric("recrawl_pages", "Pages by state.", lambda v: v.counts.pages.items(), "state"),
    Metric("recrawl_hosts", "Hosts by how they are.", lambda v: v.hosts.classes.items(), "class"),
    Metric("recrawl_network_down", "1 while no host can be reached.", lambda v: v.network_down),
    Metric("recrawl_unwritten_results", "Results that are not durable yet.", lambda v: v.unwritten),
    Metric("recrawl_sink_lag_events", "Events that a sink has yet to take.",
           lambda v: [(each.name, each.behind) for each in v.sinks], "sink"),
    Metric("recrawl_info", "Version of the program.", lambda _: [(__version__, 1.0)], "version"),
    Metric("recrawl_measured_timestamp_seconds", "When this was measured.", lambda v: v.at),
)  # fmt: skip
"""All metrics, in the order of the documentation."""


def exposition(vitals: Vitals) -> str:
    """Return the whole answer; what is not known yet is left out."""
    return "".join(_family_text(family) for family in families(vitals) if family.samples)


def families(vitals: Vitals) -> list[Family]:
    """Return all metrics as measured."""
    return [metric.family(vitals) for metric in METRICS]


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
