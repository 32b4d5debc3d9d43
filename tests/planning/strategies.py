"""Random and adversarial page populations for property tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from recrawl.pages import Floats

Columns = dict[str, Any]


def spread(random: np.random.Generator, size: int, decades: float) -> Floats:
    """Positive numbers over this many decades around 1, a few of them equal, so that pages tie."""
    values = 10 ** random.uniform(-decades / 2, decades / 2, size)
    if size > 3:
        values[: size // 3] = values[0]
    return np.asarray(random.permutation(values))


@st.composite
def populations(draw: st.DrawFn, *, limits: bool = True) -> Columns:
    """Pages with importance and change rate over many decades, zeros among them, and perhaps limits and costs."""
    size = draw(st.integers(1, 40))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    decades = draw(st.sampled_from([0.0, 2.0, 6.0, 12.0]))
    pages: Columns = {
        "importance": spread(random, size, decades),
        "change_rate": spread(random, size, decades / 2),
    }
    if size > 4 and draw(st.booleans()):
        pages["importance"][random.integers(size)] = 0.0
        pages["change_rate"][random.integers(size)] = 0.0
    if limits and draw(st.booleans()):
        pages["cost"] = spread(random, size, 2.0)
    if limits and draw(st.booleans()):
        pages["min_rate"] = spread(random, size, 2.0) * random.integers(0, 2, size) / (20.0 * size)
    if limits and draw(st.booleans()):
        pages["max_rate"] = pages.get("min_rate", 0.0) + spread(random, size, 3.0)
    return pages


@st.composite
def budgets(draw: st.DrawFn) -> float:
    """Budgets from starving to ample."""
    return float(10.0 ** draw(st.floats(-3, 3)))


def add_hosts(pages: Columns, seed: int, hosts: int = 4) -> tuple[Columns, dict[str, float]]:
    """Give the pages hosts, and caps to all hosts but one."""
    random = np.random.default_rng(seed)
    size = len(pages["importance"])
    names = [f"h{random.integers(hosts)}" for _ in range(size)]
    caps = {name: float(10 ** random.uniform(-2, 1)) for name in sorted(set(names))[1:]}
    return {**pages, "host": names}, caps
