"""Figures of experiments: lines and bars show their numbers, intervals and gaps."""

from __future__ import annotations

import math

import numpy as np

from recrawl.plots.experiments import BarPanel, LinePanel, Series, bars_figure, lines_figure


def test_lines_show_every_series_with_gaps_where_a_number_is_not_finite() -> None:
    series = [Series("a", [1.0, math.inf, 3.0]), Series("b", [2.0, 2.0, 2.0], [1.0, 1.0, 1.0], [3.0, 3.0, 3.0])]
    figure = lines_figure([LinePanel("title", "x", "y", [1.0, 2.0, 4.0], series, log_x=True, reference=2.5)])
    (axis,) = figure.axes
    lines = {line.get_label(): np.asarray(line.get_ydata(), dtype=float) for line in axis.lines}
    assert np.isnan(lines["a"]).tolist() == [False, True, False]
    assert lines["b"].tolist() == [2.0, 2.0, 2.0]
    assert (axis.get_xscale(), len(axis.collections), len(axis.lines)) == ("log", 1, 3)


def test_bars_start_at_the_bottom_and_say_where_a_number_is_infinite_or_missing() -> None:
    series = [Series("a", [1.0, math.inf], [0.9, 0.0], [1.2, 0.0]), Series("b", [2.0, math.nan])]
    figure = bars_figure([BarPanel("title", "y", ["one", "two"], series, bottom=0.5)])
    (axis,) = figure.axes
    boxes = [bar.get_extents().transformed(axis.transData.inverted()) for bar in axis.patches]
    assert np.allclose([(box.y0, box.y1) for box in boxes], [(0.5, 1.0), (0.5, 2.0)])
    assert [text.get_text() for text in axis.texts] == ["∞", "none"]
    assert axis.get_ylim()[0] == 0.5


def test_panels_share_one_legend_with_each_name_once() -> None:
    series = [Series("a", [1.0]), Series("b", [2.0])]
    figure = bars_figure([BarPanel("left", "y", ["g"], series), BarPanel("right", "y", ["g"], series)])
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
    assert not lines_figure([LinePanel("one", "x", "y", [0.0], [Series("only", [1.0])])]).legends
