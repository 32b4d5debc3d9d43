"""The environment variable that forces kernels to run one way."""

from __future__ import annotations

import os
from typing import Literal, cast

from recrawl.errors import InvalidInput

Way = Literal["compiled", "interpreted"]
VARIABLE = "RECRAWL_KERNELS"
_WAYS = ("compiled", "interpreted")


def forced_way() -> Way | None:
    """What the environment asks for, None if kernels may change over.

    Raises:
        InvalidInput: the variable has another value.
    """
    given = os.environ.get(VARIABLE) or "auto"
    if given == "auto":
        return None
    if given not in _WAYS:
        raise InvalidInput(f"is {given!r}, but must be compiled, interpreted or auto", field=VARIABLE)
    return cast(Way, given)
