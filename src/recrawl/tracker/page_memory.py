"""What is remembered of a page between visits besides its row: for detection and for validators, as bytes.

The store keeps it byte for byte. What cannot be read is forgotten, and the page starts anew: a baseline, no event.
"""

from __future__ import annotations

from dataclasses import field

import msgspec

from recrawl.errors import InvalidInput
from recrawl.store.records import record
from recrawl.web.conditional import ValidatorTrust
from recrawl.web.variants import PageMemory

_VERSION = 1


@record
class Remembered:
    """What is known of a page.

    Args:
        page: by detection; None before the first visit.
        validators: how far they are trusted.
        moved_to: where permanent redirects lead, "" if there are none.
        moved_times: visits in a row that were led there.
    """

    page: PageMemory | None = None
    validators: ValidatorTrust = field(default_factory=ValidatorTrust)
    moved_to: str = ""
    moved_times: int = 0


class _Kept(msgspec.Struct, array_like=True):
    version: int
    page: dict[str, object] | None
    validators: ValidatorTrust
    moved_to: str = ""
    moved_times: int = 0


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Kept)


def to_bytes(remembered: Remembered) -> bytes:
    """The bytes to keep: about 300 for a page that never changed."""
    page = None if remembered.page is None else remembered.page.to_dict()
    return _ENCODER.encode(_Kept(_VERSION, page, remembered.validators, remembered.moved_to, remembered.moved_times))


def from_bytes(kept: bytes | None) -> Remembered:
    """What `to_bytes` gave; nothing is known if there is none, or it is of another form."""
    if kept is None:
        return Remembered()
    try:
        read = _DECODER.decode(kept)
        if read.version != _VERSION:
            return Remembered()
        page = None if read.page is None else PageMemory.from_dict(read.page)
    except (msgspec.MsgspecError, InvalidInput):
        return Remembered()
    return Remembered(page, read.validators, read.moved_to, read.moved_times)
