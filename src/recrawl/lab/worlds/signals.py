"""Signals beside crawling, added to any world: by its law, or made from the changes of a trace.

A signal comes with a change with the chance `recall`, at the same time as the change or after a delay; false ones come
as a Poisson process over the life of the page. Adding a kind changes nothing else of the world: neither its changes
nor the signals of other kinds. Nothing here does IO.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.lab.worlds.laws import (
    Spans,
    check_events,
    group,
    page_of_events,
    poisson_events,
    stream,
    uniform,
    web,
    web_population,
)
from recrawl.lab.worlds.world import Hosts, SignalQuality, Signals, World
from recrawl.pages import Floats

# A share of changes below this is none: it would not announce one change in the life of any page.
_LEAST_RECALL = 1e-12


Flags = NDArray[np.bool_]
KIND = "sitemap"
RECALL, PRECISION = 0.9, 0.9
PAGES_A_HOST = 40


class SignalLaw(NamedTuple):
    """How signals of one kind come to each page: with a share of its changes, and falsely so many times a day."""

    recall: Floats
    false_signal_rate: Floats


@dataclass(frozen=True, slots=True)
class Delay:
    """How long after a change its signal arrives, in days.

    Attributes:
        mean: the mean delay.
        law: always the mean, exponential around it, or a Poisson number of slots (NCIS, Busa-Fekete et al. 2025).
        slot: length of a slot for `poisson`.
    """

    mean: float
    law: Literal["fixed", "exponential", "poisson"] = "fixed"
    slot: float = 1.0

    def draw(self, random: np.random.Generator, count: int) -> Floats:
        """Draw delays."""
        if not (0 <= self.mean < np.inf and 0 < self.slot < np.inf):
            raise InvalidInput("must be a delay of 0 or more in slots longer than 0", field="delay")
        if self.law == "fixed":
            return np.full(count, self.mean, dtype=np.float64)
        if self.law == "exponential":
            return random.exponential(self.mean, count)
        return random.poisson(self.mean / self.slot, count).astype(np.float64) * self.slot


NO_DELAY = Delay(0.0)


def ncis(pages: int, horizon: float, seed: int) -> World:
    """The uniform world with noisy signals as in NCIS: recall Beta(¼, ¼), false signals U(0.1, 0.6) a day."""
    world = uniform(pages, horizon, seed)
    return replace(with_signals(world, ncis_law(pages, seed), seed=seed), name="ncis")


def announced(pages: int, horizon: float, seed: int) -> World:
    """The web world where four pages in a hundred announce every change."""
    world = web(pages, horizon, seed)
    columns = web_population(pages, seed)
    return replace(announce(world, columns["recall"], columns["precision"], seed=seed), name="announced")


def ncis_law(pages: int, seed: int) -> SignalLaw:
    """Quality as in NCIS, section 6: recall Beta(¼, ¼), false signals at a rate uniform in (0.1, 0.6) a day."""
    random = stream(seed, "ncis quality")
    return SignalLaw(random.beta(0.25, 0.25, pages), random.uniform(0.1, 0.6, pages))


def announce(
    world: World,
    recall: Floats | float,
    precision: Floats | float,
    *,
    kind: str = "signal",
    seed: int = 0,
    delay: Delay = NO_DELAY,
    spread: Literal["by_page", "even"] = "by_page",
) -> World:
    """Add signals of a given recall and precision to a world; works on traces too. O(changes + signals).

    Args:
        world: stays as it is.
        recall: share of changes that are announced, of each page or of all.
        precision: share of signals that mean a change; of no matter where recall is 0.
        kind: what the signals are called.
        seed: 0 or more.
        delay: how long a signal takes.
        spread: where false signals go. `by_page`: in proportion to each page's changes, so that every page has this
            precision; a page that never changes has none. `even`: the same rate for all pages, so that all signals
            together have it, as when a site touches the dates of all its pages; needs one precision for all.

    Without a law of change, as in a trace, a page's rate of false signals follows from its changes within its life.
    """
    recall, precision = _share(world, recall, "recall"), _share(world, precision, "precision")
    vain = (precision == 0) & (recall > 0)
    if vain.any():
        raise InvalidInput(
            "is 0 while recall is above 0: signals that are never right announce no change",
            field="precision",
            row=int(np.argmax(vain)),
        )
    odds = np.where(recall > 0, (1 - precision) / np.where(precision > 0, precision, 1.0), 0.0)
    false_rate = recall * mean_change_rate(world) * odds
    if spread == "even":
        if len(world) and (odds.min() != odds.max()):
            raise InvalidInput("must be one number for all pages if false signals are spread evenly", field="precision")
        lives = life_spans(world).lengths()
        false_rate = np.full(len(world), float((false_rate * lives).sum()) / max(float(lives.sum()), 1e-300))
    return with_signals(world, SignalLaw(recall, false_rate), kind=kind, seed=seed, delay=delay)


def with_signals(
    world: World, law: SignalLaw, *, kind: str = "signal", seed: int = 0, delay: Delay = NO_DELAY
) -> World:
    """Add signals by recall and rate of false ones. Signals after the removal or the horizon are never heard."""
    recall = np.where(law.recall < _LEAST_RECALL, 0.0, law.recall)
    random = stream(seed, f"signals {kind}")
    lives = life_spans(world)
    check_events(float((law.false_signal_rate * lives.lengths()).sum()))
    false = poisson_events(random, law.false_signal_rate, lives)
    page = page_of_events(world.changes)
    told = random.random(len(page)) < recall[page]
    true_page = page[told]
    true_time = world.changes.times[told] + delay.draw(random, len(true_page))
    heard = true_time <= lives.end[true_page]
    events = group(
        np.concatenate([true_page[heard], page_of_events(false)]),
        np.concatenate([true_time[heard], false.times]),
        len(world),
    )
    quality = _quality(recall, law.false_signal_rate, mean_change_rate(world))
    return replace(world, signals={**world.signals, kind: Signals(events, quality)})


def life_spans(world: World) -> Spans:
    """From birth or time 0 to removal or the horizon."""
    return Spans(np.maximum(world.born, 0.0), np.minimum(world.removed, world.horizon))


def mean_change_rate(world: World) -> Floats:
    """Changes a day by law, or in hindsight where there is none: changes over the life of the page."""
    if world.change_rate is not None:
        return world.change_rate
    life = life_spans(world).lengths()
    return np.diff(world.changes.offsets) / np.where(life > 0, life, np.inf)


def _quality(recall: Floats, false_signal_rate: Floats, change_rate: Floats) -> SignalQuality:
    true = recall * change_rate
    every = true + false_signal_rate
    precision = np.where(every > 0, true / np.where(every > 0, every, 1.0), 0.0)
    # Where no signal can mean a change, none of them announces any.
    return SignalQuality(np.where(precision > 0, recall, 0.0), precision)


def _share(world: World, value: Floats | float, field: str) -> Floats:
    shares = np.asarray(value, dtype=np.float64)
    if shares.ndim > 1 or (shares.ndim == 1 and len(shares) != len(world)):
        raise InvalidInput(f"must be one number, or one for each of the {len(world)} pages", field=field)
    column = np.broadcast_to(shares, len(world)).copy()
    wrong = ~((column >= 0) & (column <= 1))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidInput(f"is {float(column[row])!r}, but must be between 0 and 1", field=field, row=row)
    return column


class Manners(NamedTuple):
    """What share of the hosts is honest, and what share useless."""

    honest: float
    useless: float


def announcing(pages: int, horizon: float, seed: int, manners: Manners) -> World:
    """Hosts that tell of changes, honestly or not: worlds in which trust in signals has to be earned.

    Importance and change rate are uniform as in NCIS (Busa-Fekete et al. 2025); pages live on hosts of equal size, and
    all pages of a host are announced alike. An honest host announces nine changes in ten, and nine signals in ten are
    true. A useless host sends as many signals as an honest one with such pages, each page at its own rate, but at
    random times. The others are silent. Adding signals changes nothing else of the world. Nothing here does IO.

    Draw a world; that of another share of honest hosts with the same seed has the same pages and changes.

    >>> world = announcing(400, 5.0, seed=1, manners=Manners(honest=0.3, useless=0.2))
    >>> quality = world.signals[KIND].quality
    >>> int((quality.recall > 0).sum()), len(world.hosts.names)
    (120, 10)
    """
    if min(manners) < 0 or sum(manners) > 1:
        raise InvalidInput("must be shares of the hosts, together at most 1", field="manners")
    world = uniform(pages, horizon, seed)
    number = np.arange(pages, dtype=np.int64) // PAGES_A_HOST
    count = int(number[-1]) + 1
    place = stream(seed, "manners of hosts").permutation(count)[number]
    honest = place < round(manners.honest * count)
    useless = ~honest & (place < round((manners.honest + manners.useless) * count))
    names = tuple(f"host-{host + 1}.example" for host in range(count))
    return replace(told_of(world, honest, useless, seed), name="announcing", hosts=Hosts(number, names))


def told_of(world: World, honest: Flags, useless: Flags, seed: int) -> World:
    """A world whose change rates are known, with signals for pages of honest and of useless hosts."""
    assert world.change_rate is not None
    true = RECALL * world.change_rate
    law = SignalLaw(
        recall=np.where(honest, RECALL, 0.0),
        false_signal_rate=np.where(honest, true * (1 / PRECISION - 1), np.where(useless, true / PRECISION, 0.0)),
    )
    return with_signals(world, law, kind=KIND, seed=seed)


def taken_at_their_word(world: World) -> World:
    """The same world as one sees it who takes every host that signals for honest."""
    signals = world.signals[KIND]
    number = world.hosts.number if world.hosts is not None else np.zeros(len(world), dtype=np.int64)
    heard = np.bincount(number, weights=np.diff(signals.events.offsets)) > 0
    recall: Floats = np.where(heard[number], RECALL, 0.0)
    quality = SignalQuality(recall, np.where(recall > 0, PRECISION, 0.0))
    return replace(world, signals={KIND: signals._replace(quality=quality)})
