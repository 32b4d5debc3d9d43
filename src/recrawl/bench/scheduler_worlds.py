"""Worlds that a scheduler is judged in: pages, signals, the best that can be done, and what a log of crawls lost on it.

The best is the plan of the same pages: each page is crawled when its expected cost reaches its mark, the cost at which
a crawl is worth the plan's price (NCIS, Busa-Fekete et al. 2025, for freshness). A crawl log can be held against it
without noise. With price Λ, importance μ, expected cost rate c and the mark c*, the average cost of any crawls that
spend the budget is the optimum plus

    late:   μ ∫ (c − c*) dt   over the time a page spends above its mark
    early:  μ ∫ (c* − c) dt   from a crawl below the mark to where waiting would have reached it

(the performance difference of a Markov decision process with costs Λ per crawl; both terms are 0 or more). Without
signals this equals the cost of the log itself, corrected for the pages' state at both ends of the window. With signals
it holds on average, and the waiting is followed on the signals that did come. Nothing is drawn for changes: costs are
expectations, given crawls and signals. This module holds kernels: import it where it computes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

import recrawl
from recrawl.jit import exact, kernel
from recrawl.lab.worlds.laws import web_population
from recrawl.pages import Floats
from recrawl.values.signals.harmonic_cost import expected_cost
from recrawl.values.signals.page import SignalPage, signal_page
from recrawl.values.signals.planning import freshness_threshold, freshness_wait, harmonic_threshold, harmonic_wait
from recrawl.values.special import ein, h

Population = Literal["uniform", "heavy"]
Judged = Literal["freshness", "harmonic"]
Ints = NDArray[np.int64]

# A page that is never crawled has been left alone for so many changes: its copy is stale.
_LONG_AGO = 50.0
# Cycles that a page runs by itself before a world begins, so that it begins in the steady state.
_CYCLES_BEFORE = 2.0
_MOST_STEPS = 100_000
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)


class Rules(NamedTuple):
    """What the kernels know of each page; `mark` is Δ·τ, or the level of a noisy page, at which c reaches c*."""

    harmonic: bool
    price: float
    importance: Floats
    change_rate: Floats
    recall: Floats
    false_signal_rate: Floats
    mark: Floats


class Stream(NamedTuple):
    """Events of each page in order of time: those of page i are `times[offsets[i]:offsets[i + 1]]`."""

    offsets: Ints
    times: Floats


class Start(NamedTuple):
    """The state at time 0: when each page was crawled last, and the signals it has had since."""

    last_crawled: Floats
    heard: Floats


class Window(NamedTuple):
    """The time in which costs are counted, in parts of equal length."""

    start: float
    end: float
    parts: int


class Account(NamedTuple):
    """Of each part of a window: importance-weighted cost, and what crawls lost on the optimum, summed over time."""

    cost: Floats
    loss: Floats


@dataclass(frozen=True, slots=True)
class World:
    """Pages with what can at best be done for them at a budget, and what happens to them from time 0 to `horizon`.

    `best_cost` is the expected cost per unit time of the plan: Σ importance · (stale, or missed changes weighed 1/k).
    """

    objective: Judged
    budget: float
    rules: Rules
    rates: Floats
    best_cost: float
    start: Start
    signals: Stream
    horizon: float

    def __len__(self) -> int:
        return len(self.rules.importance)

    @property
    def noisy(self) -> bool:
        """Whether the pages have signals."""
        return len(self.signals.times) > 0

    @property
    def precision(self) -> Floats:
        """The chance that a signal of a page means a change."""
        announced = self.rules.recall * self.rules.change_rate
        return announced / (announced + self.rules.false_signal_rate)

    def relative(self, excess_cost: float) -> float:
        """A cost per unit time beyond the best, as a share: of the best freshness, or of the best harmonic cost."""
        if self.objective == "harmonic":
            return float(excess_cost / self.best_cost)
        return float(excess_cost / (self.rules.importance.sum() - self.best_cost))


def draw_pages(population: Population, pages: int, seed: int) -> dict[str, Floats]:
    """Draw importance and change rate: both uniform in (0, 1), or heavy-tailed as on the web."""
    if population == "heavy":
        columns = web_population(pages, seed)
        return {name: columns[name] for name in ("importance", "change_rate")}
    importance, change_rate = np.random.default_rng([seed, pages]).random((2, pages))
    return {"importance": importance, "change_rate": change_rate}


def draw_noisy_pages(population: Population, pages: int, seed: int) -> dict[str, Floats]:
    """The same with signals as in NCIS, section 6: recall Beta(¼, ¼), false signals at a rate uniform in (0.1, 0.6).

    In the heavy-tailed population, where change rates span four decades, that is per two changes instead.
    """
    columns = draw_pages(population, pages, seed)
    random = np.random.default_rng([seed, pages, 1])
    false_signal_rate = random.uniform(0.1, 0.6, pages)
    if population == "heavy":
        false_signal_rate *= 2 * columns["change_rate"]
    return {**columns, "recall": random.beta(0.25, 0.25, pages), "false_signal_rate": false_signal_rate}


def make_world(columns: dict[str, Floats], objective: Judged, budget: float, horizon: float, seed: int) -> World:
    """Plan these pages, bring them into the steady state of the plan, and draw their signals. O(pages + signals)."""
    noisy = "recall" in columns
    plan = recrawl.plan(columns, budget=budget, objective=objective, solver="signals" if noisy else "even")
    importance, change_rate = columns["importance"], columns["change_rate"]
    none = np.zeros(len(importance))
    recall, false_signal_rate = columns.get("recall", none), columns.get("false_signal_rate", none)
    rules = Rules(objective == "harmonic", plan.price, importance, change_rate, recall, false_signal_rate, none)
    rules = rules._replace(mark=_marks(rules))
    random = np.random.default_rng([seed, len(importance), 2])
    signal_rate = np.where(recall > 0, recall * change_rate + false_signal_rate, 0.0)
    past, future = (_draw_stream(signal_rate, horizon, random) for _ in range(2))
    start = Start(*_settle(rules, past, horizon, plan.rates, random.random(len(importance))))
    best_cost = plan.costs.harmonic if rules.harmonic else plan.costs.binary
    return World(objective, budget, rules, plan.rates, best_cost, start, future, horizon)


def stream_of(page: Ints, times: Floats, pages: int) -> Stream:
    """Sort events of many pages by page and time. O(events · log events)."""
    offsets = np.concatenate([[0], np.cumsum(np.bincount(page, minlength=pages))])
    return Stream(offsets, times[np.lexsort((times, page))])


def settle_account(world: World, crawls: Stream, window: Window) -> Account:
    """What a log of crawls cost, and what it lost on the optimum. O(crawls + signals)."""
    account = Account(np.zeros(window.parts), np.zeros(window.parts))
    _add_up(world.rules, world.start, world.signals, world.horizon, crawls, window, account)
    return account


def _draw_stream(rate: Floats, horizon: float, random: np.random.Generator) -> Stream:
    page = np.repeat(np.arange(len(rate)), random.poisson(rate * horizon))
    return stream_of(page, random.uniform(0.0, horizon, len(page)), len(rate))


@kernel
def _marks(rules: Rules) -> Floats:
    marks = np.full(rules.importance.size, math.inf)
    for i in range(marks.size):
        if rules.importance[i] > 0.0 and rules.change_rate[i] > 0.0:
            page = signal_page(rules.change_rate[i], rules.recall[i], rules.false_signal_rate[i])
            value = rules.price / rules.importance[i]
            marks[i] = harmonic_threshold(page, value) if rules.harmonic else freshness_threshold(page, value)
    return marks


@exact
def _reached(harmonic: bool, page: SignalPage, mark: float, signals: float) -> float:
    """Return the time since the last crawl at which a page with n signals reaches its mark: 0 if it has, or inf."""
    return harmonic_wait(page, mark, signals) if harmonic else freshness_wait(page, mark, signals)


@exact
def _cost_between(harmonic: bool, page: SignalPage, signals: float, start: float, end: float) -> float:
    """∫ c dτ from `start` to `end` after the last crawl, with so many signals throughout."""
    rate = page.silent_rate
    span = end - start
    if not harmonic:
        fresh = math.exp(-rate * start - signals * page.signal_weight) if signals > 0.0 else math.exp(-rate * start)
        x = rate * span
        # 1 − fresh·(1 − e^{−x})/x, where the second is 1 − h(x)/x
        return span * (1.0 - fresh) + (fresh * h(x) / rate if x > 0.0 else 0.0)
    if signals == 0.0:
        if rate == 0.0:
            return 0.0
        return end * ein(rate * end) - start * ein(rate * start) - (h(rate * end) - h(rate * start)) / rate
    total, left = 0.0, start
    while left < end:
        width = end - left
        if rate * width > 1.0:
            width = min(width, (1.0 + 0.5 * (rate * left + signals * page.precision)) / rate)
        for i in range(_NODES.size):
            silent = rate * (left + 0.5 * width * (1.0 + _NODES[i]))
            total += 0.5 * width * _WEIGHTS[i] * expected_cost(silent, signals, page.precision)
        left = left + width if width < end - left else end
    return total


@exact
def _cost_at(harmonic: bool, mark: float) -> float:
    return ein(mark) if harmonic else -math.expm1(-mark)


@kernel
def _settle(rules: Rules, past: Stream, span: float, rates: Floats, phase: Floats) -> tuple[Floats, Floats]:
    """Let each page follow its mark for some cycles; the time of its last crawl, if that ends at 0, and signals since.

    The past is a stream of length `span`, repeated as often as needed.
    """
    last_crawled, heard = np.zeros(rates.size), np.zeros(rates.size)
    for i in range(rates.size):
        page = signal_page(rules.change_rate[i], rules.recall[i], rules.false_signal_rate[i])
        if rates[i] == 0.0 or math.isinf(rules.mark[i]):
            last_crawled[i] = -_LONG_AGO / page.change_rate if page.change_rate > 0.0 else 0.0
            continue
        now, last, n, step = 0.0, 0.0, 0.0, 0
        end = (_CYCLES_BEFORE + phase[i]) / rates[i]
        while now < end and step < _MOST_STEPS:
            signal = _signal_time(past, i, span, step)
            due = max(now, last + _reached(rules.harmonic, page, rules.mark[i], n))
            now = min(signal, due, end)
            if now == end:
                break
            if due <= signal:
                last, n = now, 0.0
            else:
                n, step = n + 1.0, step + 1
        last_crawled[i], heard[i] = last - now, n
    return last_crawled, heard


@exact
def _signal_time(signals: Stream, i: int, span: float, step: int) -> float:
    """Time of a page's signal number `step`, the stream repeated for ever; infinite if it has none."""
    size = signals.offsets[i + 1] - signals.offsets[i]
    if size == 0:
        return math.inf
    time: float = signals.times[signals.offsets[i] + step % size] + span * (step // size)
    return time


@kernel
def _add_up(
    rules: Rules, start: Start, signals: Stream, horizon: float, crawls: Stream, window: Window, account: Account
) -> None:
    for i in range(rules.importance.size):
        page = signal_page(rules.change_rate[i], rules.recall[i], rules.false_signal_rate[i])
        now, last, n, step = 0.0, start.last_crawled[i], start.heard[i], 0
        for k in range(crawls.offsets[i], crawls.offsets[i + 1] + 1):
            ends = k == crawls.offsets[i + 1]
            stop = window.end if ends else crawls.times[k]
            while now < stop:
                signal = _signal_time(signals, i, horizon, step)
                until = min(signal, stop)
                _count(rules, i, page, n, (last, now, until), window, account)
                now = until
                if signal <= stop:
                    n, step = n + 1.0, step + 1
            if not ends:
                if window.start < stop <= window.end:
                    lost = _lost_early(rules, i, page, (last, stop, n), signals, horizon, step)
                    account.loss[_part(window, stop)] += lost
                last, n = stop, 0.0


@exact
def _part(window: Window, time: float) -> int:
    return min(window.parts - 1, int((time - window.start) / (window.end - window.start) * window.parts))


@exact
def _count(
    rules: Rules, i: int, page: SignalPage, n: float, times: tuple[float, float, float], window: Window,
    account: Account,
) -> None:  # fmt: skip
    """Add the cost of a stretch without events to the parts of the window, and what of it lies above the mark."""
    last, begin, end = times
    begin, end = max(begin, window.start), min(end, window.end)
    if begin >= end:
        return
    length = (window.end - window.start) / window.parts
    reached = math.inf if math.isinf(rules.mark[i]) else last + _reached(rules.harmonic, page, rules.mark[i], n)
    part = _part(window, begin)
    while begin < end:
        until = end if part == window.parts - 1 else min(end, window.start + (part + 1) * length)
        between = _cost_between(rules.harmonic, page, n, begin - last, until - last)
        account.cost[part] += rules.importance[i] * between
        if until > reached:
            since = max(begin, reached)
            if since > begin:
                between = _cost_between(rules.harmonic, page, n, since - last, until - last)
            allowed = _cost_at(rules.harmonic, rules.mark[i]) * (until - since)
            account.loss[part] += rules.importance[i] * (between - allowed)
        begin = until
        part += 1


@exact
def _lost_early(
    rules: Rules, i: int, page: SignalPage, state: tuple[float, float, float], signals: Stream, horizon: float,
    step: int,
) -> float:  # fmt: skip
    """What waiting for the mark would have saved, on the signals that came after the crawl."""
    last, now, n = state
    importance: float = rules.importance[i]
    if math.isinf(rules.mark[i]):  # it should never be crawled, but a stale copy makes the mistake smaller
        if page.change_rate == 0.0:
            return rules.price
        missed = page.silent_rate * (now - last) + (n * page.signal_weight if n > 0.0 else 0.0)
        return rules.price + importance / page.change_rate * math.expm1(-missed)
    level = _cost_at(rules.harmonic, rules.mark[i])
    saved = 0.0
    for _ in range(_MOST_STEPS):
        due = last + _reached(rules.harmonic, page, rules.mark[i], n)
        signal = _signal_time(signals, i, horizon, step)
        until = min(due, signal)
        if due <= now or math.isinf(until):
            break
        saved += level * (until - now) - _cost_between(rules.harmonic, page, n, now - last, until - last)
        if due <= signal:
            break
        now, n, step = until, n + 1.0, step + 1
    return importance * saved
