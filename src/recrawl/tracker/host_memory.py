"""What is remembered of a host beside its row, as bytes: its robots.txt, by origin."""

from __future__ import annotations

import msgspec

from recrawl.web.robots import RobotsEntry

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(dict[str, RobotsEntry])


def robots_to_bytes(entries: dict[str, RobotsEntry]) -> bytes | None:
    """The bytes to keep; None if nothing was asked."""
    return _ENCODER.encode(entries) if entries else None


def robots_from_bytes(kept: bytes | None) -> dict[str, RobotsEntry]:
    """What `robots_to_bytes` gave; what cannot be read is asked anew."""
    if kept is None:
        return {}
    try:
        return _DECODER.decode(kept)
    except msgspec.MsgspecError:
        return {}
