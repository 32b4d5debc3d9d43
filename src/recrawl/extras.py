"""Libraries that only some features need: the extra that brings each, and the sentence where it is missing.

Nothing here imports them: what needs one asks first, then imports it where it is used.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal

from recrawl.errors import MissingExtra

Library = Literal["asyncpg", "matplotlib", "pyarrow", "scipy", "scrapy", "trafilatura"]

_EXTRAS: dict[Library, str] = {
    "asyncpg": "postgres",
    "matplotlib": "plots",
    "pyarrow": "parquet",
    "scipy": "bench",
    "scrapy": "bench",
    "trafilatura": "markdown",
}


def is_installed(library: Library) -> bool:
    """Whether a library can be imported; does not import it."""
    return find_spec(library) is not None


def missing(library: Library, what: str) -> str:
    """The sentence for what cannot be done without a library.

    >>> missing("pyarrow", "a Parquet file")
    "a Parquet file needs pyarrow, which is not installed; call pip install 'recrawl[parquet]'"
    """
    return f"{what} needs {library}, which is not installed; call pip install 'recrawl[{_EXTRAS[library]}]'"


def need(library: Library, what: str) -> None:
    """Refuse what needs a library that is not installed."""
    if not is_installed(library):
        raise MissingExtra(missing(library, what))
