"""Waiting longer after each failure, never for ever, and never all at once.

Exponential with jitter. Randomness is an argument between 0 and 1: `seeded_uniform` makes one from a name, so
that the same page waits equally long in every run and two pages do not return together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from hashlib import blake2b

from recrawl.errors import InvalidInput

_WEEK_S = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class BackoffRules:
    """How waits grow.

    Args:
        first_s: the wait after the first failure, in seconds.
        factor: growth with each further failure.
        longest_s: the wait that is never exceeded; a page is never given up silently.
        jitter: share of the wait that is drawn at random, 0 to 1.
    """

    first_s: float = 60.0
    factor: float = 2.0
    longest_s: float = _WEEK_S
    jitter: float = 0.5

    def __post_init__(self) -> None:
        for name, value, low, high in (
            ("first_s", self.first_s, 0.0, math.inf),
            ("factor", self.factor, 1.0, 1e6),
            ("longest_s", self.longest_s, self.first_s, math.inf),
            ("jitter", self.jitter, 0.0, 1.0),
        ):
            if not (math.isfinite(value) and low <= value <= high):
                raise InvalidInput(f"is {value}, but must be a number from {low:g} to {high:g}", field=name)


DEFAULT_BACKOFF = BackoffRules()


def backoff_s(failures: int, uniform: float, rules: BackoffRules = DEFAULT_BACKOFF) -> float:
    """Seconds to wait after so many failures in a row; 0 after none. O(1) for any number of failures.

    The wait lies between (1 − jitter) and 1 times the exponential one.

    >>> [backoff_s(failures, uniform=1.0) for failures in (0, 1, 2, 3, 1000)]
    [0.0, 60.0, 120.0, 240.0, 604800.0]
    """
    if failures <= 0 or rules.first_s == 0.0:
        return 0.0
    room = math.log(rules.longest_s / rules.first_s)
    growth = (failures - 1) * math.log(rules.factor)
    wait_s = rules.longest_s if growth >= room else rules.first_s * rules.factor ** (failures - 1)
    return wait_s * (1.0 - rules.jitter * (1.0 - uniform))


def spread_until(until: float, uniform: float, spread_s: float = 30.0) -> float:
    """The moment after a pause of a whole host at which one of its waiters may return, spread at random."""
    return until + uniform * spread_s


def seeded_uniform(seed: int, name: str, turn: int) -> float:
    """A number in [0, 1) that depends on nothing but its arguments.

    >>> seeded_uniform(1, "example.com", 2) == seeded_uniform(1, "example.com", 2)
    True
    """
    digest = blake2b(f"{seed}\\0{turn}\\0{name}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) * 2.0**-53
