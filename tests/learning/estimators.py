"""The estimators of change rates, as the contract suite sees them. To add one, add a `Case` to `CASES`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from recrawl.bench.learning_histories import draw_histories
from recrawl.learning.change_rates import moments, regular_interval, smoothed_mle
from recrawl.learning.complete import complete_posterior, complete_rate
from recrawl.learning.filter_memory import FOREVER, Memory
from recrawl.learning.histories import Histories
from recrawl.learning.online_filter import Beliefs, OnlineFilter
from recrawl.learning.posterior import RatePosterior, posterior
from recrawl.learning.prior import RatePrior, fit_prior
from recrawl.learning.signal_history import read_signal_histories
from recrawl.learning.signal_trust import fit_trust
from recrawl.learning.trust import Trust
from recrawl.pages import Floats


@dataclass(frozen=True)
class Case:
    """An estimator: the rate of each page from histories, and what a user may keep of it between two runs.

    `alone` says that a page's rate does not depend on the other pages of the call, `forgets` that late crawls count
    more than early ones.
    """

    name: str
    rates: Callable[[Histories], Floats]
    kept: Callable[[Histories], object]
    alone: bool = True
    bytes_per_page: int = 200
    forgets: bool = False


@cache
def population_prior() -> RatePrior:
    """A prior from other pages than those asked about."""
    return fit_prior(draw_histories(3_000, 30, "irregular").histories)


def _posterior(histories: Histories) -> RatePosterior:
    return posterior(population_prior(), histories)


def _filtered(histories: Histories, memory: Memory) -> Beliefs:
    online = OnlineFilter(population_prior(), len(histories), memory=memory)
    online.update_many(histories.page_of_rows(), histories.gaps, histories.changed)
    return online.estimate()


def _changes_and_times(histories: Histories) -> tuple[Floats, Floats]:
    pages = histories.page_of_rows()
    changes, times = np.zeros(len(histories)), np.zeros(len(histories))
    np.add.at(changes, pages, histories.changed)
    np.add.at(times, pages, histories.gaps)
    return changes, times


def _fitted_to_themselves(histories: Histories) -> Floats:
    return posterior(fit_prior(histories), histories).mean


def _trusted(histories: Histories) -> Trust:
    """Trust in signals of a kind that never came: what is left is the rate of changes."""
    none = np.zeros((len(histories.gaps), 1))
    return fit_trust(read_signal_histories(histories.gaps, histories.changed, none, ["sitemap"], histories.offsets))


CASES = (
    Case("smoothed_mle", smoothed_mle, smoothed_mle),
    Case("regular_interval", regular_interval, regular_interval),
    Case("moments", moments, moments),
    Case(
        "complete",
        lambda histories: complete_rate(*_changes_and_times(histories)),
        lambda histories: complete_posterior(*_changes_and_times(histories)),
    ),
    Case("posterior_mean", lambda histories: _posterior(histories).mean, _posterior),
    Case("posterior_median", lambda histories: _posterior(histories).median, _posterior),
    Case("posterior_log_mean", lambda histories: np.exp(_posterior(histories).log_mean), _posterior),
    Case(
        "online_filter",
        lambda histories: _filtered(histories, FOREVER).mean,
        lambda histories: _filtered(histories, FOREVER),
    ),
    Case(
        "online_filter_noticing_turns",
        lambda histories: _filtered(histories, Memory()).mean,
        lambda histories: _filtered(histories, Memory()),
        forgets=True,
    ),
    Case(
        "trust",
        lambda histories: _trusted(histories).change_rate,
        lambda histories: _trusted(histories).silent_rate,
        bytes_per_page=600,
    ),
    Case("population_prior", _fitted_to_themselves, fit_prior, alone=False),
)
