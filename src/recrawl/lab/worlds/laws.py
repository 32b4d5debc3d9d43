"""Worlds by law: pages at a constant rate, pages that come and go, hosts, and change that is not Poisson.

Each purpose has a stream of chance of its own, so that a world with signals has the same changes as the one without.
The same seed gives the same world, to the bit. Nothing here does IO.

`uniform` is the population of NCIS (Busa-Fekete et al. 2025), `zipf` that of Azar et al. 2018, `web` is shaped like a
large web index. Rates are changes a day. `bursty`, `periodic`, `daily` and `weekly` take importance and mean rates from
one of these populations; their `change_rate` is the long-run mean and `poisson` is False, so nobody takes closed forms
for the truth.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.lab.worlds.world import Events, Hosts, Ints, World, group_events
from recrawl.pages import Floats

MOST_PAGES = 100_000_000
MOST_EVENTS = 500_000_000
_FEW_EVENTS = 100_000


_ZIPF_EXPONENT = 2.0
_ZIPF_RANGE = 10_000

_MEDIAN_RATE = 0.1
_RATE_SPREAD = 1.5  # standard deviation of the logarithm
_FARTHEST = 3.0  # standard deviations: rates lie between a thousandth and nine a day
_IMPORTANCE_SPREAD = 1.5

# So many times its mean delay after a burst began, it is over.
_BURST_IS_OVER = 30.0
_PEAK_HOUR = 14.0
_HOURS_AROUND_PEAK = 3.0
_WORKING_DAYS, _DAYS = 5, 7

# Shares of the pages and the range of changes per day in each band.
_BANDS = ((0.35, 0.001, 0.01), (0.40, 0.01, 0.2), (0.20, 0.2, 2.0), (0.05, 2.0, 7.0))
_ANNOUNCED_SHARE = 0.04


class Spans(NamedTuple):
    """When each page can have events: from `start` to `end`, in days."""

    start: Floats
    end: Floats

    def lengths(self) -> Floats:
        """How long, 0 for a page that ends before it starts."""
        return np.maximum(self.end - self.start, 0.0)


def stream(seed: int, purpose: str) -> np.random.Generator:
    """Random numbers for one purpose.

    >>> stream(1, "changes").random() == stream(1, "changes").random() != stream(1, "signals").random()
    True
    """
    if seed < 0:
        raise InvalidInput(f"is {seed}, but must be 0 or more", field="seed")
    return np.random.Generator(np.random.PCG64([seed, zlib.crc32(purpose.encode())]))


def check_size(pages: int, horizon: float) -> None:
    """Refuse a world without pages or without time."""
    if pages < 1:
        raise InvalidInput(f"is {pages}, but a world needs at least one page", field="pages")
    if pages > MOST_PAGES:
        raise InvalidInput(f"is {pages}, but a world holds at most {MOST_PAGES:,}", field="pages")
    if not (math.isfinite(horizon) and horizon > 0):
        raise InvalidInput(f"is {horizon!r}, but must be a number of days above 0", field="horizon")


def whole_span(pages: int, horizon: float) -> Spans:
    """All pages from time 0 to the horizon."""
    return Spans(np.zeros(pages), np.full(pages, float(horizon)))


def poisson_events(random: np.random.Generator, rate: Floats, spans: Spans) -> Events:
    """Draw events at a constant rate for each page within its span. O(pages + events), without a sort.

    Given their number, the times of Poisson events are uniform in order, and those are sums of exponential gaps over
    the sum of one gap more.
    """
    length = spans.lengths()
    expected = rate * length
    check_events(float(expected.sum()))
    counts = random.poisson(expected)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    # One long sum over all gaps; that of a page begins where the one before ended.
    sums = np.cumsum(random.standard_exponential(int(offsets[-1]) + len(counts)))
    last = offsets[1:] + np.arange(len(counts))
    first = np.concatenate([[0.0], sums[last[:-1]]]) if len(counts) else np.empty(0)
    kept = np.ones(len(sums), dtype=bool)
    kept[last] = False
    page = np.repeat(np.arange(len(counts)), counts)
    share = (sums[kept] - first[page]) / (sums[last] - first)[page]
    return Events(offsets, spans.start[page] + share * length[page])


def check_events(expected: float) -> None:
    """Refuse a world that would not fit into memory."""
    if expected > MOST_EVENTS:
        raise InvalidInput(
            f"the world would hold about {expected:.2g} events, but at most {MOST_EVENTS:,} fit: "
            "take fewer pages or a shorter horizon"
        )


def page_of_events(events: Events) -> Ints:
    """The page of each event."""
    return np.repeat(np.arange(len(events.offsets) - 1), np.diff(events.offsets))


def only(events: Events, kept: NDArray[np.bool_]) -> Events:
    """Leave out events. O(events)."""
    before = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
    return Events(before[events.offsets], events.times[kept])


def group(page: Ints, times: Floats, pages: int) -> Events:
    """Sort events of many pages by page and time; many are sorted by compiled code."""
    if len(times) <= _FEW_EVENTS:
        return group_events(page, times, pages)
    from recrawl.lab.worlds.world import group_many_events

    return group_many_events(page, times, pages)


class Population(NamedTuple):
    """What each page is worth and how often it changes, in changes a day."""

    importance: Floats
    change_rate: Floats


def uniform(pages: int, horizon: float, seed: int) -> World:
    """Importance and change rate uniform in (0, 1), Poisson change.

    O(pages + changes), as for the other two.

    >>> world = uniform(pages=100, horizon=10.0, seed=0)
    >>> len(world), world.poisson, world.horizon
    (100, True, 10.0)
    """
    return poisson_world("uniform", pages, horizon, seed)


def zipf(pages: int, horizon: float, seed: int) -> World:
    """Importance by Zipf's law with exponent 2 from 1 to 10,000, change rate uniform in (0, 1)."""
    return poisson_world("zipf", pages, horizon, seed)


