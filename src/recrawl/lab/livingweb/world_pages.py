"""The pages of a living web as columns: who hosts them, how they change, when they are born, move and end.

All columns are drawn at once from the seed; some 50 bytes a page. Times are in seconds since the web began.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.lab.livingweb.chance import stream
from recrawl.lab.livingweb.clock import DAY_S
from recrawl.lab.livingweb.laws import GRID, LAWS
from recrawl.lab.livingweb.noise import NOISES
from recrawl.lab.livingweb.world_settings import WorldSettings

SECTIONS = ("guides", "products", "reports", "people", "private")
NEVER = float("inf")

_OLDEST_DAYS = 365.0
_BORN_LATER, _BORN_WITHIN_DAYS = 0.12, 14.0
_MORTAL, _LIFE_DAYS = 0.12, 10.0
_MOVERS, _STAY_DAYS = 0.06, 8.0
_LAW_SHARES = (0.2, 0.4, 0.2, 0.2)
_FASTEST = 100.0
_PARETO = 1.2
_PARAGRAPH_BYTES = 720.0
_ONE_MORE_NOISE, _HARD_NOISE = 0.4, 0.02


@dataclass(frozen=True, slots=True)
class PageColumns:
    """Columns by page number, as memory views that give plain numbers.

    Args:
        first: the first page of each host; the pages of a host are in a row.
        host: index of the host.
        section: index into `SECTIONS`.
        law: index into `LAWS`.
        rate: own changes a day.
        phase: shift of the day, in hours.
        clicks: clicks a day.
        born: when the page appears; below zero for those that are older than the web.
        moved: when it moves to another address, `NEVER` if it stays.
        gone: when it is removed, `NEVER` if it stays.
        new_host: where it moves to.
        noise: bits by `NOISES`.
        paragraphs: how many it has.
    """

    first: list[int]
    host: memoryview[Any]
    section: memoryview[Any]
    law: memoryview[Any]
    rate: memoryview[Any]
    phase: memoryview[Any]
    clicks: memoryview[Any]
    born: memoryview[Any]
    moved: memoryview[Any]
    gone: memoryview[Any]
    new_host: memoryview[Any]
    noise: memoryview[Any]
    paragraphs: memoryview[Any]


def draw_pages(settings: WorldSettings) -> PageColumns:
    """All pages of a web. O(pages)."""
    pages, random = settings.pages, stream(settings.seed, "pages")
    host = _hosts(pages, settings.hosts, random)
    section = random.integers(0, len(SECTIONS), pages)
    likeness = random.normal(0, 0.8, (settings.hosts, len(SECTIONS)))[host, section]
    law = random.choice(len(LAWS), pages, p=_LAW_SHARES)
    speed = _mean_one(np.exp(likeness + random.normal(0, 1.0, pages)))
    rate = np.where(law > 0, np.minimum(settings.changes_per_day * speed, _FASTEST), 0.0)
    clicks = settings.clicks_per_day * _mean_one(np.exp(random.normal(0, 1.5, pages)))
    if settings.decades:
        law = np.maximum(law, 1)
        rate = settings.changes_per_day * _spread_over(settings.decades, pages, stream(settings.seed, "decades"))
    if settings.laws != "mixed":
        law = np.where(law > 0, LAWS.index(settings.laws), 0)
    if settings.interest != "lognormal":
        clicks = settings.clicks_per_day * _interest(settings, stream(settings.seed, "interest"))
    born, moved, gone = _fates(pages, random)
    return PageColumns(
        first=np.searchsorted(host, np.arange(settings.hosts + 1)).tolist(),
        host=_view(host, np.uint16),
        section=_view(section, np.uint8),
        law=_view(law, np.uint8),
        rate=_view(rate, np.float64),
        phase=_view(random.integers(0, 24, pages), np.uint8),
        clicks=_view(clicks, np.float64),
        born=_view(born, np.float64),
        moved=_view(moved, np.float64),
        gone=_view(gone, np.float64),
        new_host=_view(
            np.where(random.random(pages) < 0.5, host, random.integers(0, settings.hosts, pages)), np.uint16
        ),
        noise=_view(_noises(pages, settings.noise_share, random), np.uint16),
        paragraphs=_view(_sizes(pages, settings.kilobytes, random), np.uint16),
    )


def _spread_over(decades: float, pages: int, random: np.random.Generator) -> NDArray[Any]:
    """Rates with a mean of one, each power of ten alike."""
    return _mean_one(10.0 ** random.permutation(np.linspace(0.0, decades, pages)))


def _interest(settings: WorldSettings, random: np.random.Generator) -> NDArray[Any]:
    """Clicks with a mean of one."""
    if settings.interest == "uniform":
        return np.ones(settings.pages)
    return _mean_one(1.0 + random.pareto(_PARETO, settings.pages))


def _view(column: NDArray[Any], kind: type[np.generic]) -> memoryview[Any]:
    return np.ascontiguousarray(column.astype(kind)).data


def _hosts(pages: int, hosts: int, random: np.random.Generator) -> NDArray[Any]:
    """Few large hosts and many small ones, each with a page at least."""
    shares = random.lognormal(0, 1.2, hosts)
    rest = random.choice(hosts, pages - hosts, p=shares / shares.sum())
    return np.sort(np.concatenate([np.arange(hosts), rest]))


def _fates(pages: int, random: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    later = random.random(pages) < _BORN_LATER
    born = np.where(later, _BORN_WITHIN_DAYS * random.random(pages), -_OLDEST_DAYS * random.random(pages))
    seen = np.maximum(born, 0.0)
    fate = random.random(pages)
    gone = np.where(fate < _MORTAL, seen + random.exponential(_LIFE_DAYS, pages), NEVER)
    moves = fate > 1 - _MOVERS
    moved = np.where(moves, seen + random.exponential(_STAY_DAYS, pages), NEVER)
    return _on_grid(born), _on_grid(moved), _on_grid(gone)


def _on_grid(days: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(np.floor(days * DAY_S * GRID) / GRID)


def _noises(pages: int, noisy_share: float, random: np.random.Generator) -> NDArray[Any]:
    """One to three common kinds for a noisy page; the hard one for a few."""
    common = len(NOISES) - 1
    bits = 1 << random.integers(0, common, pages)
    for _ in range(2):
        bits |= np.where(random.random(pages) < _ONE_MORE_NOISE, 1 << random.integers(0, common, pages), 0)
    bits |= np.where(random.random(pages) < _HARD_NOISE, 1 << common, 0)
    return np.where(random.random(pages) < noisy_share, bits, 0)


def _sizes(pages: int, kilobytes: float, random: np.random.Generator) -> NDArray[Any]:
    mean = max(0.0, kilobytes * 1000 - 1500) / _PARAGRAPH_BYTES
    return np.clip(np.rint(mean * random.lognormal(-0.08, 0.4, pages)), 3, 1000)


def _mean_one(values: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(values / values.mean())
