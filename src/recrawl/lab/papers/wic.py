"""WIC (Pandey et al. 2004): its figures, and the index that does better in the long run.

The greedy gain of WIC and the index that does better in the long run (WIC, Pandey et al. 2004).

Both are for pages that change with the same probability in every instant; `wic_guarantee.py` is for probabilities that
vary. The greedy crawls what would capture most now, u(elapsed); the index also asks what waiting would add.

WIC (Pandey, Dhamdhere, Olston 2004), figures 5 to 9 on synthetic auctions, and its guarantee against brute force.

The paper's bids are not public; `lab/worlds/auctions.py` says how ours fall. All pages have importance 1, a
day has 1,440 instants, and urgency is exponential, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.lab.papers.experiment import Experiment, Finding, Scale, Table, mean_finding
from recrawl.lab.papers.wic_guarantee import guarantee
from recrawl.lab.simulation.auctions import Captured, Rule, monitor
from recrawl.lab.worlds.auctions import USUAL_BIDS, auction_changes, believed_probabilities
from recrawl.pages import Floats
from recrawl.plots.experiments import BarPanel, LinePanel, Series, bars_figure, lines_figure
from recrawl.values import shape_g, shape_h

_URGENCIES = (0.0, 0.5, 0.9, 1.0)
_RULES = tuple(Rule(overwrites, urgency) for overwrites in (False, True) for urgency in _URGENCIES)
_EXTREME_RULES = tuple(rule for rule in _RULES if rule.urgency in (0.0, 1.0))
_CRAWLS = (4, 8, 16)
_MORE_CRAWLS = (2, 4, 6, 8, 10, 12, 16, 24)
_MEASURED = 8
_SPREADS = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
_FALSE_SHARES = (0.0, 0.05, 0.1, 0.2, 0.3)
_USUAL = (0.1, 2.0)  # FPN and σ of figures 7 to 9
_BIDS = (0.5, 1.0, 2.0, 4.0)
_LATE = 10
_ASSUMED = (
    "The paper's bids are not public. Ours: a geometric number of bids, two a page on average, half of them at any "
    "time while the auction is open, half in a burst that ends with it (half an hour on average)."
)

Value = TypeVar("Value")


def stationary_gain(
    importance: ArrayLike,
    probability: ArrayLike,
    instants: ArrayLike,
    urgency: ArrayLike = 1.0,
    overwrites: ArrayLike = False,
) -> Floats:
    """Return what a crawl yields m instants after the last one, for a page with the same chance of a change in each.

    u(m) = μπ(1 − qᵐ)/(1 − q), with q = urgency for changes that append and urgency·(1 − π) for changes that overwrite
    each other; μπm for q = 1. WIC's greedy takes the largest u. O(elements).

    >>> stationary_gain(1.0, 0.5, [1, 2, 3], urgency=0.5).tolist()
    [0.5, 0.75, 0.875]
    """
    scale, lost, m = _stationary(importance, probability, instants, urgency, overwrites)
    with np.errstate(divide="ignore", invalid="ignore"):
        kept = -np.expm1(m * np.log1p(-lost)) / lost
    return np.asarray(scale * np.where(m == 0, 0.0, np.where(lost == 0, m, kept)))


def stationary_index(
    importance: ArrayLike,
    probability: ArrayLike,
    instants: ArrayLike,
    urgency: ArrayLike = 1.0,
    overwrites: ArrayLike = False,
) -> Floats:
    """Return what the crawl is worth in the long run: V(m) = u(m) − m(u(m+1) − u(m)), u as in `stationary_gain`.

    Crawling the page with the largest V, instead of the largest u, is the best in the long run. With L = −ln q it is
    μπ(g(mL) + m·h(L)·qᵐ)/(1 − q): a sum of positive terms. O(elements).

    >>> stationary_index(1.0, 0.5, [1, 2, 3], urgency=0.5).round(6).tolist()
    [0.25, 0.5, 0.6875]
    """
    scale, lost, m = _stationary(importance, probability, instants, urgency, overwrites)
    inside = (lost > 0) & (lost < 1)
    rest = np.where(inside, lost, 0.5)
    step = -np.log1p(-rest)
    index = (shape_g(m * step) + m * shape_h(step) * np.exp(-m * step)) / rest
    return np.asarray(scale * np.where(inside, index, np.where((lost == 1) & (m > 0), 1.0, 0.0)))


def _stationary(
    importance: ArrayLike, probability: ArrayLike, instants: ArrayLike, urgency: ArrayLike, overwrites: ArrayLike
) -> tuple[Floats, Floats, Floats]:
    """μπ, 1 − q and m, as arrays of one shape."""
    weight, chance, m, ratio, over = np.broadcast_arrays(
        *(np.asarray(value, dtype=np.float64) for value in (importance, probability, instants, urgency, overwrites))
    )
    return weight * chance, (1.0 - ratio) + ratio * np.where(over != 0, chance, 0.0), m


class Setting(NamedTuple):
    """One day of auctions and what is believed of it."""

    seed: int
    false_share: float
    spread: float
    bids: float = USUAL_BIDS


class Size(NamedTuple):
    """How much to run: `coarse` leaves out urgencies, budgets and levels of noise that no claim is judged by."""

    pages: int
    instants: int
    days: int
    coarse: bool = False

    def some(self, values: tuple[Value, ...], judged: tuple[Value, ...]) -> tuple[Value, ...]:
        """All values, or those that claims are judged by."""
        return judged if self.coarse else values


def experiments(scale: Scale) -> Iterator[Experiment]:
    """Figures 5 to 9 and the guarantee."""
    size = Size(7550, 1440, 2 if scale.quick else 10, coarse=scale.quick)
    yield noise_experiment(size, "wic.fig5", "spread", "wic.fig5.graceful_spread")
    yield noise_experiment(size, "wic.fig6", "false_share", "wic.fig6.false_rates")
    yield completeness(size)
    yield delays(size)
    yield tradeoff(size)
    yield guarantee(cases=20 if scale.quick else 200)


def run(size: Size, setting: Setting, crawls: int, rule: Rule) -> Captured:
    """Monitor one day."""
    changes, believed = _day(size, setting)
    return monitor(changes, believed, crawls, rule)


@lru_cache(maxsize=2)
def _day(size: Size, setting: Setting) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
    changes = auction_changes(size.pages, size.instants, setting.seed, setting.bids)
    return changes, believed_probabilities(changes, setting.false_share, setting.spread, setting.seed)


def noise_experiment(size: Size, name: str, noise: str, claim: str) -> Experiment:
    """Figures 5 and 6: utility against crawls an instant, as beliefs get worse, for every life and urgency."""
    judged = 4.0 if noise == "spread" else 0.1
    levels = size.some(_SPREADS if noise == "spread" else _FALSE_SHARES, (0.0, judged))
    rules, budgets = size.some(_RULES, _EXTREME_RULES), size.some(_CRAWLS, (_MEASURED,))
    utility = np.empty((size.days, len(levels), len(rules), len(budgets)))
    for day in range(size.days):
        for at, level in enumerate(levels):
            setting = Setting(day, 0.0, level) if noise == "spread" else Setting(day, level, 0.0)
            for r, rule in enumerate(rules):
                for c, crawls in enumerate(budgets):
                    utility[day, at, r, c] = run(size, setting, crawls, rule).utility(rule.urgency)
    measured = utility[:, :, :, budgets.index(_MEASURED)]
    kept = measured[:, levels.index(judged)] / measured[:, 0]
    order = np.argsort(kept.mean(axis=0))
    worst, best = int(order[0]), int(order[-1])
    symbol = "σ" if noise == "spread" else "FPN"
    panels = [
        LinePanel(
            f"{word}: {_rule_name(rules[rule])}",
            "crawls an instant",
            "utility",
            budgets,
            [Series(f"{symbol} = {level:g}", utility[:, at, rule].mean(axis=0)) for at, level in enumerate(levels)],
        )
        for word, rule in (("Loses least", best), ("Loses most", worst))
    ]
    rows = [
        (_rule_name(rule), crawls, level, *_mean(utility[:, at, r, c]))
        for r, rule in enumerate(rules)
        for c, crawls in enumerate(budgets)
        for at, level in enumerate(levels)
    ]
    title = "spread of change probabilities" if noise == "spread" else "false positives and negatives"
    return Experiment(
        name,
        f"What {title} cost",
        Table(("life and urgency", "crawls an instant", symbol, "utility", "low", "high"), rows),
        (mean_finding(claim, kept[:, worst].tolist()),),
        lambda: lines_figure(panels),
        (_ASSUMED, f"Loses most at {symbol} = {judged:g}: {_rule_name(rules[worst])}."),
    )


def completeness(size: Size) -> Experiment:
    """Figure 7: changes captured against crawls an instant, by urgency; changes append."""
    urgencies, budgets = size.some(_URGENCIES, (0.0, 1.0)), size.some(_MORE_CRAWLS, (2, 4, 6, 8, 10, 12))
    share = np.empty((size.days, len(urgencies), len(budgets)))
    for day in range(size.days):
        for r, urgency in enumerate(urgencies):
            for c, crawls in enumerate(budgets):
                share[day, r, c] = run(size, Setting(day, *_USUAL), crawls, Rule(False, urgency)).completeness
    few = [c for c, crawls in enumerate(budgets) if crawls <= 12]
    gain = share[:, -1, few] / share[:, 0, few]
    means = gain.mean(axis=0)
    panel = LinePanel(
        "Changes captured (append, FPN 0.1, σ 2)", "crawls an instant", "share of changes captured", budgets,
        [_series(f"r = {urgency:g}", share[:, r]) for r, urgency in enumerate(urgencies)],
    )  # fmt: skip
    return Experiment(
        "wic.fig7",
        "Completeness by urgency",
        Table(
            ("r", "crawls an instant", "captured", "low", "high"),
            [
                (urgency, crawls, *_mean(share[:, r, c]))
                for r, urgency in enumerate(urgencies)
                for c, crawls in enumerate(budgets)
            ],
        ),
        (
            mean_finding("wic.fig7.completeness_low", gain[:, int(means.argmin())].tolist()),
            mean_finding("wic.fig7.completeness_high", gain[:, int(means.argmax())].tolist()),
        ),
        lambda: lines_figure([panel]),
        (_ASSUMED, "By crawls an instant, r = 1 over r = 0: " + _list([budgets[c] for c in few], means) + "."),
    )


def delays(size: Size) -> Experiment:
    """Figure 8: how late captured changes are, at 8 crawls an instant; and how that hangs on the number of bids."""
    share = np.empty((size.days, len(_URGENCIES), _LATE + 1))
    timely = np.empty((size.days, len(_BIDS), 2))
    for day in range(size.days):
        for r, urgency in enumerate(_URGENCIES):
            counts = run(size, Setting(day, *_USUAL), _MEASURED, Rule(False, urgency)).delays
            folded = np.append(counts[:_LATE], counts[_LATE:].sum())
            share[day, r] = folded / max(int(folded.sum()), 1)
        for b, bids in enumerate(_BIDS):
            for r, urgency in enumerate((0.0, 1.0)):
                captured = run(size, Setting(day, *_USUAL, bids), _MEASURED, Rule(False, urgency))
                timely[day, b, r] = captured.timely_of_captured
    panel = BarPanel(
        "Delay of captured changes (append, C = 8)", "share of captured changes",
        [*map(str, range(_LATE)), f"{_LATE}+"],
        [_series(f"r = {urgency:g}", share[:, r]) for r, urgency in enumerate(_URGENCIES)],
    )  # fmt: skip
    rows: list[tuple[str | float, ...]] = [
        (f"r = {urgency:g}", f"{late}{'+' if late == _LATE else ''}", *_mean(share[:, r, late]))
        for r, urgency in enumerate(_URGENCIES)
        for late in range(_LATE + 1)
    ]
    rows += [
        (f"r = {urgency:g}, {bids:g} bids a page", "0", *_mean(timely[:, b, r]))
        for b, bids in enumerate(_BIDS)
        for r, urgency in enumerate((0.0, 1.0))
    ]
    few = timely[:, 0, 0].mean()
    hangs = (
        "The share without delay at r = 0 hangs on how many changes there are for each crawl, which the paper does "
        f"not say: with {_BIDS[0]:g} bids a page instead of {USUAL_BIDS:g} it is {few:.2f}."
    )
    return Experiment(
        "wic.fig8",
        "Delay of captured changes by urgency",
        Table(("setting", "instants late", "share", "low", "high"), rows),
        (
            mean_finding("wic.fig8.zero_delay_timely", share[:, 0, 0].tolist()),
            mean_finding("wic.fig8.zero_delay_complete", share[:, -1, 0].tolist()),
        ),
        lambda: bars_figure([panel]),
        (_ASSUMED, hangs),
    )


def tradeoff(size: Size) -> Experiment:
    """Figure 9: all changes captured, and those captured without delay, against urgency."""
    urgencies = tuple(np.round(np.linspace(0.0, 1.0, 11), 2).tolist())
    found = np.empty((size.days, 2, len(urgencies)))
    for day in range(size.days):
        for r, urgency in enumerate(urgencies):
            captured = run(size, Setting(day, *_USUAL), _MEASURED, Rule(False, urgency))
            found[day, :, r] = captured.completeness, captured.completeness * captured.timely_of_captured
    ranks = [min(_rank_correlation(day[0]), _rank_correlation(-day[1])) for day in found]
    panel = LinePanel(
        "Timeliness and completeness (append, C = 8)", "urgency r", "share of changes", urgencies,
        [_series("captured", found[:, 0]), _series("captured without delay", found[:, 1])],
    )  # fmt: skip
    return Experiment(
        "wic.fig9",
        "Timeliness against completeness",
        Table(
            ("r", "captured", "low", "high", "without delay", "low without delay", "high without delay"),
            [(urgency, *_mean(found[:, 0, r]), *_mean(found[:, 1, r])) for r, urgency in enumerate(urgencies)],
        ),
        (mean_finding("wic.fig9.tradeoff", ranks),),
        lambda: lines_figure([panel]),
        (_ASSUMED,),
    )


def _rank_correlation(values: Floats) -> float:
    """Spearman's correlation of values with their own order."""
    ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return float(np.corrcoef(ranks, np.arange(len(values)))[0, 1])


def _rule_name(rule: Rule) -> str:
    return f"{'overwrite' if rule.overwrites else 'append'}, r = {rule.urgency:g}"


def _mean(samples: Floats) -> tuple[float, float, float]:
    found: Finding = mean_finding("", samples.tolist())
    return found.value, found.low, found.high


def _series(name: str, samples: Floats) -> Series:
    """Means and intervals over the first axis."""
    value, low, high = np.array([_mean(column) for column in samples.T]).T
    return Series(name, value, low, high)


def _list(budgets: Sequence[int], ratios: Floats) -> str:
    return ", ".join(f"{crawls}: {ratio:.2f}" for crawls, ratio in zip(budgets, ratios, strict=True))
