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
        try:
            names, codes = np.unique(np.asarray(hosts), return_inverse=True)
        except TypeError:
            raise InvalidInput("must be all names or all numbers, with none missing", field="hosts") from None
        hosts = Hosts(codes.astype(np.int64), names.tolist())
    if len(hosts.codes) != pages:
        raise InvalidInput(f"has {len(hosts.codes)} values but there are {pages} pages", field="hosts")
    return hosts
