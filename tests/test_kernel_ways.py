"""Kernels give the same answers interpreted and compiled, and change over from one to the other without a break."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from patience import COMPILING_S, PATIENCE_S
from recrawl.errors import InvalidInput
from recrawl.jit import borrowing, exact, kernel, kernels, running
from recrawl.jit.way import VARIABLE, Way, forced_way
from recrawl.planning.solve import plan
from recrawl.scheduling.scheduler import Scheduler
from recrawl.scheduling.types import Signal
from recrawl.values.signals.harmonic import noisy_harmonic_value_fast_kernel
from recrawl.values.special import bits_of, exp_of_minus, float_of, log_of_rest
from recrawl.web.change.detect import Visit, detect
from recrawl.web.change.digests import digest_page, layer_text
from recrawl.web.content.page import read_page

WAYS: tuple[Way, ...] = ("interpreted", "compiled")


def both(call: Callable[[], Any]) -> Iterator[Any]:
    """What a call answers each way."""
    for way in WAYS:
        with running(way):
            yield call()


@exact
def divided(a: float, b: float) -> float:
    return a / b


@exact
def rest(a: int, b: int) -> int:
    return a % b


@exact
def logarithm(a: float) -> float:
    return math.log(a)


@exact
def exponential(a: float) -> float:
    return math.exp(a)


@exact
def root(a: float) -> float:
    return math.sqrt(a)


@exact
def power(a: float, b: float) -> float:
    return float(a**b)


@kernel
def mixed(hashes: np.ndarray[Any, np.dtype[np.uint64]]) -> int:
    value = np.uint64(0xCBF29CE484222325)
    for each in hashes:
        value = (value ^ each) * np.uint64(0x100000001B3)
    return int(value >> np.uint64(1))


@kernel
def wrapped(numbers: np.ndarray[Any, np.dtype[np.int64]]) -> int:
    total = np.int64(1)
    for each in numbers:
        total = total * each
    return int(total)


@borrowing
def _added(numbers: np.ndarray[Any, np.dtype[np.float32]], at: int) -> float:
    numbers[at] += 0.1
    return float(numbers[at] * 3.0)


@kernel
def narrow(numbers: np.ndarray[Any, np.dtype[np.float32]]) -> float:
    total = 0.0
    for at in range(len(numbers)):
        total += _added(numbers, at)
    return total


@kernel
def small(numbers: np.ndarray[Any, np.dtype[np.uint8]]) -> int:
    return int(numbers[0] - numbers[1] + numbers[0] * numbers[1])


NUMBERS = [0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("call", [divided, power])
@pytest.mark.parametrize("a", NUMBERS)
@pytest.mark.parametrize("b", NUMBERS)
def test_arithmetic_without_an_answer_gives_infinity_or_nan_both_ways(
    call: Callable[[float, float], float], a: float, b: float
) -> None:
    interpreted, compiled = both(lambda: call(a, b))
    assert interpreted == compiled or (math.isnan(interpreted) and math.isnan(compiled))


@pytest.mark.parametrize("call", [logarithm, exponential, root])
@pytest.mark.parametrize("a", NUMBERS)
def test_functions_without_an_answer_give_infinity_or_nan_both_ways(call: Callable[[float], float], a: float) -> None:
    interpreted, compiled = both(lambda: call(a))
    assert interpreted == compiled or (math.isnan(interpreted) and math.isnan(compiled))


@pytest.mark.parametrize("b", [3, -3, 1])
def test_remainders_have_the_sign_of_the_divisor_both_ways(b: int) -> None:
    interpreted, compiled = both(lambda: rest(-7, b))
    assert interpreted == compiled == -7 % b


def test_integers_of_64_bits_wrap_both_ways() -> None:
    hashes = np.arange(1, 50, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    assert len(set(both(lambda: mixed(hashes)))) == 1
    numbers = np.arange(1, 40, dtype=np.int64)
    interpreted, compiled = both(lambda: wrapped(numbers))
    assert interpreted == compiled < 2**63
    assert interpreted != math.factorial(39)


def test_narrow_numbers_are_computed_in_64_bits_both_ways() -> None:
    interpreted, compiled = both(lambda: narrow(np.linspace(0.1, 9.0, 20, dtype=np.float32)))
    assert interpreted == pytest.approx(compiled, rel=1e-15)
    interpreted, compiled = both(lambda: small(np.array([3, 200], dtype=np.uint8)))
    assert interpreted == compiled == 3 - 200 + 600


@pytest.mark.parametrize("x", [0.0, 1e-300, 1e-9, 0.3, 1.0, 37.5, 700.0])
def test_the_quick_exponential_and_logarithm_are_those_of_the_library(x: float) -> None:
    interpreted, compiled = both(lambda: exp_of_minus(x))
    assert interpreted == pytest.approx(compiled, rel=1e-14)
    interpreted, compiled = both(lambda: log_of_rest(min(x, 0.999)))
    assert interpreted == pytest.approx(compiled, rel=1e-14, abs=1e-300)


@pytest.mark.parametrize("number", [0.0, -0.0, 1.0, -2.5, 5e-324, 1.7e308, math.inf])
def test_the_bits_of_a_float_are_the_same_both_ways(number: float) -> None:
    interpreted, compiled = both(lambda: bits_of(number))
    assert interpreted == compiled
    assert all(back == number for back in both(lambda: float_of(interpreted)))


@pytest.mark.parametrize("false_signal_rate", [0.0, 0.3, 5.0])
def test_a_value_that_signals_alone_make_up_is_the_same_both_ways(false_signal_rate: float) -> None:
    """There the table has an edge: rounding must not decide on which side of it a page is."""
    elapsed, signals = np.meshgrid([1e-3, 0.5, 3.0], np.arange(1.0, 16.0))
    value = np.vectorize(noisy_harmonic_value_fast_kernel)
    interpreted, compiled = both(lambda: value(1.0, 0.5, 1 - 2**-53, false_signal_rate, elapsed, signals))
    np.testing.assert_allclose(interpreted, compiled, rtol=1e-9)


def _life(signals: bool) -> tuple[list[list[int]], np.ndarray[Any, Any], float]:
    """The choices of a scheduler that learns, with hosts, failures and signals; what it believes, and its price."""
    rng = np.random.default_rng(5)
    scheduler = Scheduler(40.0, burst=8.0)
    for host in range(4):
        scheduler.set_host(host, min_gap=0.01, max_in_flight=2)
    trust = {"sitemap": Signal(0.7, 0.6)} if signals else None
    ids = scheduler.add(importance=rng.pareto(1.5, 60) + 1.0, host=np.arange(60) % 5, signals=trust)
    chosen = []
    for turn in range(60):
        now = 0.1 * turn
        taken = scheduler.take(now, 3).ids
        chosen.append(taken.tolist())
        scheduler.crawled(taken[:2], now, changed=rng.random(len(taken[:2])) < 0.4)
        scheduler.failed(taken[2:], now)
        if signals:
            scheduler.signal(ids[rng.integers(0, 60, 2)], now, "sitemap")
    return chosen, scheduler.learned(60).copy(), scheduler.price


@pytest.mark.parametrize("signals", [False, True], ids=["silent", "signals"])
def test_a_scheduler_makes_the_same_choices_both_ways(signals: bool) -> None:
    (chosen, learned, price), (other, also_learned, other_price) = both(lambda: _life(signals))
    assert chosen == other
    assert price == pytest.approx(other_price, rel=1e-9)
    for field in learned.dtype.names or ():
        np.testing.assert_allclose(learned[field], also_learned[field], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("objective", ["freshness", "harmonic"])
def test_a_plan_has_the_same_rates_both_ways(objective: Literal["freshness", "harmonic"]) -> None:
    rng = np.random.default_rng(3)
    pages = {"importance": rng.pareto(1.2, 300) + 0.1, "change_rate": rng.lognormal(0.0, 2.0, 300)}
    interpreted, compiled = both(lambda: plan(pages, budget=90.0, objective=objective))
    np.testing.assert_allclose(interpreted.rates, compiled.rates, rtol=1e-9, atol=1e-12)
    assert interpreted.price == pytest.approx(compiled.price, rel=1e-9)


def test_pages_are_read_and_judged_alike_both_ways() -> None:
    def judged() -> tuple[object, ...]:
        bodies = [f"<h1>News</h1><p>It is 10:00:{n:02}<p>{n * n} views<p>Nothing {'new' * (n // 4)}" for n in range(8)]
        texts = []
        for body in (each.encode() for each in bodies):
            page = read_page(body, "text/html")
            texts.append((digest_page(body, page), layer_text("text", body, page)))
        memory, verdicts = None, []
        for n, (_, text) in enumerate(texts):
            decision = detect(memory, Visit(text, texts[n - 1][1] if n else None, fetched_at=1e9 + n))
            memory = decision.memory
            verdicts.append(decision.verdict)
        return texts, verdicts, memory

    interpreted, compiled = both(judged)
    assert interpreted == compiled


def test_a_scheduler_goes_on_where_it_was_when_kernels_change_over() -> None:
    def choices(ways: list[Way]) -> list[list[int]]:
        scheduler = Scheduler(40.0, burst=8.0)
        scheduler.add(importance=np.linspace(1.0, 9.0, 30), host=np.arange(30) % 3)
        chosen = []
        for turn, way in enumerate(ways):
            with running(way):
                taken = scheduler.take(0.1 * turn, 3).ids
                scheduler.crawled(taken, 0.1 * turn, changed=np.arange(len(taken)) % 2 == turn % 2)
                chosen.append(taken.tolist())
        return chosen

    turns: list[Way] = ["interpreted", "compiled"]
    assert choices(turns * 20 + turns[1:] * 20) == choices(turns[1:] * 60)


def test_the_environment_forces_a_way_and_refuses_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, way in (("", None), ("auto", None), ("compiled", "compiled"), ("interpreted", "interpreted")):
        monkeypatch.setenv(VARIABLE, given)
        assert forced_way() == way
    monkeypatch.setenv(VARIABLE, "fast")
    with pytest.raises(InvalidInput, match="RECRAWL_KERNELS is 'fast', but must be compiled, interpreted or auto"):
        forced_way()


BESIDE = """
import sys
from recrawl.jit import has_to_wait
from recrawl.jit.beside import is_compiling, start
from recrawl.web.content.page import read_page
print(start(["web"]))
def way():
    before = read_page(b"<p>one").text
    return before, "compiled" if "numba" in sys.modules else "interpreted"
