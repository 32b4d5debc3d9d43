"""Trust in the signals of a host as bytes, for its row in the store: at most about 4 kB, with the form they are in.

What cannot be read is forgotten, with a sentence: trust is then learned anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from recrawl.errors import InvalidInput
from recrawl.learning.audit_clusters import FIRST_KIND
from recrawl.learning.trust_tracker import POINTS, HostMemory
from recrawl.pages import Floats

MOST_BYTES = 4096
_VERSION = 1
_MOST_KIND_CHARS = 40


class _Packed(msgspec.Struct, array_like=True):
    version: int
    kinds: list[str]
    weights: bytes  # numbers of single precision from here on
    amounts: bytes
    against: bytes
    sums: bytes
    followed: bool = False


class Kept(NamedTuple):
    """What was learned of a host: kinds that were heard, the memory of audits, and whether any was ever followed."""

    kinds: list[str]
    memory: HostMemory
    followed: bool


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Packed)


def to_bytes(kinds: Sequence[str], memory: HostMemory, *, followed: bool = False) -> bytes | None:
    """The bytes to keep, of those kinds that were heard; None if none was. `followed`: pages listened to some, ever."""
    count = len(kinds)
    heard = memory.sums[FIRST_KIND + count : FIRST_KIND + 2 * count]
    chosen = [number for number in np.argsort(-heard, kind="stable").tolist() if heard[number] > 0]
    while chosen:
        amounts, weights, against, sums = (column.astype("<f4").tobytes() for column in _columns(memory, chosen, count))
        names = [kinds[number] for number in chosen]
        kept = _ENCODER.encode(_Packed(_VERSION, names, weights, amounts, against, sums, followed))
        if len(kept) <= MOST_BYTES:
            return kept
        chosen.pop()
    return None


def from_bytes(kept: bytes) -> Kept:
    """What `to_bytes` was given.

    Raises:
        InvalidInput: if they are something else.
    """
    try:
        read = _DECODER.decode(kept)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot be read: {error}", field="learned") from None
    if read.version != _VERSION:
        raise InvalidInput(f"is of the form {read.version}, but only {_VERSION} is known", field="learned")
    kinds = read.kinds
    if len(set(kinds)) != len(kinds) or any(not 0 < len(kind) <= _MOST_KIND_CHARS for kind in kinds):
        raise InvalidInput("has kinds that cannot be", field="learned")
    causes, count = 1 + 2 * len(kinds), len(kinds)
    weights = _singles(read.weights)
    columns = _singles(read.amounts), weights, _singles(read.against), _singles(read.sums)
    sizes = len(weights) * causes, min(len(weights), POINTS), causes, FIRST_KIND + 3 * count
    if tuple(len(column) for column in columns) != sizes:
        raise InvalidInput("has columns that do not fit its kinds", field="learned")
    memory = HostMemory(columns[0].reshape(len(weights), causes), *columns[1:])
    for column in memory:
        if not (np.isfinite(column) & (column >= 0)).all():
            raise InvalidInput("has numbers that no audits add up to", field="learned")
    return Kept(kinds, memory, read.followed)


def among(kinds: Sequence[str], memory: HostMemory, all_kinds: Sequence[str]) -> HostMemory:
    """The same memory with a column for each of these kinds, which those that it knows are among."""
    has, count = len(all_kinds), len(kinds)
    places = [all_kinds.index(kind) for kind in kinds]
    causes = [0, *(1 + place for place in places), *(1 + has + place for place in places)]
    sums = [*range(FIRST_KIND), *(FIRST_KIND + part * has + place for part in range(3) for place in places)]
    amounts, against = np.zeros((len(memory.weights), 1 + 2 * has)), np.zeros(1 + 2 * has)
    wide = np.zeros(FIRST_KIND + 3 * has)
    assert len(causes) == 1 + 2 * count
    amounts[:, causes] = memory.amounts
    against[causes] = memory.against
    wide[sums] = memory.sums
    return HostMemory(amounts, memory.weights, against, wide)


def _columns(memory: HostMemory, chosen: Sequence[int], count: int) -> HostMemory:
    causes = [0, *(1 + number for number in chosen), *(1 + count + number for number in chosen)]
    sums = [*range(FIRST_KIND), *(FIRST_KIND + part * count + number for part in range(3) for number in chosen)]
    return HostMemory(memory.amounts[:, causes], memory.weights, memory.against[causes], memory.sums[sums])


def _singles(kept: bytes) -> Floats:
    if len(kept) % 4:
        raise InvalidInput("has half a number", field="learned")
    singles: NDArray[np.float32] = np.frombuffer(kept, dtype="<f4")
    return singles.astype(np.float64)
