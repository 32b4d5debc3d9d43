"""Lives of small schedulers drawn at random, hosts and signals and budgets that jump: the arrays stay in order."""

from __future__ import annotations

import math
from copy import copy, deepcopy
from typing import Any

import numpy as np
import pytest
from invariants import check

import recrawl

KIND = "feed"


class Life:
    """One scheduler, to which things happen.

    Args:
        seed: decides everything.
    """

    def __init__(self, seed: int) -> None:
        self.random = random = np.random.default_rng(seed)
        self.budget, self.now = 10 ** random.uniform(0.0, 3.0), 0.0
        burst = float(random.choice([1.0, 5.0, 50.0]))
        self.hosts, pages = int(random.integers(1, 7)), int(random.choice([3, 50, 200]))
        self.scheduler = recrawl.Scheduler(budget=self.budget, objective="freshness", burst=burst)
        for host in range(self.hosts):
            self.scheduler.set_host(host, **self.limits())
        self.ids = self.scheduler.add(
            importance=random.uniform(0.0, 1.0, pages),
            change_rate=10 ** random.uniform(-3.0, 1.0, pages),
            host=random.integers(0, self.hosts, pages),
            signals={KIND: recrawl.Signal(random.uniform(0.0, 1.0, pages), random.uniform(0.05, 1.0, pages))},
            last_crawled=0.0 if random.random() < 0.5 else None,
        )
        self.flying: list[int] = []

    def limits(self) -> dict[str, Any]:
        """Limits of a host of one kind, or none."""
        kinds = {
            "max_in_flight": int(self.random.integers(1, 9)),
            "min_gap": 10 ** self.random.uniform(-3.0, 0.0),
            "rate_cap": 10 ** self.random.uniform(-1.0, 2.0),
        }
        kind = str(self.random.choice([*kinds, "none"]))
        return {"min_gap": 0.0} if kind == "none" else {kind: kinds[kind]}

    def twin(self, scheduler: recrawl.Scheduler) -> Life:
        """The same life from here on, with another scheduler."""
        other = copy(self)
        other.random, other.flying, other.scheduler = deepcopy(self.random), list(self.flying), scheduler
        return other

    def step(self) -> Any:
        """Something happens, some time later; what the scheduler answers."""
        random, scheduler = self.random, self.scheduler
        self.now += float(random.exponential(random.choice([0.1, 3.0, 30.0]) / self.budget))
        what = random.random()
        if what < 0.6:
            batch = scheduler.take(self.now, int(random.choice([0, 1, 10, 100])))
            self.flying += batch.ids.tolist()
            return batch.ids.tolist(), batch.values.tolist(), batch.price
        if what < 0.8 and self.flying:
            random.shuffle(self.flying)
            count = int(random.integers(1, len(self.flying) + 1))
            done, self.flying = self.flying[:count], self.flying[count:]
            ends = (scheduler.failed, scheduler.release, scheduler.crawled, scheduler.crawled, scheduler.crawled)
            ends[random.integers(5)](done, self.now)
        elif what < 0.9:
            return scheduler.signal(random.choice(self.ids, 5), self.now, KIND)
        elif what < 0.94:
            scheduler.set_host(int(random.integers(0, self.hosts)), **self.limits())
        elif what < 0.98:
            self.budget = 10 ** random.uniform(0.0, 3.0)
            scheduler.set_budget(self.budget, self.now, burst=[None, 1.0, 5.0, 50.0][random.integers(4)])
        else:
            waiting = sorted(set(self.ids.tolist()) - set(self.flying))
            if waiting:
                page, held_until = int(random.choice(waiting)), self.now + random.exponential(10.0 / self.budget)
                scheduler.update([page], importance=float(10 ** random.uniform(-3.0, 3.0)))
                scheduler.resume([page], held_until=held_until if random.random() < 0.5 else math.nan)
        return None


@pytest.mark.parametrize("seed", range(60))
def test_whatever_happens_the_arrays_stay_in_order(seed: int) -> None:
    """Every page waits in one place, heaps and lists hold together, no wait is no number, nothing is heard twice."""
    life = Life(seed)
    for step in range(120):
        life.step()
        if step % 10 == 0:
            check(life.scheduler, set(life.flying))


@pytest.mark.parametrize("seed", range(60))
def test_wherever_a_life_is_restored_it_goes_on_alike(seed: int) -> None:
    """Queues that are rebuilt give the same pages at the same prices: their order does not depend on their past."""
    life = Life(seed)
    for step in range(60):
        life.step()
        if step % 15 == seed % 15:
            twin = life.twin(recrawl.Scheduler.restore(life.scheduler.snapshot()))
            check(twin.scheduler, set(twin.flying))
            assert [life.step() for _ in range(25)] == [twin.step() for _ in range(25)]
            assert life.scheduler.snapshot() == twin.scheduler.snapshot()