def web(pages: int, horizon: float, seed: int) -> World:
    """Importance lognormal, change rates from once in three years to seven a day, as on the web."""
    return poisson_world("web", pages, horizon, seed)


def poisson_world(law: str, pages: int, horizon: float, seed: int) -> World:
    """A world of a law of `POPULATIONS`, all pages there from the start and for good."""
    check_size(pages, horizon)
    return world_of(draw_population(law, pages, seed), horizon, seed, name=law)


def world_of(population: Population, horizon: float, seed: int, *, name: str) -> World:
    """Draw the changes of any population, as a Poisson process for each page."""
    pages = len(population.importance)
    check_size(pages, horizon)
    return World(
        name=name,
        horizon=float(horizon),
        importance=population.importance,
        changes=poisson_events(stream(seed, "changes"), population.change_rate, whole_span(pages, horizon)),
        change_rate=population.change_rate,
        poisson=True,
        born=np.zeros(pages),
        removed=np.full(pages, np.inf),
    )


def draw_population(law: str, pages: int, seed: int) -> Population:
    """Draw importance and change rates by a law of `POPULATIONS`."""
    if law not in POPULATIONS:
        raise InvalidInput(f"is {law!r}, but must be one of {', '.join(POPULATIONS)}", field="law")
    return POPULATIONS[law](pages, seed)


def _uniform(pages: int, seed: int) -> Population:
    importance, change_rate = stream(seed, "uniform population").random((2, pages))
    return Population(importance, change_rate)


def _zipf(pages: int, seed: int) -> Population:
    random = stream(seed, "zipf population")
    chance = np.cumsum(np.arange(1.0, _ZIPF_RANGE + 1) ** -_ZIPF_EXPONENT)
    importance = 1.0 + np.searchsorted(chance, random.random(pages) * chance[-1], side="right")
    return Population(np.minimum(importance, _ZIPF_RANGE), random.random(pages))


def _web(pages: int, seed: int) -> Population:
    stream(seed, "")  # refuses a seed below 0
    columns = web_population(pages, seed)
    return Population(columns["importance"], columns["change_rate"])


