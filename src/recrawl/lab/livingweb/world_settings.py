"""What a living web is made from: a few numbers that, with the seed, decide everything about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from recrawl.errors import InvalidInput
from recrawl.lab.livingweb.hosts import check_shared

Interest = Literal["lognormal", "pareto", "uniform"]
Laws = Literal["mixed", "poisson", "bursty", "rhythm"]
MOST_PAGES = 1_000_000
MOST_HOSTS = 10_000
_LATEST_EPOCH = 4_102_444_800  # the year 2100


@dataclass(frozen=True, slots=True)
class WorldSettings:
    """Settings of a living web.

    Args:
        pages: pages with numbers; articles of hubs come on top.
        hosts: virtual hosts `site-0` and so on.
        seed: another seed, another web.
        epoch: when the web begins, in whole Unix seconds.
        changes_per_day: mean rate of real changes of the pages that change.
        laws: `mixed`, or the one law by which all pages change that change at all.
        decades: over how many powers of ten change rates are spread evenly; 0 for lognormal ones and pages that never
            change by themselves among them.
        clicks_per_day: mean clicks of a page.
        interest: how clicks are spread over pages; `pareto` has the exponent 1.2, a few pages have most of them.
        noise_share: share of pages with noise.
        kilobytes: mean size of a page.
        domain: what all host names end with.
        every_host: fields of `HostProfile` that all hosts share, such as `{"trouble": "calm"}`.
    """

    pages: int = 2000
    hosts: int = 50
    seed: int = 1
    epoch: int = 1_767_225_600
    changes_per_day: float = 1.0
    laws: Laws = "mixed"
    decades: float = 0.0
    clicks_per_day: float = 20.0
    interest: Interest = "lognormal"
    noise_share: float = 0.5
    kilobytes: float = 10.0
    domain: str = "living.test"
    every_host: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _within("pages", self.pages, 1, MOST_PAGES)
        _within("hosts", self.hosts, 1, min(self.pages, MOST_HOSTS))
        _within("seed", self.seed, 0, 2**32 - 1)
        _within("epoch", self.epoch, 0, _LATEST_EPOCH)
        _within("changes_per_day", self.changes_per_day, 0, 1000)
        _within("decades", self.decades, 0, 6)
        _one_of("laws", self.laws, get_args(Laws))
        _one_of("interest", self.interest, get_args(Interest))
        _within("clicks_per_day", self.clicks_per_day, 0, 1e6)
        _within("noise_share", self.noise_share, 0, 1)
        _within("kilobytes", self.kilobytes, 1, 200)
        for name in ("pages", "hosts", "seed", "epoch"):
            if not isinstance(getattr(self, name), int):
                raise InvalidInput("must be a whole number", field=name)
        check_shared(self.every_host)


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InvalidInput(f"is {value!r}, but must be one of {', '.join(known)}", field=name)


def _within(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise InvalidInput(f"is {value}, but must lie between {least:g} and {most:g}", field=name)
