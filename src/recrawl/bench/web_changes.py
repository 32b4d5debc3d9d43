"""Measures of changes: how many true changes of a page are seen, however fast it changes and whatever else it shows.

Each row is ten pages, one for each seed, that change by one law and one period; all have a clock and a nonce on them.
A scheduler visits them, by the objective `captures` or `harmonic`, and hears the verdicts; every visit is judged by
`detect`, with the further fetches that it asks for one second apart. Nothing is sent over a network.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from recrawl.bench.measure import Bound, Measure, Reading

if TYPE_CHECKING:
    from recrawl.web.change.detect import PageMemory

Form = Literal["number", "sentence", "row", "toggle"]
Objective = Literal["captures", "harmonic"]

SEEDS = (2201, 2202, 2203, 2204, 2205, 2206, 2207, 2208, 2209, 2210)
"""Fixed before the detector was first run on them."""
VISITS = 300
PAIR_S = 1.0
_BEGINS = 1_790_000_000.0
_DAY_S = 86_400.0
_EARLY = 10
_TICKS = 4  # looks at the schedule for one crawl
_GAPS_S = {4.0: 10.0, 20.0: 15.0, 300.0: 150.0, 3600.0: 1200.0}
"""Seconds between two visits by the period of the changes."""
_TOGGLES_S = (20.0, 3600.0)
_STORY = "".join(
    f"\nThe {word} fox jumps over the lazy dog and goes on for a while"
    for word in ("red", "old", "sly", "big", "shy", "odd")
)
_WORDS = (
    "ba", "co", "du", "fe", "gri", "ho", "ka", "lu", "me", "no",
    "pra", "ri", "sto", "tu", "ve", "lan", "mor", "pid", "quo",
)  # fmt: skip


class Row(NamedTuple):
    """How the ten pages of a row change: what, how often, and whether by Poisson's law or regularly."""

    form: Form
    period_s: float
    poisson: bool
    objective: Objective

    def __str__(self) -> str:
        law = "Poisson" if self.poisson else "periodic"
        return f"{self.form}, every {self.period_s:g} s, {law}, {self.objective}"


class Seen(NamedTuple):
    """What the visits of one page came to: visits after a change, those that were reported, and false reports.

    `further` are the second fetches of all visits, `late` those after the tenth, `visits` and `false` count as well.
    """

    visits: int = 0
    changes: int = 0
    seen: int = 0
    false: int = 0
    further: int = 0
    late: int = 0

    @property
    def share(self) -> float:
        """Changes seen."""
        return self.seen / max(self.changes, 1)


def change_measures() -> tuple[Measure, ...]:
    """The measures of changes, in the order they run; together they take a few minutes."""
    return (
        Measure("changes_seen_4s", "least share", "none", Bound("value", floor=0.95), _read_fast),
        Measure("changes_seen_slower", "least share", "none", Bound("value", floor=0.99), _read_slower),
        Measure("toggles_seen", "least share", "none", Bound("value", floor=0.95), _read_toggles),
        Measure("late_second_fetches", "most share", "none", Bound("value", limit=0.05), _read_late),
    )


def rows() -> list[Row]:
    """Every row, in order."""
    return [
        Row(form, period, poisson, objective)
        for form in get_args(Form)
        for period in (_TOGGLES_S if form == "toggle" else _GAPS_S)
        for poisson in (False, True)
        for objective in get_args(Objective)
    ]


class ChangingPage:
    """A page whose every change is known."""

    def __init__(self, row: Row, seed: int) -> None:
        self._row = row
        self._random = random.Random(f"{row.form} {row.period_s:g} {row.poisson} {seed}")
        self._changes = [self._random.uniform(0.0, row.period_s)]

    def version(self, at: float) -> int:
        """How often it has changed until a moment, in seconds."""
        row = self._row
        while self._changes[-1] <= at:
            wait = self._random.expovariate(1 / row.period_s) if row.poisson else row.period_s
            self._changes.append(self._changes[-1] + wait)
        return bisect(self._changes, at)

    def state(self, at: float) -> int:
        """What it says: equal for two moments at which it says the same."""
        version = self.version(at)
        return version % 2 if self._row.form == "toggle" else version

    def text(self, at: float) -> bytes:
        """Its text at a moment, with the clock and the nonce of that moment."""
        state = self.state(at)
        chance = random.Random(f"{self._row.form} {state}")
        now, nonce = datetime.fromtimestamp(_BEGINS + at, UTC), random.Random(f"{at}").getrandbits(64)
        cat = _STORY.replace("fox", "cat")
        return (
            f"Server time {now:%H:%M:%S} UTC{_STORY}\n{_line(self._row.form, state, chance)}\n"
            f"The imprint stays{cat}\nRequest {nonce:016x} served\nend of it"
        ).encode()


