"""Everything that learns, as the contract suite sees it. To add an estimator, add a `Case` to `CASES`.

All are fed the same stream: observations of subjects, each with the time since the one before and yes or no, in the
form of `Histories`. A subject is a page, a host or a source, and yes is a change, a new link or a hit, as the estimator
has it. What comes out is one number per subject.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from recrawl.bench.learning_histories import draw_histories
from recrawl.bench.signal_worlds import WORKING_HOURS, rhythmic_log
from recrawl.learning.filter_state import FOREVER, Memory
from recrawl.learning.grid import RatePrior
from recrawl.learning.histories import CrawlLog, Histories
from recrawl.learning.hit_histograms import HitHistograms, Interest
from recrawl.learning.interest import InterestFit, fit_interest
from recrawl.learning.new_links import NewLinks
from recrawl.learning.online_filter import Beliefs, OnlineFilter
from recrawl.learning.posterior import RatePosterior, posterior
from recrawl.learning.prior import fit_prior
from recrawl.learning.rates import complete_rate, moments, smoothed_mle
from recrawl.learning.rhythm import Rhythm, fit_rhythm
from recrawl.learning.signal_history import read_signal_histories
from recrawl.learning.trust import Trust, fit_trust
from recrawl.learning.trust_tracker import TrustTracker
from recrawl.pages import Floats

BINS = 32
"""Of hits by age, one unit of time each."""


@dataclass(frozen=True)
class Case:
    """An estimator: a number for each subject of a stream, and what a user may keep between two runs.

    Attributes:
        name: what the tests call it.
        estimate: the numbers.
        kept: what survives a restart: an answer, or the tracker that gives it.
        alone: whether a subject's number does not depend on the other subjects of the call.
        rises: whether more yeses mean a higher number; not so if late ones count more than early ones.
        gaps: the shortest and the longest gap that it takes.
        subjects: how many the test of memory hands to it, and
        bytes_per_subject: what each may take.
    """

    name: str
    estimate: Callable[[Histories], Floats]
    kept: Callable[[Histories], object]
    alone: bool = True
    rises: bool = True
    gaps: tuple[float, float] = (1e-60, 1e59)
    subjects: int = 500_000
    bytes_per_subject: int = 200


@cache
def population_prior() -> RatePrior:
    """A prior from other pages than those asked about."""
    return fit_prior(draw_histories(3_000, 30, "irregular").histories)


def times_of(stream: Histories) -> Floats:
    """When each observation was made, if every subject begins at 0."""
    lengths = np.diff(stream.offsets)
    there = np.arange(lengths.max(initial=0)) < lengths[:, None]
    gaps = np.zeros(there.shape)
    gaps[there] = stream.gaps
    times: Floats = np.cumsum(gaps, axis=1)[there]
    return times


# Rates of change


def _posterior(stream: Histories) -> RatePosterior:
    return posterior(population_prior(), stream)


def _fitted_to_themselves(stream: Histories) -> Floats:
    return posterior(fit_prior(stream), stream).mean


def _filtered(stream: Histories, memory: Memory) -> Beliefs:
    online = OnlineFilter(population_prior(), len(stream), memory=memory)
    online.update_many(stream.page_of_rows(), stream.gaps, stream.changed)
    return online.estimate()


def _changes_and_times(stream: Histories) -> tuple[Floats, Floats]:
    pages = stream.page_of_rows()
    changes, times = np.zeros(len(stream)), np.zeros(len(stream))
    np.add.at(changes, pages, stream.changed)
    np.add.at(times, pages, stream.gaps)
    return changes, times


# Trust in signals of a kind that never came: what is left is the rate of changes.


def _trusted(stream: Histories) -> Trust:
    none = np.zeros((len(stream.gaps), 1))
    return fit_trust(read_signal_histories(stream.gaps, stream.changed, none, ["sitemap"], stream.offsets))


def _tracked(stream: Histories, memory: float) -> TrustTracker:
    tracker = TrustTracker(len(stream), ["sitemap"], memory=memory)
    tracker.observe(stream.page_of_rows(), stream.gaps, stream.changed, np.zeros((len(stream.gaps), 1)))
    return tracker


# Interest: a yes is a hit on the one page of a source, in the middle of the gap; or a new link


def _ages(stream: Histories) -> Floats:
    return times_of(stream) - stream.gaps / 2


def _fitted_interest(stream: Histories) -> InterestFit:
    _, span = _changes_and_times(stream)
    hits, ages = np.zeros((len(stream), BINS)), _ages(stream)
    young = ages < BINS
    np.add.at(hits, (stream.page_of_rows()[young], ages[young].astype(np.int64)), stream.changed[young])
    return fit_interest(hits, np.clip(span[:, None] - np.arange(BINS), 0.0, 1.0), bin_width=1.0)


def _interest(stream: Histories) -> Interest:
    histograms = HitHistograms(len(stream), start=0.0, bin_width=1.0, bins=BINS)
    histograms.add_pages(np.arange(len(stream)), np.zeros(len(stream)))
    histograms.advance(times_of(stream).max(initial=0.0))
    histograms.add_hits(stream.page_of_rows(), _ages(stream), stream.changed.astype(np.int64))
    interest = Interest(histograms)
    interest.refit(everything=True)
    return interest


def _new_links(stream: Histories) -> NewLinks:
    links = NewLinks(len(stream))
    links.record(np.arange(len(stream)), np.zeros(len(stream)), np.zeros(len(stream), np.int64))
    links.record(stream.page_of_rows(), times_of(stream), stream.changed.astype(np.int64))
    return links


# Rhythm of one host: pages that change in office hours, and the subjects as further pages


@cache
def _office_pages() -> CrawlLog:
    return rhythmic_log(WORKING_HOURS / WORKING_HOURS.mean(), np.ones(7), pages=15, span=30.0, seed=1)


def _rhythm(stream: Histories) -> Rhythm:
    office, subjects = _office_pages(), np.arange(len(stream))
    page = np.concatenate([subjects, stream.page_of_rows(), len(stream) + np.asarray(office.page)])
    time = np.concatenate([np.zeros(len(stream)), times_of(stream), office.time])
    return fit_rhythm(CrawlLog(page, time, np.concatenate([subjects < 0, stream.changed, office.changed])))


def _office_hours(stream: Histories) -> Floats:
    return np.full(len(stream), _rhythm(stream).elapsed(9 / 24, 18 / 24))


CASES = (
    Case("smoothed_mle", smoothed_mle, smoothed_mle),
    Case("moments", moments, moments),
    Case(
        "complete",
        lambda stream: complete_rate(*_changes_and_times(stream)),
        lambda stream: complete_rate(*_changes_and_times(stream)),
    ),
    Case("posterior_mean", lambda stream: _posterior(stream).mean, _posterior),
    Case("posterior_median", lambda stream: _posterior(stream).median, _posterior),
    Case("posterior_log_mean", lambda stream: np.exp(_posterior(stream).log_mean), _posterior),
    Case("population_prior", _fitted_to_themselves, fit_prior, alone=False),
    Case(
        "online_filter",
        lambda stream: _filtered(stream, FOREVER).mean,
        lambda stream: _filtered(stream, FOREVER),
    ),
    Case(
        "online_filter_noticing_turns",
        lambda stream: _filtered(stream, Memory()).mean,
        lambda stream: _filtered(stream, Memory()),
        rises=False,
    ),
    Case(
        "trust",
        lambda stream: _trusted(stream).change_rate,
        lambda stream: _trusted(stream).silent_rate,
        bytes_per_subject=600,
    ),
    Case(
        "trust_tracker",
        lambda stream: _tracked(stream, np.inf).trust().change_rate,
        lambda stream: _tracked(stream, np.inf),
        gaps=(1e-30, 1e15),
        subjects=50_000,
        bytes_per_subject=4_000,
    ),
    Case(
        "trust_tracker_that_forgets",
        lambda stream: _tracked(stream, 50.0).trust().change_rate,
        lambda stream: _tracked(stream, 50.0),
        rises=False,
        gaps=(1e-30, 1e15),
        subjects=50_000,
        bytes_per_subject=4_000,
    ),
    Case(
        "fit_interest",
        lambda stream: _fitted_interest(stream).profit,
        _fitted_interest,
        subjects=50_000,
        bytes_per_subject=80 * BINS,
    ),
    Case(
        "interest_in_hit_histograms",
        lambda stream: _interest(stream).fit.profit,
        _interest,
        gaps=(1e-50, 1e15),
        subjects=50_000,
        bytes_per_subject=100 * BINS,
    ),
    Case(
        "decay_of_interest",
        lambda stream: _interest(stream).fit.decay,
        lambda stream: _interest(stream).fit,
        rises=False,
        gaps=(1e-50, 1e15),
        subjects=50_000,
        bytes_per_subject=100 * BINS,
    ),
    Case("new_links", lambda stream: _new_links(stream).rates(), _new_links, bytes_per_subject=600),
    Case("rhythm", _office_hours, _rhythm, alone=False, rises=False, subjects=50_000, bytes_per_subject=2_000),
)
