"""Student's t, for intervals of means over few repetitions."""

from __future__ import annotations

import math

_NORMAL_95 = 1.959963984540054
_EXACT = (12.706204736432095, 4.302652729696142, 3.182446305284263, 2.7764451051977987)


def student_95(freedom: int) -> float:
    """The 97.5 % point for so many degrees of freedom: exact up to 4, then to 0.1 % by expansion around the normal.

    >>> round(student_95(9), 3), round(student_95(99), 3)
    (2.262, 1.984)
    """
    if freedom < 1:
        return math.inf
    if freedom <= len(_EXACT):
        return _EXACT[freedom - 1]
    z, n = _NORMAL_95, float(freedom)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / n ** (power + 1) for power, term in enumerate(terms))
