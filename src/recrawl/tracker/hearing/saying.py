"""Trust in the signals of a host in plain values, for people."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import NamedTuple

from recrawl.errors import InvalidInput
from recrawl.learning.trust import Trust
from recrawl.learning.trust_tracker import TrustTracker
from recrawl.tracker.hearing.keeping import from_bytes
from recrawl.tracker.hearing.trust import FIRST_LOOK, listens_to


class KindTrust(NamedTuple):
    """How far a kind of signal is trusted on a host: shares with standard errors, and the crawls that say so."""

    kind: str
    precision: float
    precision_error: float
    recall: float
    recall_error: float
    audits: int
    listened: bool


def kinds_of(trust: Trust, listened: Container[str]) -> list[KindTrust]:
    """Trust in the host of the first row by kind, the most telling first."""
    return sorted(
        (
            KindTrust(
                str(kind),
                float(trust.precision[0, place]),
                float(trust.errors.precision[0, place]),
                float(trust.recall[0, place]),
                float(trust.errors.recall[0, place]),
                int(trust.audits[0]),
                kind in listened,
            )
            for place, kind in enumerate(trust.kinds)
        ),
        key=lambda each: -each.recall,
    )


def trust_of_bytes(learned: bytes | None, listened: Container[str] | None = None) -> Sequence[KindTrust]:
    """Trust as it is kept with a host; nothing if that cannot be read.

    Args:
        learned: bytes of `keeping.to_bytes`.
        listened: the kinds that are listened to; None: those that would be.
    """
    try:
        kept = from_bytes(learned or b"")
        tracker = TrustTracker(1, kept.kinds)
        tracker.put_back(0, kept.memory)
    except InvalidInput:
        return []
    trust = tracker.trust()
    if listened is None:
        telling = listens_to(trust)[0] & (trust.audits[0] >= FIRST_LOOK)
        listened = {kind for kind, heard in zip(kept.kinds, telling.tolist(), strict=True) if heard}
    return kinds_of(trust, listened)
