"""A world of hosts: few large ones and many small ones, the pages of a host changing alike.

Also the hosts of pages that have addresses, and the sections of a site. Nothing here does IO.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

import numpy as np

from recrawl.errors import InvalidInput
from recrawl.lab.simulation.world import Hosts, Ints, World
from recrawl.lab.worlds.drawing import check_size, stream
from recrawl.lab.worlds.poisson import Population, world_of

_MEDIAN_RATE = 0.1
_RATE_SPREAD = 1.5  # standard deviation of the logarithm
_FARTHEST = 3.0  # standard deviations: rates lie between a thousandth and nine a day
_IMPORTANCE_SPREAD = 1.5


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
