"""The host of each page, as callers give it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.pages import Hosts

HostColumn = Hosts | Sequence[Hashable] | NDArray[Any]


def number_hosts(hosts: HostColumn, pages: int) -> Hosts:
    """Number the hosts of so many pages; `Hosts` are taken as they are. O(pages · log pages).

    >>> numbered = number_hosts(["b.org", "a.org", "b.org"], pages=3)
    >>> numbered.codes.tolist(), list(numbered.names)
    ([1, 0, 1], ['a.org', 'b.org'])
    """
    if not isinstance(hosts, Hosts):
        hosts = _numbered(hosts)
    if len(hosts.codes) != pages:
        raise InvalidInput(f"has {len(hosts.codes)} values but there are {pages} pages", field="hosts")
    return hosts


def _numbered(hosts: Sequence[Hashable] | NDArray[Any]) -> Hosts:
    problem = "must be a column of names or of numbers, not both, with none missing"
    if isinstance(hosts, (list, tuple)) and len({isinstance(host, str) for host in hosts}) > 1:
        raise InvalidInput(problem, field="hosts")  # NumPy would make names of the numbers
    array = np.asarray(hosts)
    missing = array.dtype.kind == "f" and bool(np.isnan(array).any())
    if array.ndim != 1 or missing:
        raise InvalidInput(problem, field="hosts")
    try:
        names, codes = np.unique(array, return_inverse=True)
    except TypeError:
        raise InvalidInput(problem, field="hosts") from None
    return Hosts(codes.astype(np.int64), names.tolist())
