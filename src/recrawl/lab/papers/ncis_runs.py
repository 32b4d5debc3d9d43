"""Runs of the NCIS paper: its worlds, the expected accuracy of crawls, repetitions, and figure 5.

The pages of the NCIS paper (Busa-Fekete et al. 2025) and their signals, by seed.

Uniform pages are those of its figures 2 to 4, 8 and 9, web pages those of figure 5, whose data are not public. A
signal is drawn first and then found true or false; the true ones are the announced changes. Silent changes are never
drawn: given crawls and signals their effect has a closed form.

Accuracy of a crawl log: the share of requests that meet a fresh copy, in expectation given crawls and signals.

Requests come by a Poisson process of the rate `importance` and see time averages, so their accuracy is the
importance-weighted share of time in which copies are fresh. A copy that was crawled τ ago and has had n signals since
is fresh with probability e^{−(ατ + bn)} (NCIS, Busa-Fekete et al. 2025). Integrating that instead of drawing changes
and requests leaves the mean as it is and takes their noise away.

Repetitions of the experiments of the NCIS paper: one world each, crawled by every policy, and the accuracies.

Each is a function of its task alone, so that repetitions run in several processes and come out the same.

Figure 5 of the NCIS paper (Busa-Fekete et al. 2025): corrupted precision and recall on 100,000 web pages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import recrawl
from recrawl.jit import borrowing, exact
from recrawl.lab.papers.experiment import Experiment, Finding, Scale, Table, least_ratio, mean_finding
from recrawl.lab.parallel import Workers
from recrawl.lab.simulation.lazy_argmax import crawl_by_argmax
from recrawl.lab.simulation.ncis_values import NcisPolicy, beliefs
from recrawl.lab.worlds.laws import web_population
from recrawl.lab.worlds.world import CrawlLog, Events, Ints, PageNumbers, no_events
from recrawl.pages import Floats
from recrawl.planning.plan import Plan

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SEED = 2025


# A copy that is fresh with less than this chance is stale.
_GONE = 1e-18

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

_PAGES, _QUICK_PAGES = 100_000, 10_000
_REPETITIONS, _QUICK_REPETITIONS = 10, 3
_SHOWN = ("greedy", *WEB_POLICIES)
_CLAIMS = {"greedy": "greedy", "cis": "greedy-cis", "cis_plus": "greedy-cis+"}

_NOTES = (
    (
        "The paper's data set is not available: pages are drawn from a synthetic web population with lognormal "
        "importance and change rates from once in three years to seven times a day."
    ),
    (
        "4 % of the pages have good signals, of precision uniform in (0.7, 1) and recall in (0.6, 1), others "
        "precision uniform in (0.05, 0.7) and recall in (0, 0.6). The paper shows its distributions as a histogram "
        "only."
    ),
    (
        "Policies believe (1 − p)·truth + p·noise of precision and recall, with one uniform noise per page for both,"
        " as the paper prints it; its formula for recall lacks the p before the noise. Change rates are known, and "
        "the believed rate of false signals follows from the believed precision and recall."
    ),
    (
        "Crawls are 5 % of the pages a step, one at each slot, over 200 steps. The cache is empty at the start, and "
        "the first quarter of the time, in which all pages are crawled a first time, is not counted."
    ),
    "Accuracy is on requests, in expectation given crawls and signals.",
    "The full run has 10 repetitions, as the paper has for this figure; its other figures have 100.",
)


class NcisPages(NamedTuple):
    """Pages with one kind of signal; rates are per unit time."""

    importance: Floats
    change_rate: Floats
    recall: Floats
    false_signal_rate: Floats

    def signal_rate(self) -> Floats:
        """All signals, true and false."""
        return self.recall * self.change_rate + self.false_signal_rate

    def precision(self) -> Floats:
        """Chance that a signal means a change."""
        return self.recall * self.change_rate / self.signal_rate()


def generator(*key: int) -> np.random.Generator:
    """The random numbers of one repetition."""
    return np.random.Generator(np.random.PCG64([_SEED, *key]))


def uniform_pages(pages: int, random: np.random.Generator) -> NcisPages:
    """Importance and change rate uniform in (0, 1), recall ~ Beta(¼, ¼), false signals uniform in (0.1, 0.6)."""
    importance, change_rate = 1.0 - random.random((2, pages))  # never 0
    return NcisPages(importance, change_rate, random.beta(0.25, 0.25, pages), random.uniform(0.1, 0.6, pages))


def web_pages(pages: int, random: np.random.Generator) -> NcisPages:
    """Pages of a web index, 4 % of them with good signals; this stands in for the data set of figure 5.

    Good signals have precision in (0.7, 1) and recall in (0.6, 1), others precision in (0.05, 0.7) and recall in
    (0, 0.6), all uniform: the paper splits its own distributions so, but shows them as a histogram only.
    """
    columns = web_population(pages, seed=int(random.integers(2**31)))
    good = columns["recall"] > 0
    precision = np.where(good, random.uniform(0.7, 1.0, pages), random.uniform(0.05, 0.7, pages))
    recall = np.where(good, random.uniform(0.6, 1.0, pages), random.uniform(0.0, 0.6, pages))
    return with_precision(columns["importance"], columns["change_rate"], recall, precision)


def with_precision(importance: Floats, change_rate: Floats, recall: Floats, precision: Floats) -> NcisPages:
    """Pages whose false signals are as many as this precision means."""
    return NcisPages(importance, change_rate, recall, recall * change_rate * (1.0 - precision) / precision)


def corrupted(pages: NcisPages, noise: Floats, share: float) -> NcisPages:
    """Mix noise into precision and recall: what a policy with imperfect estimates believes."""
    precision, recall = ((1.0 - share) * truth + share * noise for truth in (pages.precision(), pages.recall))
    return with_precision(pages.importance, pages.change_rate, recall, precision)


def signal_times(rate: Floats, horizon: float, random: np.random.Generator) -> Events:
    """Poisson signals of each page from 0 to the horizon. O(signals)."""
    number = random.poisson(rate * horizon)
    offsets = np.concatenate([[0], np.cumsum(number)])
    times = np.empty(int(offsets[-1]))
    _spread(offsets, random.standard_exponential(len(times) + len(rate)), horizon, times)
    return Events(offsets, times)


@exact
def _spread(offsets: Ints, gaps: Floats, horizon: float, times: Floats) -> None:
    """Sorted uniform times by exponential gaps, one more than there are times."""
    for page in range(offsets.size - 1):
        first = offsets[page] + page
        last = offsets[page + 1] + page
        total = 0.0
        for i in range(first, last + 1):
            total += gaps[i]
        reached = 0.0
        for i in range(first, last):
            reached += gaps[i]
            times[i - page] = horizon * (reached / total)


def announced_changes(signals: Events, precision: Floats, random: np.random.Generator) -> Events:
    """The signals that are true, each with its page's precision. O(signals)."""
    true = random.random(len(signals.times)) < np.repeat(precision, np.diff(signals.offsets))
    before = np.concatenate([[0], np.cumsum(true)])
    return Events(before[signals.offsets], signals.times[true])


