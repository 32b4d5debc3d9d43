from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from lab_worlds import churning_world, steady_world

from recrawl.errors import InvalidInput
from recrawl.lab.simulation.contenders_mle import ArgmaxMle
from recrawl.lab.simulation.fixed_rates import RoundRobin
from recrawl.lab.simulation.measures import measure
from recrawl.lab.simulation.scenarios import CONTENDERS, make_contender
from recrawl.learning.histories import read_histories
from recrawl.learning.rates import smoothed_mle
from recrawl.values import freshness_value


def test_every_name_makes_a_competitor_of_that_name() -> None:
    for name, summary in CONTENDERS.items():
        assert make_contender(name).name == name
        assert summary
    assert make_contender("ncis-approx-7-known").name == "ncis-approx-7-known"


@pytest.mark.parametrize(("wrong", "near"), [("recral", "recrawl"), ("nutch-adaptiv", "nutch-adaptive")])
def test_an_unknown_name_is_answered_with_the_nearest(wrong: str, near: str) -> None:
    with pytest.raises(InvalidInput, match=f"did you mean '{near}'"):
        make_contender(wrong)


def test_naming_contenders_loads_no_compiler() -> None:
    code = "import recrawl.lab.simulation.scenarios, sys; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", ["edf", "lds-known", "greedy-ncis", "recrawl-deaf", "plan-lambdacrawl-known"])
def test_contenders_crawl_within_the_budget(name: str) -> None:
    world = churning_world(pages=30, horizon=10.0)
    log = make_contender(name).crawl(world, 10.0, 1)
    assert 50 < len(log) <= 100
    assert (log.time >= world.born[log.page]).all()


def test_argmax_mle_is_a_search_with_the_smoothed_likelihood() -> None:
    """Every choice is the best of all pages, at rates from the whole history of each."""
    world = steady_world(pages=40, horizon=12.0)
    budget = 20.0
    log = ArgmaxMle().crawl(world, budget, 1)
    gaps: list[list[float]] = [[] for _ in range(40)]
    changed: list[list[bool]] = [[] for _ in range(40)]
    last, rate = np.zeros(40), np.full(40, np.log(2) / (40 / budget))
    for page, now in zip(log.page.tolist(), log.time.tolist(), strict=True):
        worth = np.asarray(freshness_value(world.importance, rate, now - last))
        assert worth[page] == pytest.approx(worth.max(), rel=1e-9)
        changes = world.changes.times[world.changes.offsets[page] : world.changes.offsets[page + 1]]
        gaps[page].append(now - last[page])
        changed[page].append(bool(((changes > last[page]) & (changes <= now)).any()))
        rate[page] = smoothed_mle(read_histories([gaps[page]], [changed[page]]), fake_gap=40 / budget)[0]
        last[page] = now


def test_argmax_mle_copes_with_births_and_removals() -> None:
    world = churning_world(pages=200)
    log = ArgmaxMle().crawl(world, 80.0, 1)
    assert (log.time >= world.born[log.page]).all()
    gone = log.time >= world.removed[log.page]
    assert np.bincount(log.page[gone]).max(initial=0) <= 1
    even = measure(world, RoundRobin().crawl(world, 80.0, 1), 10.0).freshness
    assert measure(world, log, 10.0).freshness > even
