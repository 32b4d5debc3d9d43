"""Rates of pages whose every change is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from recrawl.errors import InvalidInput
from recrawl.learning.rates import complete_rate


def test_rate_is_the_smoothed_count() -> None:
    """Half a change in half a unit of time is added to what was seen."""
    np.testing.assert_allclose(complete_rate([0, 3, 10], [0.0, 9.5, 4.5]), [1.0, 0.35, 2.1])
    assert complete_rate(3, 9.5, fake_time=0.25) == pytest.approx(3.5 / 9.75)


@pytest.mark.parametrize(
    ("changes", "watched", "options", "field", "row"),
    [
        ([1, -1], [1.0, 1.0], {}, "changes", 1),
        ([1, 1.5], [1.0, 1.0], {}, "changes", 1),
        ([math.nan], [1.0], {}, "changes", 0),
        ([1], [math.nan], {}, "watched", 0),
        ([1, 1], [1.0, -2.0], {}, "watched", 1),
        ([1, 1], [1.0, 1.0, 1.0], {}, "watched", None),
        (["x"], [1.0], {}, "changes", 0),
        (2.5, 1.0, {}, "changes", None),
        ([1, 2**53 + 2], [1.0, 1.0], {}, "changes", 1),
        ([1, None], [1.0, 1.0], {}, "changes", 1),
        ([1], "x", {}, "watched", None),
        ([1, 1], [1.0, "x"], {}, "watched", 1),
        ([1], [1.0], {"fake_time": "x"}, "fake_time", None),
        ([1], [1.0], {"fake_time": math.inf}, "fake_time", None),
        ([1], [1.0], {"fake_time": 0.0}, "fake_time", None),
    ],
)
def test_bad_input_is_named(
    changes: object, watched: object, options: dict[str, Any], field: str, row: int | None
) -> None:
    """The field and the row at fault are in the error."""
    with pytest.raises(InvalidInput) as caught:
        complete_rate(changes, watched, **options)
    assert (caught.value.field, caught.value.row) == (field, row)
