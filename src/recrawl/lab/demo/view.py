"""A demo in the terminal: freshness beside round robin and the optimum, the price, the pages that matter."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType, RenderResult
from rich.measure import Measurement
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from recrawl.lab.demo.race import Course
from recrawl.lab.demo.running import Show
from recrawl.service.dashboard.rendering import pace_text

_BARS = " ▁▂▃▄▅▆▇█"
_WIDTH, _NARROW = 60, 16
_ROWS = 5
_STYLES = {"ours": "bold green", "round_robin": "yellow", "optimum": "cyan"}
_NAMES = {
    "ours": ("recrawl", "learns change rates"),
    "round_robin": ("round robin", "every page in turn"),
    "optimum": ("optimum", "is told change rates"),
}


def picture(show: Show) -> RenderableType:
    """The whole view at a moment; a line of what is being done until there is something to compare."""
    if not show.race.has_begun:
        return Group(_head(show), Text(starting(show)))
    return Group(_head(show), _race(show), _numbers(show), _pages(show))


def starting(show: Show) -> str:
    """What is being done before there is anything to compare."""
    return f"Fetching first copies: {show.race.ours.made:,} of {len(show.race.truth.pages):,} pages"


def sparkline(values: list[float], low: float, high: float, width: int = _WIDTH) -> str:
    """A line of bars, the newest to the right.

    >>> sparkline([0.0, 0.5, 1.0], 0.0, 1.0)
    ' ▄█'
    """
    span = max(high - low, 1e-9)
    places = [min(max((value - low) / span, 0.0), 1.0) * (len(_BARS) - 1) for value in values[-width:]]
    return "".join(_BARS[int(place)] for place in places)


def _head(show: Show) -> RenderableType:
    scene, race = show.scene, show.race
    web_time = datetime.fromtimestamp(show.web.clock(), UTC)
    text = Text()
    text.append("recrawl demo", style="bold")
    text.append(
        f"  {len(race.truth.pages):,} pages on {race.hosts:,} hosts, {scene.budget_per_s:g} requests a second\n"
    )
    text.append(f"{pace_text(scene.speedup)}; it is {web_time:%a %H:%M} there", style="dim")
    if show.link:
        text.append("\ndashboard ")
        text.append(show.link, style="bold underline")
    return Panel(text, border_style="dim")


@dataclass(frozen=True, slots=True)
class _Line:
    """The course of one of the three since the start, in the width that there is.

    Args:
        field: of the samples.
        course: of all three.
    """

    field: str
    course: Course

    def __rich_measure__(self, _console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(min(_NARROW, options.max_width), min(_WIDTH, options.max_width))

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        values = [getattr(each, self.field) for each in self.course.thinned(min(_WIDTH, options.max_width))]
        yield Text(sparkline(values, self.course.lowest, self.course.highest), style=_STYLES[self.field])


def _race(show: Show) -> RenderableType:
    course, standing = show.race.course, show.standing()
    table = Table(
        box=None, padding=(0, 1), title="clicks that find a fresh copy", title_justify="left", title_style="bold"
    )
    for column in ("", "", "now", "last third", "so far"):
        justify: JustifyMethod = "right" if column in ("now", "last third") else "left"
        table.add_column(column, justify=justify, no_wrap=column != "so far")  # what may wrap gives way first
    for field, (name, knows) in _NAMES.items():
        table.add_row(
            Text(name, style=_STYLES[field]),
            Text(knows, style="dim"),
            f"{getattr(course.last, field):.1%}",
            f"{getattr(standing, field):.1%}",
            _Line(field, course),
        )
    return table


def _numbers(show: Show) -> RenderableType:
    """Counts, the price and the gap; both are known when each page could have been fetched once."""
    race = show.race
    closed = show.standing().gap_closed if race.had_a_round else None
    text = Text("\n")
    text.append(f"requests {race.crawls:,} each   changes found {show.fetcher.changes:,}   ")
    text.append(f"errors {show.fetcher.errors:,}   ")
    text.append(f"price {f'{show.price:.3g} fresh clicks' if race.had_a_round else '–'}   ")
    text.append("gap to the optimum closed " + ("–" if closed is None else f"{closed:.0%}"), style="bold")
    if show.behind:
        text.append(f"\n{show.behind}", style="yellow")
    text.append(f"\n{show.seconds:.0f} s; Ctrl-C ends it\n", style="dim")
    return text


def _pages(show: Show) -> RenderableType:
    """The pages with most clicks, and those that cost most clicks at present."""
    race, now = show.race, show.race.now
    truth = race.truth
    fresh = race.ours.fresh(now)
    _versions, weights = truth.look(now)
    best = np.argsort(-weights)[:_ROWS]
    worst = np.argsort(-np.where(fresh, 0.0, weights))[:_ROWS]
    table = Table(box=None, padding=(0, 1))
    for column in ("most clicked", "a day", "copy", "costs most now", "a day"):
        table.add_column(column, justify="right" if column == "a day" else "left", no_wrap=True)
    for good, bad in zip(best.tolist(), worst.tolist(), strict=True):
        table.add_row(
            _name(show, good), f"{weights[good]:,.0f}", "fresh" if fresh[good] else "stale",
            "" if fresh[bad] else _name(show, bad), "" if fresh[bad] else f"{weights[bad]:,.0f}",
        )  # fmt: skip
    return table


def _name(show: Show, page: int) -> str:
    world = show.race.world
    host = world.hosts[world.pages.host[page]].name.partition(".")[0]  # they share the rest
    return f"{host}{world.path(page)}"
