"""The quality measures of the scheduler rest on sound accounts: costs, losses, starts and windows are what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from recrawl.bench.scheduler_quality import excess_of, overshoot, quality_measures, run_slots, unevenness
from recrawl.bench.scheduler_worlds import (
    Judged,
    Start,
    Stream,
    Window,
    World,
    draw_noisy_pages,
    draw_pages,
    make_world,
    settle_account,
    stream_of,
)
from recrawl.pages import Floats
from recrawl.values import noisy_freshness_due, noisy_harmonic_due, shape_h
from recrawl.values.special import ein

OBJECTIVES: tuple[Judged, ...] = ("freshness", "harmonic")


def _noisy_world(objective: Judged, pages: int, horizon: float, seed: int = 1) -> World:
    return make_world(draw_noisy_pages("uniform", pages, seed), objective, 0.2 * pages, horizon, seed)


def _in_turns(world: World) -> Stream:
    """Crawls of one page after the other at the rate of the budget: legal, and far from the best."""
    times = np.arange(1, int(world.horizon * world.budget)) / world.budget
    return stream_of(np.arange(len(times)) % len(world), times, len(world))


def _signals_of(world: World, page: int) -> Floats:
    return world.signals.times[world.signals.offsets[page] : world.signals.offsets[page + 1]]


def _staleness(objective: Judged, missed: int) -> float:
    return sum(1 / k for k in range(1, missed + 1)) if objective == "harmonic" else float(missed > 0)


def _drawn_cost(world: World, crawls: Stream, window: Window, random: np.random.Generator) -> float:
    """The cost of one draw of changes that fits the signals, event by event."""
    total = 0.0
    for i in range(len(world)):
        recall, change_rate, precision = world.rules.recall[i], world.rules.change_rate[i], world.precision[i]
        last = world.start.last_crawled[i]
        silent = random.uniform(last, window.end, random.poisson((1 - recall) * change_rate * (window.end - last)))
        signals = np.concatenate([np.zeros(int(world.start.heard[i])), _signals_of(world, i)])
        announced = signals[random.random(len(signals)) < precision]
        crawled = crawls.times[crawls.offsets[i] : crawls.offsets[i + 1]]
        events = [*((t, 1) for t in silent), *((t, 1) for t in announced), *((t, 0) for t in crawled)]
        missed, before = 0, last
        for time, is_change in [*sorted(events), (window.end, 0)]:
            span = min(time, window.end) - max(before, window.start)
            total += world.rules.importance[i] * max(0.0, span) * _staleness(world.objective, missed)
            missed, before = (missed + 1 if is_change else 0), time
    return total


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_cost_is_the_mean_over_drawn_changes(objective: Judged) -> None:
    """The expected cost given crawls and signals is what drawn changes cost on average."""
    world = _noisy_world(objective, 5, 40.0)
    window = Window(3.7, 31.2, 4)
    crawls = _in_turns(world)
    random = np.random.default_rng(2)
    drawn = np.array([_drawn_cost(world, crawls, window, random) for _ in range(2_000)])
    error = drawn.std() / len(drawn) ** 0.5
    assert error < 0.01 * drawn.mean()
    assert settle_account(world, crawls, window).cost.sum() == pytest.approx(drawn.mean(), abs=4 * error)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_loss_without_signals_is_cost_beyond_the_optimum(objective: Judged) -> None:
    """Without signals the loss is exactly the cost beyond the optimum, given the worth of the states at both ends."""
    world = make_world(draw_pages("uniform", 30, 3), objective, 6.0, 50.0, 3)
    crawls = _in_turns(world)
    window = Window(10.0, 40.0, 5)
    account = settle_account(world, crawls, window)
    number = np.count_nonzero((crawls.times > window.start) & (crawls.times <= window.end))
    excess = account.cost.sum() - world.best_cost * (window.end - window.start)
    excess += world.rules.price * (number - world.budget * (window.end - window.start))
    excess += _worth(world, _elapsed(world, crawls, window.end)) - _worth(world, _elapsed(world, crawls, window.start))
    assert account.loss.sum() == pytest.approx(excess, rel=1e-9)
    assert (account.loss > 0).all()


def _elapsed(world: World, crawls: Stream, now: float) -> Floats:
    last = world.start.last_crawled.copy()
    page = np.repeat(np.arange(len(world)), np.diff(crawls.offsets))
    past = crawls.times <= now
    np.maximum.at(last, page[past], crawls.times[past])
    elapsed: Floats = now - last
    return elapsed


def _worth(world: World, elapsed: Floats) -> float:
    """The cost to come, relative to pages just crawled: μ(c*τ − ∫c)."""
    rate, mark, x = world.rules.change_rate, world.rules.mark, world.rules.change_rate * elapsed
    if world.objective == "freshness":
        worth = -np.expm1(-mark) * elapsed - shape_h(x) / rate
    else:
        worth = np.vectorize(ein)(mark) * elapsed - (elapsed * np.vectorize(ein)(x) - shape_h(x) / rate)
    return float(world.rules.importance @ worth)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_loss_with_signals_is_cost_beyond_the_optimum_on_average(objective: Judged) -> None:
    """Over a long time loss and cost beyond the optimum agree, and the loss is the steadier of the two."""
    world = _noisy_world(objective, 40, 4_000.0)
    account = settle_account(world, _in_turns(world), Window(50.0, 3_950.0, 30))
    excess = account.cost - world.best_cost * 130.0
    noise = (excess - account.loss).std() / 30**0.5
    assert noise < 0.03 * account.loss.mean()
    assert account.loss.std() < excess.std()
    assert account.loss.mean() == pytest.approx(excess.mean(), abs=4 * noise)


def _by_price(world: World) -> Stream:
    """Crawls of every page as soon as it is worth the price, whatever the others do."""
    due_of = noisy_freshness_due if world.objective == "freshness" else noisy_harmonic_due
    rules, pages, times = world.rules, [], []
    for i in range(len(world)):
        one = (rules.importance[i], rules.change_rate[i], rules.recall[i], rules.false_signal_rate[i])
        last, heard = world.start.last_crawled[i], int(world.start.heard[i])
        now = 0.0
        for signal in [*_signals_of(world, i), world.horizon]:
            while (due := max(now, last + float(due_of(*one, heard, rules.price)))) <= signal:
                pages.append(i)
                times.append(due)
                now, last, heard = due, due, 0
            now, heard = signal, heard + 1
    return stream_of(np.array(pages), np.array(times), len(world))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_crawling_at_the_price_loses_nothing_and_costs_the_optimum(objective: Judged) -> None:
    """The optimum that logs are held against is reached by crawling whatever is worth the price, as planned."""
    world = _noisy_world(objective, 60, 400.0)
    crawls = _by_price(world)
    account = settle_account(world, crawls, Window(0.0, 400.0, 20))
    error = account.cost.std() / 20**0.5
    assert account.loss.sum() < 1e-6 * account.cost.sum()
    assert error < 0.02 * account.cost.mean()
    assert account.cost.mean() == pytest.approx(world.best_cost * 20, abs=4 * error)
    assert len(crawls.times) == pytest.approx(world.budget * 400, rel=0.05)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("draw", [draw_pages, draw_noisy_pages])
def test_marks_add_up_to_the_cost_of_the_plan(objective: Judged, draw: Callable[..., dict[str, Floats]]) -> None:
    """Each page pays the cost at its mark, crawls included: less what they cost at the price, that is the plan."""
    world = make_world(draw("heavy", 300, 5), objective, 30.0, 1.0, 5)
    mark = world.rules.mark
    at_mark = -np.expm1(-mark) if objective == "freshness" else np.vectorize(ein)(mark)
    total = world.rules.importance @ at_mark - world.rules.price * world.budget
    assert total == pytest.approx(world.best_cost, rel=1e-9)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_worlds_begin_in_the_steady_state(objective: Judged) -> None:
    """The cost at the beginning is that of the optimum, and crawls at the price come as often as planned at once."""
    world = _noisy_world(objective, 3_000, 2.0)
    first = settle_account(world, _by_price(world), Window(0.0, 2.0, 1)).cost[0] / 2
    assert first == pytest.approx(world.best_cost, rel=0.04)
    assert (world.start.last_crawled <= 0).all()


def test_worlds_depend_on_their_seed_alone() -> None:
    """The same seed is the same world; another budget has the same pages and signals, another seed has not."""
    columns = draw_noisy_pages("heavy", 50, 1)
    first, again = (make_world(draw_noisy_pages("heavy", 50, 1), "harmonic", 5.0, 20.0, 7) for _ in range(2))
    richer = make_world(columns, "harmonic", 9.0, 20.0, 7)
    other = make_world(columns, "harmonic", 5.0, 20.0, 8)
    for column, same in zip(first.rules[2:], again.rules[2:], strict=True):
        np.testing.assert_array_equal(column, same)
    assert isinstance(first.start, Start)
    np.testing.assert_array_equal(first.start.last_crawled, again.start.last_crawled)
    np.testing.assert_array_equal(first.signals.times, again.signals.times)
    np.testing.assert_array_equal(first.signals.times, richer.signals.times)
    assert first.signals.times.shape != other.signals.times.shape or (first.signals.times != other.signals.times).any()
    assert richer.rules.price < first.rules.price


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_scheduler_is_close_to_the_optimum_and_repeats_itself(objective: Judged) -> None:
    """In a short run the scheduler keeps the bounds of the long ones, and the same world gives the same crawls."""
    world = make_world(draw_pages("uniform", 300, 6), objective, 60.0, 1.0, 6)
    first, again = (run_slots(world, "price", 2_000) for _ in range(2))
    assert (first.page >= 0).all()
    np.testing.assert_array_equal(first.page, again.page)
    excess = excess_of(world, first)
    assert 0 < excess.percent < 0.2
    assert abs(excess.percent - excess_of(world, run_slots(world, "argmax", 2_000)).percent) < 0.1


def test_signals_reach_the_scheduler() -> None:
    """With signals a short run stays close to the optimum, which a scheduler that is deaf does not."""
    world = make_world(draw_noisy_pages("uniform", 300, 6), "freshness", 60.0, 40.0, 6)
    deaf = replace(world, signals=Stream(np.zeros(301, dtype=np.int64), np.empty(0)))
    assert excess_of(world, run_slots(world, "price", 2_400)).percent < 0.3
    assert excess_of(world, run_slots(deaf, "price", 2_400)).percent > 1.0


@pytest.mark.parametrize("hosts", [1, 6, 40])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_limits_of_hosts_that_are_never_reached_cost_nothing(objective: Judged, hosts: int) -> None:
    """A host offers its pages one by one, and yet the best of all pages are crawled."""
    world = make_world(draw_pages("uniform", 300, 6), objective, 60.0, 1.0, 6)
    assert excess_of(world, run_slots(world, "price", 2_000, hosts)).percent < 0.3


def test_budget_that_is_not_used_counts() -> None:
    """A log that leaves out every other crawl is charged for them."""
    world = make_world(draw_pages("uniform", 300, 6), "harmonic", 60.0, 1.0, 6)
    taken = run_slots(world, "price", 2_000)
    idle = taken._replace(page=np.where(np.arange(2_000) % 2, taken.page, -1))
    assert excess_of(world, idle).percent > 5


def test_overshoot_finds_the_worst_window() -> None:
    """Even crawls exceed no window by more than one; three at once after a pause exceed it by what they are."""
    even = np.arange(1, 1001) / 10.0
    assert overshoot(even, 10.0) == pytest.approx(1.0, abs=1e-9)
    burst = np.concatenate([even[:500], [60.0, 60.0, 60.0], even[700:]])
    assert overshoot(burst, 10.0) == pytest.approx(3.0, abs=1e-9)


def test_unevenness_counts_missing_crawls() -> None:
    """Even crawls are within one of the budget; a gap of 30 crawls is 30 times what a window of 100 may lack."""
    even = np.arange(1, 2001) / 10.0 + 0.03
    assert unevenness(even, 10.0, 10.0) <= 1.0
    assert unevenness(np.delete(even, range(1200, 1230)), 10.0, 10.0) == pytest.approx(30.0, abs=1.5)


def test_measures_have_names_of_their_own() -> None:
    """Making the list computes nothing; every measure is bounded."""
    measures = quality_measures()
    assert len({measure.name for measure in measures}) == len(measures)
    assert all((measure.bound.floor, measure.bound.limit) != (None, None) for measure in measures)
