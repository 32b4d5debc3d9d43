"""Measures of noise: how often the pages of the living web are wrongly said to have changed, and what is learned then.

All pages have noise of one to three kinds. Each is visited at random times, three times between two changes on
average; every visit is judged by `detect`, with the further fetches that it asks for. The living web knows the truth.
For rates, pages that change by Poisson's law are visited long enough to know a rate within 10 % without any noise, and
the online filter is fed by the verdicts alone. Nothing is sent over a network.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recrawl.bench.measure import Bound, Measure, Reading
from recrawl.pages import Floats

if TYPE_CHECKING:
    from recrawl.lab.livingweb.world import LivingWorld
    from recrawl.web.change.detect import PageMemory
    from recrawl.web.content.rules import ContentRules

SEEDS = (1, 2, 3, 4, 5)
VISITS_PER_CHANGE = 3.0
_PAGES, _VISITS = 120, 40
_PAGES_OF_KIND, _LONG_VISITS = 4, 400
_KILOBYTES = 5.0
_FURTHER_FETCH_S = 1.0
_DAY_S = 86_400.0


def noise_measures() -> tuple[Measure, ...]:
    """The measures of noise, in the order they run; together they take under a minute."""
    return (
        Measure(
            "noise_false_events", "share of visits", "without telling noise", Bound("value", limit=0.01), _read_false
        ),
        Measure("noise_true_detected", "share of changes", "none", Bound("value", floor=0.99), _read_detected),
        Measure("noise_rate_error", "share of rate", "fed by the truth", Bound("value", limit=0.2), _read_rates),
    )


@dataclass(slots=True)
class Tally:
    """What the visits of noisy pages came to.

    Args:
        pages: pages visited.
        visits: after the first of each page.
        changes: visits that a real change preceded.
        false_events: changes reported although the page says what it said when it last was reported.
        missed: visits after a real change that were not called a change.
        further_fetches: that the detector asked for.
    """

    pages: int = 0
    visits: int = 0
    changes: int = 0
    false_events: int = 0
    missed: int = 0
    further_fetches: int = 0

    def add(self, other: Tally) -> None:
        """Count the visits of other pages as well."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def false_share(self) -> float:
        """False events as a share of the visits that no change preceded."""
        return self.false_events / max(1, self.visits - self.changes)


@dataclass(slots=True)
class History:
    """The visits of one page: gaps in days, what was reported, what was true, and the true rate a day."""

    rate: float
    gaps: list[float] = field(default_factory=list)
    reported: list[bool] = field(default_factory=list)
    real: list[bool] = field(default_factory=list)


class Look(NamedTuple):
    """One visit: the true version, whether a change was reported and wrongly so, and further fetches."""

    version: int
    reported: bool
    is_false: bool
    further_fetches: int


class RateErrors(NamedTuple):
    """Relative errors of learned rates: the mean over the pages of each kind, all pages, and the share within 20 %."""

    by_kind: dict[str, float]
    overall: float
    within: float


def noisy_world(seed: int, pages: int) -> LivingWorld:
    """A living web whose pages all have noise."""
    from recrawl.lab.livingweb.world import LivingWorld
    from recrawl.lab.livingweb.world_settings import WorldSettings

    return LivingWorld(
        WorldSettings(pages=pages, hosts=min(20, pages), seed=seed, noise_share=1.0, kilobytes=_KILOBYTES)
    )


def lasting_pages(world: LivingWorld) -> list[int]:
    """The pages that are never removed."""
    return [page for page in range(len(world)) if world.pages.gone[page] == float("inf")]


class Watcher:
    """Follows one page as a crawler does: keeps the memory of the detector and the text last reported."""

    def __init__(self, world: LivingWorld, page: int, rules: ContentRules | None = None) -> None:
        from recrawl.web.content.rules import ContentRules

        self._world = world
        self._page = page
        self._rules = rules or ContentRules()
        self._memory: PageMemory | None = None
        self._published: bytes | None = None
        self._published_version = -1

    def look(self, at: float) -> Look:
        """Fetch and judge the page, with the further fetches that the detector asks for. O(bytes)."""
        from recrawl.web.change.detect import Visit, detect

        version, text = fetch_text(self._world, self._page, at, self._rules)
        again: tuple[bytes, ...] = ()
        decision = detect(self._memory, Visit(text, self._published, again, at), self._rules)
        while decision.ask_again:
            later = at + _FURTHER_FETCH_S * (len(again) + 1)
            again = (*again, fetch_text(self._world, self._page, later, self._rules)[1])
            decision = detect(self._memory, Visit(text, self._published, again, at), self._rules)
        self._memory = decision.memory
        reported = decision.counts_as_change
        looked = Look(version, reported, reported and version == self._published_version, len(again))
        if decision.verdict in ("first", "changed"):
            self._published, self._published_version = text, version
        return looked


def visit_page(world: LivingWorld, page: int, visits: int, rules: ContentRules | None = None) -> tuple[Tally, History]:
    """Visit a page again and again at random times, and judge each visit. O(visits x bytes)."""
    from recrawl.lab.livingweb.chance import stream
    from recrawl.lab.livingweb.truth import change_rate

    random, rate = stream(world.seed, "visits", page), change_rate(world, page)
    tally, history = Tally(pages=1), History(rate)
    at = world.epoch + max(0.0, world.pages.born[page])
    watcher = Watcher(world, page, rules)
    last = watcher.look(at)
    for gap in random.exponential(1 / (VISITS_PER_CHANGE * rate), visits).tolist():
        at += gap * _DAY_S
        look = watcher.look(at)
        changed = look.version != last.version
        tally.add(
            Tally(0, 1, int(changed), int(look.is_false), int(changed and not look.reported), look.further_fetches)
        )
        history.gaps.append(gap)
        history.reported.append(look.reported)
        history.real.append(changed)
        last = look
    return tally, history