print(*way(), has_to_wait("web", 64 * 1024), has_to_wait("web", 64 * 1024 + 1))
while is_compiling():
    way()
while "numba" not in sys.modules:  # the disk is looked at some times a second
    way()
print(*way(), has_to_wait("web", 64 * 1024 + 1))
"""


def test_a_cold_machine_starts_interpreted_and_changes_over_when_the_process_beside_has_compiled(
    tmp_path: Path,
) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), VARIABLE: "auto"}
    ran = subprocess.run(
        [sys.executable, "-c", BESIDE],
        env=environment,
        capture_output=True,
        text=True,
        timeout=COMPILING_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    started, first, last = ran.stdout.splitlines()
    assert started == "True"
    assert first.split()[1:] == ["interpreted", "False", "True"]  # a large page waits, a small one does not
    assert last.split()[1:] == ["compiled", "False"]
    assert first.split()[0] == last.split()[0]


LOOP = """
import asyncio, os, sys
import numpy as np
from recrawl.jit import beside, force
from recrawl.store.store import open_store
from recrawl.tracker.clock import TrackerClock
from recrawl.tracker.pipeline.examine import COMPARING, kernels_for
from recrawl.tracker.settings.settings import Settings
from recrawl.tracker.tracker import Tracker
from recrawl.web.url.address import read_address
from recrawl.web.fetch.protocol import FetchResult
from tracker_harness import TrackerHarness

