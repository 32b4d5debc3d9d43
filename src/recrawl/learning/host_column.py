"""The host of each page, as callers give it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.learning.inputs import check_codes, shown
from recrawl.pages import Hosts

HostColumn = Hosts | Sequence[Hashable] | NDArray[Any]


def number_hosts(hosts: HostColumn, pages: int) -> Hosts:
    """Number the hosts of so many pages, in order of their names; `Hosts` keep their numbers. O(pages · log pages).

    >>> numbered = number_hosts(["b.org", "a.org", "b.org"], pages=3)
    >>> numbered.codes.tolist(), list(numbered.names)
    ([1, 0, 1], ['a.org', 'b.org'])
    """
    if isinstance(hosts, Hosts):
        check_codes(hosts.codes, "hosts", len(hosts.names))
    else:
        hosts = _numbered(hosts)
    if len(hosts.codes) != pages:
        raise InvalidInput(f"has {len(hosts.codes)} values but there are {pages} pages", field="hosts")
    return hosts


def _numbered(hosts: Sequence[Hashable] | NDArray[Any]) -> Hosts:
    try:
        array = np.asarray(hosts)
    except ValueError:  # lists of different lengths
        array = np.asarray(None)
    if np.ma.is_masked(hosts):
        row = int(np.argmax(np.ma.getmaskarray(np.ma.asarray(hosts))))
        raise InvalidInput("is missing, but every page needs a host", field="hosts", row=row)
    if array.ndim != 1:
        raise InvalidInput("must be a flat column with one name or number per page", field="hosts")
    if array.dtype.kind in "fOUS":
        # NumPy makes names of numbers that stand beside names: look at what the caller wrote.
        _check_alike(hosts if isinstance(hosts, (list, tuple)) else array.tolist())
    try:
        names, codes = np.unique(array, return_inverse=True)
    except TypeError:
        raise InvalidInput("must be names or numbers that can be put in order", field="hosts") from None
    return Hosts(codes.astype(np.int64), names.tolist())


def _check_alike(hosts: Sequence[Any]) -> None:
    """Refuse what is missing, and names beside numbers."""
    first = ""
    for row, host in enumerate(hosts):
        if _is_missing(host):
            raise InvalidInput("is missing, but every page needs a host", field="hosts", row=row)
        if not isinstance(host, Hashable):
            raise InvalidInput(f"is {shown(host)}, but must be a name or a number", field="hosts", row=row)
        first = first or _sort_of(host)
        if _sort_of(host) != first:
            problem = f"is {shown(host)}, but must be a {first} as the hosts before it"
            raise InvalidInput(problem, field="hosts", row=row)


def _sort_of(host: Any) -> str:
    if isinstance(host, str):
        return "name"
    return "number" if isinstance(host, Real) else type(host).__name__


def _is_missing(host: Any) -> bool:
    return host is None or type(host).__name__ in ("NAType", "NaTType") or (isinstance(host, Real) and host != host)
