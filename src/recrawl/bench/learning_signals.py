"""Measures of the group `learning` for signals, interest and rhythm: how right they are, and how fast.

Everything is learned from drawn worlds whose answers are known (`signal_worlds.py`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from recrawl.bench.measure import Bound, Measure, Reading, best_cpu_seconds, cpu_seconds
from recrawl.bench.signal_worlds import (
    SITE_KINDS,
    WORKING_HOURS,
    SiteKind,
    audited_pages,
    hit_sources,
    idle_signals,
    rhythmic_log,
    site_logs,
)
from recrawl.bench.signal_yardsticks import interest_by_least_squares, load_optimisers, trust_by_minimize
from recrawl.pages import Floats

if TYPE_CHECKING:
    from recrawl.learning.signal_history import SignalHistories

_PARTS, _PART_PAGES = 12, 125
_SITES = 50
_SAMPLE = 20
_HOSTS = 100


def signal_measures() -> tuple[Measure, ...]:
    """The measures, in the order they run; the first three share one simulation."""
    work = _Work()
    bias, share = Bound("value", limit=1e-3), Bound("value", floor=0.95)
    return (
        Measure("trust_precision_bias", "absolute", "counting", bias, partial(work.read_bias, "precision")),
        Measure("trust_recall_bias", "absolute", "counting", bias, partial(work.read_bias, "recall")),
        Measure("trust_page_error", "absolute", "counting", Bound("value", limit=0.015), work.read_error),
        Measure("trust_separation_50_audits", "share", "right answers", share, read_separation),
        Measure("idle_signal_weight", "weight", "silent rate alike", Bound("value", limit=0.05), read_idle_weight),
        Measure("trust_fit", "million audits/s", "SciPy L-BFGS-B", Bound("ratio", floor=5), read_fit_speed),
        Measure("trust_updates", "million/s", "batches of 1,000", Bound("value", floor=0.5), read_update_speed),
        Measure("trust_tracker_error", "absolute", "whole history", Bound("ratio", limit=1.1), read_tracker_error),
        Measure("interest_fit", "sources/s", "SciPy least squares", Bound("ratio", floor=5), read_interest_speed),
        Measure("interest_profit_error", "relative", "100 pages each", Bound("value", limit=0.15), read_profit_error),
        Measure("rhythm_recovery", "RMSE", "flat", Bound("ratio", limit=0.5), read_rhythm),
        Measure("rhythm_false_alarms", "share", "steady hosts", Bound("value", limit=0.02), read_false_alarms),
    )


class _Work:
    """What the measures of trust share: errors over many pages, by likelihood and by counting."""

    @cached_property
    def errors(self) -> dict[str, tuple[Floats, Floats]]:
        """Errors of precision and recall, by likelihood and by counting."""
        from recrawl.learning.signal_counting import count_trust
        from recrawl.learning.trust import fit_trust

        errors: dict[str, list[tuple[Floats, Floats]]] = {"precision": [], "recall": []}
        for part in range(_PARTS):
            world = audited_pages(_PART_PAGES, [7, part])
            fitted, counted = fit_trust(world.histories, prior=0.0), count_trust(world.histories)
            for name, parts in errors.items():
                truth = getattr(world, name)
                parts.append((getattr(fitted, name)[:, 0] - truth, getattr(counted, name)[:, 0] - truth))
        return {
            name: (np.concatenate([ours for ours, _ in parts]), np.concatenate([theirs for _, theirs in parts]))
            for name, parts in errors.items()
        }

    def read_bias(self, name: str) -> Reading:
        """The mean error, its sign left off."""
        ours, counting = self.errors[name]
        return Reading(abs(float(ours.mean())), None, f"{counting.mean():.2f}")

    def read_error(self) -> Reading:
        """The mean error of a page, of precision and recall alike."""
        ours = [np.abs(likelihood).mean() for likelihood, _ in self.errors.values()]
        counting = [np.abs(counted).mean() for _, counted in self.errors.values()]
        return Reading(float(np.mean(ours)), float(np.mean(ours) / np.mean(counting)), f"{np.mean(counting):.2f}")


def judge_site(kind: SiteKind, seed: object) -> SiteKind:
    """What 50 audits make of a site."""
    from recrawl.learning.signal_history import signal_histories_from_log
    from recrawl.learning.trust import fit_trust

    crawls, signals = site_logs(kind, seed)
    trust = fit_trust(signal_histories_from_log(crawls, signals, ["sitemap"]), hosts=["site"] * 10)
    if trust.signal_rate[0, 0] == 0:
        return "never"
    if trust.precision[0, 0] > 0.5:
        return "honest"
    return "always" if trust.signal_rate[0, 0] > 0.75 else "bulk"


def read_separation() -> Reading:
    """The share of sites judged rightly, all kinds alike."""
    right = [judge_site(kind, [site, 3]) == kind for kind in SITE_KINDS for site in range(_SITES)]
    return Reading(float(np.mean(right)), None, f"{len(right)} sites")


def read_idle_weight() -> Reading:
    """The weight of a signal that tells nothing; for comparison if pages were taken to change alike."""
    from recrawl.learning.trust import fit_trust

    worlds = [idle_signals(20, 50, seed) for seed in range(20)]
    told_apart = [fit_trust(world, hosts=["site"] * 20).signal_weight[0, 0] for world in worlds]
    alike = [fit_trust(_as_one_page(world)).signal_weight[0, 0] for world in worlds]
    return Reading(float(np.mean(told_apart)), None, f"{np.mean(alike):.2f}")


def _as_one_page(histories: SignalHistories) -> SignalHistories:
    """All audits of a site as if they were of one page."""
    return replace(histories, offsets=np.array([0, len(histories.gaps)]))


def read_fit_speed() -> Reading:
    """Audits per second; the yardstick is timed on a few pages."""
    from recrawl.learning.trust import fit_trust

    optimize = load_optimisers()
    histories = audited_pages(100, 5, horizon=20_000.0).histories
    seconds = best_cpu_seconds(partial(fit_trust, histories, prior=0.0))
    sample = range(0, 100, 100 // _SAMPLE)
    audits = sum(int(histories.offsets[page + 1] - histories.offsets[page]) for page in sample)
    plain = cpu_seconds(lambda: [trust_by_minimize(optimize, histories, page) for page in sample])
    ours, theirs = len(histories.gaps) / seconds / 1e6, audits / plain / 1e6
    return Reading(ours, ours / theirs, f"{theirs:.3g} million audits/s")


def read_update_speed() -> Reading:
    """Audits taken in per second, thousand by thousand."""
    from recrawl.learning.trust_tracker import TrustTracker

    random = np.random.default_rng(3)
    audits, hosts = 100_000, 1_000
    batches = [
        (
            random.integers(0, hosts, 1000), random.exponential(size=1000), random.random(1000) < 0.5,
            random.poisson(0.6, (1000, 1)),
        )
        for _ in range(audits // 1000)
    ]  # fmt: skip
    tracker = TrustTracker(hosts, ["signal"])

    def take_in() -> None:
        for batch in batches:
            tracker.observe(*batch)

    return Reading(audits / best_cpu_seconds(take_in) / 1e6, None, f"{tracker.bytes_per_host} bytes per host")


def read_tracker_error() -> Reading:
    """Error of precision after 1,000 audits in bounded memory, against a fit to all of them."""
    from recrawl.learning.trust import fit_trust
    from recrawl.learning.trust_tracker import TrustTracker

    pages = 300
    world = audited_pages(pages, 9, horizon=10_000.0)
    histories = world.histories
    tracker = TrustTracker(pages, histories.kinds, memory=np.inf)
    tracker.observe(histories.page_of_rows(), histories.gaps, histories.changed, histories.counts)
    bounded, whole = (
        float(np.sqrt(np.mean((trust.precision[:, 0] - world.precision) ** 2)))
        for trust in (tracker.trust(), fit_trust(histories))
    )
    return Reading(bounded, bounded / whole, f"{whole:.3f}")


def read_interest_speed() -> Reading:
    """Sources fitted per second; the yardstick is timed on a few."""
    from recrawl.learning.interest import fit_interest

    optimize = load_optimisers()
    histograms = hit_sources(500, 100, 1).histograms
    hits, watched = histograms.hits(), histograms.watched()
    seconds = best_cpu_seconds(partial(fit_interest, hits, watched, histograms.bin_width))
    gathered = histograms.cumulative_hits()
    plain = cpu_seconds(lambda: [
        interest_by_least_squares(optimize, gathered[source], watched[source], histograms.bin_width)
        for source in range(_SAMPLE)
    ])  # fmt: skip
    ours, theirs = len(hits) / seconds, _SAMPLE / plain
    return Reading(ours, ours / theirs, f"{theirs:.3g} sources/s")


def read_profit_error() -> Reading:
    """The typical error of the profit of a source."""
    from recrawl.learning.hit_histograms import Interest

    world = hit_sources(500, 100, 2)
    fit = Interest(world.histograms).refit()
    return Reading(float(np.median(np.abs(np.log(fit.profit / world.profit)))), None, "")


def read_rhythm() -> Reading:
    """Error of the factors of hours, 20 pages crawled six times a day for a month, against taking them for flat."""
    from recrawl.learning.rhythm import fit_rhythm

    truth = WORKING_HOURS / WORKING_HOURS.mean()
    errors = [fit_rhythm(rhythmic_log(truth, np.ones(7), 20, 30.0, seed)).hours - truth for seed in range(10)]
    ours, flat = (float(np.sqrt(np.mean(np.square(error)))) for error in (errors, 1 - truth))
    return Reading(ours, ours / flat, f"{flat:.2f}")


def read_false_alarms() -> Reading:
    """The share of steady hosts that are given a rhythm."""
    from recrawl.learning.rhythm import fit_rhythm

    steady = [fit_rhythm(rhythmic_log(np.ones(24), np.ones(7), 5, 30.0, seed)).flat for seed in range(_HOSTS)]
    return Reading(1 - float(np.mean(steady)), None, f"{_HOSTS} hosts")
