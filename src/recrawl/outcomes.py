"""What a crawl can end in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput

Outcome = Literal["unchanged", "changed", "gone", "blocked", "failed"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
CODES: dict[Outcome, int] = {outcome: code for code, outcome in enumerate(OUTCOMES)}
Codes = NDArray[np.uint8]


def check_outcomes(outcomes: Sequence[Outcome], count: int) -> Codes:
    """The codes of so many outcomes. O(count).

    >>> check_outcomes(["changed", "gone"], 2).tolist()
    [1, 2]
    """
    if isinstance(outcomes, str) or not hasattr(outcomes, "__len__") or len(outcomes) != count:
        raise InvalidInput(f"must hold {count} outcomes, one for each page", field="outcome")
    codes = np.empty(count, dtype=np.uint8)
    for row, outcome in enumerate(outcomes):
        if outcome not in OUTCOMES:
            raise InvalidInput(f"is {outcome!r}, but must be one of {', '.join(OUTCOMES)}", field="outcome", row=row)
        codes[row] = CODES[outcome]
    return codes