POPULATIONS: dict[str, Callable[[int, int], Population]] = {"uniform": _uniform, "zipf": _zipf, "web": _web}
"""Laws of importance and change rate by name."""


def churn(pages: int, horizon: float, seed: int, law: str = "uniform", lifetime: float | None = None) -> World:
    """Pages are born and removed, about as many as there are within the horizon.

    The world begins with `pages` pages, and as many are born as go: `pages / lifetime` a day, each at a time of its
    own, uniform over the horizon. So about `pages` live at any one time, and the world holds more in all. A page that
    is there at the start was born at 0 and has, as an exponential life knows no age, a whole life before it.
    O(pages + changes).

    Args:
        pages: how many live at the start.
        horizon: days.
        seed: 0 or more.
        law: importance and rates, of `POPULATIONS`.
        lifetime: mean life in days; by default the horizon.
    """
    check_size(pages, horizon)
    life = float(horizon) if lifetime is None else lifetime
    if not (math.isfinite(life) and life > 0):
        raise InvalidInput(f"is {life!r}, but must be a number of days above 0", field="lifetime")
    check_events(pages * horizon / life)
    random = stream(seed, "churn")
    births = int(random.poisson(pages * horizon / life))
    born = np.concatenate([np.zeros(pages), np.sort(horizon * (1 - random.random(births)))])
    removed = born + random.exponential(life, len(born))
    population = draw_population(law, len(born), seed)
    spans = Spans(born, np.minimum(removed, horizon))
    return World(
        name="churn",
        horizon=float(horizon),
        importance=population.importance,
        changes=poisson_events(stream(seed, "changes"), population.change_rate, spans),
        change_rate=population.change_rate,
        poisson=True,
        born=born,
        removed=np.where(removed <= horizon, removed, np.inf),
    )


def hosts(pages: int, horizon: float, seed: int, likeness: float = 0.5, count: int | None = None) -> World:
    """Hosts by Zipf's law of size, whose pages change alike.

    Change rates are lognormal around one in ten days; `likeness` is the share of the variance of their logarithms
    that lies between hosts. Importance is lognormal. A page lives on host k with a chance in proportion to 1/k; hosts
    without pages are left out. O(pages + changes).

    Args:
        pages: how many.
        horizon: days.
        seed: 0 or more.
        likeness: 0: hosts say nothing about rates; 1: all pages of a host have one rate.
        count: how many hosts there are to live on; by default the square root of the pages.
    """
    check_size(pages, horizon)
    if not 0 <= likeness <= 1:
        raise InvalidInput(f"is {likeness!r}, but must be between 0 and 1", field="likeness")
    count = math.isqrt(pages) if count is None else count
    if count < 1:
        raise InvalidInput(f"is {count}, but there must be at least one host", field="count")
    random = stream(seed, "hosts")
    number = _zipf_hosts(random, pages, count)
    between = random.standard_normal(count)[number]
    within = random.standard_normal(pages)
    deviation = np.clip(math.sqrt(likeness) * between + math.sqrt(1 - likeness) * within, -_FARTHEST, _FARTHEST)
    population = Population(
        importance=np.exp(_IMPORTANCE_SPREAD * random.standard_normal(pages)),
        change_rate=_MEDIAN_RATE * np.exp(_RATE_SPREAD * deviation),
    )
    world = world_of(population, horizon, seed, name="hosts")
    used, dense = np.unique(number, return_inverse=True)
    return replace(world, hosts=Hosts(dense.astype(np.int64), tuple(f"host-{host + 1}.example" for host in used)))


def hosts_of_addresses(addresses: Sequence[str]) -> Hosts | None:
    """The hosts of pages named by URLs, in order of appearance; None if a name is no URL with a host.

    >>> hosts_of_addresses(["https://a.example/1", "https://b.example/", "https://A.example/2"]).number.tolist()
    [0, 1, 0]
    """
    names = [_host(address) for address in addresses]
    if any(name is None for name in names):
        return None
    return _numbered(str(name) for name in names)