def delayed(signals: Events, mean_slots: float, slot: float, random: np.random.Generator) -> Events:
    """Signals that arrive late, by a Poisson number of slots each. O(signals)."""
    arrivals = signals.times + slot * random.poisson(mean_slots, len(signals.times))
    _sort_each(signals.offsets, arrivals)
    return Events(signals.offsets, arrivals)


@exact
def _sort_each(offsets: Ints, times: Floats) -> None:
    """Sort the times of each page in place; they are nearly sorted."""
    for page in range(offsets.size - 1):
        for i in range(offsets[page] + 1, offsets[page + 1]):
            time = times[i]
            j = i
            while j > offsets[page] and times[j - 1] > time:
                times[j] = times[j - 1]
                j -= 1
            times[j] = time


class Truth(NamedTuple):
    """What decides whether copies are fresh: silent changes by rate, and events that each weigh so much."""

    importance: Floats
    silent_rate: Floats
    weight: Floats
    events: Events


def given_crawls(pages: NcisPages) -> Truth:
    """For a policy that hears no signals: all changes in expectation."""
    count = len(pages.importance)
    return Truth(pages.importance, pages.change_rate, np.zeros(count), no_events(count))


def given_signals(pages: NcisPages, signals: Events) -> Truth:
    """For a policy that hears signals at once: each signal takes its share of the freshness."""
    weight = np.log1p(pages.recall * pages.change_rate / pages.false_signal_rate)
    return Truth(pages.importance, (1.0 - pages.recall) * pages.change_rate, weight, signals)


def given_announced(pages: NcisPages, announced: Events) -> Truth:
    """For signals that come late or are never wrong: announced changes as they happen, silent ones in expectation."""
    weight = np.full(len(pages.importance), math.inf)
    return Truth(pages.importance, (1.0 - pages.recall) * pages.change_rate, weight, announced)