def _line(form: Form, state: int, chance: random.Random) -> str:
    if form == "number":
        return f"The highest bid is {100 + 3 * state} euros placed by bidder {chance.randrange(9999)}"
    if form == "sentence":
        return " ".join(chance.choice(_WORDS) for _ in range(9))
    if form == "row":
        return f"Lamp\n{chance.randrange(500)} pieces\n{chance.choice(_WORDS)}{chance.choice(_WORDS)}\nshipped"
    return ("In stock", "Sold out")[state]


def run_row(row: Row, seeds: tuple[int, ...] = SEEDS, visits: int = VISITS, pair_s: float = PAIR_S) -> list[Seen]:
    """Visit the pages of a row as a scheduler says, so often on average; what came of each seed."""
    watchers = [_Watcher(ChangingPage(row, seed), pair_s) for seed in seeds]
    for number, at, told in _turns(row, len(seeds), visits):
        told.append(watchers[number].look(at))
    return [watcher.seen for watcher in watchers]


def _turns(row: Row, pages: int, visits: int) -> Iterator[tuple[int, float, list[bool]]]:
    """Which page is visited when, in seconds; each visit leaves in the list whether it found a change."""
    from recrawl.scheduling.scheduler import Scheduler

    gap_s = _GAPS_S[row.period_s]
    delays = random.Random(f"{row}")
    budget = pages / gap_s * _DAY_S
    if row.objective == "captures":
        scheduler = Scheduler(budget, burst=1.0)
        rate = _DAY_S / row.period_s
        ids = scheduler.add(importance=[1.0] * pages, objective="captures", change_rate=[rate] * pages, decay=rate)
    else:
        scheduler = Scheduler(budget, "harmonic", burst=1.0)
        ids = scheduler.add(importance=[1.0] * pages)
    places = {int(page): number for number, page in enumerate(ids)}
    tick = turn = 0
    while turn < pages * visits:
        tick += 1
        at = (tick + delays.random()) * gap_s / pages / _TICKS
        for page in scheduler.take(at / _DAY_S, 1).ids.tolist():
            told: list[bool] = []
            yield places[page], at, told
            scheduler.crawled([page], at / _DAY_S, changed=told)
            turn += 1


class _Watcher:
    """Follows one page as a crawler does, and knows what it reported and what was true."""

    def __init__(self, page: ChangingPage, pair_s: float) -> None:
        self._page = page
        self._pair_s = pair_s
        self._memory: PageMemory | None = None
        self._published: bytes | None = None
        self._published_state = self._last_state = -1
        self.seen = Seen()

    def look(self, at: float) -> bool:
        """Fetch and judge the page; whether a change is reported."""
        from recrawl.web.change.detect import Visit, detect

        text, state = self._page.text(at), self._page.state(at)
        again: tuple[bytes, ...] = ()
        decision = detect(self._memory, Visit(text, self._published, again, _BEGINS + at))
        while decision.ask_again:
            again = (*again, self._page.text(at + self._pair_s * (len(again) + 1)))
            decision = detect(self._memory, Visit(text, self._published, again, _BEGINS + at))
        self._memory = decision.memory
        seen, reported = self.seen, decision.counts_as_change
        changed = seen.visits > 0 and state != self._last_state
        is_false = reported and state == self._published_state
        self.seen = Seen(
            seen.visits + 1,
            seen.changes + changed,
            seen.seen + (reported and not is_false),
            seen.false + is_false,
            seen.further + len(again),
            seen.late + (len(again) if seen.visits >= _EARLY else 0),
        )
        self._last_state = state
        if decision.verdict in ("first", "changed"):
            self._published, self._published_state = text, state
        return reported


def share_of(seen: list[Seen]) -> float:
    """Changes seen by all pages of a row; 0 where more than one page saw fewer than nine in ten."""
    poor = sum(each.share < 0.9 for each in seen)
    return sum(each.seen for each in seen) / max(sum(each.changes for each in seen), 1) if poor <= 1 else 0.0


def late_share(seen: list[Seen]) -> float:
    """Second fetches after the tenth visit, as a share of all requests after it."""
    late = sum(each.late for each in seen)
    return late / max(sum(each.visits - _EARLY for each in seen) + late, 1)


@cache
def _all() -> dict[Row, list[Seen]]:
    return {row: run_row(row) for row in rows()}


def _least(chosen: list[Row]) -> Reading:
    shares = {row: share_of(_all()[row]) for row in chosen}
    worst = min(shares, key=lambda row: shares[row])
    false = sum(each.false for row in chosen for each in _all()[row])
    return Reading(shares[worst], None, f"least of {len(chosen)} rows: {worst}; {false} false events")


def _read_fast() -> Reading:
    return _least([row for row in rows() if row.form != "toggle" and row.period_s == min(_GAPS_S)])


def _read_slower() -> Reading:
    return _least([row for row in rows() if row.form != "toggle" and row.period_s > min(_GAPS_S)])


def _read_toggles() -> Reading:
    return _least([row for row in rows() if row.form == "toggle"])


def _read_late() -> Reading:
    shares = {row: late_share(_all()[row]) for row in rows()}
    worst = max(shares, key=lambda row: shares[row])
    return Reading(shares[worst], None, f"most of {len(shares)} rows: {worst}")
