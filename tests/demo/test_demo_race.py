"""The race of a demo: what a copy is worth on the truth, and what round robin and the optimum make of a budget."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from email.utils import format_datetime

import numpy as np
import pytest

from recrawl.errors import InvalidInput
from recrawl.lab.demo.race import Copies, Course, Race, RoundRobin, Sample, Standing, Truth, WatchedFetcher
from recrawl.lab.demo.scene import Scene
from recrawl.lab.livingweb.truth import Copy, freshness
from recrawl.lab.livingweb.world import LivingWorld
from recrawl.store.rows import LeaseRow, PageRow, Verdict
from recrawl.tracker.visit import Visit
from recrawl.web.fetch.protocol import FetchResult
from recrawl.web.url.address import Address, read_address

EPOCH = 1_767_225_600
HOUR = 3600.0


@pytest.fixture(scope="module")
def world() -> LivingWorld:
    return LivingWorld(Scene(pages=120).world(EPOCH))


def test_freshness_is_that_of_the_web_itself(world: LivingWorld) -> None:
    truth = Truth(world, EPOCH)
    copies = Copies(truth)
    made = {page: EPOCH + (page % 7) * HOUR for page in truth.pages}
    for page, at in made.items():
        copies.made_at(page, at)
    now = EPOCH + 8 * HOUR
    told = freshness(world, [Copy(page, made.get(page)) for page in range(len(world))], now)
    unborn = [page for page in range(len(world)) if page not in made and world.state(page, now) in ("alive", "moved")]
    clicks = np.array(world.pages.clicks)
    exist = [page for page in range(len(world)) if world.state(page, now) in ("alive", "moved")]
    # What appeared later counts for the web as stale, and not at all here.
    share = clicks[exist].sum() / (clicks[exist].sum() - clicks[unborn].sum())
    assert copies.freshness(now) == pytest.approx(told.clicks * share)


def test_what_is_looked_up_moment_by_moment_is_what_the_web_says(world: LivingWorld) -> None:
    """Only pages that have changed are looked up again; nobody sees the difference, even if time goes back."""
    truth = Truth(world, EPOCH)
    for hours in (0.0, 0.1, 0.2, 3.0, 3.0, 40.0, 300.0, 5.0):
        now = EPOCH + hours * HOUR
        versions, weights = truth.look(now)
        exists = [world.state(page, now) in ("alive", "moved") for page in range(len(world))]
        assert versions.tolist() == [world.version(page, now) for page in range(len(world))]
        assert weights.tolist() == np.where(exists, truth.weights, 0.0).tolist()


class OneAnswer:
    """A fetcher that brings the same page every time, and is told what it is to mean."""

    def __init__(self) -> None:
        self.verdict: Verdict | None = None

    async def fetch(self, visit: Visit) -> None:
        address = read_address(visit.page.url)
        assert isinstance(address, Address)
        date = format_datetime(datetime.fromtimestamp(visit.lease.leased_at, UTC), usegmt=True)
        visit.fetched = FetchResult(address, "ok", "", address, status=200, headers=((b"date", date.encode()),))
        visit.examined("ok", self.verdict, "", None)


@pytest.mark.parametrize(
    ("verdict", "copies"), [("first", 1), ("changed", 1), ("unchanged", 0), ("noise", 0), (None, 0)]
)
def test_only_what_is_published_is_a_copy(verdict: Verdict | None, copies: int) -> None:
    """A change that is taken for noise leaves the old copy where it was."""
    inner = OneAnswer()
    inner.verdict = verdict
    noted: list[float] = []
    watched = WatchedFetcher(inner, lambda _url, at: noted.append(at))
    page = PageRow(1, "http://a.test/x", "a.test", "", 1.0, None, 0.0, None, "user", 0.0)
    asyncio.run(watched.fetch(Visit(page, LeaseRow(1, 1, "worker", float(EPOCH), float(EPOCH) + 60.0), 1)))
    assert noted == [float(EPOCH)] * copies


def test_pages_without_a_copy_are_stale(world: LivingWorld) -> None:
    assert Copies(Truth(world, EPOCH)).freshness(EPOCH) == 0.0


def test_round_robin_is_as_if_it_went_round_page_by_page(world: LivingWorld) -> None:
    """However its crawls are asked for: it goes on where it was, and drops pages that it finds removed."""
    truth = Truth(world, EPOCH)
    robin = RoundRobin(truth)
    gap = HOUR / len(truth.pages)
    counts = [7, 0, 300, 1, 500]
    slow, pages, place, at = Copies(truth), list(truth.pages), 0, float(EPOCH)
    for count in counts:
        robin.crawl(count, at, at + count * gap)
        for number in range(1, count + 1):
            place %= len(pages)
            if slow.made_at(pages[place], at + number * gap):
                place += 1
            else:
                del pages[place]
        at += count * gap
    assert robin.copies.versions.tolist() == slow.versions.tolist()
    assert robin.copies.made == slow.made > sum(counts) - 20


def test_known_rates_beat_round_robin_on_the_same_crawls(world: LivingWorld) -> None:
    scene = Scene(pages=120)
    race = Race(world, scene.budget_per_day, EPOCH)
    for hours in np.arange(0.5, 72.0, 0.5):
        race.sample(EPOCH + float(hours) * HOUR, float(hours), round(scene.budget_per_day / 48))
    standing = race.standing(24.0)
    assert standing.ours == 0.0
    assert standing.optimum > standing.round_robin + 0.03


@pytest.mark.parametrize("crawls", [[0, 0, 0], [1, 0, 5], [200, 3, 1000]], ids=str)
def test_both_make_exactly_the_crawls_of_the_tracker(world: LivingWorld, crawls: list[int]) -> None:
    """Whatever the clock says: a machine that stalls takes nothing from one and gives nothing to another."""
    race = Race(world, Scene(pages=120).budget_per_day, EPOCH)
    for number, count in enumerate(crawls, 1):
        race.sample(EPOCH + number * 60.0, float(number), count)
    assert race.course.last.crawls == sum(crawls)
    assert race.round_robin.copies.made == race.optimum.copies.made == sum(crawls)  # no page ends in three minutes


def test_a_race_without_crawls_has_nothing_to_show(world: LivingWorld) -> None:
    """All start with nothing, and nothing comes of time alone."""
    race = Race(world, Scene(pages=120).budget_per_day, EPOCH)
    for hours in range(1, 10):
        sample = race.sample(EPOCH + hours * HOUR, float(hours))
    assert (sample.ours, sample.round_robin, sample.optimum) == (0.0, 0.0, 0.0)
    assert not race.has_begun
    assert race.standing(0.0).gap_closed is None
    race.sample(EPOCH + 10 * HOUR, 10.0, len(race.truth.pages) - 1)
    assert not race.has_begun  # requests for robots.txt bring no copies
    for page in race.truth.pages[: len(race.truth.pages) // 20 + 1]:
        race.ours.made_at(page, EPOCH + 10 * HOUR)
    assert race.has_begun
    assert not race.had_a_round
    race.sample(EPOCH + 11 * HOUR, 11.0, 1)
    assert race.had_a_round


def test_the_pace_is_that_of_the_last_seconds(world: LivingWorld) -> None:
    race = Race(world, Scene(pages=120).budget_per_day, EPOCH)
    for second in range(1, 11):
        assert race.crawls_a_second(5.0) is None or second > 5
        race.sample(EPOCH + second * 60.0, float(second), 10 if second <= 5 else 3)
    assert race.crawls_a_second(5.0) == pytest.approx(3.0)


@pytest.mark.parametrize(("count", "within"), [(1, 1e-12), (7, 1e-12), (4096, 1e-12), (4097, 0.002), (50_000, 0.002)])
def test_a_course_has_the_figures_of_all_its_samples(count: int, within: float) -> None:
    """Exactly at first; of a long run a mean may begin a 2,048th of the run too early."""
    course = Course()
    random = np.random.default_rng(1)
    rising = np.linspace(0.0, 0.9, count)
    samples = [
        Sample(0.25 * number, rise + noise, 0.5 * rise, 0.9 - rise)
        for number, (rise, noise) in enumerate(
            zip(rising.tolist(), random.uniform(0, 0.1, count).tolist(), strict=True)
        )
    ]
    for sample in samples:
        course.add(sample)
    every = [value for each in samples for value in (each.ours, each.round_robin, each.optimum)]
    assert course.last == samples[-1]
    assert (course.lowest, course.highest) == (min(every), max(every))
    for since in (0.0, samples[-1].at / 2, samples[-1].at * 2 / 3, samples[-1].at + 1):
        counted = [each for each in samples if each.at >= since] or samples[-1:]
        mean = course.mean(since)
        assert mean.ours == pytest.approx(np.mean([each.ours for each in counted]), abs=within)
        assert mean.round_robin == pytest.approx(np.mean([each.round_robin for each in counted]), abs=within)
        assert mean.optimum == pytest.approx(np.mean([each.optimum for each in counted]), abs=within)
    shown = course.thinned(60)
    assert min(count, 30) <= len(shown) <= 60
    gaps = np.diff([each.at for each in shown])
    assert gaps.size == 0 or gaps.min() == gaps.max()
    assert samples[-1].at - shown[-1].at <= samples[-1].at / 2048


def test_a_course_without_samples_is_that_of_nobody_having_a_copy() -> None:
    assert Course().mean(0.0) == Standing(0.0, 0.0, 0.0)


def test_the_gap_is_a_share_of_the_way_and_none_where_there_is_no_way() -> None:
    assert Standing(0.7, 0.6, 0.8).gap_closed == pytest.approx(0.5)
    assert Standing(0.7, 0.8, 0.8).gap_closed is None


def test_the_web_is_as_fast_as_the_budget_asks_for() -> None:
    scene = Scene(pages=1000, budget_per_s=100.0)
    settings = scene.world(EPOCH)
    world = LivingWorld(settings)
    rates = np.array(world.pages.rate)
    assert rates.max() / rates.min() == pytest.approx(1000.0, rel=0.01)
    changes_a_second = rates.sum() / 86_400 * scene.speedup
    assert 100.0 / changes_a_second == pytest.approx(0.2, rel=0.01)


@pytest.mark.parametrize("numbers", [{"pages": 0}, {"pages": 10**7}, {"budget_per_s": 0.0}, {"budget_per_s": 1e5}])
def test_numbers_that_make_no_demo_are_refused(numbers: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        Scene(**numbers)  # type: ignore[arg-type]