def accuracy(truth: Truth, log: CrawlLog, edges: Floats) -> Floats:
    """Accuracy in each span between two edges; before its first crawl a page is stale. O(crawls + events + spans)."""
    pages = len(truth.importance)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(log.page, minlength=pages))])
    times = np.empty(len(log))
    _group(log.page, log.time, offsets[:-1].copy(), times)
    sums = np.zeros(len(edges) - 1)
    _add_fresh_time(truth, Events(offsets, times), edges, sums)
    shares: Floats = sums / (truth.importance.sum() * np.diff(edges))
    return shares


@exact
def _group(page: PageNumbers, time: Floats, filled: Ints, times: Floats) -> None:
    for i in range(page.size):
        times[filled[page[i]]] = time[i]
        filled[page[i]] += 1


@exact
def _add_fresh_time(truth: Truth, crawls: Events, edges: Floats, sums: Floats) -> None:
    end = edges[-1]
    for page in range(truth.importance.size):
        rate, factor = truth.silent_rate[page], math.exp(-truth.weight[page])
        event, last_event = truth.events.offsets[page], truth.events.offsets[page + 1]
        last_crawl = crawls.offsets[page + 1]
        for crawl in range(crawls.offsets[page], last_crawl):
            start = crawls.times[crawl]
            until = min(crawls.times[crawl + 1], end) if crawl + 1 < last_crawl else end
            while event < last_event and truth.events.times[event] <= start:
                event += 1
            fresh = truth.importance[page]
            while start < until and fresh > _GONE:
                heard = event < last_event and truth.events.times[event] < until
                stop = truth.events.times[event] if heard else until
                fresh = _add_decay(fresh, rate, start, stop, edges, sums)
                if heard:
                    fresh *= factor
                    event += 1
                start = stop


@borrowing
def _add_decay(fresh: float, rate: float, start: float, stop: float, edges: Floats, sums: Floats) -> float:
    """Add ∫ fresh·e^{−rate·t}dt from start to stop to the spans it falls in; return what is left."""
    if stop <= edges[0]:
        return fresh * math.exp(-rate * (stop - start))
    span = max(0, int(np.searchsorted(edges, start, side="right")) - 1)
    while start < stop:
        step = min(stop, edges[span + 1]) - start
        left = fresh * math.exp(-rate * step)
        if start >= edges[0]:
            sums[span] += fresh * -math.expm1(-rate * step) / rate if rate > 0.0 else fresh * step
            start = min(stop, edges[span + 1])
            span += 1
        else:  # up to the first edge nothing counts
            left = fresh * math.exp(-rate * (edges[0] - start))
            start = edges[0]
        fresh = left
    return fresh


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


def corrupted_signals(scale: Scale, run: Workers) -> Experiment:
    """Run every policy at every corruption."""
    pages = _QUICK_PAGES if scale.quick else _PAGES
    repetitions = range(_QUICK_REPETITIONS if scale.quick else _REPETITIONS)
    found = run(run_web, [WebTask(pages, repetition) for repetition in repetitions])
    accuracy = {key: np.array([each[key] for each in found]) for key in found[0]}
    rows: list[tuple[str | float | int, ...]] = []
    for share in CORRUPTIONS:
        for policy in _SHOWN:
            mean = mean_finding(policy, accuracy[policy, share])
            rows.append((share, policy.upper(), pages, len(found), mean.value, mean.low, mean.high))
    findings = tuple(
        least_ratio(
            f"ncis.fig5.ncis_not_below_{name}",
            [(accuracy["greedy-ncis", share], accuracy[below, share]) for share in CORRUPTIONS],
        )
        for name, below in _CLAIMS.items()
    )
    columns = ("corruption", "policy", "pages", "repetitions", "accuracy", "low", "high")
    title = f"Accuracy with corrupted precision and recall, {pages:,} pages"
    return Experiment("ncis.fig5", title, Table(columns, rows), findings, partial(_draw, accuracy, title), _NOTES)


def _draw(accuracy: dict[tuple[str, float], Floats], title: str) -> Figure:
    from recrawl.plots.experiments import BarPanel, Series, bars_figure

    series = []
    for policy in _SHOWN:
        means: Sequence[Finding] = [mean_finding(policy, accuracy[policy, share]) for share in CORRUPTIONS]
        low, high = [each.low for each in means], [each.high for each in means]
        series.append(Series(policy.upper(), [each.value for each in means], low, high))
    least = min(float(samples.mean()) for samples in accuracy.values())
    groups = [f"p = {share:g}" for share in CORRUPTIONS]
    return bars_figure([BarPanel(title, "accuracy", groups, series, bottom=math.floor(50 * least - 0.5) / 50)])
