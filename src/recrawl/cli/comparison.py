"""What `simulate` and `backtest` share: checks of options, and a comparison as table, figure and JSON."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from recrawl.cli.terminal import check_figure, show
from recrawl.errors import InvalidInput

if TYPE_CHECKING:
    from recrawl.lab.simulation.compare import Comparison, Mean

_MOST_WORKERS = 64
_MOST_REPETITIONS = 10_000
_MOST_CRAWLS = 1e9


class MeasureColumn(NamedTuple):
    """A measure in a table: its name in a comparison, its heading, and how it is written and judged."""

    measure: str
    heading: str
    percent: bool = False
    whole: bool = False
    larger_is_better: bool | None = None

    @property
    def words(self) -> str:
        """The measure as a picture names it, with the unit of its heading; shares have none there.

        >>> MeasureColumn("harmonic_cost", "harmonic").words, MeasureColumn("age", "age, d").words
        ('harmonic cost', 'age, d')
        """
        unit = "" if self.percent else self.heading.partition(", ")[2]
        return self.measure.replace("_", " ") + (f", {unit}" if unit else "")


PAGE_MEASURES = (
    MeasureColumn("freshness", "fresh, %", percent=True, larger_is_better=True),
    MeasureColumn("harmonic_cost", "harmonic", larger_is_better=False),
    MeasureColumn("age", "age, d", larger_is_better=False),
    MeasureColumn("completeness", "seen, %", percent=True),
    MeasureColumn("wasted", "wasted, %", percent=True),
    MeasureColumn("crawls", "crawls", whole=True),
)
"""What is shown of crawlers that keep pages fresh; the JSON has more."""


def check_count(number: int, option: str, most: int = _MOST_REPETITIONS) -> int:
    """A whole number from 1 to a most."""
    if not 1 <= number <= most:
        raise InvalidInput(f"is {number}, but must be from 1 to {most:,}", field=option)
    return number


def check_crawls(budget: float, days: float) -> None:
    """Refuse a budget whose crawls fit into no memory, before the work begins."""
    if budget * days > _MOST_CRAWLS:
        crawls = f"{budget * days:.3g} crawls in {days:.4g} days, and {_MOST_CRAWLS:,.0f} is the most"
        raise InvalidInput(f"makes {crawls}: give less", field="budget")


def in_words(pages: int, days: float, called: str = "pages") -> str:
    """How large a world is, for a title.

    >>> in_words(1, 0.5), in_words(2_000, 1.0), in_words(3, 5484.7)
    ('1 page, 0.5 days', '2,000 pages, 1 day', '3 pages, 5,485 days')
    """
    length = f"{days:,.0f}" if days >= 100 else f"{days:.3g}"
    things = called.removesuffix("s") if pages == 1 else called
    return f"{pages:,} {things}, {length} day{'' if length == '1' else 's'}"


def check_workers(workers: int | None) -> int:
    """How many processes to use: one for each core if nothing is said."""
    return (os.cpu_count() or 1) if workers is None else check_count(workers, "workers", _MOST_WORKERS)


def check_seed(seed: int) -> int:
    """A seed that every generator takes."""
    if not 0 <= seed < 2**32:
        raise InvalidInput(f"is {seed}, but must be from 0 to 4294967295", field="seed")
    return seed


def check_plot(plot: Path | None) -> None:
    """Refuse a picture that could not be written, before the work begins."""
    if plot is not None:
        check_figure(plot)


def names_of(policies: Sequence[str], usual: Sequence[str]) -> tuple[str, ...]:
    """Policies as typed, separated by commas or in several options; the usual ones if the option is left out."""
    names = [name.strip() for text in policies for name in text.split(",") if name.strip()]
    if policies and not names:
        raise InvalidInput("names nobody: give a name, or leave the option out", field="policy")
    return tuple(dict.fromkeys(names)) or tuple(usual)


def by_rank(comparison: Comparison, shown: MeasureColumn) -> list[str]:
    """Competitors, the best first."""
    sign = -1.0 if shown.larger_is_better else 1.0
    return sorted(comparison.names, key=lambda name: sign * comparison.mean(name, shown.measure).value)


def print_comparison(title: str, comparison: Comparison, columns: Sequence[MeasureColumn], *after: str) -> None:
    """Print a table, the best first, with the difference to the best of the first column, and sentences after it."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("policy", no_wrap=True)
    ranked = by_rank(comparison, columns[0])
    for column in columns:
        table.add_column(column.heading, justify="right", no_wrap=True)
        if column is columns[0]:
            table.add_column("to the best", justify="right", no_wrap=True)
    for name in ranked:
        cells = [name]
        for column in columns:
            cells.append(_text(comparison.mean(name, column.measure), column, spread=column is columns[0]))
            if column is columns[0]:
                cells.append("" if name == ranked[0] else _gap(comparison, name, ranked[0], column))
        table.add_row(*cells)
    show(table, *after)


def _text(mean: Mean, shown: MeasureColumn, *, spread: bool) -> str:
    scale = 100 if shown.percent else 1
    half = scale * (mean.high - mean.low) / 2 if spread else 0.0
    text = (
        f"{scale * mean.value:.2f}" if shown.percent else f"{mean.value:,.0f}" if shown.whole else f"{mean.value:.3g}"
    )
    return f"{text} ± {half:.2f}" if half > 0 else text


def _gap(comparison: Comparison, name: str, best: str, shown: MeasureColumn) -> str:
    more = comparison.difference(name, best, shown.measure)
    scale = 100 if shown.percent else 1
    half = scale * (more.high - more.low) / 2
    return f"{scale * more.value:+.2f}" + (f" ± {half:.2f}" if half > 0 else "")


def draw_comparison(path: Path, title: str, comparison: Comparison, columns: Sequence[MeasureColumn]) -> None:
    """Write the picture: the first two measures that are judged, competitors by rank."""
    from recrawl.plots.experiments import Dots, comparison_figure
    from recrawl.plots.save import save_figure

    judged = [column for column in columns if column.larger_is_better is not None][:2]
    ranked = by_rank(comparison, columns[0])
    measures = [
        Dots(column.words, [comparison.mean(name, column.measure) for name in ranked], bool(column.larger_is_better))
        for column in judged
    ]
    save_figure(comparison_figure(title, ranked, measures), path)


def policies_document(comparison: Comparison, reference: str) -> list[dict[str, Any]]:
    """Competitors for machines, in the order they were given."""
    document = comparison.as_json(reference)
    return [{"name": name, "measures": measures} for name, measures in document.items()]
