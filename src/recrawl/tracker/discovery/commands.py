"""What users ask of discovery, as values that go through the store: hits to be counted, and a list of sources."""

from __future__ import annotations

import msgspec


class SourceHits(msgspec.Struct, array_like=True):
    """Hits on the pages of one source in a stretch of time, by age; both counts as `interest.pack_counts` gives them.

    Args:
        page_id: of the source.
        since: the beginning of the stretch.
        until: its end.
        hits: on its pages.
        watched: pages of that age.
    """

    page_id: int
    since: float
    until: float
    hits: bytes
    watched: bytes


class CountHits(msgspec.Struct, tag="hits"):
    """Count hits of access logs; what lies before hits that were counted is left out, so that twice is once."""

    counts: list[SourceHits]


class ListSources(msgspec.Struct, tag="sources"):
    """Which sources are there, and what do they bring?"""