async def main(folder):
    store = await open_store(folder, owner=True)
    tracker = TrackerHarness(Tracker(Settings(folder, contact="test@example.com"), store, TrackerClock(0.0), print))
    tracker.scheduler.add(importance=np.ones(100_001))  # compiled, from code that is kept; the next line leaves it
    os.environ.update(NUMBA_CACHE_DIR=os.path.join(folder, "empty"), RECRAWL_KERNELS="auto")
    force(None)
    assert beside.start(["web"])
    address = read_address("http://a.example/")

    def compared(size):
        result = FetchResult(address, "ok", "", address, body=b"x" * size)
        return asyncio.ensure_future(kernels_for(result, COMPARING))

    large = compared(16 * 1024 + 1)
    await compared(16 * 1024)
    print(large.done(), tracker.may_take(), beside.is_compiling())
    beside.stop(os.getpid())
    await large
    print(large.done(), tracker.may_take())
    await store.close()

asyncio.run(main(sys.argv[1]))
"""


def test_a_tracker_goes_round_while_kernels_are_compiled_that_would_stop_its_loop(tmp_path: Path) -> None:
    """A page that is long to compare waits, and so does the first choice among very many pages; smaller ones do not."""
    call = [sys.executable, "-c", LOOP, str(tmp_path)]
    environment = {**os.environ, VARIABLE: "compiled", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ran = subprocess.run(call, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["False False True", "True True"]


ENDED = """
import queue, sys
from recrawl.jit.beside import start
ended = queue.Queue()
start(sys.argv[1:], ended.put)
print(ended.get())
"""


@pytest.mark.parametrize(("part", "whole"), [("news", "True"), ("nothing", "False")])
def test_a_program_is_told_whether_the_process_beside_has_compiled_all(tmp_path: Path, part: str, whole: str) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), VARIABLE: "auto"}
    call = [sys.executable, "-c", ENDED, part]
    ran = subprocess.run(call, env=environment, capture_output=True, text=True, timeout=COMPILING_S, check=True)
    assert ran.stdout.strip() == whole


def test_every_kernel_of_a_module_has_an_interpreted_twin_with_the_arithmetic_of_compiled_code() -> None:
    for each in kernels():
        if each.package and "twin" not in vars(each) and not each.is_made_by_hand:
            assert each.twin is not each.function, f"{each.function} is not at the top of its module"
