"""The due-date engine against a plain twin: every slot looked at, every page scanned, rules run as plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from peers_small_worlds import one_poisson_page, small_world

from recrawl.errors import InvalidInput
from recrawl.lab.peers import rules as dispatch
from recrawl.lab.peers import rules as kinds
from recrawl.lab.peers.registry import PEERS, IntervalPeer, make_peer
from recrawl.lab.peers.rules import REMEMBERED, Visit
from recrawl.lab.simulation.due_queue import Rule, sight_of, start_run
from recrawl.lab.worlds.world import CrawlLog, World

_RULES = (
    *("fixed", "even", "by_rate", "by_importance", "changedetection", "nutch", "stormcrawler", "heritrix", "bubing"),
    *("aduana", "miniflux", "lm_factor", "cho_interval", "change_first", "poisson_probe", "mirror_probe", "planned"),
)
_WAITS = {getattr(kinds, name.upper()): vars(dispatch)[f"{name}_wait"].function for name in _RULES}
_INTERVAL_PEERS = [name for name in PEERS if isinstance(make_peer(name), IntervalPeer)]


class PlainQueue:
    """The engine, as plainly as it can be said."""

    def __init__(self, world: World, rule: Rule, budget: float, seed: int) -> None:
        self.world, self.rule, self.budget, self.seed = world, rule, budget, seed
        self.rate = sight_of(world).rate
        self.wait_of = _WAITS[rule.kind]
        self.planned = 3.0
        self.own = np.zeros((len(world), REMEMBERED))
        self.last: dict[int, float] = {}
        self.due: dict[int, float] = {}
        self.wait: dict[int, float] = {}
        self.gone: set[int] = set()
        self.clock = 0.0
        self.crawls: list[tuple[int, float]] = []

    def run(self) -> CrawlLog:
        there = [page for page in range(len(self.world)) if self.world.born[page] <= 0]
        phase = np.random.Generator(np.random.PCG64(self.seed)).random(len(self.world))
        self.known = len(there)
        for page in there:
            self.due[page] = float(phase[page]) * self.visit(page, 0.0)
        unborn = set(range(len(self.world))) - set(there)
        for slot in range(1, math.floor(self.budget * self.world.horizon) + 1):
            now = slot / self.budget
            for page in sorted(p for p in unborn if self.world.born[p] <= now):
                unborn.remove(page)
                self.known += 1
                self.due[page] = self.clock if self.rule.scaled else float(self.world.born[page])
            chosen = self.choose(now)
            if chosen is not None:
                self.crawl(chosen, now)
        pages, times = zip(*self.crawls, strict=True) if self.crawls else ((), ())
        return CrawlLog(np.array(pages, dtype=np.int32), np.array(times, dtype=np.float64))

    def choose(self, now: float) -> int | None:
        ready = [page for page, due in self.due.items() if due < math.inf and (self.rule.scaled or due <= now)]
        if not ready:
            return None
        if self.rule.order == kinds.MOST_OVERDUE or self.rule.scaled:
            return min(ready, key=lambda page: (self.due[page], page))
        if self.rule.order == kinds.BY_SCORE:
            return min(ready, key=lambda page: (-self.world.importance[page], page))
        return min(ready, key=lambda page: (-(now - self.due[page]) / max(self.wait.get(page, 0.0), 1e-9), page))

    def crawl(self, page: int, now: float) -> None:
        self.clock = max(self.clock, self.due.pop(page))
        if self.world.removed[page] <= now:
            self.known -= 1
        else:
            wait = self.visit(page, now)
            self.due[page] = (self.clock if self.rule.scaled else now) + wait
            self.wait[page] = wait
        self.crawls.append((page, now))

    def visit(self, page: int, now: float) -> float:
        first = page not in self.last
        last = self.last.get(page, now)
        begin, end = self.world.changes.offsets[page : page + 2]
        times = self.world.changes.times[begin:end]
        happened = int(np.sum(times <= now))
        visit = Visit(
            now,
            now - last,
            not first and bool(np.any((times > last) & (times <= now))),
            first,
            times[happened - 1] if happened else self.world.born[page],
            self.world.changes.times,
            (int(begin), int(begin) + happened),
            self.world.importance[page],
            self.rate[page],
            self.planned,
            self.known / self.budget,
            _chance(self.seed, page, len(self.crawls)),
        )
        self.last[page] = now
        return float(self.wait_of(self.rule.parameters, self.own[page], visit))


def _chance(seed: int, page: int, crawl: int) -> float:
    def mix(number: int) -> int:
        number = (number + 0x9E3779B97F4A7C15) % 2**64
        number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        number = (number ^ (number >> 27)) * 0x94D049BB133111EB % 2**64
        return number ^ (number >> 31)

    return (mix(mix(mix(seed) ^ page) ^ crawl) >> 11) * 2.0**-53


def _assert_same(world: World, rule: Rule, budget: float, seed: int) -> None:
    log = start_run(world, rule, budget, seed, np.full(len(world), 3.0)).finish()
    twin = PlainQueue(world, rule, budget, seed).run()
    assert log.page.tolist() == twin.page.tolist()
    assert log.time.tolist() == twin.time.tolist()


@pytest.mark.parametrize("name", _INTERVAL_PEERS)
def test_every_rule_crawls_as_its_plain_twin(name: str) -> None:
    """Short of slots and with slots to spare, with births and removals: the same log, to the bit."""
    peer = make_peer(name)
    assert isinstance(peer, IntervalPeer)
    rule = Rule(peer.kind, np.array(peer.parameters), peer.order, peer.scaled)
    for budget, seed in ((1.7, 1), (30.0, 2)):
        _assert_same(small_world(12, 25.0, seed), rule, budget, seed)


@pytest.mark.parametrize("order", [kinds.MOST_OVERDUE, kinds.BY_SCORE, kinds.MOST_OVERDUE_SHARE])
@pytest.mark.parametrize("budget", [0.9, 4.0, 40.0])
def test_every_order_serves_as_its_plain_twin(order: int, budget: float) -> None:
    """Too few slots, about enough, and too many."""
    rule = Rule(kinds.HERITRIX, np.array([1.0, 1.5, 1 / 24, 28.0]), order, False)
    _assert_same(small_world(15, 20.0, seed=4), rule, budget, seed=9)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [(kinds.POISSON_PROBE, (0.75, 0.01)), (kinds.MIRROR_PROBE, (0.3,)), (kinds.PLANNED, ())],
)
def test_rules_of_planners_crawl_as_their_plain_twins(kind: int, parameters: tuple[float, ...]) -> None:
    """Rules that draw and that follow a plan."""
    _assert_same(small_world(12, 40.0, seed=5), Rule(kind, np.array(parameters), kinds.MOST_OVERDUE, True), 3.0, 6)


def test_scaled_is_the_rule_with_all_waits_multiplied() -> None:
    """On a fixed interval, scaling to the budget gives the log of the interval that fits the budget."""
    world = small_world(20, 50.0, seed=3, steady=True)
    scaled = IntervalPeer("x", kinds.FIXED, (1.0,), scaled=True).crawl(world, 4.0, seed=8)
    fitting = IntervalPeer("x", kinds.FIXED, (20 / 4.0,)).crawl(world, 4.0, seed=8)
    assert len(scaled) == 200
    visits = np.bincount(scaled.page, minlength=20)
    assert visits.tolist() == [10] * 20
    assert abs(np.bincount(fitting.page, minlength=20) - visits).max() <= 1


def test_due_pages_wait_for_their_date_and_no_longer() -> None:
    """With slots to spare a page is crawled at the first slot at or after its due date, and never before."""
    world = one_poisson_page(1.0, 50, seed=1)
    log = IntervalPeer("x", kinds.FIXED, (0.7,)).crawl(world, 1000.0, seed=8)
    gaps = np.diff(log.time)
    assert gaps.min() >= 0.7 - 1e-9
    assert gaps.max() <= 0.7 + 1e-3 + 1e-9


def test_gone_pages_are_crawled_once_after_they_went() -> None:
    """Removal is seen at the first crawl after it; then the page is dropped."""
    world = small_world(40, 60.0, seed=2)
    log = make_peer("oldest-first").crawl(world, 20.0, seed=1)
    late = log.page[log.time >= world.removed[log.page]]
    assert len(late) > 5
    assert len(np.unique(late)) == len(late)


def test_new_pages_are_due_at_birth() -> None:
    """With slots to spare a new page is crawled at the first slot after its birth, as it is and scaled."""
    world = small_world(40, 60.0, seed=2)
    log = make_peer("nutch-default").crawl(world, 500.0, seed=1)
    for page in np.flatnonzero((world.born > 0) & (world.born < 59)):
        first = log.time[log.page == page][0]
        assert 0 <= first - world.born[page] <= 3 / 500


def test_a_stretch_at_a_time_gives_the_same_log() -> None:
    """A run that is served in pieces crawls as one that is served at once."""
    world, rule = small_world(30, 40.0, seed=6), Rule(kinds.ADUANA, np.array([1.0]), kinds.MOST_OVERDUE, False)
    pieces = start_run(world, rule, 10.0, seed=3)
    while pieces.serve(pieces.made + 7):
        pass
    whole = start_run(world, rule, 10.0, seed=3).finish()
    assert pieces.log().page.tolist() == whole.page.tolist()
    assert pieces.log().time.tolist() == whole.time.tolist()


@pytest.mark.parametrize("budget", [0.0, -1.0, math.nan, math.inf])
def test_a_budget_that_is_no_budget_is_refused(budget: float) -> None:
    with pytest.raises(InvalidInput, match="budget"):
        make_peer("uniform").crawl(small_world(5, 5.0, seed=1), budget, seed=1)
