"""A demo in the terminal: freshness beside round robin and the optimum, the price, the pages that matter."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from recrawl.demo.measuring import Sample
from recrawl.demo.running import Show

_BARS = " ▁▂▃▄▅▆▇█"
_WIDTH = 60
_ROWS = 5
_COLOURS = {"recrawl": "bold green", "round robin": "yellow", "optimum": "cyan"}


def picture(show: Show) -> RenderableType:
    """The whole view at a moment."""
    return Group(_head(show), _race(show), _numbers(show), _pages(show))


def sparkline(values: list[float], low: float, high: float, width: int = _WIDTH) -> str:
    """A line of bars, the newest to the right.

    >>> sparkline([0.0, 0.5, 1.0], 0.0, 1.0)
    ' ▄█'
    """
    span = max(high - low, 1e-9)
    places = [min(max((value - low) / span, 0.0), 1.0) * (len(_BARS) - 1) for value in values[-width:]]
    return "".join(_BARS[int(place)] for place in places)


def _head(show: Show) -> RenderableType:
    scene = show.scene
    web_time = datetime.fromtimestamp(show.web.clock(), UTC)
    text = Text()
    text.append("recrawl demo", style="bold")
    text.append(f"  {scene.pages:,} pages on {scene.hosts:,} hosts, {scene.budget_per_s:g} crawls a second\n")
    text.append(f"time of the web {web_time:%a %H:%M}, {scene.speedup:,.0f} times as fast as ours", style="dim")
    if show.link:
        text.append("\ndashboard ")
        text.append(show.link, style="bold underline")
    return Panel(text, border_style="dim")


def _race(show: Show) -> RenderableType:
    samples = show.race.samples
    names = {"recrawl": "ours", "round robin": "round_robin", "optimum": "optimum"}
    table = Table(box=None, padding=(0, 2), expand=False)
    table.add_column("clicks that find a fresh copy")
    table.add_column("now", justify="right")
    table.add_column("last third", justify="right")
    table.add_column("so far")
    shown = _thinned(samples)
    every = [getattr(each, field) for each in samples for field in names.values()]
    low, high = (min(every), max(every)) if every else (0.0, 1.0)
    standing = show.standing()
    for name, field in names.items():
        line = sparkline([getattr(each, field) for each in shown], low, high)
        now = getattr(samples[-1], field) if samples else 0.0
        table.add_row(
            Text(name, style=_COLOURS[name]),
            f"{now:.1%}",
            f"{getattr(standing, field):.1%}",
            Text(line, style=_COLOURS[name]),
        )
    return table


def _thinned(samples: list[Sample]) -> list[Sample]:
    step = max(1, -(-len(samples) // _WIDTH))
    return samples[::-step][::-1]


def _numbers(show: Show) -> RenderableType:
    closed = show.standing().gap_closed
    text = Text("\n")
    text.append(f"crawls {show.crawls:,}   changes {show.fetcher.changes:,}   errors {show.fetcher.errors:,}   ")
    text.append(f"price {show.price:.3g} fresh clicks   ")
    text.append("gap to the optimum closed " + ("–" if closed is None else f"{closed:.0%}"), style="bold")
    text.append(f"\n{show.seconds:.0f} s; Ctrl-C ends it\n", style="dim")
    return text


def _pages(show: Show) -> RenderableType:
    """The pages with most clicks, and those that cost most clicks at present."""
    race, now = show.race, show.race.now_of_last_sample
    truth = race.truth
    fresh = race.ours.fresh(now)
    _versions, weights = truth.look(now)
    best = np.argsort(-weights)[:_ROWS]
    worst = np.argsort(-np.where(fresh, 0.0, weights))[:_ROWS]
    table = Table(box=None, padding=(0, 2))
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
