"""A crawler that does everything a scheduler allows, at random but the same for the same seed; for snapshot tests."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

import recrawl
from recrawl.learning.filter_state import Memory
from recrawl.learning.grid import RatePrior, rate_grid
from recrawl.pages import Floats

Calls = list[tuple[Any, ...]]


def tuning() -> recrawl.Tuning:
    """Settings that differ from the usual ones, with a prior that knows hosts."""
    grid = rate_grid(0.01, 10.0)
    weights = np.linspace(1.0, 2.0, grid.points)
    rows = np.stack([weights, weights[::-1]])
    prior = RatePrior(grid, weights / weights.sum(), rows / rows.sum(axis=1)[:, None], {"shy": 0, 7: 1, ("no", 1): 0})
    return recrawl.Tuning(0.05, 0.2, 5.0, prior=prior, memory=Memory(half_life=40.0))


def scheduler_with_everything(policy: str = "price", seed: int = 3) -> recrawl.Scheduler:
    """Pages of every kind: costs, limits, signals of two kinds, learned rates, paced hosts, no copies, free slots."""
    made = recrawl.Scheduler(budget=6.0, burst=2.0, seed=seed, policy=policy, tuning=tuning())
    random = np.random.default_rng(seed)

    def some(low: float = 0.1, count: int = 8) -> Floats:
        return low + random.random(count)

    made.set_host("slow", min_gap=0.7)
    made.set_host("shy", max_in_flight=1, rate_cap=2.0)
    made.set_host("down", blocked_until=3.0)
    feed, both = recrawl.Signal(0.7, 0.6), {"feed": recrawl.Signal(0.4, 0.9), "map": recrawl.Signal(0.3, 0.5)}
    made.add(importance=some(), change_rate=some(), last_crawled=0.0, host=["slow", "shy", "down", "free"] * 2)
    made.add(importance=some(), change_rate=some(), objective="freshness", host="slow", cost=some(0.5))
    made.add(importance=some(), change_rate=some(), last_crawled=0.0, signals={"feed": feed}, host=7)
    made.add(importance=some(), change_rate=some(), objective="freshness", last_crawled=0.0, signals=both)
    made.add(importance=some(), host=["slow", "shy"] * 4, last_crawled=0.0)
    made.add(importance=some(), objective="freshness", signals={"map": feed}, last_crawled=0.0, host="shy")
    made.add(importance=some(), change_rate=some(), decay=some(), objective="captures", last_crawled=0.0)
    made.add(profit=some(), new_page_rate=some(), decay=some(), objective="news", last_crawled=0.0, host="slow")
    made.add(profit=some(), decay=some(), objective="once", cost=0.5)
    made.add(importance=some(), change_rate=some(), min_interval=0.5, max_interval=9.0, last_crawled=0.0)
    made.add(importance=some(), change_rate=0.5, objective="captures", life="window", window=2.0, last_crawled=0.0)
    gone = made.add(importance=some(count=5), change_rate=0.5)
    made.remove(gone[[3, 0, 4]])
    return made


class Crawler:
    """Random calls to a scheduler. Two crawlers of one seed do the same as long as the scheduler answers the same."""

    def __init__(self, scheduler: recrawl.Scheduler, seed: int = 1) -> None:
        self.scheduler = scheduler
        self.random = np.random.default_rng(seed)
        self.flying: list[int] = []
        self.added: list[int] = []

    def twin(self, scheduler: recrawl.Scheduler) -> Crawler:
        """One that goes on from here with another scheduler."""
        other = Crawler(scheduler)
        other.random.bit_generator.state = self.random.bit_generator.state
        other.flying, other.added = list(self.flying), list(self.added)
        return other

    def run(self, steps: int) -> Calls:
        """Go on for so many steps; everything that the scheduler answered."""
        answers: Calls = []
        for _ in range(steps):
            answers.extend(self._step())
        return answers

    def _step(self) -> Calls:
        made, random = self.scheduler, self.random
        now = made.now + float(random.exponential(0.2))
        batch = made.take(now, int(random.integers(0, 6)))
        answers: Calls = [(now, *batch.ids.tolist()), (*batch.values.tolist(), batch.price)]
        self.flying.extend(batch.ids.tolist())
        random.shuffle(self.flying)
        ended, self.flying = self.flying[: len(self.flying) // 2], self.flying[len(self.flying) // 2 :]
        part = len(ended) // 4
        made.failed(ended[:part], now)
        made.release(ended[part : 2 * part], now)
        settled = ended[2 * part :]
        made.crawled(settled, now, changed=random.random(len(settled)) < 0.5)
        answers.append((self._change(now, int(random.integers(0, 16))),))
        return answers

    def _change(self, now: float, what: int) -> Any:  # noqa: PLR0911 - one for each thing that may happen
        """Something else that may happen: signals, pages that come, go or change, limits, budgets."""
        made, random = self.scheduler, self.random
        kinds = made._kinds.names
        if what < 8 and kinds:
            listening = np.flatnonzero(made._table.pages["flags"][: made._table.used] & 8)
            if not len(listening):
                return None
            heard = made._table.ids_of(random.choice(listening, 5))
            return made.signal(heard, now, kind=kinds[what % len(kinds)])
        if what == 8:
            new = made.add(importance=random.random(3) + 0.1, host="new", change_rate=None)
            self.added.extend(new.tolist())
            return tuple(new.tolist())
        if what == 9 and self.added:
            page = self.added.pop()
            self.flying = [flying for flying in self.flying if flying != page]
            return made.remove(page)
        if what == 10 and self.added:
            return made.update(self.added[:2], importance=random.random(), max_interval=6.0)
        if what == 11:
            return made.set_budget(float(random.choice([0.0, 2.0, 6.0, 30.0])), now)
        if what == 12:
            return made.set_host(str(random.choice(["new", "free"])), min_gap=float(random.random()))
        if what == 13 and self.flying:
            return made.failed(self.flying.pop(), now, retry_after=float(random.random()))
        return None


class Forgery:
    """A snapshot taken apart, to be changed and put together again with checksums that are right."""

    def __init__(self, snapshot: bytes) -> None:
        with np.load(io.BytesIO(snapshot), allow_pickle=False) as archive:
            self.columns: dict[str, Any] = dict(archive)
        self.facts: dict[str, Any] = json.loads(self.columns.pop("facts").tobytes())

    def bytes(self) -> bytes:
        """The snapshot again."""
        stream = io.BytesIO()
        facts = np.frombuffer(json.dumps(self.facts).encode(), dtype=np.uint8)
        np.savez(stream, allow_pickle=True, **{"facts": facts, **self.columns})
        return stream.getvalue()