def fetch_text(world: LivingWorld, page: int, at: float, rules: ContentRules) -> tuple[int, bytes]:
    """The version of a page at a moment, and the text of it that counts."""
    from recrawl.lab.livingweb.articles import page_html
    from recrawl.lab.livingweb.text import Moment
    from recrawl.web.change.digests import layer_text
    from recrawl.web.content.page import read_page

    columns = world.pages
    version, changed_at = world.version_and_time(page, at)
    moment = Moment(page, at, columns.clicks[page], world.epoch + columns.born[page], changed_at)
    design = world.redesigns(columns.host[page]).count(at - world.epoch)
    body = page_html(world, page, version, moment, design)
    return version, layer_text(rules.counts, body, read_page(body, "text/html", rules))


def tally_of(seed: int, pages: int, visits: int, rules: ContentRules | None = None) -> Tally:
    """What the visits of all pages of a web come to."""
    world, total = noisy_world(seed, pages), Tally()
    for page in lasting_pages(world):
        total.add(visit_page(world, page, visits, rules)[0])
    return total


def rate_errors(
    histories: list[History], kinds: list[list[str]], *, truth: bool = False, notices_turns: bool = False
) -> RateErrors:
    """How far the rates are off that the online filter learns from the verdicts, or from the truth instead.

    The prior is fitted to the same verdicts. These pages are steady: noticing turns could only err, noise or not.
    """
    from recrawl.learning.filter_state import Memory
    from recrawl.learning.histories import read_histories
    from recrawl.learning.online_filter import OnlineFilter
    from recrawl.learning.prior import fit_prior

    seen = [each.real if truth else each.reported for each in histories]
    prior = fit_prior(read_histories([each.gaps for each in histories], seen))
    online = OnlineFilter(prior, len(histories), memory=Memory(notices_turns=notices_turns))
    for page, each in enumerate(histories):
        online.update_many([page] * len(each.gaps), each.gaps, seen[page])
    off: Floats = online.estimate().mean / np.array([each.rate for each in histories]) - 1
    names = sorted({kind for row in kinds for kind in row})
    by_kind = {name: float(np.mean([off[page] for page, row in enumerate(kinds) if name in row])) for name in names}
    return RateErrors(by_kind, float(np.mean(off)), float(np.mean(np.abs(off) <= 0.2)))


def long_histories(seed: int, pages_of_kind: int, visits: int) -> tuple[list[History], list[list[str]]]:
    """Long visits of pages that change by Poisson's law, at least so many with each kind of noise, and their kinds."""
    from recrawl.lab.livingweb.text import NOISES, noise_kinds

    world = noisy_world(seed, 1000)
    chosen: dict[int, list[str]] = {}
    wanted = dict.fromkeys(NOISES, pages_of_kind)
    for page in lasting_pages(world):
        kinds = noise_kinds(world.pages.noise[page])
        if world.law(page) == "poisson" and any(wanted[kind] > 0 for kind in kinds):
            chosen[page] = list(kinds)
            for kind in kinds:
                wanted[kind] -= 1
    return [visit_page(world, page, visits)[1] for page in chosen], list(chosen.values())


@cache
def _tallies() -> tuple[Tally, ...]:
    return tuple(tally_of(seed, _PAGES, _VISITS) for seed in SEEDS)


def _total() -> Tally:
    total = Tally()
    for tally in _tallies():
        total.add(tally)
    return total


def _read_false() -> Reading:
    from recrawl.web.content.rules import ContentRules

    total = _total()
    blind = tally_of(SEEDS[0], _PAGES // 5, _VISITS // 2, ContentRules(learn_noise=False)).false_share
    seeds = ", ".join(f"{tally.false_share:.2%}" for tally in _tallies())
    fetches = total.further_fetches / (total.visits + total.pages)
    figure = f"{blind:.0%}; by seed {seeds}; {fetches:.3f} further fetches a visit"
    return Reading(total.false_share, None, figure)


def _read_detected() -> Reading:
    total = _total()
    return Reading(1 - total.missed / total.changes, None, f"{total.missed} of {total.changes} changes missed")


def _read_rates() -> Reading:
    """The mean error of the kind of noise where it is largest."""
    histories, kinds = long_histories(SEEDS[0], _PAGES_OF_KIND, _LONG_VISITS)
    learned, ideal = rate_errors(histories, kinds), rate_errors(histories, kinds, truth=True)
    turning = rate_errors(histories, kinds, notices_turns=True)
    worst = max(learned.by_kind, key=lambda kind: abs(learned.by_kind[kind]))
    truly = max(map(abs, ideal.by_kind.values()))
    within = f"{learned.within:.0%} of pages within 20 %, {turning.within:.0%} if turns are noticed"
    figure = f"{truly:.3f}; {learned.overall:+.3f} over all, {worst} worst; {within}; by truth {ideal.within:.0%}"
    return Reading(abs(learned.by_kind[worst]), None, figure)
