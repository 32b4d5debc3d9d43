"""Signs of a crawler trap in an address: endless depth and segments that repeat.

Calendars, session paths and relative links that climb into themselves make addresses without end. These rules
are cheap and hold for newly found addresses only; caps by host and source belong to discovery.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from recrawl.web.refused import Refused, safe_text
from recrawl.web.url.address import Address


@dataclass(frozen=True, slots=True)
class TrapRules:
    """Limits for a newly found address: path segments, repeats of one segment, query parameters."""

    max_depth: int = 20
    max_repeats: int = 2
    max_parameters: int = 20


DEFAULT_TRAP_RULES = TrapRules()


def trap_sign(address: Address, rules: TrapRules = DEFAULT_TRAP_RULES) -> Refused | None:
    """The sign of a trap in an address, or None. O(length).

    >>> from recrawl.web.url.address import read_address
    >>> trap_sign(read_address("http://example.com/a/b/a/b/a/b")).rule
    'repeated-segment'
    """
    path, _, query = address.target.partition("?")
    segments = [segment for segment in path.split("/") if segment]
    if len(segments) > rules.max_depth:
        return Refused("deep-path", safe_text(address.url), f"its path has more than {rules.max_depth} segments")
    if any(count > rules.max_repeats for count in Counter(segments).values()):
        return Refused(
            "repeated-segment", safe_text(address.url), f"a segment stands more than {rules.max_repeats} times"
        )
    if query.count("&") >= rules.max_parameters:
        return Refused("many-parameters", safe_text(address.url), f"it has more than {rules.max_parameters} parameters")
    return None
