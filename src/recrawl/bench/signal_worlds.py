"""Worlds with known answers, for signals, interest and rhythm: what is learned can be held against the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.learning.histories import CrawlLog
from recrawl.learning.signal_history import SignalHistories, SignalLog
from recrawl.pages import Floats

if TYPE_CHECKING:
    from recrawl.learning.hit_histograms import HitHistograms

SiteKind = Literal["honest", "always", "never", "bulk"]
SITE_KINDS: tuple[SiteKind, ...] = ("honest", "always", "never", "bulk")

WORKING_HOURS: Floats = np.where((np.arange(24) >= 9) & (np.arange(24) < 18), 2.2, 0.28)
"""A day on which most changes come in office hours; the mean is 1."""


class AuditedPages(NamedTuple):
    """Pages with known precision and recall of their signals, and the audits of their crawls."""

    precision: Floats
    recall: Floats
    histories: SignalHistories


def audited_pages(pages: int, seed: object, horizon: float = 100_000.0) -> AuditedPages:
    """Draw the pages of NCIS (Busa-Fekete et al. 2025), appendix E.

    Precision and recall are uniform in [0.2, 0.95], the mean time between changes is uniform in [2, 20], crawls come at
    random at a quarter to four times the rate of changes (evenly in the logarithm).
    """
    random = np.random.default_rng(seed)  # type: ignore[arg-type] # any seed that NumPy takes
    precision, recall = random.uniform(0.2, 0.95, (2, pages))
    change_rate = 1 / random.uniform(2.0, 20.0, pages)
    crawl_rate = change_rate * 4.0 ** random.uniform(-1.0, 1.0, pages)
    crawls = np.maximum(random.poisson(crawl_rate * horizon), 1)
    offsets = np.concatenate([[0], np.cumsum(crawls)])
    page = np.repeat(np.arange(pages), crawls)
    gaps = random.exponential(size=len(page)) / crawl_rate[page]
    announced = recall * change_rate
    true = random.poisson(announced[page] * gaps)
    false = random.poisson((announced * (1 - precision) / precision)[page] * gaps)
    silent = random.poisson((change_rate - announced)[page] * gaps)
    heard = (true + false).astype(np.int32)[:, None]
    return AuditedPages(precision, recall, SignalHistories(offsets, gaps, true + silent > 0, heard, ("signal",)))


def site_logs(kind: SiteKind, seed: object, pages: int = 10, audits: int = 5) -> tuple[CrawlLog, SignalLog]:
    """Draw the logs of a site of so many pages, each audited so often.

    Pages change every three days, some three times as often, some a third; crawls are two days apart on average. An
    honest site announces nine changes in ten, and nine signals in ten are true. A site that always fires says every
    day that every page is new. A bulk-bumped site says so three times, of all pages at once, for no reason.
    """
    random = np.random.default_rng(seed)  # type: ignore[arg-type] # any seed that NumPy takes
    span = 2.0 * (audits + 1)
    bumps = random.uniform(0.0, span, 3)
    crawls: list[tuple[int, float, bool]] = []
    signals: list[tuple[int, float]] = []
    for page in range(pages):
        rate = 3.0 ** random.uniform(-1.0, 1.0) / 3
        changes = random.uniform(0.0, span, random.poisson(rate * span))
        times = np.concatenate([[0.0], np.sort(random.uniform(0.0, span, audits))])
        seen = np.diff(np.searchsorted(np.sort(changes), times)) > 0
        crawls += [(page, 0.0, False), *((page, *row) for row in zip(times[1:].tolist(), seen.tolist(), strict=True))]
        if kind == "honest":
            false = random.uniform(0.0, span, random.poisson(0.1 * rate * span))
            heard = np.concatenate([changes[random.random(len(changes)) < 0.9], false])
        else:
            heard = {"always": np.arange(0.3, span), "never": np.empty(0), "bulk": bumps}[kind]
        signals += [(page, time) for time in heard.tolist()]
    page_of, time_of, changed = zip(*crawls, strict=True)
    signal_page = np.array([page for page, _ in signals], dtype=np.int64)
    signal_time = np.array([time for _, time in signals])
    return CrawlLog(page_of, time_of, changed), SignalLog(signal_page, signal_time, ["sitemap"] * len(signals))


def idle_signals(pages: int, audits: int, seed: int) -> SignalHistories:
    """Pages of one site whose signals know nothing of changes, but come more often on the pages that change more."""
    random = np.random.default_rng(seed)
    rate = np.repeat(3.0 ** random.uniform(-2.0, 2.0, pages) / 3, audits)
    gaps = random.exponential(size=pages * audits)
    changed = random.poisson(rate * gaps) > 0
    heard = random.poisson(rate * gaps).astype(np.int32)[:, None]
    return SignalHistories(np.arange(0, pages * audits + 1, audits), gaps, changed, heard, ("signal",))


class Sources(NamedTuple):
    """Content sources with known profit and decay, and the hits their pages had in a week."""

    profit: Floats
    decay: Floats
    histograms: HitHistograms


def hit_sources(sources: int, pages: int, seed: int) -> Sources:
    """Draw sources with so many new pages each in a week; 0.5 to 50 hits per page, fading over an hour to two days."""
    from recrawl.learning.hit_histograms import HitHistograms

    random = np.random.default_rng(seed)
    profit = 10.0 ** random.uniform(-0.3, 1.7, sources)
    decay = 10.0 ** random.uniform(-0.3, 1.4, sources)
    source = np.repeat(np.arange(sources), pages)
    born = random.uniform(0.0, 7.0, len(source))
    page = np.repeat(np.arange(len(source)), random.poisson(profit[source]))
    age = random.exponential(size=len(page)) / decay[source[page]]
    seen = born[page] + age < 7.0
    histograms = HitHistograms(sources, 0.0)
    histograms.advance(7.0)
    histograms.add_pages(source, born)
    histograms.add_hits(source[page[seen]], age[seen], np.ones(int(seen.sum())))
    return Sources(profit, decay, histograms)


def rhythmic_log(hours: Floats, days: Floats, pages: int, span: float, seed: int, gap: float = 0.15) -> CrawlLog:
    """Draw the crawls of a host whose pages change about once a day, at busy hours more; crawls come at random."""
    random = np.random.default_rng(seed)
    busy = np.outer(days, hours).ravel()
    logs: list[tuple[NDArray[np.int64], Floats, NDArray[np.bool_]]] = []
    for page in range(pages):
        rate = np.exp(random.uniform(-1.0, 1.0))
        times = np.cumsum(random.exponential(size=int(2 * span / gap) + 10)) * gap
        times = times[times < span]
        changes = random.uniform(0.0, span, random.poisson(rate * busy.max() * span))
        kept = random.random(len(changes)) * busy.max() < busy[(changes * 24 % 168).astype(np.int64)]
        number = np.searchsorted(np.sort(changes[kept]), times)
        logs.append((np.full(len(times), page), times, np.diff(number, prepend=number[:1]) > 0))
    page_of, time_of, changed = (np.concatenate(column) for column in zip(*logs, strict=True))
    return CrawlLog(page_of, time_of, changed)