def sections(paths: Sequence[str], depth: int = 2) -> Hosts:
    """The sections of a site as if they were hosts: the first `depth` folders of each path, in order of appearance.

    >>> sections(["docs/en/a.md", "docs/en/b/c.md", "index.md"]).names
    ('docs/en', '')
    """
    if depth < 1:
        raise InvalidInput(f"is {depth}, but must be at least 1", field="depth")
    return _numbered("/".join(path.split("/")[:-1][:depth]) for path in paths)


def _zipf_hosts(random: np.random.Generator, pages: int, count: int) -> Ints:
    chance = np.cumsum(1 / np.arange(1.0, count + 1))
    found = np.searchsorted(chance, random.random(pages) * chance[-1], side="right")
    number: Ints = np.minimum(found, count - 1).astype(np.int64)
    return number


def _host(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:  # such as an open bracket where an IPv6 address should be
        return None


def _numbered(names: Iterable[str]) -> Hosts:
    known: dict[str, int] = {}
    number = np.array([known.setdefault(name, len(known)) for name in names], dtype=np.int64)
    return Hosts(number, tuple(known))


class Burst(NamedTuple):
    """A burst: a first change, on average `followers` more, each after an exponential delay of `spread` days."""

    followers: float = 4.0
    spread: float = 0.25


ONE_OF_FIVE = Burst()


def bursty(pages: int, horizon: float, seed: int, law: str = "uniform", burst: Burst = ONE_OF_FIVE) -> World:
    """Changes come in bursts: five on average within hours, then a long quiet.

    Bursts begin as a Poisson process (Neyman and Scott's clusters); a page's mean rate is that of its law.
    O(changes · log changes).
    """
    if not (0 <= burst.followers < np.inf and 0 < burst.spread < np.inf):
        raise InvalidInput("must have 0 or more followers and a spread above 0 days", field="burst")
    check_size(pages, horizon)
    population = draw_population(law, pages, seed)
    check_events(float(population.change_rate.sum()) * horizon)
    random = stream(seed, "bursts")
    # Bursts that began before the start still have changes to come.
    spans = Spans(np.full(pages, -_BURST_IS_OVER * burst.spread), np.full(pages, float(horizon)))
    begun = poisson_events(random, population.change_rate / (1 + burst.followers), spans)
    followers = random.poisson(burst.followers, len(begun.times))
    first_page = page_of_events(begun)
    times = np.repeat(begun.times, followers) + random.exponential(burst.spread, int(followers.sum()))
    every_page = np.concatenate([first_page, np.repeat(first_page, followers)])
    every_time = np.concatenate([begun.times, times])
    inside = (every_time >= 0) & (every_time <= horizon)
    return _world("bursty", population, horizon, group(every_page[inside], every_time[inside], pages))


def periodic(pages: int, horizon: float, seed: int, law: str = "uniform", jitter: float = 0.1) -> World:
    """Each page changes by the clock: its period is one over its rate, give or take a twentieth.

    Change k of a page lies within a part `jitter` of its period (0: exactly by the clock, 1: anywhere in it) around
    k periods from a first time, which is uniform. O(pages + changes).
    """
    if not 0 <= jitter <= 1:
        raise InvalidInput(f"is {jitter!r}, but must be between 0 and 1", field="jitter")
    check_size(pages, horizon)
    population = draw_population(law, pages, seed)
    rate = population.change_rate
    check_events(float(rate.sum()) * horizon + 3 * pages)
    random = stream(seed, "periods")
    phase = random.random(pages)
    # Numbered in periods: change k stands at phase + k, from one before the start to one after the horizon.
    counts = np.ceil(rate * horizon).astype(np.int64) + 3
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    page = np.repeat(np.arange(pages), counts)
    number = np.arange(len(page)) - offsets[page] - 1
    place = phase[page] + number + jitter * (random.random(len(page)) - 0.5)
    inside = (place >= 0) & (place <= (rate * horizon)[page]) & (rate[page] > 0)
    times = np.minimum(place / np.where(rate > 0, rate, 1.0)[page], horizon)
    return _world("periodic", population, horizon, only(Events(offsets, times), inside))


def daily(pages: int, horizon: float, seed: int, law: str = "uniform", depth: float = 0.9) -> World:
    """Changes come by day rather than by night: a daily wave with its peak near 14:00.

    The rate is the mean times 1 + depth · cos(2π(t − peak)); time 0 is midnight; the peaks of pages lie within three
    hours around 14:00. O(pages + changes).
    """
    if not 0 <= depth <= 1:
        raise InvalidInput(f"is {depth!r}, but must be between 0 and 1", field="depth")
    check_size(pages, horizon)
    population = draw_population(law, pages, seed)
    random = stream(seed, "daily")
    peak = (_PEAK_HOUR + _HOURS_AROUND_PEAK * random.uniform(-1, 1, pages)) / 24
    busiest = poisson_events(random, population.change_rate * (1 + depth), whole_span(pages, horizon))
    wave = 1 + depth * np.cos(2 * np.pi * (busiest.times - peak[page_of_events(busiest)]))
    kept = random.random(len(wave)) * (1 + depth) < wave
    return _world("daily", population, horizon, only(busiest, kept))


def weekly(pages: int, horizon: float, seed: int, law: str = "uniform", weekend: float = 0.1) -> World:
    """Changes come on working days: five full days, then two with a tenth of the changes.

    Time 0 is the midnight that begins Monday; `weekend` is the rate of a weekend day over that of a working day. The
    mean over a week is the rate by law. O(pages + changes).
    """
    if not 0 <= weekend <= 1:
        raise InvalidInput(f"is {weekend!r}, but must be between 0 and 1", field="weekend")
    check_size(pages, horizon)
    population = draw_population(law, pages, seed)
    random = stream(seed, "weekly")
    working = _DAYS / (_WORKING_DAYS + (_DAYS - _WORKING_DAYS) * weekend)
    busiest = poisson_events(random, population.change_rate * working, whole_span(pages, horizon))
    at_weekend = np.floor(busiest.times) % _DAYS >= _WORKING_DAYS
    kept = ~at_weekend | (random.random(len(at_weekend)) < weekend)
    return _world("weekly", population, horizon, only(busiest, kept))


def _world(name: str, population: Population, horizon: float, changes: Events) -> World:
    pages = len(population.importance)
    return World(
        name=name,
        horizon=float(horizon),
        importance=population.importance,
        changes=changes,
        change_rate=population.change_rate,
        born=np.zeros(pages),
        removed=np.full(pages, np.inf),
    )


def web_population(pages: int, seed: int = 20260823) -> dict[str, NDArray[np.float64]]:
    """Synthetic page populations, by law and seed, for demonstrations, benchmarks and tests.

    Draw pages shaped like a large web index.

    Importance is lognormal (sd 2), so a few pages hold most of it. Change rates are log-uniform within four bands
    from once in three years to seven times a day. Four pages in a hundred announce every change
    (`recall` and `precision` 1).

    >>> columns = web_population(1000)
    >>> sorted(columns), len(columns["importance"])
    (['change_rate', 'importance', 'precision', 'recall'], 1000)
    """
    random = np.random.Generator(np.random.PCG64([seed, pages]))
    importance = np.exp(random.normal(0.0, 2.0, pages))
    band = random.choice(len(_BANDS), size=pages, p=[share for share, _, _ in _BANDS])
    low = np.log([low for _, low, _ in _BANDS])[band]
    high = np.log([high for _, _, high in _BANDS])[band]
    change_rate = np.exp(low + (high - low) * random.random(pages))
    announced = (random.random(pages) < _ANNOUNCED_SHARE).astype(np.float64)
    return {
        "importance": importance,
        "change_rate": change_rate,
        "recall": announced,
        "precision": announced.copy(),
    }
