"""The figure of estimators shows every page, names its axes and says the bias."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

from recrawl.plots.experiments import Estimates, trust_figure


def estimates(pages: int) -> Estimates:
    """A likelihood estimate that is right and a counting estimate that is 0.2 too high."""
    truth = np.linspace(0.2, 0.7, pages)
    return Estimates(truth, truth, truth + 0.2)


def test_both_quantities_have_a_panel_with_named_axes() -> None:
    """The left panel is precision, the right one recall."""
    figure = trust_figure(estimates(20), estimates(30))
    figure.canvas.draw()
    labels = [(axis.get_xlabel(), axis.get_ylabel(), axis.get_title(loc="left")) for axis in figure.axes]
    assert labels == [
        ("true precision", "estimated precision", "Precision (20 pages)"),
        ("true recall", "estimated recall", "Recall (30 pages)"),
    ]


def test_points_are_estimates_against_the_truth() -> None:
    """Every page is one point per estimator."""
    data = estimates(15)
    counting, likelihood = trust_figure(data, data).axes[0].collections
    np.testing.assert_allclose(np.asarray(counting.get_offsets()), np.column_stack([data.truth, data.counting]))
    np.testing.assert_allclose(np.asarray(likelihood.get_offsets()), np.column_stack([data.truth, data.likelihood]))


def test_the_legend_says_the_bias() -> None:
    """The mean error of each estimator stands beside its name."""
    legend = trust_figure(estimates(15), estimates(15)).axes[1].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["counting, bias +0.200", "likelihood, bias +0.000"]


@pytest.mark.parametrize("pages", [0, 1, 3000])
def test_any_number_of_pages_can_be_drawn(pages: int) -> None:
    """No page, one page, thousands: no warning, no failure, and the caller's settings stay."""
    before = dict(mpl.rcParams)
    trust_figure(estimates(pages), estimates(pages)).canvas.draw()
    assert dict(mpl.rcParams) == before
