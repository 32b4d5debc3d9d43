"""Repetitions of the experiments of the NCIS paper: one world each, crawled by every policy, and the accuracies.

Each is a function of its task alone, so that repetitions run in several processes and come out the same.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

import numpy as np

import recrawl
from recrawl.lab.papers.ncis_accuracy import Truth, accuracy, given_announced, given_crawls, given_signals
from recrawl.lab.papers.ncis_worlds import (
    NcisPages,
    announced_changes,
    corrupted,
    delayed,
    generator,
    signal_times,
    uniform_pages,
    web_pages,
)
from recrawl.lab.simulation.lazy_argmax import crawl_by_argmax
from recrawl.lab.simulation.ncis_values import NcisPolicy, beliefs
from recrawl.lab.worlds.world import CrawlLog, Events, no_events
from recrawl.pages import Floats
from recrawl.planning.plan import Plan

BANDWIDTH = 100.0
HORIZON = 1000.0
WARM_UP = 0.1
"""The share of the time before accuracy counts: the cache is empty at the start."""

DELAY_SLOTS, QUIET_SLOTS = 6.0, 5.0
CORRUPTIONS = (0.0, 0.1, 0.2)
WEB_STEPS, WEB_WARM_UP, CRAWLS_PER_PAGE = 200.0, 0.25, 0.05

PHASE_ENDS = (133.0, 266.0, 400.0)
PHASE_BANDWIDTHS = (100.0, 150.0, 100.0)
PHASE_PAGES = 1000

NOISY_POLICIES: tuple[NcisPolicy, ...] = (
    "greedy-cis", "greedy-cis+", "greedy-ncis", "ncis-approx-1", "ncis-approx-2",
)  # fmt: skip
WEB_POLICIES: tuple[NcisPolicy, ...] = ("greedy-cis", "greedy-cis+", "greedy-ncis")


class UniformTask(NamedTuple):
    """One repetition of figures 2, 3, 4 and 8."""

    pages: int
    repetition: int


class WebTask(NamedTuple):
    """One repetition of figure 5."""

    pages: int
    repetition: int


def run_uniform(task: UniformTask) -> dict[str, float]:
    """Accuracy of every policy on uniform pages, with and without noise and delay.

    True signals are the announced changes; without noise the signals are these alone. `…-seen` is on announced changes
    as they happen, `…-delayed` hears late, `…-quiet` also drops what arrives soon after a crawl.
    """
    random = generator(task.pages, task.repetition)
    pages = uniform_pages(task.pages, random)
    signals = signal_times(pages.signal_rate(), HORIZON, random)
    announced = announced_changes(signals, pages.precision(), random)
    late = delayed(signals, DELAY_SLOTS, 1.0 / BANDWIDTH, random)
    slots = even_slots(BANDWIDTH, HORIZON)
    edges = np.array([WARM_UP * HORIZON, HORIZON])

    def measured(log: CrawlLog, truth: Truth) -> float:
        return float(accuracy(truth, log, edges)[0])

    silent, seen, noisy = given_crawls(pages), given_announced(pages, announced), given_signals(pages, signals)
    plan = recrawl.plan(_columns(pages), BANDWIDTH, objective="freshness")
    clean = pages._replace(false_signal_rate=np.zeros(task.pages))
    found = {
        "baseline": plan.freshness,
        "lds": measured(_low_discrepancy(plan, slots), silent),
        "greedy": measured(_crawl("greedy", pages, no_events(task.pages), slots), silent),
        "greedy-cis-clean": measured(_crawl("greedy-cis", clean, announced, slots), seen),
    }
    for policy in NOISY_POLICIES:
        log = _crawl(policy, pages, signals, slots)
        found[policy] = measured(log, noisy)
        if policy == "greedy-ncis":
            found["ncis-seen"] = measured(log, seen)
    found["ncis-delayed"] = measured(_crawl("greedy-ncis", pages, late, slots), seen)
    belief = beliefs("greedy-ncis", *pages)
    found["ncis-quiet"] = measured(crawl_by_argmax(belief, late, slots, QUIET_SLOTS / BANDWIDTH), seen)
    return found


def run_web(task: WebTask) -> dict[tuple[str, float], float]:
    """Accuracy on web pages by policy and corruption; GREEDY hears nothing and so is not corrupted."""
    random = generator(5, task.pages, task.repetition)
    pages = web_pages(task.pages, random)
    noise = random.random(task.pages)
    signals = signal_times(pages.signal_rate(), WEB_STEPS, random)
    slots = even_slots(CRAWLS_PER_PAGE * task.pages, WEB_STEPS)
    edges = np.array([WEB_WARM_UP * WEB_STEPS, WEB_STEPS])
    greedy = accuracy(given_crawls(pages), _crawl("greedy", pages, no_events(task.pages), slots), edges)
    found = {("greedy", share): float(greedy[0]) for share in CORRUPTIONS}
    noisy = given_signals(pages, signals)
    for share in CORRUPTIONS:
        believed = corrupted(pages, noise, share)
        for policy in WEB_POLICIES:
            found[policy, share] = float(accuracy(noisy, _crawl(policy, believed, signals, slots), edges)[0])
    return found


def run_bandwidths(repetition: int) -> Floats:
    """Accuracy of GREEDY in each unit of time: as the bandwidth changes, at the first one, and at the second."""
    random = generator(9, repetition)
    pages = uniform_pages(PHASE_PAGES, random)
    starts = (0.0, *PHASE_ENDS[:-1])
    changing = np.concatenate([
        start + even_slots(bandwidth, end - start)
        for start, end, bandwidth in zip(starts, PHASE_ENDS, PHASE_BANDWIDTHS, strict=True)
    ])  # fmt: skip
    edges = np.arange(PHASE_ENDS[-1] + 1)
    runs = (changing, *(even_slots(bandwidth, PHASE_ENDS[-1]) for bandwidth in PHASE_BANDWIDTHS[:2]))
    truth = given_crawls(pages)
    silence = no_events(PHASE_PAGES)
    return np.stack([accuracy(truth, _crawl("greedy", pages, silence, slots), edges) for slots in runs])


def even_slots(bandwidth: float, horizon: float) -> Floats:
    """Times of crawls, evenly spaced, the last at the horizon."""
    return np.arange(1, round(bandwidth * horizon) + 1) / bandwidth


def _columns(pages: NcisPages) -> dict[str, Floats]:
    return {"importance": pages.importance, "change_rate": pages.change_rate}


def _crawl(policy: NcisPolicy, pages: NcisPages, signals: Events, slots: Floats) -> CrawlLog:
    return crawl_by_argmax(beliefs(policy, *pages), signals, slots)


def _low_discrepancy(plan: Plan, slots: Floats) -> CrawlLog:
    """The low-discrepancy schedule of the plan's rates, one crawl a slot."""
    crawls = islice(plan.schedule("low-discrepancy"), len(slots))
    return CrawlLog(np.fromiter((page for _, page in crawls), np.int32, len(slots)), slots)
