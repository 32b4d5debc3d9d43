"""When a host may be crawled: its gap, its crawls in flight, its cap and what it was told. Scalar kernels; pure."""

from __future__ import annotations

import math

from recrawl.jit import borrowing
from recrawl.scheduling.page_record import Record, Records

_ROUNDING = 1e-15  # of a time: a caller who polls at multiples of the gap is not made to wait for the next one
_SLACK = 1e-9  # of a crawl: rounding of times must not cost one


@borrowing
def has_paced_host(page: Record, hosts: Records) -> bool:
    """Whether the page has a host with limits."""
    return bool(page["host"] >= 0 and hosts[page["host"]]["paced"] != 0)


@borrowing
def opens_at(host: Record, burst: float) -> float:
    """The earliest time at which the host may be crawled; infinity while too many of its crawls are in flight.

    A cap allows `burst` crawls at once, or one, and cap·time from then on, as the budget does.
    """
    if host["max_in_flight"] > 0 and host["in_flight"] >= host["max_in_flight"]:
        return math.inf
    opens = max(host["next_start"], host["blocked_until"])
    cap = host["rate_cap"]
    if cap < math.inf:
        opens = max(opens, host["cap_time"] - (max(burst, 1.0) - 1.0 + _SLACK) / cap) if cap > 0.0 else math.inf
    return opens


@borrowing
def closes_after(host: Record) -> bool:
    """Whether one more crawl closes the host for some time, so that its pages compete for it."""
    full = host["max_in_flight"] > 0 and host["in_flight"] + 1 >= host["max_in_flight"]
    return bool(host["min_gap"] > 0.0 or host["rate_cap"] < math.inf or full)


@borrowing
def has_limits(host: Record) -> bool:
    """Whether there is a limit to what the host can serve; being told to stay away for a time is none."""
    return bool(host["min_gap"] > 0.0 or host["rate_cap"] < math.inf or host["max_in_flight"] > 0)


@borrowing
def start_crawl(host: Record, now: float) -> None:
    """Count a crawl that starts now."""
    host["in_flight"] += 1
    opens = now + host["min_gap"]
    host["next_start"] = opens - _ROUNDING * abs(opens)
    if host["rate_cap"] < math.inf:
        host["cap_time"] = max(host["cap_time"], now) + 1.0 / host["rate_cap"]


@borrowing
def end_crawl(host: Record) -> None:
    """Count a crawl that was settled."""
    host["in_flight"] = max(host["in_flight"] - 1, 0)
